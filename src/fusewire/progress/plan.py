"""Markdown task boxes: how many of a plan's tasks are done, and how many are left."""

from __future__ import annotations

import re

_QUOTED = r"^[ \t]*(?:>[ \t]*)*"
_BOX = re.compile(_QUOTED + r"(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\](?:[ \t]|$)")
#: What follows backticks may hold none: a code span is no fence.
_FENCE = re.compile(_QUOTED + r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:(`{3,})[^`]*|(~{3,}).*)$")
_END = re.compile(_QUOTED + r"(`{3,}|~{3,})[ \t]*$")


def boxes(text: str) -> tuple[int, int]:
    """The ticked and the open task boxes; what stands in a code fence is an example, not a task."""
    ticked = left = 0
    fence = ""
    for line in text.splitlines():
        if fence:
            end = _END.match(line)
            if end and end[1].startswith(fence):
                fence = ""
        elif begin := _FENCE.match(line):
            fence = begin[1] or begin[2]
        elif box := _BOX.match(line):
            ticked += box[1] != " "
            left += box[1] == " "
    return ticked, left
