"""find: its expression, and what that does to the files it finds.

A tree is walked only where something follows from it: a file that is deleted or given to a program that changes files,
or an output that another command reads. What is behind a test that cannot be answered is not done.
"""

from __future__ import annotations

import os

from fusewire.guard.effects import WRITE
from fusewire.guard.shell.read_only import LOOKING
from fusewire.guard.shell.values import REST, TAINT, UNKNOWN
from fusewire.util.globs import matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fusewire.guard.effects import ProgramCall

    #: True, False, or None where it may be either; an action does what it does, and is True
    Test = Callable[["FoundPath"], bool | None]

#: Entries of a tree that are looked at where files change, and where only names are printed.
_ENTRIES, _PRINTED = 50_000, 5000

#: Commands that one `-exec` is followed into; one more stands for the rest.
_RUNS = 2000

#: Words that take no part in deciding about a file, and how many words follow them.
_OPTIONS = {"-maxdepth": 1, "-mindepth": 1, "-regextype": 1, "-files0-from": 1} | dict.fromkeys(
    "-depth -d -xdev -mount -daystart -follow -noleaf -warn -nowarn -ignore_readdir_race".split(), 0
)

#: Tests without an argument; every other one has one.
_ALONE = frozenset(("-executable", "-readable", "-writable", "-nouser", "-nogroup"))

#: Bytes in a unit of `-size`, of which what is begun counts.
_UNITS = {"b": 512, "c": 1, "w": 2, "k": 1024, "M": 1 << 20, "G": 1 << 30}


class FoundPath:
    """One path of a tree: as it is shown, where it is, how deep, and its kind (`f`, `d`, `l`, else unknown)."""

    __slots__ = ("depth", "full", "kind", "pruned", "shown")

    def __init__(self, shown: str, full: str, depth: int, kind: str) -> None:
        self.shown = shown
        self.full = full
        self.depth = depth
        self.kind = kind
        self.pruned = False

    @property
    def name(self) -> str:
        return self.shown.rstrip("/").rsplit("/", 1)[-1] or "/"


class _Find:
    """An expression, read into one function."""

    def __init__(self, call: ProgramCall, words: list[str]) -> None:
        self.call = call
        self.words = words
        self.at = 0
        self.limits = {"-maxdepth": 1000, "-mindepth": 0}
        self.has_action = self.ended = False
        #: whether an action changes files, or may
        self.changes = False
        self.deleted: set[str] = set()
        #: `-exec ... +`: its words and the entries for them
        self.gathered: list[tuple[list[str], list[FoundPath]]] = []
        self.runs = 0
        test = self._list() if words else _always
        self.test = test if self.has_action else _both(test, self._print("\n"))

    # Reading the expression.

    def _peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ")"

    def _take(self) -> str:
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else ")"

    def _list(self) -> Test:
        test = self._or()
        while self._peek() == ",":
            self.at += 1
            before, after = test, self._or()
            test = lambda entry, one=before, other=after: (one(entry), other(entry))[1]  # type: ignore[misc]  # noqa: E731
        return test

    def _or(self) -> Test:
        test = self._and()
        while self._peek() in ("-o", "-or"):
            self.at += 1
            test = _either(test, self._and())
        return test

    def _and(self) -> Test:
        test = self._not()
        while self._peek() not in ("-o", "-or", ",", ")"):
            self.at += self._peek() in ("-a", "-and")
            test = _both(test, self._not())
        return test

    def _not(self) -> Test:
        word = self._take()
        if word in ("!", "-not"):
            inner = self._not()
            return lambda entry: None if (answer := inner(entry)) is None else not answer
        if word == "(":
            test = self._list()
            self.at += 1
            return test
        return self._primary(word)

    def _primary(self, word: str) -> Test:
        if word in _OPTIONS:
            value = self._take() if _OPTIONS[word] else ""
            if word in self.limits and value.isdigit():
                self.limits[word] = int(value[:4])
            return _always
        if word in ("-true", "-false"):
            return lambda entry: word == "-true"
        if word in ("-prune", "-quit", "-empty", "-delete"):
            self.changes = self.changes or word == "-delete"
            self.has_action = self.has_action or word == "-delete"
            return getattr(self, f"_{word[1:]}")  # type: ignore[no-any-return]
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            return self._exec(word.endswith("dir"))
        if word in ("-print", "-print0", "-printf", "-ls", "-fprint", "-fprint0", "-fls", "-fprintf"):
            self.has_action = True
            if word[:2] == "-f":
                self.call.effect(WRITE, self._take())
            self.at += word in ("-printf", "-fprintf")
            return self._print({"-print": "\n", "-print0": "\0"}.get(word, ""))
        return _always if word == ")" else _test(self.call, word, "" if word in _ALONE else self._take())

    # Actions.

    def _print(self, end: str) -> Test:
        def test(entry: FoundPath) -> bool:
            self.call.print(entry.shown + end if end else f"{UNKNOWN}\n")
            return True

        return test

    def _empty(self, entry: FoundPath) -> bool | None:
        if entry.kind != "d":
            return entry.kind == "f" and os.path.getsize(entry.full) == 0
        base = entry.full.rstrip("/")
        return all(f"{base}/{name}" in self.deleted for name in self.call.disk.listing(entry.full))

    def _delete(self, entry: FoundPath) -> bool:
        if entry.kind == "d" and (os.path.islink(entry.full.rstrip("/")) or not self._empty(entry)):
            return False
        if entry.shown != ".":
            self.deleted.add(entry.full)
            self.call.delete(entry.shown)
        return True

    def _prune(self, entry: FoundPath) -> bool:
        entry.pruned = True
        return True

    def _quit(self, entry: FoundPath) -> bool:
        self.ended = True
        return True

    def _exec(self, in_folder: bool) -> Test:
        self.has_action = True
        words: list[str] = []
        while self.at < len(self.words) and self._peek() != ";" and (self._peek() != "+" or words[-1:] != ["{}"]):
            words.append(self._take())
        gathers = self._take() == "+" and not in_folder
        if not words or words[0] in LOOKING:
            return _unsure
        self.changes = True
        entries: list[FoundPath] = []
        if gathers:
            self.gathered.append((words[:-1], entries))

        def execute(entry: FoundPath) -> bool:
            self.runs += not gathers
            if gathers:
                entries.append(entry)
            elif self.runs <= _RUNS:
                folder = entry.shown.rstrip("/").rpartition("/")[0] or "." if in_folder else None
                shown = f"./{entry.name}" if in_folder else entry.shown
                self.call.run([word.replace("{}", shown) for word in words], cwd=folder)
            elif self.runs == _RUNS + 1:
                self.call.run([word.replace("{}", UNKNOWN) for word in words], stdin="")
            return True

        return execute


# -- tests --------------------------------------------------------------------------------------------------------


def _always(entry: FoundPath) -> bool:
    return True


def _unsure(entry: FoundPath) -> None:
    return None


def _both(one: Test, other: Test) -> Test:
    return lambda entry: other(entry) if (first := one(entry)) is True else first


def _either(one: Test, other: Test) -> Test:
    return lambda entry: other(entry) if (first := one(entry)) is False else first


def _test(call: ProgramCall, word: str, value: str) -> Test:
    """A test of a name or of what is known of the file before the command runs."""
    folds = word[:2] == "-i" and word != "-inum"
    if word in ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"):
        wanted = value.lower() if folds else value

        def named(entry: FoundPath) -> bool | None:
            text = entry.name if word in ("-name", "-iname") else entry.shown
            if TAINT in text:  # what lies beyond the limit; its name is known
                return True
            return None if UNKNOWN in text + wanted else matches(text.lower() if folds else text, wanted)

        return named
    if word in ("-regex", "-iregex"):
        import re

        try:  # close enough to find's own syntaxes
            text = value.replace("\\(", "(").replace("\\)", ")").replace("\\|", "|")
            pattern = re.compile(text, re.IGNORECASE if folds else 0)
        except re.error:
            return _unsure
        return lambda entry: None if UNKNOWN in entry.shown else pattern.fullmatch(entry.shown) is not None
    if word == "-type":
        return lambda entry: entry.kind in value.split(",") if entry.kind else True if TAINT in entry.shown else None
    return lambda entry: _by_facts(call, word, value, entry)


def _by_facts(call: ProgramCall, word: str, value: str, entry: FoundPath) -> bool | None:
    """Tests of size, age and owner; None where the answer is not known."""
    try:
        facts = os.lstat(entry.full)
        if word == "-user" and not value.isdigit():
            import pwd

            return facts.st_uid == pwd.getpwnam(value).pw_uid
        if word in ("-user", "-uid", "-inum", "-links"):
            number = {"-inum": facts.st_ino, "-links": facts.st_nlink}.get(word, facts.st_uid)
            return _compared(number, value)
        if word == "-size":
            return _compared(-(-facts.st_size // _UNITS.get(value[-1], 512)), value.rstrip("bcwkMG"))
        if word == "-newer":
            return facts.st_mtime > os.stat(call.path(value)).st_mtime
        if word == "-newermt":
            from datetime import datetime

            return facts.st_mtime > datetime.fromisoformat(value).timestamp()
        if word in ("-mmin", "-mtime"):
            import time

            return _compared(int((time.time() - facts.st_mtime) // (60 if word == "-mmin" else 86400)), value)
    except (OSError, ValueError, IndexError, KeyError):
        pass
    return None


def _compared(number: int, wanted: str) -> bool:
    limit = int(wanted.lstrip("+-"))
    return number > limit if wanted[:1] == "+" else number < limit if wanted[:1] == "-" else number == limit


# -- the tree -----------------------------------------------------------------------------------------------------


def _kind(path: str, follows: bool) -> str:
    if os.path.islink(path) and not (follows and os.path.exists(path)):
        return "l"
    return "d" if os.path.isdir(path) else "f" if os.path.isfile(path) else "" if os.path.lexists(path) else "-"


def _tree(
    call: ProgramCall, start: str, follows: bool, follows_start: bool, deepest: int, most: int
) -> Iterator[FoundPath]:
    """A folder and what is in it, each folder before its content, which is left out if the entry is `pruned`."""
    full = call.disk.real(call.path(start)) if call.disk.links else call.path(start)
    kind = _kind(full, follows or follows_start)
    if UNKNOWN in full or (kind == "-" and not call.walk.pristine):
        yield FoundPath(f"{start}/{UNKNOWN}", f"{full}/{UNKNOWN}", 1, "")
        return
    todo = [FoundPath(start, full, 0, kind)] if kind != "-" else []
    seen = set()
    while todo:
        entry = todo.pop()
        most -= 1
        if most < 0:
            yield FoundPath(f"{start.rstrip('/')}/{REST}", f"{full}/{REST}", 999, "")
            return
        yield entry
        real = os.path.realpath(entry.full) if follows else entry.full
        if entry.kind != "d" or entry.pruned or entry.depth >= deepest or real in seen:
            continue
        seen.add(real)
        for name in reversed(call.disk.listing(entry.full)):
            path = f"{entry.full.rstrip('/')}/{name}"
            todo.append(FoundPath(f"{entry.shown.rstrip('/')}/{name}", path, entry.depth + 1, _kind(path, follows)))


def run_find(call: ProgramCall) -> None:
    at = 0
    while at < len(call.args) and call.args[at][:2] in ("-H", "-L", "-P", "-D", "-O"):
        at += 2 if call.args[at] == "-D" else 1
    end = at
    while end < len(call.args) and call.args[end][:1] != "-" and call.args[end] not in ("(", "!", ","):
        end += 1
    find = _Find(call, call.args[end:])
    call.world.status = None
    if not find.changes and not call.walk.is_heard:
        return
    follows = "-L" in call.args[:at] or "-follow" in find.words
    post = not {"-depth", "-d", "-delete"}.isdisjoint(find.words)
    most = _ENTRIES if find.changes else _PRINTED
    for start in call.args[at:end] or ["."]:
        found = _tree(call, start, follows, "-H" in call.args[:at], find.limits["-maxdepth"], most)
        for entry in reversed(list(found)) if post else found:
            entry.shown += _name_in(find.words) if entry.shown.endswith(REST) else ""
            if entry.depth >= find.limits["-mindepth"] and not find.ended:
                find.test(entry)
    for words, entries in find.gathered:
        if entries:
            call.run([*words, *(entry.shown for entry in entries)])


def _name_in(words: list[str]) -> str:
    """What is known of the names beyond the limit."""
    if "-name" not in words[:-1] or any(word in ("-o", "-or", "!", "-not", ",") for word in words):
        return ""
    name = words[words.index("-name") + 1].replace("*", UNKNOWN).replace("?", UNKNOWN)
    return "" if "[" in name else name
