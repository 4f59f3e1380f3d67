"""Quote words for a shell, and escape control characters as numbers."""

from __future__ import annotations

NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}

#: Digits that may follow `\x`, `\u`, `\U` and a bare backslash in `$'...'`.
_NUMBERED = {"x": (2, 16), "u": (4, 16), "U": (8, 16), "": (3, 8)}

_DIGITS = {8: "01234567", 16: "0123456789abcdefABCDEF"}


def quoted(word: str) -> str:
    """One word as a shell takes it."""
    if word and all(char in NAME_CHARS or char in "-./:@%+=" for char in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def escaped(text: str, at: int) -> tuple[str, int]:
    """The content of `$'...'` from `at` on, where a character may be written as a number, and where it ends."""
    parts: list[str] = []
    ended = False  # by a NUL, as in C
    while at < len(text) and text[at] != "'":
        char = text[at]
        at += 1
        if char != "\\" or at >= len(text):
            parts.append("" if ended else char)
            continue
        kind = text[at]
        named = kind if kind in ("x", "u", "U") else "" if kind in _DIGITS[8] else None
        if named is None:
            parts.append("" if ended else _ESCAPES.get(kind, kind))
            at += 1
            continue
        at += len(named)
        most, base = _NUMBERED[named]
        end = at
        while end < len(text) and end - at < most and text[end] in _DIGITS[base]:
            end += 1
        code = int(text[at:end] or "0", base)
        ended = ended or code == 0
        parts.append("" if ended or code >= 0x110000 else chr(code))
        at = end
    return "".join(parts), at + 1


def split_words(text: str) -> list[str]:
    """The words of a text that is no shell's, such as an alias of git; quotes and backslashes are taken off."""
    if "'" in text or '"' in text or "\\" in text:
        from shlex import split

        try:
            return split(text)
        except ValueError:
            pass
    return text.split()
