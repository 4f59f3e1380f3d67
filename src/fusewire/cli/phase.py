"""`fusewire phase`: test-driven work, phase by phase, and a person's choice when one of them is stuck."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import AGENT_VARIABLES, inside_loop, require_person
from fusewire.breakers.phase.detect import METRICS, PHASES
from fusewire.breakers.phase.end import CHOICES
from fusewire.breakers.phase.metrics import is_measured, junit_run, output_run, parse_metrics, with_run
from fusewire.breakers.phase.phases import Phases, overview_of
from fusewire.breakers.phase.report import known_lines, open_block, overview_lines, status_block
from fusewire.breakers.phase.state_file import LIMIT
from fusewire.cli.common import print_json, project_command, read_input, show_result
from fusewire.cli.streams import is_interactive, tell, tell_text, warn
from fusewire.testruns.run import Problem
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.phase.detect import Values
    from fusewire.breakers.phase.end import PhaseEnd
    from fusewire.breakers.phase.phases import PhaseStart
    from fusewire.engine.breaker import Breaker

#: How often a person at a terminal is asked for one of the four choices.
_ASKED = 3

_ALIASES = {alias: choice for at, choice in enumerate(CHOICES, 1) for alias in (choice, choice[0], str(at))}


class _Phase(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """One of the four phases, in any case; errors name them as everything else does, in capitals."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(super().convert(value.upper(), param, ctx))

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """List nothing over several lines; `--help` has it."""
        return ""


_PHASE = _Phase(PHASES)


def _choice(text: str) -> str:
    """The type of CHOICE: one of the four by its name, its first letter or its number, in any case."""
    choice = _ALIASES.get(text.strip().lower())
    if choice is None:
        raise click.BadParameter(f"{text!r} is not one of {', '.join(CHOICES)} (or r, s, a, m)")
    return choice


def _metric(text: str) -> tuple[str, str]:
    """The type of --metric: a name and a value, whose meaning depends on the phase."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals):
        raise click.BadParameter(f"{text!r} is refused; allowed: NAME=VALUE")
    return name, value


phase_argument = click.argument("phase", metavar="PHASE", type=_PHASE)


@click.group("phase")
def phase_command() -> None:
    """The phases of test-driven work: RED, GREEN, REFACTOR, DOCUMENT, each with a circuit of its own.

    \b
    fusewire phase begin GREEN || exit 3
    ... the agent works, the tests run ...
    fusewire phase end GREEN --from-junit report.xml

    A phase that makes no progress, or repeats one error, opens its circuit. Then no phase begins until a person
    decides: `fusewire phase resolve reset|skip|abort|modify`.
    """


def with_phases(command: Callable[..., Any]) -> Callable[..., Any]:
    """The common options, the project's phases as first argument, and warnings about their state file."""

    @functools.wraps(command)
    def wrapped(breaker: Breaker, **options: Any) -> Any:
        phases = Phases(breaker)
        try:
            return command(phases, **options)
        finally:
            warn(*phases.warnings)

    return project_command(wrapped)


# -- begin ------------------------------------------------------------------------------------------------


@phase_command.command("begin")
@phase_argument
@with_phases
def begin_command(phases: Phases, phase: str, as_json: bool) -> int:
    """May work on a phase begin? Exit 0, with a person's guidance on standard output, or exit 3.

    While the circuit of any phase is open, no phase begins: the block with the four choices is printed, and at a
    terminal you are asked for one. PHASE is RED, GREEN, REFACTOR or DOCUMENT.
    """
    begun = phases.begin(phase)
    if as_json:
        print_json(_begun_json(begun))
        return 0 if begun.allowed else 3
    while begun.halted is not None:
        # The block is for the person who is asked; standard output is for a script that waits for an allowed begin.
        asks = _person_at_a_terminal(phases)
        tell_text(open_block(begun.halted), err=asks)
        _say_next(begun.next)
        if not (asks and _ask_for_choice(phases)):
            return 3
        begun = phases.begin(phase)
    if begun.refused:
        tell(f"BLOCKED {begun.phase}: {begun.refused}.", fg="red", err=True)
        _say_next(begun.next)
        return 3
    if begun.warning:
        tell(f"WARNING: {begun.phase} is {begun.state}: {begun.warning}", fg="yellow", err=True)
    if begun.guidance:
        tell_text(f"Guidance from a person:\n{begun.guidance}")
    tell(*known_lines(begun.known))
    return 0


def _begun_json(begun: PhaseStart) -> dict[str, object]:
    halted = None if begun.halted is None else begun.halted.to_json()
    return {
        "decision": "BLOCKED" if not begun.allowed else "WARN" if begun.warning else "ALLOWED",
        "phase": begun.phase,
        "state": begun.state,
        "reason": begun.refused or begun.warning or (begun.halted.reason if begun.halted else ""),
        "open": halted,
        "guidance": begun.guidance or None,
        "known_failures": [
            {"phase": known["phase"], "count": known["count"], "tests": known["tests"]} for known in begun.known
        ],
        "next": begun.next,
    }


def _say_next(steps: list[str]) -> None:
    tell(*(f"{step[:1].upper()}{step[1:]}" for step in steps), err=True)


def _person_at_a_terminal(phases: Phases) -> bool:
    inside = any(os.environ.get(name) for name in AGENT_VARIABLES)
    return is_interactive() and not inside and not inside_loop(phases.breaker.root or "")


def _ask_for_choice(phases: Phases) -> bool:
    """Ask for one of the four choices and apply it; no answer leaves the circuit open."""
    for _ in range(_ASKED):
        answer = _ask("Choice [R/S/A/M, nothing leaves it open]: ")
        if not answer:
            return False
        choice = _ALIASES.get(answer.lower())
        if choice is None:
            tell(f"{answer!r} is none of: r, s, a, m", err=True)
            continue
        guidance = _ask("Guidance: ") if choice == "modify" else ""
        if choice == "modify" and not guidance:
            return False
        actor = require_person("`fusewire phase resolve`", phases.breaker.root)
        tell(*phases.resolve(choice, actor, guidance).log, err=True)
        return True
    return False


def _ask(question: str) -> str:
    tell_text(question, err=True, nl=False)
    return sys.stdin.readline().strip()


# -- end --------------------------------------------------------------------------------------------------


@phase_command.command("end")
@phase_argument
@click.option(
    "--metric",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    type=_metric,
    help="What was measured; may be repeated.",
)
@click.option("--from-junit", metavar="FILE", help="Read the tests from a JUnit XML file (- is standard input).")
@click.option("--from-output", metavar="FILE", help="Read them from the output of a test runner (- is standard input).")
@click.option("--error", help="The error with which the iteration ended (default: that of the test run).")
@click.option("--error-type", help="Its type (default: the class that the message begins with).")
@click.option("--complete", is_flag=True, help="Declare the phase done; its metrics must agree.")
@with_phases
def end_command(
    phases: Phases,
    phase: str,
    pairs: tuple[tuple[str, str], ...],
    from_junit: str | None,
    from_output: str | None,
    error: str | None,
    error_type: str | None,
    complete: bool,
    as_json: bool,
) -> int:
    """Judge one iteration of a phase and print its PRP_PHASE_STATUS. Exit 3 if the circuit is open.

    \b
    RED       tests_generated, criteria_covered: more than ever
    GREEN     tests_passing: more than ever; tests_failing: fewer, at the same total
    REFACTOR  pattern_applied, duplication_removed: true; patterns_applied: more; complexity_score: lower
    DOCUMENT  docs_generated, diagrams_valid: more than ever
    """
    if from_junit is not None and from_output is not None:
        raise click.UsageError("give either --from-junit or --from-output")
    if error is not None and not error.strip():
        raise click.UsageError("--error must say what failed")
    if error_type is not None and error is None:
        raise click.UsageError("--error-type needs --error TEXT")
    metrics, failing, problems = _measured(phase, pairs, from_junit, from_output)
    is_unmeasured = error is None and (failing is not None or not problems)
    if is_unmeasured and not is_measured(phase, metrics):
        raise click.UsageError(
            f"nothing to judge {phase} by; give --metric with one of {', '.join(METRICS[phase])}"
            f"{', or --from-junit, --from-output' if phase in ('RED', 'GREEN') else ''}, or --error"
        )
    ended = phases.end(
        phase,
        metrics,
        error=error or "",
        error_type=(error_type or "").strip(),
        failing=failing,
        problems=problems,
        complete=complete,
    )
    _say_ended(ended, as_json)
    return 3 if ended.blocked else 0


def _measured(
    phase: str, pairs: tuple[tuple[str, str], ...], from_junit: str | None, from_output: str | None
) -> tuple[Values, tuple[str, ...] | None, list[Problem]]:
    """The metrics from everything that was given; the names of failing tests, and what failed, where a run tells."""
    metrics = parse_metrics(phase, pairs)
    run, problems = None, list[Problem]()
    if from_junit is not None:
        run, problems = junit_run(read_input(from_junit, "the test results"), from_junit)
    elif from_output is not None:
        run, problems = output_run(read_input(from_output, "the test run"), from_output)
    option = "--from-junit" if from_junit is not None else "--from-output"
    return with_run(phase, metrics, run, option), None if run is None else run.failing, problems


def _say_ended(ended: PhaseEnd, as_json: bool) -> None:
    if as_json:
        data = {**ended.status.to_json(), "progress": ended.progress, "reasons": ended.reasons, "log": ended.log}
        print_json({**data, "next": ended.next})
    else:
        tell_text(status_block(ended.status))
        tell(*ended.log, err=True)
        _say_next(ended.next)
    if ended.incomplete:
        tell(f"{ended.status.phase} is not complete: {ended.incomplete}.", err=True)


# -- a person's acts --------------------------------------------------------------------------------------


@phase_command.command("resolve")
@click.argument("choice", metavar="reset|skip|abort|modify", type=_choice)
@click.option("--guidance", help="For modify: what to do differently; the next begin prints it.")
@with_phases
def resolve_command(phases: Phases, choice: str, guidance: str | None, as_json: bool) -> int:
    """Decide about a phase whose circuit is open. For a person.

    \b
    reset   counters to 0, go on as before
    skip    mark the phase complete; its failing tests are known failures from then on
    abort   nothing begins until `fusewire phase start`
    modify  as reset, with guidance that the next begin gives to the agent
    """
    actor = require_person("`fusewire phase resolve`", phases.breaker.root)
    if guidance is not None and choice != "modify":
        raise click.UsageError("--guidance is for modify")
    if choice == "modify" and guidance is None and _person_at_a_terminal(phases):
        guidance = _ask("Guidance: ")
    if choice == "modify" and not (guidance or "").strip():
        raise click.UsageError("modify needs --guidance TEXT")
    resolved = phases.resolve(choice, actor, guidance or "")
    if as_json:
        print_json({"choice": choice, "phase": resolved.phase or None, "log": resolved.log, "known": resolved.known})
        return 0
    tell(*resolved.log, err=True)
    if choice == "skip":
        tell(f"{resolved.phase} is marked complete, with {counted(resolved.known, 'known failure')}.", err=True)
    if choice == "abort":
        tell("A person can start anew: fusewire phase start", err=True)
    return 0


@phase_command.command("start")
@click.option("--name", default="", help="A name for the work; `phase status` shows it.")
@with_phases
def start_command(phases: Phases, name: str, as_json: bool) -> int:
    """Start over: circuits closed, counters 0, history empty; the old state file is kept. For a person."""
    actor = require_person("`fusewire phase start`", phases.breaker.root)
    kept = phases.start(actor, name)
    if as_json:
        print_json({"name": name, "kept": kept or None})
    else:
        tell(f"Started anew{f'; the old state is kept as {kept}' if kept else ''}.", err=True)
    return 0


@phase_command.command("import")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--phase", metavar="PHASE", type=_PHASE, help="The phase that the file is about.")
@with_phases
def import_command(phases: Phases, file: str, phase: str | None, as_json: bool) -> int:
    """Import the state from a file with the schema of `.prp-session/circuit-breaker.json`. For a person."""
    actor = require_person("`fusewire phase import`", phases.breaker.root)
    content = read_input(file, "the state file")
    if len(content) > LIMIT:
        raise FusewireError(f"{file}: it is too large; allowed: up to 1 MiB")
    state = phases.take(content, file, actor, phase or "")
    return show_result(as_json, {"file": file, "state": state, "phase": phases.view()["phase"]}, f"{file}: {state}")


@phase_command.command("status")
@with_phases
def status_command(phases: Phases, as_json: bool) -> int:
    """Show the four phases: states, counters, metrics, known failures, guidance, the newest history."""
    view = overview_of(phases)
    return show_result(as_json, asdict(view), *overview_lines(view))
