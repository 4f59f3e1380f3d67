"""A run on a terminal: the agent's output scrolls by, and a footer of one or two lines says where the loop is.

All of one moment is one write, and afterwards the cursor stands, visible, where the footer begins: whoever kills,
suspends or resizes this leaves a terminal that needs no repair. There is no thread: `tick` and `waits` repaint.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fusewire.cli.common import color
from fusewire.cli.plain import PlainView
from fusewire.durations import show_duration
from fusewire.reports.trends import sparkline
from fusewire.runner.places import Places

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.runner.nouns import Begun, Result
    from fusewire.runner.process import Ended

#: Seconds between two repaints; a tick that comes a little early must not wait for the next one.
_GAP = 0.2

#: Seconds after which a line without end is shown.
_PATIENCE = 0.5

#: Lines that are shown in a second; a long one counts as several.
_RATE = 2000
_ROW = 200

#: Lines that are shown of the end of a flood: a person looks there first.
_TAIL = 20

#: Characters that are shown of a line.
_LONGEST = 4000

#: Colours that may be in force together, so that the agent cannot make this list grow.
_STYLES = 16

_STATE = {"CLOSED": "green", "HALF_OPEN": "yellow", "OPEN": "red"}
_SCORES = 10
_ASCII = str.maketrans("▁▂▃▄▅▆▇█·…━─", "_.,:-=+#|~=-")

_RESET = "\x1b[0m"
_COLOR = re.compile(r"\x1b\[[0-9;:]*m")

#: Colours first, as they are kept; then what has an end of its own (titles, links, device strings), what moves the
#: cursor or switches modes, every other escape, and every other control character, those with eight bits too.
_CONTROLS = re.compile(
    rf"({_COLOR.pattern})"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]",
    re.DOTALL,
)


class _Cleaner:
    """Lines of an agent as they may be shown: in colour, and without power over the terminal."""

    def __init__(self, colors: bool) -> None:
        self._kept = r"\1" if colors else ""
        #: what the agent has switched on and not off, in lines before
        self._styles: list[str] = []

    def shown(self, line: str) -> str:
        line = _last_written(line)
        cut = " [...]" if len(line) > _LONGEST else ""
        text = _CONTROLS.sub(self._kept, line[:_LONGEST])
        before = "".join(self._styles)
        for style in _COLOR.findall(text):
            wanted = style[2:-1].lstrip("0")
            kept = [] if wanted[:1] in ("", ";") else self._styles
            self._styles = [*kept, style][-_STYLES:] if wanted else []
        return f"{before}{text}{_RESET}{cut}" if before or "\x1b" in text else text + cut

    def forget(self) -> None:
        self._styles = []


#: For what is ours: it may quote an agent.
_PLAIN = _Cleaner(colors=False)


def _in_a_row(text: str) -> str:
    return _PLAIN.shown(" ".join(text.split()))


def _last_written(line: str) -> str:
    """What a carriage return has left to be seen."""
    return line.rstrip("\r").rpartition("\r")[2]


class _Gate:
    """Lets through as many lines as a person could see fly by; says how many more there were, and how they ended."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.log = ""
        self._clock = clock
        self._lines: list[str] = []
        self._missed = 0
        self._end: deque[str] = deque(maxlen=_TAIL)
        self._room = _RATE
        self._since = clock()

    def take(self, text: str) -> None:
        """Lines, without the last line's end."""
        self._renew()
        start = 0
        while start <= len(text) and self._room > 0:
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            self._lines.append(text[start:end][: 4 * _LONGEST])
            self._room -= 1 + (end - start) // _ROW
            start = end + 1
        if start <= len(text):
            self._missed += text.count("\n", start) + 1
            self._end.extend(line[: 4 * _LONGEST] for line in text[start:].rsplit("\n", _TAIL)[-_TAIL:])

    def passed(self, *, all_of_it: bool = False) -> list[str]:
        """What may be shown since the last time."""
        self._renew(at_once=all_of_it)
        lines, self._lines = self._lines, []
        return lines

    def _renew(self, *, at_once: bool = False) -> None:
        """A second is over."""
        now = self._clock()
        if now < self._since + 1 and not at_once:
            return
        self._room = _RATE
        self._since = now
        if hidden := self._missed - len(self._end):
            self._lines.append(f"[fusewire: {hidden} lines not shown here; they are in the log: {self.log}]")
        self._room -= len(self._end)
        self._lines += self._end
        self._missed = 0
        self._end.clear()


@dataclass
class _Footer:
    """Where the loop is; what is not known is left out."""

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
            parts.append(Text(f"{self.calls_left} call{'s' if self.calls_left != 1 else ''} left"))
        if self.cost is not None:
            parts.append(Text(f"${self.cost:.2f}"))
        parts.append(Text(f"run {_whole(now - self.began)}", style="dim"))
        return Text(" · ", style="dim").join(part for part in parts if part.plain)

    def _waiting(self, width: int, why: str, left: float, whole: float) -> Text:
        room = max(4, min(24, width // 4))
        done = round(room * (1 - min(1.0, left / whole))) if whole > 0 else room
        return Text.assemble(
            f"waiting {_whole(left + 0.999)} ", ("━" * done, "cyan"), ("─" * (room - done), "dim"), f" {why}"
        )


def _whole(seconds: float) -> str:
    """Without tenths, so that a footer in which nothing happens changes once a second."""
    return show_duration(int(seconds))


class _Screen:
    """The terminal: lines that stay, and rows below them that are painted anew each time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: it only turns styles into colours: what it wrote itself would fail with the terminal
        self._console = Console(
            file=io.StringIO(), force_terminal=True, color_system="auto" if color() is None else None
        )
        self._encoding = stream.encoding or "ascii"
        self._fancy = _can_show("▁█·…━─", self._encoding)
        self._painted: tuple[int, list[str]] | None = None
        self.colors = self._console.color_system is not None
        self.width, self._height = 80, 24

    def measure(self) -> None:
        """How much room there is now: a person may resize a window at any time."""
        try:
            columns, lines = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return
        self.width, self._height = columns or 80, lines or 24

    def paint(self, above: list[str], rows: list[Text]) -> None:
        """Nothing is written if nothing has changed."""
        inked = [self._inked(row) for row in rows[-self._height :]]
        if not above and self._painted == (self.width, inked):
            return
        self._painted = (self.width, inked)
        stays = "\x1b[J" + "".join(f"{line}\n" for line in above) if above or not inked else ""
        back = f"\r\x1b[{len(inked) - 1}A" if len(inked) > 1 else "\r"
        footer = "\x1b[K\n".join(inked) + "\x1b[J" + back if inked else ""
        self._write(f"\r{stays}{footer}")

    def clear(self) -> None:
        """Take the rows away until they are painted again."""
        if self._painted is not None:
            self.paint([], [])
            self._painted = None

    def _inked(self, row: Text) -> str:
        """In the terminal's colours and characters; the last column stays free, or some terminals would wrap."""
        row = row.copy()
        row.expand_tabs(8)
        row.truncate(max(1, self.width - 1), overflow="ellipsis")
        with self._console.capture() as capture:
            self._console.print(row, end="", soft_wrap=True)
        return capture.get() if self._fancy else capture.get().translate(_ASCII)

    def _write(self, text: str) -> None:
        """What nobody can see any more must not end a run."""
        rest = memoryview(text.encode(self._encoding, "replace"))
        try:
            self._stream.flush()
            while rest:
                try:
                    rest = rest[os.write(self._stream.fileno(), rest) :]
                except BlockingIOError:  # somebody who shares the terminal has asked for that
                    select.select((), (self._stream.fileno(),), (), 0.1)
        except OSError:  # the terminal is gone
            pass


def _can_show(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


class LiveView(PlainView):
    """A run before a person's eyes. Output that goes elsewhere than to a terminal goes there as it is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._screen = _Screen(sys.stderr)
        self._elsewhere = None if sys.stdout is None or sys.stdout.isatty() else sys.stdout.buffer
        self._cleaner = _Cleaner(self._screen.colors)
        self._gate = _Gate(clock)
        self._footer = _Footer(clock())
        #: a line that has not ended yet
        self._open = ""
        self._open_since = self._painted = clock() - _GAP

    def __enter__(self) -> None:
        self._footer.began = self._clock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_line()
        self._screen.paint(self._lines(all_of_them=True), [])

    def began(self, begun: Begun) -> None:
        footer = self._footer
        footer.number, footer.state, footer.calls_left = begun.number, begun.state, begun.calls_left
        footer.scores = [one["score"] for one in begun.memory.get("history", ()) if one["kind"] != "neutral"]
        footer.seconds, footer.wait = 0.0, None
        self._why = ""
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
        self._open = _bounded(self._open + rest)
        self._repaint()

    def tick(self, seconds: float) -> None:
        self._footer.seconds = seconds
        self._repaint()

    def judged(self, result: Result, ended: Ended) -> None:
        footer, entry = self._footer, result.entry
        footer.state, footer.seconds, footer.calls_left = result.state, ended.seconds, entry["calls_left"]
        if result.kind != "neutral":
            footer.scores.append(result.score)
        if entry["cost"] is not None:
            footer.cost = (footer.cost or 0.0) + entry["cost"]
        super().judged(result, ended)

    def waits(self, why: str, left: float, whole: float) -> None:
        """Said once, as the footer may have no room for all of it; then counted down."""
        self._footer.wait, self._footer.seconds = (_in_a_row(why), left, whole), None
        if why != self._why:
            self._why = why
            self.tells(f"waiting {_whole(left + 0.999)}: {why}")
        self._repaint()

    def tells(self, text: str) -> None:
        self._end_line()
        lines = self._lines(all_of_them=True)
        self._cleaner.forget()
        self._paint(lines + [_PLAIN.shown(line) for line in text.split("\n")])

    def _pass_on(self, text: str, out: BinaryIO) -> None:
        """As it is. A program that reads it, such as `tee`, may print it on this terminal: not into the footer."""
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
        """The end of a line that has none yet; it moves up as a whole once it has."""
        if not self._open or self._clock() < self._open_since + _PATIENCE:
            return []
        seen = _PLAIN.shown(self._open).expandtabs()[-width:]
        while cell_len(seen) >= width:
            seen = seen[1:]
        return [Text(seen)]


def _bounded(line: str) -> str:
    """A line that never ends must not fill the memory; of one that is written over again and again the last counts."""
    if len(line) <= _LONGEST:
        return line
    return _last_written(line)[: _LONGEST + 1] + "\r" * line.endswith("\r")
