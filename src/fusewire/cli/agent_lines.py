"""Make an agent's output safe for a terminal: strip control sequences, and limit the lines in a second."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Lines that are shown in a second; a long one counts as several.
_RATE = 2000
_ROW = 200

#: Lines that are shown of the end of a flood: a person looks there first.
_TAIL = 20

#: Characters that are shown of a line.
_LONGEST = 4000

#: Colours that may be in force together, so that the agent cannot make this list grow.
_STYLES = 16

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


class Cleaner:
    """Strips every control sequence from an agent's lines except colours, which go on over several lines."""

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


#: For Fusewire's own lines, which may quote an agent.
PLAIN = Cleaner(colors=False)


def in_a_row(text: str) -> str:
    return PLAIN.shown(" ".join(text.split()))


def _last_written(line: str) -> str:
    """What is visible after carriage returns."""
    return line.rstrip("\r").rpartition("\r")[2]


class Gate:
    """Limits the lines in a second; of the rest it passes on the count and the last few."""

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
            self._lines.append(f"[fusewire: {hidden} lines not shown here; their beginning and end are in {self.log}]")
        self._room -= len(self._end)
        self._lines += self._end
        self._missed = 0
        self._end.clear()


def bounded(line: str) -> str:
    """Limit an unfinished line, which must not fill the memory; of one that is overwritten the last state counts."""
    if len(line) <= _LONGEST:
        return line
    return _last_written(line)[: _LONGEST + 1] + "\r" * line.endswith("\r")
