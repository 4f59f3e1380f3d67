"""fd: a find that takes its words in another order."""

from __future__ import annotations

from fusewire.globs import matches
from fusewire.guard.programs.marks import MARKS, filled
from fusewire.guard.programs.patterns import Pattern
from fusewire.guard.programs.trees import Entry, tree
from fusewire.guard.programs.words import told_apart
from fusewire.guard.programs.xargs import bounded
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import Call, Program


class _Fd:
    """One `fd`: what `.gitignore` hides is not hidden here, which can only find more."""

    def __init__(self, call: Call, words: list[str]) -> None:
        self.call = call
        self.options = told_apart(words, "etEdcSjoC", _FD_LONGS)
        self.flags = {name for name, _ in self.options}
        operands = self.values("")
        self.text = operands[0] if operands else ""
        self.starts = operands[1:] + self.values("search-path")
        self.endings = tuple(f".{value.lstrip('.')}" for value in self.values("e", "extension"))
        self.kinds = [value[:1] for value in self.values("t", "type")]
        folds = self.text == self.text.lower() or self.has("i", "ignore-case")
        self.pattern = Pattern([self.text], "F" if self.has("F", "fixed-strings") else "P", ignores_case=folds)

    def has(self, *names: str) -> bool:
        return not self.flags.isdisjoint(names)

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.options if name in names]

    def found(self) -> Iterator[str]:
        depth = "".join(self.values("d", "max-depth")[-1:])
        deepest = int(depth[:3]) if depth.isdigit() else 999
        for start in self.starts or ["."]:
            for entry in tree(self.call, start, follows=False, follows_start=True, deepest=deepest):
                entry.pruned = entry.depth > 0 and self._left_out(entry)
                if entry.depth and not entry.pruned and self._fits(entry):
                    yield entry.shown if self.starts else entry.shown.removeprefix("./")

    def _left_out(self, entry: Entry) -> bool:
        if entry.name[:1] == "." and not self.has("H", "u", "hidden", "unrestricted"):
            return True
        globs = self.values("E", "exclude")
        return any(matches(entry.name, glob) or matches(entry.shown, glob) for glob in globs)

    def _fits(self, entry: Entry) -> bool:
        if UNKNOWN in entry.shown:
            return True
        if (self.endings and not entry.name.endswith(self.endings)) or (self.kinds and entry.kind not in self.kinds):
            return False
        text = entry.shown if self.has("p", "full-path") else entry.name
        if self.has("g", "glob"):
            return matches(text, self.text or "*")
        return self.pattern.fits(text) is not False


def _fd(call: Call) -> None:
    words, command, at_once = _fd_command(call.args)
    fd = _Fd(call, words)
    if fd.has("h", "V", "help", "version"):
        return
    found = list(fd.found())
    if not command:
        end = "\0" if fd.has("0", "print0") else "\n"
        call.print("".join(name + end for name in found))
    elif at_once:
        call.run(_filled_words(command, found) if found else [])
    else:
        for names in bounded([[name] for name in found]):
            call.run(_filled_words(command, names))


_FD_LONGS = (
    "extension= type= exclude= max-depth= min-depth= exact-depth= color= size= threads= owner= base-directory= and="
    " changed-within= changed-before= search-path= max-results= hidden no-ignore unrestricted glob fixed-strings"
    " full-path ignore-case print0 absolute-path follow help version ignore-file= format="
)


def _fd_command(words: list[str]) -> tuple[list[str], list[str], bool]:
    """The words without `-x COMMAND`, the command, and whether it gets all files at once."""
    for at, word in enumerate(words):
        if word in ("-x", "--exec", "-X", "--exec-batch"):
            end = words.index(";", at) if ";" in words[at:] else len(words)
            return words[:at] + words[end + 1 :], words[at + 1 : end], word in ("-X", "--exec-batch")
    return words, [], False


def _filled_words(command: list[str], names: list[str]) -> list[str]:
    """A command with its `{}` filled in; names are put behind it if it has none."""
    if not any(mark in word for word in command for mark in MARKS):
        return [*command, *names]
    result: list[str] = []
    for word in command:
        result += [filled(word, name) for name in names] if any(mark in word for mark in MARKS) else [word]
    return result


PROGRAMS: dict[str, Program] = {"fd": _fd, "fdfind": _fd}
