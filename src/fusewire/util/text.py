"""Escape control and bidi characters for display."""

from __future__ import annotations

from typing import Any
from unicodedata import bidirectional, category

#: Marks by which text is written in the other direction, and those that end it.
_TURNING = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def visible(value: Any) -> Any:
    """Text in which characters that hide, or turn what is around them, are written as their numbers: `[U+202E]`."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(f"[U+{ord(char):04X}]" if _hides(char) else char for char in value)


def in_line(text: str) -> str:
    """The same on one line: somebody else's line end makes no line among ours."""
    return text if text.isprintable() else str(visible(" ".join(text.splitlines())))


def _hides(char: str) -> bool:
    """Joiners do not: many signs are made of them."""
    if char in "\n\t":
        return False
    return category(char) in ("Cc", "Cs") or bidirectional(char) in _TURNING
