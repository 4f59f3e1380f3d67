"""Pieces of shell words: numbered characters, braces, parameters. Small, pure, each of bounded work."""

from __future__ import annotations

NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}

#: Digits that may follow `\x`, `\u`, `\U` and a bare backslash in `$'...'`.
_NUMBERED = {"x": (2, 16), "u": (4, 16), "U": (8, 16), "": (3, 8)}

_DIGITS = {8: "01234567", 16: "0123456789abcdefABCDEF"}

#: More alternatives than anybody writes in one word.
_ALTERNATIVES = 64


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


def matching_brace(text: str, at: int) -> int:
    """Where `${` that was opened before `at` is closed, quotes respected; the end if nowhere."""
    depth = 1
    quote = ""
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "{" and text[at - 1] == "$":
            depth += 1
        elif char == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return len(text)


def parameter(inside: str, variables: dict[str, str]) -> str | None:
    """What `${inside}` stands for: a known variable, else the default that is written there, else unknown."""
    end = 0
    while end < len(inside) and inside[end] in NAME_CHARS:
        end += 1
    name, rest = inside[:end], inside[end:]
    known = variables.get(name)
    if known and (not rest or rest in ("[@]", "[*]") or rest[:1] in ":-="):
        return known
    for operator in (":-", ":=", "-", "=", ":+", "+"):
        if name and rest.startswith(operator):
            return rest[len(operator) :].strip("\"'")
    return known if not rest else None


def braces_expanded(word: str) -> list[str]:
    """`-{f,u}` as `-f` and `-u`; a word without alternatives as it is."""
    start = word.find("{")
    end = word.find("}", start)
    if start < 0 or end < 0 or "," not in word[start:end] or word[max(0, start - 1) : start] == "$":
        return [word]
    before, behind = word[:start], word[end + 1 :]
    return [f"{before}{choice}{behind}" for choice in word[start + 1 : end].split(",")[:_ALTERNATIVES]]
