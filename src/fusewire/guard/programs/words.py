"""The words of a command, told apart: options, their values, operands."""

from __future__ import annotations


def told_apart(
    words: list[str], valued: str, longs: str = "", *, optional: str = "", permutes: bool = True
) -> list[tuple[str, str]]:
    """Options and operands in their order: ("f", value), ("extract", ""), ("", operand).

    `longs` has the long options, those that take a value with `=` at the end, so that they may be abbreviated.
    `optional` are the short ones whose value, if any, is in the same word.
    """
    found: list[tuple[str, str]] = []
    known = longs.split()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--" or (not permutes and (word[:1] != "-" or word == "-")):
            found += [("", operand) for operand in words[at - (word != "--") :]]
            break
        if word[:2] == "--":
            name, equals, value = word[2:].partition("=")
            full = _full_name(name, known)
            if full[-1:] == "=" and not equals and at < len(words):
                value = words[at]
                at += 1
            found.append((full.rstrip("="), value))
        elif word[:1] == "-" and len(word) > 1:
            at = _short(word, words, at, valued, optional, found)
        else:
            found.append(("", word))
    return found


def _full_name(name: str, known: list[str]) -> str:
    fits = [long for long in known if long.startswith(name)]
    exact = [long for long in fits if long.rstrip("=") == name]
    return exact[0] if exact else fits[0] if len(fits) == 1 else name


def _short(word: str, words: list[str], at: int, valued: str, optional: str, found: list[tuple[str, str]]) -> int:
    for number, letter in enumerate(word[1:], 2):
        if letter in optional:
            found.append((letter, word[number:]))
            break
        if letter in valued:
            value = word[number:]
            if not value and at < len(words):
                value = words[at]
                at += 1
            found.append((letter, value))
            break
        found.append((letter, ""))
    return at
