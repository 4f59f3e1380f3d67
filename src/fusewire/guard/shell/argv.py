"""Split the words of a command into options, their values, and operands: one splitter for every program."""

from __future__ import annotations


class Argv:
    """Options and operands in their order.

    `valued` has the letters of the short options that take a value. `longs` are the long options that matter, which may
    be abbreviated: `name=` takes a value, `name` and `name?` only in the same word. `optional` are short options whose
    value, if any, is in the same word (`sed -i.bak`). Without `permutes` the first operand ends the options, as for
    `xargs`.
    """

    __slots__ = ("_known", "after_dashes", "given", "operands", "options")

    def __init__(
        self, words: list[str], valued: str = "", longs: str = "", *, optional: str = "", permutes: bool = True
    ) -> None:
        #: ("f", value), ("force", ""), and ("", operand)
        self.given: list[tuple[str, str]] = []
        #: the operands after `--`; None without one
        self.after_dashes: list[str] | None = None
        self._known = {name.rstrip("=?"): name[-1:] for name in longs.split()}
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--" or (not permutes and (word[:1] != "-" or word == "-")):
                rest = words[at - (word != "--") :]
                self.after_dashes = rest if word == "--" else None
                self.given += [("", operand) for operand in rest]
                break
            if word[:2] == "--":
                at = self._long(word[2:], words, at)
            elif word[:1] == "-" and len(word) > 1:
                at = self._short(word, words, at, valued, optional)
            else:
                self.given.append(("", word))
        self.operands = [value for name, value in self.given if not name]
        self.options = [(name, value) for name, value in self.given if name]

    @property
    def before_dashes(self) -> list[str]:
        """The operands before `--`."""
        return self.operands[: len(self.operands) - len(self.after_dashes or ())]

    def _long(self, text: str, words: list[str], at: int) -> int:
        name, equals, value = text.partition("=")
        if name not in self._known:
            name = next((full for full in self._known if full.startswith(name)), name)
        if not equals and self._known.get(name) == "=" and at < len(words):
            value = words[at]
            at += 1
        self.given.append((name, value))
        return at

    def _short(self, word: str, words: list[str], at: int, valued: str, optional: str) -> int:
        for number, letter in enumerate(word[1:], 2):
            if letter in optional:
                self.given.append((letter, word[number:]))
                break
            if letter in valued:
                value = word[number:]
                if not value and at < len(words):
                    value = words[at]
                    at += 1
                self.given.append((letter, value))
                break
            self.given.append((letter, ""))
        return at

    def has(self, *names: str) -> bool:
        """Whether one of these options is given; long ones may be abbreviated, as GNU programs allow."""
        return any(self._means(given, name) for given, _ in self.options for name in names)

    def values(self, *names: str) -> list[str]:
        return [value for given, value in self.options if any(self._means(given, name) for name in names)]

    def value(self, *names: str) -> str | None:
        """The value of the last of these options; None if none is given."""
        found = self.values(*names)
        return found[-1] if found else None

    def _means(self, given: str, name: str) -> bool:
        return given == name or (len(given) > 1 and given not in self._known and name.startswith(given))
