"""Decode the keys that a terminal sends as bytes."""

from __future__ import annotations

import codecs
import re

_LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERS = {"1": "home", "4": "end", "5": "pgup", "6": "pgdn", "7": "home", "8": "end"}

_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "esc"}
_CONTROLS |= {"\x02": "pgup", "\x06": "pgdn", "\x15": "clear", "\x0c": "redraw"}

#: Also the sequences of the usual terminals, in both modes of their cursor keys.
_KEYS = {
    **_CONTROLS,
    **{f"\x1b{sign}{letter}": key for sign in "[O" for letter, key in _LETTERS.items()},
    **{f"\x1b[{number}~": key for number, key in _NUMBERS.items()},
}

_COMPLETE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|.", re.DOTALL)
_PARTIAL = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)?\Z")


class KeyDecoder:
    """Turns bytes into names of keys; a key of several bytes may arrive in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._partial = ""

    @property
    def waiting(self) -> bool:
        """Whether a sequence may be incomplete: Escape is a key of its own and the start of others."""
        return bool(self._partial)

    def feed(self, data: bytes) -> list[str]:
        """Printable characters stand for themselves; unknown sequences are left out."""
        text = self._partial + self._decoder.decode(data)
        partial = _PARTIAL.search(text)
        self._partial = text[partial.start() :] if partial else ""
        parts = _COMPLETE.findall(text[: len(text) - len(self._partial)])
        return [key for part in parts if (key := part if part.isprintable() else _KEYS.get(part))]

    def flush(self) -> list[str]:
        """Nothing more came: a pending Escape was the key."""
        partial, self._partial = self._partial, ""
        return ["esc"] if partial == "\x1b" else []
