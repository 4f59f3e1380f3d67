"""A run on a terminal: the agent's output scrolls by, and a footer of one or two lines says where the loop is.

There is no thread: `tick` and `waits` repaint.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from rich.cells import cell_len
from rich.text import Text

from fusewire.breakers.loop.layout import Places
from fusewire.breakers.loop.report import sparkline
from fusewire.cli.agent_lines import PLAIN, Cleaner, Gate, bounded, in_a_row
from fusewire.cli.plain import PlainView
from fusewire.cli.screen import Screen
from fusewire.util.durations import counted, show_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.breakers.loop.types import IterationResult, IterationStart
    from fusewire.cli.keyboard import Keyboard
    from fusewire.run.process import ProcessEnd

#: Seconds between two repaints; a tick that comes a little early must not wait for the next one.
_GAP = 0.2

#: Seconds after which a line without end is shown.
_PATIENCE = 0.5

_STATE = {"CLOSED": "green", "HALF_OPEN": "yellow", "OPEN": "red"}
_SCORES = 10


@dataclass
class _Footer:
    """Where the loop is; unknown parts are left out."""

    began: float
    number: int | None = None
    state: str = ""
    scores: list[int] = field(default_factory=list)
    calls_left: int | None = None
    cost: float | None = None
    #: of the iteration that runs
    seconds: float | None = None
    #: what is waited for, for how long still, and for how long in all
    wait: tuple[str, float, float] | None = None

    def rows(self, width: int, now: float) -> list[Text]:
        if self.wait is None:
            return [] if self.number is None else [self._status(width, now)]
        return [self._status(width, now), self._waiting(width, *self.wait)]

    def _status(self, width: int, now: float) -> Text:
        where = Text("" if self.number is None else f"[{self.number}] ", style="bold")
        parts = [where.append(self.state, style=_STATE.get(self.state, ""))]
        if self.seconds is not None:
            parts.append(Text(_whole(self.seconds)))
        if self.scores:
            bars = sparkline(self.scores[-max(1, min(_SCORES, width // 8)) :])
            parts.append(Text(f"{bars} last 3: {sum(self.scores[-3:]):+d}"))
        if self.calls_left is not None:
            parts.append(Text(f"{counted(self.calls_left, 'call')} left"))
        if self.cost is not None:
            parts.append(Text(f"${self.cost:.2f}"))
        parts.append(Text(f"run {_whole(now - self.began)}", style="dim"))
        between = Text.assemble((" · ", "dim"))  # a style of its own would be that of the whole row
        return between.join(part for part in parts if part.plain)

    def _waiting(self, width: int, why: str, left: float, whole: float) -> Text:
        room = max(4, min(24, width // 4))
        done = round(room * (1 - min(1.0, left / whole))) if whole > 0 else room
        return Text.assemble(
            f"waiting {_whole(left + 0.999)} ", ("━" * done, "cyan"), ("─" * (room - done), "dim"), f" {why}"
        )


def _whole(seconds: float) -> str:
    """Without tenths, so that a footer in which nothing happens changes once a second."""
    return show_duration(int(seconds))


class LiveView(PlainView):
    """Shows a run on a terminal. Output that is redirected elsewhere is passed on unchanged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, keyboard: Keyboard | None = None) -> None:
        super().__init__(keyboard)
        self._clock = clock
        self._screen = Screen(sys.stderr)
        self._elsewhere = None if sys.stdout is None or sys.stdout.isatty() else sys.stdout.buffer
        self._cleaner = Cleaner(self._screen.colors)
        self._gate = Gate(clock)
        self._footer = _Footer(clock())
        #: a line that has not ended yet
        self._open = ""
        self._open_since = self._painted = clock() - _GAP

    def __enter__(self) -> None:
        self._footer.began = self._clock()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._end_line()
        self._screen.paint(self._lines(all_of_them=True), [])

    def began(self, begun: IterationStart) -> None:
        footer = self._footer
        footer.number, footer.state, footer.calls_left = begun.number, begun.state, begun.calls_left
        footer.scores = [one["score"] for one in begun.memory.get("history", ()) if one["kind"] != "neutral"]
        footer.seconds, footer.wait = 0.0, None
        self._gate.log = Places("").output_of(begun.number)
        super().began(begun)

    def output(self, text: str) -> None:
        if self._elsewhere is not None:
            self._pass_on(text, self._elsewhere)
            return
        ended, newline, rest = text.rpartition("\n")
        if newline:
            self._gate.take(self._open + ended)
            self._open = ""
        if not self._open:
            self._open_since = self._clock()
        self._open = bounded(self._open + rest)
        self._repaint()

    def tick(self, seconds: float) -> None:
        self._footer.seconds = seconds
        self._repaint()

    def judged(self, result: IterationResult, ended: ProcessEnd) -> None:
        footer, entry = self._footer, result.entry
        footer.state, footer.seconds, footer.calls_left = result.state, ended.seconds, entry["calls_left"]
        if result.kind != "neutral":
            footer.scores.append(result.score)
        if entry["cost"] is not None:
            footer.cost = (footer.cost or 0.0) + entry["cost"]
        super().judged(result, ended)

    def waits(self, why: str, left: float, whole: float, skip: str | None = None) -> bool:
        """Print the reason once, as the footer may have no room for all of it; then count down."""
        self._footer.wait, self._footer.seconds = (in_a_row(why), left, whole), None
        if why != self._why:
            self._why = why
            self._explain_wait(why, _whole(left + 0.999), skip)
        self._repaint()
        return self._skips(skip)

    def tells(self, *lines: str) -> None:
        self._end_line()
        above = self._lines(all_of_them=True)
        self._cleaner.forget()
        self._paint(above + [PLAIN.shown(" ".join(line.splitlines())) for line in lines])

    def _pass_on(self, text: str, out: BinaryIO) -> None:
        """Write output unchanged; a reader such as `tee` may print it on this terminal, so the footer is erased."""
        if stat.S_ISFIFO(os.fstat(out.fileno()).st_mode):
            self._screen.clear()
        out.write(text.encode("utf-8", "replace"))
        out.flush()

    def _end_line(self) -> None:
        if self._open:
            self._gate.take(self._open)
            self._open = ""

    def _lines(self, *, all_of_them: bool = False) -> list[str]:
        return [self._cleaner.shown(line) for line in self._gate.passed(all_of_it=all_of_them)]

    def _repaint(self) -> None:
        if self._clock() >= self._painted + _GAP:
            self._paint(self._lines())

    def _paint(self, above: list[str]) -> None:
        self._screen.measure()
        width = self._screen.width
        self._screen.paint(above, [*self._begun_line(width), *self._footer.rows(width, self._clock())])
        self._painted = self._clock()

    def _begun_line(self, width: int) -> list[Text]:
        """The last part of an unfinished line; the whole line moves up once it has ended."""
        if not self._open or self._clock() < self._open_since + _PATIENCE:
            return []
        seen = PLAIN.shown(self._open).expandtabs()[-width:]
        while cell_len(seen) >= width:
            seen = seen[1:]
        return [Text(seen)]
