"""`fusewire attempt`: attempts at the failing tests of a slice, their limits, the report, and the reset."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.attempt.report import (
    MIND,
    check_field,
    fill_in,
    missing,
    reports,
    tests_to_report,
    yaml_text,
)
from fusewire.breakers.attempt.scope.lock import session_of
from fusewire.breakers.attempt.tracker import Attempts
from fusewire.breakers.attempt.types import Attempt
from fusewire.cli.attempt_words import (
    counts,
    restored_json,
    say_alike,
    say_left_out,
    say_recorded,
    say_restored,
)
from fusewire.cli.common import (
    CommandBehindDashes,
    duration,
    print_json,
    project_command,
    read_input,
    require_not_halted,
    show_result,
    tell_stops,
)
from fusewire.cli.streams import is_interactive, tell, tell_text, warn
from fusewire.core.messages import message_lines
from fusewire.testruns.judge import judge
from fusewire.util.errors import FusewireError
from fusewire.util.text import in_line

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


@click.group("attempt")
def attempt_command() -> None:
    """Attempts at the failing tests of a slice: 3 for a test, 7 for all of them, then stop and report.

    \b
    fusewire attempt start S-1 test_login                      a checkpoint; then change code
    fusewire attempt run S-1 test_login --strategy "..." -- pytest tests/test_login.py
    fusewire attempt report S-1 --test-expectation ... --best-hypothesis ... --specific-question ...
    fusewire attempt retry S-1 --guidance "..."                for a person or the orchestrator
    """


slice_argument = click.argument("slice_id", metavar="SLICE")
test_argument = click.argument("test", metavar="TEST")


def with_attempts(command: Callable[..., Any]) -> Callable[..., Any]:
    """The common options, and the project's attempts as first argument."""

    @functools.wraps(command)
    def wrapped(breaker: Breaker, **options: Any) -> Any:
        return command(Attempts(breaker), **options)

    return project_command(wrapped)


# -- around an attempt ----------------------------------------------------------------------------------


@attempt_command.command("start")
@slice_argument
@test_argument
@with_attempts
def start_command(attempts: Attempts, slice_id: str, test: str, as_json: bool) -> int:
    """Begin the attempts at a test: the project as it is now is kept as their checkpoint.

    Index, branch and stash are not touched. If the attempts have begun already, their checkpoint stays. The slice's
    scope lock holds from now on. After a retry, what was tried before is printed.
    """
    started = attempts.start(slice_id, test, session=session_of(os.environ))
    if as_json:
        ref = {"ref": started.checkpoint.ref, "left_out": list(started.checkpoint.left_out)}
        more = {"prior_attempts": started.prior or None, "scope_problem": started.unlocked or None}
        print_json({**started.state, "checkpoint": ref, **more})
        return 0
    if started.prior:
        tell_text(started.prior)
    what = "checkpoint" if started.fresh else "under way since checkpoint"
    tell(f"{slice_id} {test}: {what} {started.checkpoint.commit[:12]} ({counts(attempts, started.state)})")
    say_left_out(started.checkpoint)
    say_alike(started.alike, test)
    if started.unlocked:
        tell(f"{started.unlocked[:1].upper()}{started.unlocked[1:]}", err=True)
    return 0


@attempt_command.command("run", cls=CommandBehindDashes)
@slice_argument
@test_argument
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("--strategy", default="", help="What was tried, in one sentence.")
@click.option("--timeout", type=duration, default="30m", help="The longest it may take (default: 30m).")
@click.option("--junit", metavar="FILE", help="Results that the command writes: outcomes by name, exactly.")
@with_attempts
def run_command(
    attempts: Attempts,
    slice_id: str,
    test: str,
    command: tuple[str, ...],
    strategy: str,
    timeout: float,
    junit: str | None,
    as_json: bool,
) -> int:
    """Run the test command, judge the result and record it. Exit 0 passed, 1 not passed, 3 stopped.

    The output of the command is passed on, and kept whole in a file. A test that could not run (collection, build,
    environment, network, permissions, a crash of the runner) is an infrastructure error and does not count. Neither
    does a failure on an unchanged tree: an attempt is a change and a run.
    """
    from fusewire.run.test_cycle import run_cycle

    require_not_halted(attempts.breaker.root or "")
    cycle = run_cycle(
        attempts,
        slice_id,
        test,
        command,
        strategy=strategy,
        timeout=timeout,
        junit=junit,
        session=session_of(os.environ),
        on_output=(lambda data: None) if as_json else _pass_on,
    )
    if cycle.late and not as_json:
        tell("This test had no checkpoint; one was taken before the run.", err=True)
    say_alike(cycle.alike, test)
    if cycle.problem:
        warn(cycle.problem)
    about = {
        "result": cycle.verdict.result,
        "kind": cycle.verdict.kind or None,
        "reason": cycle.verdict.reason,
        "evidence": cycle.verdict.evidence or None,
        "exit_code": cycle.exit_code,
        "output": cycle.output,
    }
    code = say_recorded(attempts, cycle.recorded, about, as_json)
    return code or (0 if cycle.verdict.result == "pass" else 1)


@attempt_command.command("record")
@slice_argument
@test_argument
@click.option("--pass", "passed", is_flag=True, help="The test ran and passed: its count goes back to 0.")
@click.option("--fail", "failed", is_flag=True, help="The test ran and failed: one attempt.")
@click.option("--infra", "infra", is_flag=True, help="The test could not run: does not count.")
@click.option("--error-file", metavar="FILE", help="What the runner printed (- reads standard input).")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file that was changed (default: all that were)."
)
@click.option("--strategy", default="", help="What was tried, in one sentence.")
@with_attempts
def record_command(
    attempts: Attempts,
    slice_id: str,
    test: str,
    passed: bool,
    failed: bool,
    infra: bool,
    error_file: str | None,
    files: tuple[str, ...],
    strategy: str,
    as_json: bool,
) -> int:
    """Record an attempt that was run elsewhere: --pass, --fail or --infra. Exit 3 if the work is stopped."""
    if passed + failed + infra != 1:
        raise click.UsageError("say how it went, once: --pass, --fail or --infra")
    result = "pass" if passed else "fail" if failed else "infra"
    text = read_input(error_file, "what the runner printed").decode("utf-8", "replace") if error_file else ""
    judged = judge(test, text, 0 if result == "pass" else 1) if text else None
    if judged is not None and result == "fail" and judged.result == "infra" and not as_json:
        tell(f"This looks like an infrastructure error ({judged.kind}): {judged.reason}", err=True)
        tell("It is counted, because --fail was given; --infra does not count.", err=True)
    attempt = Attempt(
        result,
        reason=judged.reason if judged and judged.tests and judged.result == result else _last_line(text),
        error=text if result == "fail" else "",
        said=judged.said if judged else "",
        kind=(judged.kind if judged else "") or "runner" if result == "infra" else "",
        evidence=judged.evidence or text[-2000:] if judged else "",
        strategy=strategy,
        files=[_inside(attempts, path) for path in files] or None,
    )
    recorded = attempts.record_attempt(slice_id, test, attempt)
    about = {"result": result, "kind": attempt.kind or None, "reason": attempt.reason}
    return say_recorded(attempts, recorded, about, as_json)


@attempt_command.command("status")
@click.argument("slice_id", metavar="[SLICE]", required=False)
@click.argument("test", metavar="[TEST]", required=False)
@with_attempts
def status_command(attempts: Attempts, slice_id: str | None, test: str | None, as_json: bool) -> int:
    """Show the slices, or the attempts at the tests of a slice (or at one test) and what stops the work."""
    if slice_id is None:
        return _say_slices(attempts, as_json)
    record = attempts.known(slice_id)
    if test is not None and test not in record.tests:
        raise FusewireError(f"{slice_id} has no attempts at {test}; known: {', '.join(record.tests) or 'none'}")
    states = [attempts.state(slice_id, name) for name in ([test] if test else record.tests)]
    stops = attempts.stops(slice_id)
    for name in record.tests:
        stops += [stop for stop in attempts.stops(slice_id, name) if stop not in stops]
    infrastructure = [
        {"test_name": one["test"], "test": one["test"], "kind": one["kind"], "reason": one["reason"]}
        for one in record.infrastructure
    ]
    if as_json:
        stopped = [stop.to_json() for stop in stops]
        about = states[0] if test else {"slice_id": slice_id, "total_failed_attempts": attempts.failures(slice_id)}
        print_json({**about, "tests": states, "stops": stopped, "infrastructure_errors": infrastructure})
        return 0
    tell_text("---\n".join(yaml_text(state) for state in states) or f"{slice_id}: no test is under way\n", nl=False)
    tell(*(f"No attempt ({one['kind']}): {one['test_name']}: {one['reason']}" for one in infrastructure), err=True)
    tell_stops(stops, attempts.engine.clock())
    return 0


# -- when the work is stopped ---------------------------------------------------------------------------


@attempt_command.command("report")
@slice_argument
@click.option("--test", help="Report only this test; the fields below are about it.")
@click.option("--test-expectation", help="What the test expects: the behaviour, not the syntax.")
@click.option("--best-hypothesis", help="The best theory of the root cause.")
@click.option("--specific-question", help="The question whose answer would unblock the work.")
@click.option("--from", "source", metavar="FILE", help="The fields as YAML or JSON, or {test: fields} (- reads stdin).")
@with_attempts
def report_command(
    attempts: Attempts, slice_id: str, test: str | None, source: str | None, as_json: bool, **fields: str | None
) -> int:
    """Print the diagnostic report of each failing test: 8 fields, as YAML (or --json).

    Five fields are filled from what was recorded. The other three need thought: give them as options or in a file; at
    a terminal they are asked for. They are remembered. `not applicable` needs a reason.
    """
    tests = tests_to_report(attempts, slice_id, test)
    given: dict[str, dict[str, Any]] = _from_file(source, tests) if source else {}
    told = {name: value for name, value in fields.items() if value is not None}
    if told:
        if len(tests) > 1:
            raise click.UsageError(f"say which test they are about: --test ({', '.join(tests)})")
        given[tests[0]] = {**given.get(tests[0], {}), **told}
    if given:
        fill_in(attempts, slice_id, given)
    for about, names in missing(attempts, slice_id, tests).items() if is_interactive() else ():
        for name in names:
            fill_in(attempts, slice_id, {about: {name: _ask_field(about, name)}})
    made = reports(attempts, slice_id, tests)
    if as_json:
        print_json({"slice_id": slice_id, "reports": made})
    else:
        tell_text("---\n".join(yaml_text(one) for one in made), nl=False)
    return 0


def _from_file(source: str, tests: list[str]) -> dict[str, dict[str, Any]]:
    """The fields of one test, or {test: fields}."""
    import yaml

    text = read_input(source, "the fields of the report")
    try:
        data = yaml.safe_load(text.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise FusewireError(f"{source} is neither YAML nor JSON: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(data, dict) or not data:
        raise FusewireError(f"{source} must be a mapping of fields ({', '.join(MIND)}), or of tests to such mappings")
    if all(isinstance(value, dict) for value in data.values()):
        return {str(test): {str(key): value for key, value in fields.items()} for test, fields in data.items()}
    if len(tests) > 1:
        raise FusewireError(f"{source} has the fields of one test, but these fail: {', '.join(tests)}; say --test")
    return {tests[0]: {str(key): value for key, value in data.items()}}


def _ask_field(test: str, name: str) -> str:
    """Ask at the terminal until the answer is valid."""

    def checked(text: str) -> str:
        try:
            return check_field(name, text)
        except FusewireError as error:
            raise click.UsageError(str(error)) from error

    answer: str = click.prompt(f"{in_line(test)}\n{MIND[name]}", err=True, prompt_suffix="\n> ", value_proc=checked)
    return answer


@attempt_command.command("arch-stop")
@slice_argument
@click.option("--reason", required=True, help="Which architectural change is needed, and why.")
@with_attempts
def arch_stop_command(attempts: Attempts, slice_id: str, reason: str, as_json: bool) -> int:
    """Stop the slice at once for an architectural decision (deviation rule 4). No attempt is counted."""
    decision = attempts.arch_stop(slice_id, reason)
    return show_result(as_json, decision.to_json(), *message_lines(decision, attempts.engine.clock()))


@attempt_command.command("prior")
@slice_argument
@with_attempts
def prior_command(attempts: Attempts, slice_id: str, as_json: bool) -> int:
    """Print what was tried before the last retry: the <prior_attempts> block for a fresh implementer."""
    text = attempts.prior(slice_id)
    if as_json:
        print_json({"slice_id": slice_id, "prior_attempts": text or None})
    elif text:
        tell_text(text)
    else:
        tell(f"{slice_id} was never retried", err=True)
    return 0


@attempt_command.command("retry")
@slice_argument
@click.option("--guidance", default="", help="What the fresh implementer must know or do differently.")
@click.option("--force", is_flag=True, help="Even if files were changed since the last attempt (they are saved).")
@with_attempts
def retry_command(attempts: Attempts, slice_id: str, guidance: str, force: bool, as_json: bool) -> int:
    """Reset the counters and the files of a slice. For a person or the orchestrator: refused inside an agent.

    Both counters go to 0, and files go back to where the failed attempts began; what is there now is saved first, and
    the command that brings it back is printed. So is the <prior_attempts> block for the fresh implementer.
    """
    retried = attempts.retry(slice_id, guidance, force=force)
    if as_json:
        print_json(
            {
                "slice_id": slice_id,
                "failures": retried.failures,
                "prior_attempts": retried.prior,
                "restored": restored_json(retried.restored),
            }
        )
        return 0
    tell_text(retried.prior)
    if retried.restored is None:
        tell("No file was changed: there is no checkpoint to go back to.", err=True)
    else:
        say_restored(retried.restored)
    return 0


@attempt_command.command("restore")
@click.argument("ref", metavar="REF")
@with_attempts
def restore_command(attempts: Attempts, ref: str, as_json: bool) -> int:
    """Restore files from a checkpoint or from before a retry. For a person: refused inside an agent.

    What is there now is saved first. REF is printed by `attempt retry`, and by `attempt start --json`.
    """
    require_person("`fusewire attempt restore`", attempts.root)
    done = attempts.checkpoints.restore(attempts.checkpoints.load(ref), name="restore")
    if as_json:
        print_json(restored_json(done))
    else:
        say_restored(done)
    return 0


@attempt_command.command("finish")
@slice_argument
@click.option("--force", is_flag=True, help="For a person: in whatever state; the counters go back to 0.")
@with_attempts
def finish_command(attempts: Attempts, slice_id: str, force: bool, as_json: bool) -> int:
    """Finish a slice whose tests have all passed: its scope lock is lifted, its counters stay."""
    attempts.finish(slice_id, force=force)
    return show_result(as_json, {"slice_id": slice_id, "finished": True}, f"{slice_id}: finished")


# -- in words -------------------------------------------------------------------------------------------


def _say_slices(attempts: Attempts, as_json: bool) -> int:
    found, lines = [], []
    for name in attempts.slices():
        stopped = attempts.is_stopped(name)
        failures, failing = attempts.failures(name), attempts.record(name).failing()
        found.append({"slice_id": name, "total_failed_attempts": failures, "stopped": stopped, "failing": failing})
        lines.append(f"{name}: {'stopped' if stopped else 'under way'}, {failures} failed attempts")
    if not found and not as_json:
        tell(f"no slice is under way in {attempts.root}", err=True)
    return show_result(as_json, {"slices": found}, *lines)


def _inside(attempts: Attempts, path: str) -> str:
    """A path as it is stored: relative to the project."""
    full = os.path.normpath(os.path.join(os.getcwd(), path))
    relative = os.path.relpath(full, attempts.root)
    if relative == os.pardir or relative.startswith(os.pardir + os.sep):
        raise FusewireError(f"{path} is outside the project {attempts.root}")
    return relative


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _pass_on(data: bytes) -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    except OSError:
        pass  # stdout is closed; the attempt is recorded all the same
