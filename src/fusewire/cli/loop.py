"""`fusewire loop`: the checks of `fusewire run` for a loop script of your own, and what the loop has learned."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_outside_loop
from fusewire.cli.common import print_json, project_command, read_input, require_not_halted, show_result, tell_stops
from fusewire.cli.plain import PlainView
from fusewire.cli.streams import tell, tell_text
from fusewire.core.decision import Blocked
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.agents.output.answer import AgentOutput
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.types import IterationResult
    from fusewire.core.decision import Decision
    from fusewire.engine.breaker import Breaker


@click.group("loop")
def loop_command() -> None:
    """The loop breaker for a loop script of your own, iteration by iteration.

    \b
    while advice=$(fusewire loop begin --wait); do
      { cat PROMPT.md; echo "$advice"; } |
        claude -p --permission-mode acceptEdits --output-format json > .fusewire/answer.json
      [ "$(fusewire loop end --output .fusewire/answer.json --exit-code $?)" = FINISHED ] && exit
    done
    exit 3

    After a trip `begin --wait` waits for the cooldown, and the next iteration is the probe. If only a person can help
    (nothing is left to try, a protected file was destroyed), it does not wait, and the script ends.
    """


@loop_command.command("begin")
@click.option("--wait", is_flag=True, help="Wait for cooldowns and limits instead of exiting with 3.")
@project_command
def begin_command(breaker: Breaker, wait: bool, as_json: bool) -> int:
    """May an iteration begin? Exit 0 with advice for the agent on standard output (often none), or exit 3.

    The call is counted, and the working tree and the protected files are recorded. The iteration belongs to the script
    that called: if that dies, the next `loop begin` settles it.
    """
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.owner import owner

    require_outside_loop(breaker.root or "")
    require_not_halted(breaker.root or "")
    loop, mine = Loop(breaker), owner()
    unfinished = None if as_json else loop.running([mine])
    if unfinished is not None:  # the script never ended it; a script that uses tokens may have several
        loop.end(unfinished)
    while True:
        try:
            begun = loop.begin(owner=mine)
            break
        except Blocked as blocked:
            if not wait or blocked.decision.retry_after is None:
                raise
            _wait(loop, blocked.decision, breaker.root or "")
    if as_json:
        print_json(
            {
                "decision": "ALLOWED",
                "iteration": begun.number,
                "token": begun.token,
                "state": begun.state,
                "advice": list(begun.advice.lines),
                "calls_left": begun.calls_left,
            }
        )
    elif begun.advice.lines:
        tell_text(begun.advice.in_prompt(begun.number, begun.state).strip("\n"))
    return 0


@loop_command.command("end")
@click.option("--output", "path", metavar="FILE", help="What the agent printed (- reads standard input).")
@click.option("--exit-code", type=int, default=0, help="The agent's exit code; 124 is a time-out.")
@click.option("--junit", metavar="FILE", help="Test results of this iteration (JUnit XML).")
@click.option("--token", help="The iteration, as `loop begin --json` named it (default: this script's last one).")
@project_command
def end_command(
    breaker: Breaker, path: str | None, exit_code: int, junit: str | None, token: str | None, as_json: bool
) -> int:
    """Judge the iteration: CONTINUE (exit 0), FINISHED (exit 0) or HALTED (exit 3) on standard output."""
    from fusewire.agents.output.answer import with_checks
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.owner import possible_owners
    from fusewire.run.own_output import own_outputs
    from fusewire.testruns.evidence import RunEvidence

    require_outside_loop(breaker.root or "")
    loop = Loop(breaker)
    token = token or loop.running(possible_owners())
    if token is None:
        raise FusewireError("no iteration of this script is under way; begin one: fusewire loop begin")
    checks = RunEvidence()
    if junit is not None:
        checks.read_junit(read_input(junit, "the test results"))
    answer = with_checks(_answer(loop, path, exit_code), checks)
    own = [file for file in (path, junit) if file not in (None, "-")]
    seen = loop.look(token, ignored=[*own_outputs(), *(os.path.abspath(file) for file in own if file)])
    result = loop.end(token, code=exit_code, answer=answer, seen=seen)
    return _say_result(loop, result, as_json)


def _answer(loop: Loop, path: str | None, exit_code: int) -> AgentOutput:
    from fusewire.agents.output.reader import AnswerReader

    reader = AnswerReader(loop.engine.clock())
    if path is not None:
        try:
            with open(sys.stdin.fileno() if path == "-" else path, "rb", closefd=path != "-") as file:
                while data := file.read(65536):
                    reader.feed(data)
        except OSError as error:
            raise FusewireError(f"the output cannot be read: {path}: {error.strerror}") from error
    return reader.finish(exit_code, partial=exit_code == 124)


def _say_result(loop: Loop, result: IterationResult, as_json: bool) -> int:
    halted = bool(result.halted or (result.trips and not result.finished))
    word = "HALTED" if halted else "FINISHED" if result.finished else "CONTINUE"
    if as_json:
        print_json(
            {
                "verdict": word,
                "iteration": result.number,
                "state": result.state,
                "kind": result.kind,
                "score": result.score,
                "points": result.points,
                "risk": result.entry["risk"],
                "files": result.change.count,
                "finished": result.finished or None,
                "halted": result.halted or None,
                "trips": [trip.to_json() for trip in result.trips],
            }
        )
    else:
        tell(word)
        for text in (result.halted, result.told):
            if text:
                tell_text(text, err=True)
        tell_stops(result.trips, loop.engine.clock())
    return 3 if halted else 0


def _wait(loop: Loop, decision: Decision, root: str) -> None:
    import time

    view = PlainView()
    refused: Decision | None = decision
    while refused is not None and (left := refused.retry_after) is not None:
        view.waits(f"{refused.rule}: {refused.reason}", left, left)
        time.sleep(min(1.0, left))
        require_not_halted(root)
        refused = loop.refusal()


@loop_command.command("lessons")
@project_command
def lessons_command(breaker: Breaker, as_json: bool) -> int:
    """Show what the loop learned from its trips: the pattern, its cause, what was tried, what helped."""
    from fusewire.breakers.loop.overview import overview
    from fusewire.util.durations import show_time

    learned = overview(breaker).lessons
    lines = [f"{show_time(lesson['at'])} {lesson['text']}" for lesson in learned]
    return show_result(
        as_json,
        {"lessons": [{**lesson, "at": show_time(lesson["at"])} for lesson in learned]},
        *(lines or ["nothing yet: no circuit of this project's loop has opened"]),
    )
