"""Read Markdown task boxes: which of a plan's tasks are done, and which are left."""

from __future__ import annotations

import re

_QUOTED = r"^[ \t]*(?:>[ \t]*)*"
_BOX = re.compile(_QUOTED + r"(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\](?:[ \t]+(.*))?$")
#: What follows backticks may hold none: a code span is no fence.
_FENCE = re.compile(_QUOTED + r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:(`{3,})[^`]*|(~{3,}).*)$")
_END = re.compile(_QUOTED + r"(`{3,}|~{3,})[ \t]*$")


def boxes(text: str) -> tuple[list[str], list[str]]:
    """The tasks that are ticked and those that are open; what stands in a code fence is an example, not a task."""
    ticked: list[str] = []
    still_open: list[str] = []
    fence = ""
    for line in text.splitlines():
        if fence:
            end = _END.match(line)
            if end and end[1].startswith(fence):
                fence = ""
        elif begin := _FENCE.match(line):
            fence = begin[1] or begin[2]
        elif box := _BOX.match(line):
            (still_open if box[1] == " " else ticked).append(" ".join((box[2] or "").split()))
    return ticked, still_open
