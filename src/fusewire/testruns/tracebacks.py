"""Read tracebacks of Python line by line: a traceback inside a message is no traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusewire.testruns.text import OutputLines

_START = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "([^"]*)", line \d+(?:, in (.*))?')
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


@dataclass(frozen=True)
class Traceback:
    """What was raised at last, where it is said, and which functions it came through first and last."""

    said: str
    line: int
    first: str
    #: the file of the last frame
    file: str


def last_traceback(lines: OutputLines, begin: int, end: int) -> Traceback | None:
    """The first traceback from `begin` on, or the last one of those that are chained to it."""
    index, found, first = begin, None, ""
    while index < end:
        if lines.plain[index] != _START or (found and not _is_chained(lines, index)):
            index += 1
            continue
        functions, file = [], ""
        index += 1
        while index < end and lines.plain[index].startswith(" "):
            if match := _FRAME.fullmatch(lines.plain[index]):
                functions.append(match[2] or "")
                file = match[1]
            index += 1
        first = first or (functions[0] if functions else "")
        if index < end and lines.plain[index]:
            found = Traceback(lines.plain[index], index, first, file)
    return found


def _is_chained(lines: OutputLines, index: int) -> bool:
    return index >= 2 and not lines.plain[index - 1] and lines.plain[index - 2] in _CHAINED
