"""A run in plain lines: the agent's output on standard output, everything else on standard error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fusewire.breakers.loop.iteration import show_denied
from fusewire.cli.streams import hand_over, say, silence
from fusewire.core.messages import message_lines
from fusewire.util.durations import counted, show_duration

if TYPE_CHECKING:
    from fusewire.breakers.loop.types import IterationResult, IterationStart
    from fusewire.cli.keyboard import Keyboard
    from fusewire.core.decision import Decision
    from fusewire.run.process import ProcessEnd

#: What a person at the terminal presses to end a wait.
_KEY = "p"

#: What an interruption costs, and how to resume.
KEPT = "counts, cooldowns and lessons are kept, and the same command goes on from here."

#: Seconds between two lines of a countdown.
_MINUTE = 60.0


class QuietView:
    """Prints only what a person must know."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def began(self, begun: IterationStart) -> None:
        pass

    def output(self, text: str) -> None:
        pass

    def tick(self, seconds: float) -> None:
        pass

    def judged(self, result: IterationResult, ended: ProcessEnd) -> None:
        pass

    def waits(self, why: str, left: float, whole: float, skip: str | None = None) -> bool:
        return False

    def opened(self, trip: Decision) -> None:
        """A circuit has opened, and the run will wait."""
        self.tells(*message_lines(trip, time.time()))

    def tells(self, *lines: str) -> None:
        say(*lines)


class PlainView(QuietView):
    """One line when an iteration begins, one when it has been judged, one a minute while waiting."""

    def __init__(self, keyboard: Keyboard | None = None) -> None:
        self._keyboard = keyboard
        self._said = 0.0
        self._why = ""
        self._line_open = False

    def __exit__(self, *error: object) -> None:
        if self._keyboard is not None:
            self._keyboard.close()

    def began(self, begun: IterationStart) -> None:
        self._why = ""
        if self._keyboard is not None:
            self._keyboard.close()
        probe = " (the one probe)" if begun.held else ""
        self.tells(f"[{begun.number}] {begun.state}{probe}, {counted(begun.calls_left, 'call')} left")
        for line in begun.advice.lines:
            self.tells(*f"    told to the agent: {line}".replace("\n", "\n    ").split("\n"))

    def output(self, text: str) -> None:
        try:
            hand_over(text, nl=False)
        except OSError:  # stdout is closed; the log still gets the output
            silence(1)
        self._line_open = not text.endswith("\n")

    def judged(self, result: IterationResult, ended: ProcessEnd) -> None:
        for line in judgement(result, ended):
            self.tells(line)

    def waits(self, why: str, left: float, whole: float, skip: str | None = None) -> bool:
        now = time.monotonic()
        if why != self._why:
            self._explain_wait(why, show_duration(left), skip)
        elif now - self._said >= _MINUTE:
            self.tells(f"waiting {show_duration(left)}: {why}")
        else:
            return self._skips(skip)
        self._why, self._said = why, now
        return self._skips(skip)

    def _explain_wait(self, why: str, left: str, skip: str | None) -> None:
        self.tells(f"waiting {left}: {why}")
        if skip and self._keyboard is not None:
            self.tells(f"    Press {_KEY} to {skip}.")
        if skip is not None:
            self.tells(f"    Ctrl-C is safe: {KEPT}")

    def _skips(self, skip: str | None) -> bool:
        return bool(skip) and self._keyboard is not None and self._keyboard.pressed(_KEY)

    def tells(self, *lines: str) -> None:
        if self._line_open:  # the agent's last line had no end
            self.output("\n")
        say(*lines)


def judgement(result: IterationResult, ended: ProcessEnd) -> list[str]:
    """An iteration in a line, and below it the messages of the guard and the circuits."""
    change, facts = result.change, []
    files = counted(change.count, "file") if change.count else "no file changed"
    idle = change.count and not change.meaningful and not change.commits
    facts.append(f"{files} in ways that do not count" if idle else files)
    if change.commits:
        facts.append(counted(change.commits, "commit"))
    if result.entry["tests"]:
        passed, failed, skipped, broken = result.entry["tests"]
        facts.append(f"tests {passed} passed, {failed + broken} failed, {skipped} skipped")
    if result.answer.calls:
        facts.append(counted(result.answer.calls, "model turn"))
    if ended.problem:
        facts.append(f"the agent could not be started: {ended.problem}")
    elif result.ended != "exit":
        facts.append(result.ended)
    elif ended.code:
        facts.append(f"exit {ended.code}")
    if ended.left:
        facts.append(f"{ended.left} processes left behind were ended")
    score = result.entry["blocked"] if result.kind == "neutral" else f"score {result.score:+d}"
    points = f" ({', '.join(result.points)})" if result.points else ""
    lines = [
        f"[{result.number}] {score}{points}; {', '.join(facts)}; {show_duration(ended.seconds)};"
        f" risk {result.entry['risk']}"
    ]
    if result.answer.denied:
        lines.append(f"    denied: {show_denied(result.answer)}")
    if result.answer.damage:
        lines.append(f"    output: {result.answer.damage}; what could be read was kept")
    if result.told:
        lines += result.told.split("\n")
    return lines
