"""Define characters that stand for what a word does not say: unknown text, and globs that are not quoted.

They are Unicode's non-characters, which no file name and no command has a use for; in what is read they become
replacement characters. So a value stays a plain `str`, and what it leaves open can be seen in it.
"""

from __future__ import annotations

#: Any text at all, slashes too.
UNKNOWN = "\ufdd0"

#: Follows UNKNOWN where the unknown text came from a line that mentions protected files.
TAINT = "\ufdd5"

#: What lies beyond a limit on the disk: what destroys or writes it may hit anything.
REST = UNKNOWN + TAINT

#: An active `*`, `?` and `[`, and what stands before the bracket of `!(...)`.
STAR, QUERY, SET, EXTENDED = "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4"

_MARKS = {"*": STAR, "?": QUERY, "[": SET}
_PLAIN = {STAR: "*", QUERY: "?", SET: "[", EXTENDED: "", TAINT: ""}


def cleaned(text: str) -> str:
    """Text from outside, in which these characters mean nothing."""
    if text.isascii():
        return text
    for mark in (UNKNOWN, STAR, QUERY, SET, EXTENDED, TAINT):
        text = text.replace(mark, "\ufffd")
    return text


def activated(text: str) -> str:
    """Unquoted text: its globs are active."""
    for plain, mark in _MARKS.items():
        if plain in text:
            text = text.replace(plain, mark)
    return text


def deactivated(text: str) -> str:
    """A glob that fits nothing means itself."""
    if text.isascii():
        return text
    for mark, plain in _PLAIN.items():
        text = text.replace(mark, plain)
    return text


def has_glob(text: str) -> bool:
    return not text.isascii() and (STAR in text or QUERY in text or SET in text or EXTENDED in text)
