"""Keys from the bytes that a terminal sends for them."""

from __future__ import annotations

import codecs
import re

_LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERS = {"1": "home", "4": "end", "5": "pgup", "6": "pgdn", "7": "home", "8": "end"}

#: Sequences of the usual terminals, in both modes of their cursor keys.
_SEQUENCES = {
    **{f"\x1b{sign}{letter}": key for sign in "[O" for letter, key in _LETTERS.items()},
    **{f"\x1b[{number}~": key for number, key in _NUMBERS.items()},
}
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "esc",
    "\x02": "pgup",
    "\x06": "pgdn",
    "\x15": "clear",
    "\x0c": "redraw",
}

_WHOLE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|.", re.DOTALL)
_BEGUN = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)?\Z")


class Keys:
    """A key that takes several bytes may come in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._begun = ""

    @property
    def waiting(self) -> bool:
        """Whether more may belong to what has come: Escape alone is a key, and the beginning of others."""
        return bool(self._begun)

    def of(self, data: bytes) -> list[str]:
        text = self._begun + self._decoder.decode(data)
        begun = _BEGUN.search(text)
        self._begun = text[begun.start() :] if begun else ""
        return _named(text[: len(text) - len(self._begun)])

    def end(self) -> list[str]:
        """Nothing more came: what has is all there is."""
        begun, self._begun = self._begun, ""
        return ["esc"] if begun == "\x1b" else []


def _named(text: str) -> list[str]:
    """Characters stand for themselves; what nobody knows is left out."""
    known = {**_CONTROLS, **_SEQUENCES}
    found = (part if part.isprintable() else known.get(part) for part in _WHOLE.findall(text))
    return [key for key in found if key]
