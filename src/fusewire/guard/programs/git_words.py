"""The words of a git command, told apart as git does it."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Words:
    """The words of a git command, told apart as git does it: shortened long options, `-xVALUE`, `--`.

    `valued` are the letters that take a value, `longs` the long options that matter: `name=` takes one, `name?` only
    in the same word.
    """

    __slots__ = ("all_flags", "flags", "operands", "paths", "values")

    def __init__(self, words: list[str], valued: str = "", longs: str = "", sticky: str = "") -> None:
        self.flags: set[str] = set()
        #: the same, as often as they were given
        self.all_flags: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.operands: list[str] = []
        #: what comes after `--`; None without one
        self.paths: list[str] | None = None
        known = {name.rstrip("=?"): name[-1:] for name in longs.split()}
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                self.paths = words[at:]
                break
            if word[:2] == "--":
                at = self._long(word[2:], known, words, at)
            elif word[:1] == "-" and len(word) > 1:
                at = self._short(word, words, at, valued, sticky)
            else:
                self.operands.append(word)

    def _long(self, text: str, known: dict[str, str], words: list[str], at: int) -> int:
        name, equals, value = text.partition("=")
        if name not in known and name:
            name = next((full for full in known if full.startswith(name)), name)
        self.flags.add(name)
        self.all_flags.append(name)
        if equals:
            self._add(name, value)
        elif known.get(name) == "=" and at < len(words):
            self._add(name, words[at])
            at += 1
        return at

    def _short(self, word: str, words: list[str], at: int, valued: str, sticky: str) -> int:
        for number, letter in enumerate(word[1:], 1):
            self.flags.add(letter)
            self.all_flags.append(letter)
            rest = word[number + 1 :]
            if letter in valued:
                if not rest and at < len(words):
                    rest = words[at]
                    at += 1
                self._add(letter, rest)
                break
            if letter in sticky:
                self._add(letter, rest)
                break
        return at

    def _add(self, name: str, value: str) -> None:
        self.values.setdefault(name, []).append(value)

    def has(self, *names: str) -> bool:
        return any(name in self.flags for name in names)

    def value(self, *names: str) -> str | None:
        return next((self.values[name][-1] for name in names if name in self.values), None)

    def all(self, *names: str) -> list[str]:
        return [value for name in names for value in self.values.get(name, [])]

    @property
    def named(self) -> list[str]:
        """All operands, before and after `--`."""
        return self.operands + (self.paths or [])


def split_words(text: str) -> list[str]:
    """The words of an alias."""
    from shlex import split

    try:
        return split(text)
    except ValueError:
        return text.split()


def unquoted(name: str) -> str:
    """A name as git prints it when it has special characters: "a\\tb"."""
    if name[:1] != '"' or name[-1:] != '"':
        return name
    raw = name[1:-1].encode("utf-8", "surrogateescape")
    return raw.decode("unicode_escape").encode("latin-1", "replace").decode("utf-8", "surrogateescape")
