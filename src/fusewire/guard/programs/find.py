"""find: its expression, and what that does to the files it finds."""

from __future__ import annotations

import os

from fusewire.globs import matches
from fusewire.guard.effects import WRITE
from fusewire.guard.programs.find_logic import both, comma, either, formatted, negated, true, unsure
from fusewire.guard.programs.patterns import Pattern
from fusewire.guard.programs.trees import Entry, tree
from fusewire.shell.outputs import unescaped
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call, Program
    from fusewire.guard.programs.find_logic import Test

#: Commands that one `-exec` is followed into; one more stands for the rest.
_RUNS = 2000

#: Tests with one argument whose answer nobody can give for the moment at which the command runs.
_UNSURE = (
    "-group -links -inum -uid -gid -atime -amin -ctime -cmin -used -fstype"
    " -anewer -cnewer -context -lname -ilname -xtype"
)

#: Options: what they are followed by.
_FIND_OPTIONS = {
    "-maxdepth": 1,
    "-mindepth": 1,
    "-regextype": 1,
    "-files0-from": 1,
    "-depth": 0,
    "-d": 0,
    "-xdev": 0,
    "-mount": 0,
    "-daystart": 0,
    "-follow": 0,
    "-noleaf": 0,
    "-warn": 0,
    "-nowarn": 0,
    "-ignore_readdir_race": 0,
}


#: Bytes in a unit of `-size`, of which what is begun counts.
_UNITS = {"b": 512, "c": 1, "w": 2, "k": 1024, "M": 1 << 20, "G": 1 << 30}


def _by_facts(call: Call, word: str, value: str) -> Test:
    """Tests of what is known of a file before the command runs; None where that is not enough."""

    def test(entry: Entry, sure: bool) -> bool | None:
        try:
            facts = os.lstat(entry.full)
            if word == "-samefile":
                other = os.stat(call.path(value))
                return (facts.st_dev, facts.st_ino) == (other.st_dev, other.st_ino)
            if word == "-user":
                return _is_user(facts.st_uid, value)
            if word == "-perm":
                return facts.st_mode & 0o7777 == int(value, 8) if value[:1] not in "-/" else None
            if word == "-size":
                unit = _UNITS.get(value[-1], 512)
                return _compared(-(-facts.st_size // unit), value.rstrip("bcwkMG"))
            return _aged(facts.st_mtime, word, value)
        except (OSError, ValueError, IndexError):
            return None

    return test


def _compared(number: float, wanted: str) -> bool:
    limit = int(wanted.lstrip("+-"))
    return number > limit if wanted[:1] == "+" else number < limit if wanted[:1] == "-" else number == limit


def _aged(moment: float, word: str, value: str) -> bool | None:
    """Clear cases only: what is near the limit may be on its other side when the command runs."""
    import time

    age = (time.time() - moment) / (60 if word == "-mmin" else 86400)
    limit = int(value.lstrip("+-"))
    if value[:1] not in "+-" or abs(age - limit) < 2:
        return None
    return age > limit if value[0] == "+" else age < limit


def _is_user(number: int, name: str) -> bool | None:
    import pwd

    try:
        return number == (int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid)
    except KeyError:
        return None


class _Find:
    """An expression as a function: True, False, or None where it may be either; what it reaches, it does."""

    def __init__(self, call: Call, words: list[str]) -> None:
        self.call = call
        self.words = words
        self.at = 0
        self.follows = "-follow" in words
        self.post = "-depth" in words or "-d" in words or "-delete" in words
        self.limits = {"-maxdepth": 1000, "-mindepth": 0}
        self.extended = "-regextype" in words and "emacs" not in words
        self.acts = False
        self.ended = False
        self.deleted: set[str] = set()
        #: `-exec ... +`: its words and the entries for them
        self.gathered: list[tuple[list[str], list[Entry], bool]] = []
        self.runs = 0

    # Reading the expression.

    def parsed(self) -> Test:
        test = self._list() if self.words else true
        if self.acts:
            return test
        return both(test, self._print("\n"))

    def _peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ")"

    def _take(self) -> str:
        word = self._peek()
        self.at += 1
        return word

    def _list(self) -> Test:
        test = self._or()
        while self._peek() == ",":
            self.at += 1
            test = comma(test, self._or())
        return test

    def _or(self) -> Test:
        test = self._and()
        while self._peek() in ("-o", "-or"):
            self.at += 1
            test = either(test, self._and())
        return test

    def _and(self) -> Test:
        test = self._not()
        while self._peek() not in ("-o", "-or", ",", ")"):
            if self._peek() in ("-a", "-and"):
                self.at += 1
            test = both(test, self._not())
        return test

    def _not(self) -> Test:
        if self._peek() in ("!", "-not"):
            self.at += 1
            return negated(self._not())
        word = self._take()
        if word == "(":
            test = self._list()
            self.at += 1
            return test
        return self._primary(word)

    def _primary(self, word: str) -> Test:
        if word in _FIND_OPTIONS:
            value = self._take() if _FIND_OPTIONS[word] else ""
            if word in self.limits and value.isdigit():
                self.limits[word] = int(value[:4])
            return true
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            return self._exec(word)
        if word in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            self.acts = True
            self.call.effect(WRITE, self._take())
            self.at += word == "-fprintf"
            return true
        maker = _TESTS.get(word)
        if maker is not None:
            return maker(self, self._take())
        action = _ACTIONS.get(word)
        if action is not None:
            self.acts = self.acts or word not in ("-prune", "-quit", "-true", "-false", "-empty")
            return action(self)
        if word in ("-size", "-perm", "-user", "-mmin", "-mtime", "-samefile"):
            return _by_facts(self.call, word, self._take())
        if word in _UNSURE.split() or word.startswith("-newer"):
            self.at += 1
        return unsure

    # Actions.

    def _print(self, end: str) -> Test:
        def test(entry: Entry, sure: bool) -> bool:
            self.call.print(entry.shown + end)
            return True

        return test

    def printf(self, form: str) -> Test:
        self.acts = True
        form = unescaped(form.replace("\\0", "\0"))

        def test(entry: Entry, sure: bool) -> bool:
            self.call.print(formatted(form, entry))
            return True

        return test

    def ls(self) -> Test:
        self.acts = True
        return self.printf(f"{'%s ' * 10}%p\n")

    def delete(self, entry: Entry, sure: bool) -> bool | None:
        if entry.shown == ".":
            return True
        if entry.kind == "d" and (os.path.islink(entry.full.rstrip("/")) or not self.is_empty(entry)):
            return False
        self.deleted.add(entry.full)
        self.call.delete(entry.shown)
        return True if sure else None

    def is_empty(self, entry: Entry) -> bool:
        if entry.kind != "d":
            return entry.kind == "f" and os.path.getsize(entry.full) == 0
        base = entry.full.rstrip("/")
        return all(f"{base}/{name}" in self.deleted for name in self.call.disk.listing(entry.full))

    def prune(self, entry: Entry, sure: bool) -> bool:
        entry.pruned = sure
        return True

    def quit(self, entry: Entry, sure: bool) -> bool:
        self.ended = self.ended or (sure and not self.post)  # which comes first from below is not known
        return True

    def _exec(self, word: str) -> Test:
        self.acts = True
        inner: list[str] = []
        while self.at < len(self.words):
            part = self._take()
            if part == ";" or (part == "+" and inner[-1:] == ["{}"]):
                break
            inner.append(part)
        else:
            return unsure
        in_folder = word.endswith("dir")
        if part == "+":
            entries: list[Entry] = []
            self.gathered.append((inner[:-1], entries, in_folder))

            def gather(entry: Entry, sure: bool) -> bool:
                entries.append(entry)
                return True

            return gather

        def execute(entry: Entry, sure: bool) -> bool | None:
            self.runs += 1
            if self.runs <= _RUNS:
                self.execute(inner, entry, in_folder)
            elif self.runs == _RUNS + 1:
                self.call.run([part.replace("{}", UNKNOWN) for part in inner], stdin="")
            return None

        return execute

    def execute(self, words: list[str], entry: Entry, in_folder: bool) -> None:
        shown, folder = entry.shown, None
        if in_folder:
            shown, folder = f"./{entry.name}", entry.shown.rstrip("/").rpartition("/")[0] or "."
        self.call.run([word.replace("{}", shown) for word in words], cwd=folder)

    def finish(self) -> None:
        for words, entries, in_folder in self.gathered:
            if in_folder:
                for entry in entries[:_RUNS]:
                    self.execute([*words, "{}"], entry, True)
                if len(entries) > _RUNS:
                    self.call.run([*words, UNKNOWN])
            elif entries:
                self.call.run([*words, *(entry.shown for entry in entries)])


def _named(part: str, ignores_case: bool) -> Callable[[_Find, str], Test]:
    """`-name`, `-path` and their kind."""

    def maker(find: _Find, pattern: str) -> Test:
        wanted = pattern.lower() if ignores_case else pattern

        def test(entry: Entry, sure: bool) -> bool | None:
            text = entry.name if part == "name" else entry.shown
            if UNKNOWN in text or UNKNOWN in wanted:
                return None
            return matches(text.lower() if ignores_case else text, wanted)

        return test

    return maker


def _typed(find: _Find, kinds: str) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        return entry.kind in kinds.split(",") if entry.kind else None if UNKNOWN in entry.shown else kinds not in "fdl"

    return test


def _newer(find: _Find, name: str) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        try:
            return os.lstat(entry.full).st_mtime > os.stat(find.call.path(name)).st_mtime
        except (OSError, ValueError):
            return None

    return test if find.call.walk.pristine else unsure


def _regex(ignores_case: bool) -> Callable[[_Find, str], Test]:
    def maker(find: _Find, text: str) -> Test:
        pattern = Pattern([text], "E" if find.extended else "emacs", ignores_case=ignores_case, whole=True)
        return lambda entry, sure: pattern.fits(entry.shown)

    return maker


_TESTS: dict[str, Callable[[_Find, str], Test]] = {
    "-iname": _named("name", True),
    "-ipath": _named("path", True),
    "-iregex": _regex(True),
    "-iwholename": _named("path", True),
    "-name": _named("name", False),
    "-newer": _newer,
    "-path": _named("path", False),
    "-printf": _Find.printf,
    "-regex": _regex(False),
    "-type": _typed,
    "-wholename": _named("path", False),
}

_ACTIONS: dict[str, Callable[[_Find], Test]] = {
    "-delete": lambda find: find.delete,
    "-empty": lambda find: lambda entry, sure: find.is_empty(entry) if entry.kind else None,
    "-false": lambda find: lambda entry, sure: False,
    "-ls": _Find.ls,
    "-print": lambda find: find._print("\n"),
    "-print0": lambda find: find._print("\0"),
    "-prune": lambda find: find.prune,
    "-quit": lambda find: find.quit,
    "-true": lambda find: true,
}


def _find(call: Call) -> None:
    at, mode = 0, "-P"
    while at < len(call.args) and call.args[at][:2] in ("-H", "-L", "-P", "-D", "-O"):
        mode = call.args[at] if call.args[at] in ("-H", "-L", "-P") else mode
        at += 2 if call.args[at] == "-D" else 1
    end = at
    while end < len(call.args) and call.args[end][:1] != "-" and call.args[end] not in ("(", "!", ","):
        end += 1
    find = _Find(call, call.args[end:])
    test = find.parsed()
    follows = find.follows or mode == "-L"
    for start in call.args[at:end] or ["."]:
        found = tree(call, start, follows=follows, follows_start=mode == "-H", deepest=find.limits["-maxdepth"])
        for entry in reversed(list(found)) if find.post else found:
            if entry.kind == "" and UNKNOWN in entry.shown:
                entry.shown += _name_in(find.words) if entry.shown.endswith(UNKNOWN) else ""
            if entry.depth >= find.limits["-mindepth"] and not find.ended:
                test(entry, True)
    find.finish()
    call.world.status = None


def _name_in(words: list[str]) -> str:
    """What is known of the name of a file somewhere below an unknown folder."""
    if "-name" not in words[:-1] or any(word in ("-o", "-or", "!", "-not", ",") for word in words):
        return ""
    name = words[words.index("-name") + 1]
    for mark in "*?":
        name = name.replace(mark, UNKNOWN)
    return "" if "[" in name else name


PROGRAMS: dict[str, Program] = {"find": _find}
