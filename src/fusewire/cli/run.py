"""`fusewire run`: the supervised loop around any agent."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import require_outside_loop, require_person
from fusewire.breakers.session.ordered import RULE as HALTED_BY_PERSON
from fusewire.breakers.session.ordered import halt_here
from fusewire.cli.common import duration, orders_told, print_json, project_command, show_warnings
from fusewire.cli.keyboard import Keyboard
from fusewire.cli.plain import KEPT, PlainView, QuietView
from fusewire.cli.run_summary import VERDICTS, summary_files, write_summary
from fusewire.cli.streams import is_interactive, say, warn
from fusewire.core.messages import message_lines
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import counted, show_duration
from fusewire.util.errors import AgentRefused, FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.loop.loop import Loop
    from fusewire.run.types import Options, Outcome

#: The seed's sentence.
ANNOUNCEMENT = "Circuit breaker is active — monitoring for stagnation, rate limits, and file protection."

#: What --sandbox and --no-sandbox ask for; without them the project's setting holds.
_SANDBOX = {True: "require", False: "off"}


@click.command("run", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--prompt", metavar="FILE", help="The agent gets it on standard input, or where {prompt} is in COMMAND.")
@click.option("--max-iterations", type=click.IntRange(1), metavar="N", help="End after this many iterations (exit 4).")
@click.option("--max-time", "max_seconds", type=duration, help='End after this time, such as "8h" (exit 4).')
@click.option(
    "--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="End once this much is spent (exit 4)."
)
@click.option("--max-calls-per-hour", type=click.IntRange(1, 1000), metavar="N", help="Starts of the agent in an hour.")
@click.option("--timeout", type=duration, help="The longest an iteration may take (default: 15m).")
@click.option("--idle-timeout", "idle", type=duration, help="The longest an iteration may be silent (default: 15m).")
@click.option("--until", metavar="CMD", help="Run after every iteration; the loop is done when it succeeds.")
@click.option("--verify", metavar="CMD", help="Must succeed before the agent's claim to be finished counts.")
@click.option("--plan", metavar="FILE", help="Done when all its boxes are ticked (default: IMPLEMENTATION_PLAN.md).")
@click.option("--junit", metavar="FILE", help="Test results to read after every iteration.")
@click.option("--wait/--no-wait", default=True, help="Wait for cooldowns and limits (default), or exit 3 instead.")
@click.option(
    "--sandbox/--no-sandbox",
    default=None,
    help="Require the sandbox (exit 3 if there is none), or run without (default: the setting [sandbox] mode).",
)
@click.option(
    "--summary",
    multiple=True,
    metavar="FILE",
    help="Append a summary in Markdown at the end (default: $GITHUB_STEP_SUMMARY); FILE.json gets the report as JSON.",
)
@click.option("--end-oldest", is_flag=True, help="If the project has too many runs, end the oldest first.")
@project_command
def run_command(
    breaker: Breaker, command: tuple[str, ...], as_json: bool, summary: tuple[str, ...], **options: Any
) -> int:
    """Run an agent in a loop until its work is done, and stop it when it stagnates.

    \b
    fusewire run --prompt PROMPT.md -- claude -p --permission-mode acceptEdits --output-format stream-json --verbose
    fusewire run --prompt PROMPT.md --until "pytest -q" --max-iterations 50 -- codex exec --json -
    fusewire run --prompt PROMPT.md -- gemini -o json -p {prompt}

    The loop ends when the agent prints a RALPH_STATUS block with EXIT_SIGNAL: true, when --until succeeds, or when all
    boxes of the plan are ticked (exit 0); at a cap (exit 4); when the agent asks the same question twice in a row, or
    five in a row, and only a person can answer (exit 5); when a circuit opens and there is nothing to wait for or
    to try, or when a protected file was destroyed (exit 3). A stopped run can be started again: counts, cooldowns and
    limits continue. No run is started (exit 3) if the project has too many runs already, or if agents have started
    agents too deeply.
    """
    if not command:
        raise click.UsageError("which agent? fusewire run [OPTIONS] -- COMMAND...")
    if any("{prompt}" in part for part in command) and options["prompt"] is None:
        raise click.UsageError("{prompt} stands in the command, but --prompt names no file")
    if options["prompt"] is not None and not os.path.isfile(options["prompt"]):
        raise FusewireError(f"no such prompt: {options['prompt']}")
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.overview import calls_limit
    from fusewire.run.process import launch_problem
    from fusewire.util.environment import children_environment

    require_outside_loop(breaker.root or "")
    if options["end_oldest"]:
        options["end_oldest"] = require_person("`fusewire run --end-oldest`", breaker.root)
    if options["sandbox"] is False:
        require_person("`fusewire run --no-sandbox`", breaker.root)
    for name in ("until", "verify"):
        if options[name] is not None and not options[name].strip():
            raise click.UsageError(f"--{name} is an empty command")
    here = _folder(breaker.root or "")
    if options["plan"] is not None and not os.path.isfile(os.path.join(here, options["plan"])):
        raise FusewireError(f"no such plan: {options['plan']}")
    for name in ("plan", "junit"):
        options[name] = options[name] and os.path.join(here, options[name])
    files = summary_files(summary)
    problem = launch_problem(command, here, children_environment().get("PATH"))
    if problem is not None:
        raise FusewireError(f"the agent cannot be started: {problem.problem}")
    loop = Loop(breaker, plan=options["plan"])
    calls = options.pop("max_calls_per_hour")
    if calls is not None:
        if calls > calls_limit(breaker.rules):
            require_person("raising the limit of calls", breaker.root)
        loop.limit_calls(calls)
    if halt_here(loop.root) is None:  # which says so itself
        show_warnings(breaker)
    outcome = supervise(loop, _options(loop, command, here, **options), quiet=as_json)
    reported = report(loop, outcome)
    for path in files:
        try:
            write_summary(path, loop, outcome, reported)
        except OSError as error:
            warn(f"the summary could not be written: {path}: {error.strerror}")
    if as_json:
        print_json(reported)
    return outcome.code


def _folder(root: str) -> str:
    """Where the agent runs: here, if here is in the project."""
    here, real = os.path.realpath(os.getcwd()), os.path.realpath(root)
    return os.getcwd() if here == real or here.startswith(real.rstrip("/") + "/") else root


def _options(loop: Loop, command: tuple[str, ...], here: str, plan: str | None, **options: Any) -> Options:
    """What the command line says, and the project's settings where it says nothing."""
    from fusewire.config.rulebook import read_rulebook
    from fusewire.run.types import Options

    settings = read_rulebook(Path(loop.root)).values["loop"].parsed
    options["timeout"] = options["timeout"] or settings["timeout"]
    options["idle"] = options["idle"] or settings["idle_timeout"]
    options["sandbox"] = _SANDBOX.get(options["sandbox"], loop.breaker.rules.sandbox[0])
    options["end_oldest"] = options["end_oldest"] or None
    options["pace"] = settings["pace"]
    return Options(command=command, cwd=here, **options)


def supervise(loop: Loop, options: Options, *, quiet: bool = False) -> Outcome:
    """One run in front of a person: the announcement, the run, its end."""
    from fusewire.agents.install.registrations import working_hooks
    from fusewire.run.supervisor import Supervisor

    view = QuietView() if quiet else _view(loop.root)
    say(ANNOUNCEMENT)
    with view:
        outcome = Supervisor(loop, options, view, lambda: working_hooks(options.command[0], loop.root)).run()
    say_end(loop, outcome)
    return outcome


def _view(root: str) -> PlainView:
    """A live line where a person watches, plain lines elsewhere."""
    keyboard = None
    if is_interactive():
        with suppress(AgentRefused):
            require_person("ending a cooldown", root)
            keyboard = Keyboard(sys.stdin.fileno())
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from fusewire.cli.live import LiveView

        return LiveView(keyboard=keyboard)
    return PlainView(keyboard)


def say_end(loop: Loop, outcome: Outcome) -> None:
    """How it ended, in one block: never a success that is none."""
    verdict = VERDICTS[outcome.code]
    cost = "" if outcome.cost is None else f", ${outcome.cost:.2f}"
    count = counted(outcome.iterations, "iteration")
    stop = outcome.decision
    is_by_person = stop is not None and stop.rule == HALTED_BY_PERSON
    why = "" if is_by_person else f": {outcome.reason}"
    say(*f"{verdict} after {count} in {show_duration(outcome.seconds)}{cost}{why}".split("\n"))
    if outcome.question:
        say(f"Question: {outcome.question}")
    if stop is not None:
        say(*message_lines(stop, loop.engine.clock()))
    if is_by_person:
        orders_told()
    if outcome.code == 130:
        say(f"Nothing is lost: {KEPT}")


def report(loop: Loop, outcome: Outcome) -> dict[str, object]:
    """The run and the loop, for programs."""
    return {
        "exit": outcome.code,
        "reason": outcome.reason,
        "verdict": VERDICTS[outcome.code],
        "cap": outcome.cap or None,
        "question": outcome.question or None,
        "iterations": outcome.iterations,
        "seconds": round(outcome.seconds, 3),
        "cost": outcome.cost,
        "decision": None if outcome.decision is None else outcome.decision.to_json(),
        "loop": loop.view(),
    }
