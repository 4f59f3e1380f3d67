"""Match globs without `re`: `*`, `?`, `[abc]`, `[!abc]`, `[a-z]`, and `**` across folders. Linear backtracking."""

from __future__ import annotations


def matches(text: str, pattern: str) -> bool:
    """Whether the whole text fits the pattern; `*` takes any characters."""
    at = spot = 0
    star = retry = -1
    while at < len(text):
        if spot < len(pattern) and pattern[spot] == "*":
            star, retry = spot, at
            spot += 1
            continue
        width = _fits(text[at], pattern, spot)
        if width:
            at += 1
            spot += width
        elif star >= 0:
            retry += 1
            at, spot = retry, star + 1
        else:
            return False
    return all(mark == "*" for mark in pattern[spot:])


def _fits(char: str, pattern: str, spot: int) -> int:
    """How many characters of the pattern this one character used up; 0 if it does not fit."""
    if spot >= len(pattern):
        return 0
    mark = pattern[spot]
    if mark == "?":
        return 1
    if mark == "[":
        first = spot + 2 if pattern[spot + 1 : spot + 2] in ("!", "^") else spot + 1
        inner = pattern.find(":]", first) if pattern.startswith("[:", first) else -1
        end = pattern.find("]", max(first + 1, inner + 2))
        if end > 0:
            return end - spot + 1 if _in_set(char, pattern[spot + 1 : end]) else 0
    return 1 if mark == char else 0


_CLASSES = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "lower": str.islower,
    "upper": str.isupper,
    "space": str.isspace,
    "punct": frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").__contains__,
}


def _in_set(char: str, members: str) -> bool:
    negated = members[0] in "!^"
    members = members[1:] if negated else members
    found = False
    if "[:" in members:
        for name, holds in _CLASSES.items():
            if f"[:{name}:]" in members:
                found = found or holds(char)
                members = members.replace(f"[:{name}:]", "")
    at = 0
    while at < len(members):
        if at + 2 < len(members) and members[at + 1] == "-":
            found = found or members[at] <= char <= members[at + 2]
            at += 3
        else:
            found = found or members[at] == char
            at += 1
    return found != negated


def path_matches(path: str, pattern: str) -> bool:
    """Whether a path fits: `*` stays within a folder, `**` crosses, a trailing `/` means all below.

    A pattern without a slash inside fits a name in any folder, as in `.gitignore`.
    """
    if pattern.startswith("/") != path.startswith("/"):
        return False  # a pattern of the project speaks of its own files, an absolute one of all others
    if "/" not in pattern.rstrip("/"):
        pattern = "**/" + pattern
    if pattern.endswith("/"):
        pattern += "**"
    return _parts_match(path.strip("/").split("/"), pattern.strip("/").split("/"))


def _parts_match(parts: list[str], patterns: list[str]) -> bool:
    at = spot = 0
    star = retry = -1
    while at < len(parts):
        if spot < len(patterns) and patterns[spot] == "**":
            star, retry = spot, at
            spot += 1
        elif spot < len(patterns) and matches(parts[at], patterns[spot]):
            at += 1
            spot += 1
        elif star >= 0:
            retry += 1
            at, spot = retry, star + 1
        else:
            return False
    return all(part == "**" for part in patterns[spot:])


def literal(name: str) -> str:
    """A name as a pattern that fits nothing else."""
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in name)
