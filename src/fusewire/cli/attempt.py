"""`fusewire attempt`: attempts at the failing tests of a slice, their limits, the report, and the way to start anew."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from fusewire.breakers.attempt.report_text import yaml_text
from fusewire.cli.attempt_report import report_command
from fusewire.cli.attempt_words import (
    counts,
    restored_json,
    say_alike,
    say_left_out,
    say_recorded,
    say_restored,
)
from fusewire.cli.common import print_json, project_command, read_input, seconds, show_refusal, show_result
from fusewire.cli.streams import tell, tell_text, warn
from fusewire.core.decision import Blocked
from fusewire.core.messages import message_lines
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.attempt.tracker import Attempts
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


@attempt_command.command("start")
@click.argument("slice_id", metavar="SLICE")
@click.argument("test", metavar="TEST")
@project_command
def start_command(breaker: Breaker, slice_id: str, test: str, as_json: bool) -> int:
    """Begin the attempts at a test: everything as it is now is kept as their checkpoint.

    Neither index, branch nor stash are touched. If the attempts are under way already, their checkpoint stays. The
    slice's scope lock holds from now on. After a retry, what was tried before is printed.
    """
    from fusewire.breakers.attempt.scope.lock import session_of

    attempts = _attempts(breaker)
    try:
        started = attempts.start(slice_id, test, session=session_of(os.environ))
    except Blocked as blocked:
        return show_refusal(as_json, blocked.decision, breaker.engine.clock())
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


class _CommandBehindDashes(click.Command):
    """`--` must stand before the command: whoever reads the line, a person or a guard, sees where it begins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        behind = args[args.index("--") + 1 :] if "--" in args else []
        rest = super().parse_args(ctx, args)
        if list(ctx.params["command"]) != behind:
            raise click.UsageError("put the test command behind --, right after SLICE, TEST and options", ctx)
        return rest


@attempt_command.command("run", cls=_CommandBehindDashes)
@click.argument("slice_id", metavar="SLICE")
@click.argument("test", metavar="TEST")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("--strategy", default="", help="What was tried, in one sentence.")
@click.option("--timeout", default="30m", callback=seconds, help="The longest it may take (default: 30m).")
@click.option("--junit", metavar="FILE", help="Results that the command writes: outcomes by name, exactly.")
@project_command
def run_command(
    breaker: Breaker,
    slice_id: str,
    test: str,
    command: tuple[str, ...],
    strategy: str,
    timeout: float,
    junit: str | None,
    as_json: bool,
) -> int:
    """The whole cycle: run the test command, judge, record. Exit 0 passed, 1 not passed, 3 stopped.

    What the command prints is passed on, and kept whole in a file. A test that could not run (collection, build,
    environment, network, permissions, a crash of the runner) is an infrastructure error, and no attempt.
    """
    from fusewire.breakers.attempt.scope.lock import session_of
    from fusewire.run.test_cycle import run_cycle

    attempts = _attempts(breaker)
    try:
        cycle = run_cycle(
            attempts,
            slice_id,
            test,
            command,
            strategy=strategy,
            timeout=timeout,
            junit=junit,
            session=session_of(os.environ),
            on_output=_to_nobody if as_json else _pass_on,
        )
    except Blocked as blocked:
        return show_refusal(as_json, blocked.decision, breaker.engine.clock())
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
@click.argument("slice_id", metavar="SLICE")
@click.argument("test", metavar="TEST")
@click.option("--pass", "passed", is_flag=True, help="The test ran and passed: its count starts anew.")
@click.option("--fail", "failed", is_flag=True, help="The test ran and failed: one attempt.")
@click.option("--infra", "infra", is_flag=True, help="The test could not run: no attempt.")
@click.option("--error-file", metavar="FILE", help="What the runner printed (- reads standard input).")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file that was changed (default: all that were)."
)
@click.option("--strategy", default="", help="What was tried, in one sentence.")
@project_command
def record_command(
    breaker: Breaker,
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
    """Record an attempt that somebody else has run: --pass, --fail or --infra. Exit 3 if the work is stopped."""
    from fusewire.breakers.attempt.types import Attempt
    from fusewire.testruns.judge import judge

    said = [name for name, told in (("pass", passed), ("fail", failed), ("infra", infra)) if told]
    if len(said) != 1:
        raise click.UsageError("say how it went, once: --pass, --fail or --infra")
    (result,) = said
    attempts = _attempts(breaker)
    text = read_input(error_file, "what the runner printed").decode("utf-8", "replace") if error_file else ""
    judged = judge(test, text, 0 if result == "pass" else 1) if text else None
    if judged is not None and result == "fail" and judged.result == "infra" and not as_json:
        tell(f"This looks like an infrastructure error ({judged.kind}): {judged.reason}", err=True)
        tell("It is counted, because --fail was given; --infra does not count.", err=True)
    attempt = Attempt(
        result,
        reason=judged.reason if judged and judged.tests and judged.result == result else _last_line(text),
        error=text if result == "fail" else "",
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
@project_command
def status_command(breaker: Breaker, slice_id: str | None, test: str | None, as_json: bool) -> int:
    """The slices; or the tracking state of every test of a slice (or of one), and what stops the work."""
    attempts = _attempts(breaker)
    if slice_id is None:
        return _say_slices(attempts, as_json)
    record = attempts.known(slice_id)
    if test is not None and test not in record.tests:
        raise FusewireError(f"{slice_id} has no attempts at {test}; known: {', '.join(record.tests) or 'none'}")
    states = [attempts.state(slice_id, name) for name in ([test] if test else record.tests)]
    stops = attempts.stops(slice_id)
    for name in record.tests:
        stops += [stop for stop in attempts.stops(slice_id, name) if stop not in stops]
    infrastructure = [{key: one[key] for key in ("test", "kind", "reason")} for one in record.infrastructure]
    if as_json:
        print_json(
            {
                "slice_id": slice_id,
                "tests": states,
                "stops": [stop.to_json() for stop in stops],
                "infrastructure_errors": infrastructure,
            }
        )
        return 0
    tell_text("---\n".join(yaml_text(state) for state in states) or f"{slice_id}: no test is under way\n", nl=False)
    for one in infrastructure:
        tell(f"No attempt ({one['kind']}): {one['test']}: {one['reason']}", err=True)
    for stop in stops:
        tell(*message_lines(stop, breaker.engine.clock()), fg="red", err=True)
    return 0


attempt_command.add_command(report_command)


@attempt_command.command("arch-stop")
@click.argument("slice_id", metavar="SLICE")
@click.option("--reason", required=True, help="Which architectural change is needed, and why.")
@project_command
def arch_stop_command(breaker: Breaker, slice_id: str, reason: str, as_json: bool) -> int:
    """Deviation rule 4: stop the slice at once for an architectural decision. No attempt is burned."""
    decision = _attempts(breaker).arch_stop(slice_id, reason)
    return show_result(as_json, decision.to_json(), *message_lines(decision, breaker.engine.clock()))


@attempt_command.command("prior")
@click.argument("slice_id", metavar="SLICE")
@project_command
def prior_command(breaker: Breaker, slice_id: str, as_json: bool) -> int:
    """What was tried before the last retry: the <prior_attempts> block for a fresh implementer."""
    text = _attempts(breaker).prior(slice_id)
    if as_json:
        print_json({"slice_id": slice_id, "prior_attempts": text or None})
    elif text:
        tell_text(text)
    else:
        tell(f"{slice_id} was never retried", err=True)
    return 0


@attempt_command.command("retry")
@click.argument("slice_id", metavar="SLICE")
@click.option("--guidance", default="", help="What the fresh implementer must know or do otherwise.")
@click.option("--force", is_flag=True, help="Also if files were changed since the last attempt (they are saved).")
@project_command
def retry_command(breaker: Breaker, slice_id: str, guidance: str, force: bool, as_json: bool) -> int:
    """The counter reset protocol, for a person or the orchestrator: refused inside an agent.

    Both counters go to 0, files go back to where the failed attempts began (what is there now is saved first, and the
    way back is printed), and the <prior_attempts> block for the fresh implementer is printed.
    """
    retried = _attempts(breaker).retry(slice_id, guidance, force=force)
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
@project_command
def restore_command(breaker: Breaker, ref: str, as_json: bool) -> int:
    """Bring files back as they were at a checkpoint or before a retry. For a person: refused inside an agent.

    What is there now is saved first. REF is what `attempt retry` or `attempt start` has named.
    """
    from fusewire.agents.caller import require_person

    require_person("`fusewire attempt restore`", breaker.root)
    checkpoints = _attempts(breaker).checkpoints
    done = checkpoints.restore(checkpoints.load(ref), name="restore")
    if as_json:
        print_json(restored_json(done))
    else:
        say_restored(done)
    return 0


@attempt_command.command("finish")
@click.argument("slice_id", metavar="SLICE")
@click.option("--force", is_flag=True, help="For a person: whatever its state; its counters start anew.")
@project_command
def finish_command(breaker: Breaker, slice_id: str, force: bool, as_json: bool) -> int:
    """The slice is done, every test of it has passed: its scope lock is lifted, its counters stay."""
    _attempts(breaker).finish(slice_id, force=force)
    return show_result(as_json, {"slice_id": slice_id, "finished": True}, f"{slice_id}: finished")


# -- in words -------------------------------------------------------------------------------------------


def _attempts(breaker: Breaker) -> Attempts:
    from fusewire.breakers.attempt.tracker import Attempts

    return Attempts(breaker)


def _say_slices(attempts: Attempts, as_json: bool) -> int:
    found, lines = [], []
    for name in attempts.slices():
        stopped = attempts.is_stopped(name)
        found.append({"slice_id": name, "stopped": stopped, "failing": attempts.record(name).failing()})
        lines.append(f"{name}: {'stopped' if stopped else 'under way'}, {attempts.failures(name)} failed attempts")
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
        pass  # nobody reads; the attempt is made and recorded all the same


def _to_nobody(data: bytes) -> None:
    pass
