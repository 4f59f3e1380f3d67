"""Quotations in Markdown: what an agent shows of a log is no log."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")


def without_quotes(text: str) -> str:
    """The text with fenced blocks blanked, character for character, so that positions stay.

    A fence that is never closed is none: a log may hold three backquotes too.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines = text.split("\n")
    opened, mark = -1, ""
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if not match:
            continue
        if opened < 0:
            opened, mark = number, match[1]
        elif match[1].startswith(mark) and not match[2].strip():
            lines[opened : number + 1] = [" " * len(quoted) for quoted in lines[opened : number + 1]]
            opened = -1
    return "\n".join(lines)
