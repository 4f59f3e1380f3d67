"""Brace expansion: `a{b,c}`, nested, and `{1..3}`. It comes before everything else, so it works on a word's parts."""

from __future__ import annotations

from fusewire.shell.tree import TEXT
from fusewire.shell.values import REST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Part

#: More alternatives than anybody writes in one word.
_ALTERNATIVES = 2000

#: Parts that are not plain text stand in the text as one character each.
_FIRST = 0xF0000


def braced(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    """The words that one word with braces stands for."""
    if len(parts) > 1000 or not any(part[0] == TEXT and "{" in part[1] for part in parts):
        return [parts]
    text = "".join(part[1] if part[0] == TEXT else chr(_FIRST + at) for at, part in enumerate(parts))
    words = alternatives(text)
    return [parts] if words == [text] else [_parts(word, parts) for word in words]


def _parts(word: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    found: list[Part] = []
    plain = ""
    for char in word:
        at = ord(char) - _FIRST
        if 0 <= at < len(parts):
            if plain:
                found.append((TEXT, plain))
                plain = ""
            found.append(parts[at])
        else:
            plain += char
    if plain:
        found.append((TEXT, plain))
    return tuple(found)


def alternatives(text: str, depth: int = 0) -> list[str]:
    """`-{f,u}` as `-f` and `-u`; a text without alternatives as it is."""
    start = text.find("{")
    while start >= 0:
        end, commas = _matching(text, start)
        if end > 0:
            inside = text[start + 1 : end]
            choices = _choices(inside, commas, start + 1) or _range(inside)
            if choices is not None and depth < 8:
                tails = alternatives(text[end + 1 :], depth + 1)
                heads = [part for choice in choices for part in alternatives(choice, depth + 1)]
                words = [f"{text[:start]}{head}{tail}" for head in heads for tail in tails]
                return words if len(words) <= _ALTERNATIVES + 1 else [*words[:_ALTERNATIVES], REST]
        start = text.find("{", start + 1)
    return [text]


def _matching(text: str, start: int) -> tuple[int, list[int]]:
    """Where the brace is closed, and the commas in between that are its own."""
    depth = 0
    commas = []
    for at in range(start, min(len(text), start + 4096)):
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            commas.append(at)
        elif char == "}":
            depth -= 1
            if not depth:
                return at, commas
    return -1, []


def _choices(inside: str, commas: list[int], offset: int) -> list[str] | None:
    if not commas:
        return None
    edges = [-1, *(comma - offset for comma in commas), len(inside)]
    return [inside[a + 1 : b] for a, b in zip(edges, edges[1:], strict=False)]


def _range(inside: str) -> list[str] | None:
    ends = inside.split("..")
    if len(ends) not in (2, 3):
        return None
    try:
        step = abs(int(ends[2])) or 1 if len(ends) == 3 else 1
        first, last = int(ends[0]), int(ends[1])
        width = max(len(ends[0]), len(ends[1])) if ends[0].lstrip("-")[:1] == "0" or ends[1][:1] == "0" else 0
        numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
        listed = [str(number).zfill(width) for number in numbers[:_ALTERNATIVES]]
        return listed if len(numbers) <= _ALTERNATIVES else [*listed, REST]
    except ValueError:
        pass
    if len(ends[0]) == len(ends[1]) == 1 and (ends[0] + ends[1]).isalpha():
        a, b = ord(ends[0]), ord(ends[1])
        return [chr(code) for code in (range(a, b + 1) if a <= b else range(a, b - 1, -1))][:_ALTERNATIVES]
    return None
