"""Programs that find files and run others on them: find, fd, grep, xargs, parallel."""

from __future__ import annotations

import os

from fusewire.globs import matches
from fusewire.guard.effects import READ, WRITE
from fusewire.shell.values import UNKNOWN
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fusewire.guard.effects import Call, Program

    Test = Callable[["Entry", bool], bool | None]

#: Entries of a tree that are looked at.
_ENTRIES = 50_000

#: Commands that one `-exec` or `xargs -n1` is followed into; one more stands for the rest.
_RUNS = 2000

#: Files, characters a file and characters in all that are searched.
_FILES, _SIZE, _TOTAL = 5000, 1 << 20, 32 << 20

#: Seconds that may be spent on searching; what is left then may fit.
_SECONDS = 1.0


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


# -- trees ----------------------------------------------------------------------------------------------------


class Entry:
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


def _kind(path: str, follows: bool) -> str:
    if os.path.islink(path) and not (follows and os.path.exists(path)):
        return "l"
    return "d" if os.path.isdir(path) else "f" if os.path.isfile(path) else "" if os.path.lexists(path) else "-"


def tree(call: Call, start: str, *, follows: bool, follows_start: bool, deepest: int) -> Iterator[Entry]:
    """A folder and what is in it, each folder before its content, which is left out if the entry is `pruned`."""
    full = call.disk.real(call.path(start)) if call.disk.links else call.path(start)
    kind = _kind(full, follows or follows_start)
    if UNKNOWN in full or (kind == "-" and not call.walk.pristine):
        inner = start if UNKNOWN in full and not deepest else f"{start}/{UNKNOWN}"
        yield Entry(inner, call.path(inner), 1, "")
        return
    if kind == "-":
        return
    seen = set()
    todo = [Entry(start, full, 0, kind)]
    count = 0
    while todo:
        entry = todo.pop()
        count += 1
        if count > _ENTRIES:
            yield Entry(f"{start.rstrip('/')}/{UNKNOWN}", f"{full}/{UNKNOWN}", 999, "")
            break
        yield entry
        if entry.kind != "d" or entry.pruned or entry.depth >= deepest:
            continue
        if follows:
            real = os.path.realpath(entry.full)
            if real in seen:
                continue
            seen.add(real)
        for name in reversed(call.disk.listing(entry.full)):
            path = f"{entry.full.rstrip('/')}/{name}"
            todo.append(Entry(f"{entry.shown.rstrip('/')}/{name}", path, entry.depth + 1, _kind(path, follows)))
    yield from _made(call, start, full)


def _made(call: Call, start: str, full: str) -> Iterator[Entry]:
    """The files that the line itself has put there."""
    base = full.rstrip("/").removesuffix("/.") + "/"
    for path in call.walk.files:
        path = path.replace("/./", "/")
        if path.startswith(base) and not os.path.lexists(path):
            inner = path[len(base) :]
            yield Entry(f"{start.rstrip('/')}/{inner}", path, inner.count("/") + 1, "f")


# -- find -----------------------------------------------------------------------------------------------------

#: Tests with one argument whose answer nobody can give for the moment at which the command runs.
_UNSURE = (
    "-mtime -mmin -size -perm -user -group -links -inum -samefile -uid -gid -atime -amin -ctime -cmin -used -fstype"
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
        test = self._list() if self.words else _true
        if self.acts:
            return test
        return _both(test, self._print("\n"))

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
            test = _comma(test, self._or())
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
            if self._peek() in ("-a", "-and"):
                self.at += 1
            test = _both(test, self._not())
        return test

    def _not(self) -> Test:
        if self._peek() in ("!", "-not"):
            self.at += 1
            return _negated(self._not())
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
            return _true
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            return self._exec(word)
        if word in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            self.acts = True
            self.call.effect(WRITE, self._take())
            self.at += word == "-fprintf"
            return _true
        maker = _TESTS.get(word)
        if maker is not None:
            return maker(self, self._take())
        action = _ACTIONS.get(word)
        if action is not None:
            self.acts = self.acts or word not in ("-prune", "-quit", "-true", "-false", "-empty")
            return action(self)
        if word in _UNSURE.split() or word.startswith("-newer"):
            self.at += 1
        return _unsure

    # Actions.

    def _print(self, end: str) -> Test:
        def test(entry: Entry, sure: bool) -> bool:
            self.call.print(entry.shown + end)
            return True

        return test

    def printf(self, form: str) -> Test:
        self.acts = True

        def test(entry: Entry, sure: bool) -> bool:
            text = form.replace("\\n", "\n").replace("\\0", "\0").replace("%p", entry.shown).replace("%f", entry.name)
            self.call.print(text if "%" not in form.replace("%p", "").replace("%f", "") else UNKNOWN)
            return True

        return test

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
        self.ended = self.ended or sure
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
            return _unsure
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
            elif entries:
                self.call.run([*words, *(entry.shown for entry in entries)])


def _true(entry: Entry, sure: bool) -> bool:
    return True


def _unsure(entry: Entry, sure: bool) -> None:
    return None


def _both(one: Test, other: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        first = one(entry, sure)
        if first is False:
            return False
        second = other(entry, sure and first is True)
        return False if second is False else None if first is None or second is None else True

    return test


def _either(one: Test, other: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        first = one(entry, sure)
        if first is True:
            return True
        second = other(entry, sure and first is False)
        return True if second is True else None if first is None or second is None else False

    return test


def _comma(one: Test, other: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        one(entry, sure)
        return other(entry, sure)

    return test


def _negated(one: Test) -> Test:
    def test(entry: Entry, sure: bool) -> bool | None:
        answer = one(entry, sure)
        return None if answer is None else not answer

    return test


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

    return test if find.call.walk.pristine else _unsure


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
    "-ls": lambda find: find.printf("%"),
    "-print": lambda find: find._print("\n"),
    "-print0": lambda find: find._print("\0"),
    "-prune": lambda find: find.prune,
    "-quit": lambda find: find.quit,
    "-true": lambda find: _true,
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
        for names in _bounded([[name] for name in found]):
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
    if not any(mark in word for word in command for mark in _MARKS):
        return [*command, *names]
    result: list[str] = []
    for word in command:
        result += [_filled(word, name) for name in names] if any(mark in word for mark in _MARKS) else [word]
    return result


# -- patterns -------------------------------------------------------------------------------------------------

_CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}


class Pattern:
    """What `grep` looks for; where Python could see it differently, a line may fit."""

    def __init__(
        self, texts: list[str], kind: str, *, ignores_case: bool = False, words: bool = False, whole: bool = False
    ) -> None:
        """`kind`: G for basic expressions, E for extended ones, P for Perl's, F for plain text, emacs for find's."""
        import re
        from time import monotonic

        self._clock = monotonic
        self._until = monotonic() + _SECONDS
        self._known: re.Pattern[str] | None = None
        self._whole = whole
        lines = [line for text in texts for line in text.split("\n")]
        parts = [re.escape(line) if kind == "F" else _translated(line, kind) for line in lines]
        if any(part is None or UNKNOWN in part for part in parts):
            return
        text = "|".join(f"(?:{part})" for part in parts if part is not None)
        try:
            self._known = re.compile(rf"\b(?:{text})\b" if words else text, re.IGNORECASE if ignores_case else 0)
        except (re.error, OverflowError, RecursionError):
            return

    def fits(self, line: str) -> bool | None:
        """Whether a line fits; None if nobody knows."""
        if self._known is None or UNKNOWN in line or self._clock() > self._until:
            return None
        return bool(self._known.fullmatch(line) if self._whole else self._known.search(line))

    def fits_any(self, text: str) -> bool | None:
        answers = {self.fits(line) for line in text.splitlines()}
        return True if True in answers else None if None in answers else False

    def parts(self, line: str) -> list[str]:
        """What `-o` prints of a line."""
        if self._known is None or UNKNOWN in line:
            return [UNKNOWN]
        return [part.group() for part in self._known.finditer(line) if part.group()]


def _translated(text: str, kind: str) -> str | None:
    """An expression in Python's words; None if it has something that may mean something else, or take long."""
    if text.count("*") + text.count("+") + text.count("{") > 2 and len(text) > 1 and kind != "F":
        return None  # so many repetitions can take longer than anybody waits
    result, at = "", 0
    while at < len(text):
        char = text[at]
        if char == "[":
            end = _set_end(text, at)
            if end < 0:
                return None
            result += _set(text[at : end + 1])
            at = end + 1
            continue
        if char == "\\":
            char = text[at : at + 2]
            at += 1
            if kind in ("G", "emacs") and char[1:] in ("(", ")", "|", "{", "}", "+", "?"):
                char = char[1:]
            elif char in (r"\<", r"\>"):
                char = r"\b"
            elif char[1:].isalnum() and char[1:] not in "wWsSbB" + "dDntr" * (kind == "P"):
                return None
        elif (
            (kind == "G" and char in "(){}|+?") or (kind == "emacs" and char in "(){}|") or (char == "*" and not result)
        ):
            char = f"\\{char}"
        result += char
        at += 1
    repeated = result.replace(r"\)", "")
    return None if ")*" in repeated or ")+" in repeated or "){" in repeated else result


def _set_end(text: str, at: int) -> int:
    first = at + 2 if text[at + 1 : at + 2] == "^" else at + 1
    end = text.find("]", first + 1)
    while end > 0 and text.rfind("[:", at, end) > text.rfind(":]", at, end):
        end = text.find("]", end + 1)
    return end


def _set(text: str) -> str:
    for name, chars in _CLASSES.items():
        text = text.replace(f"[:{name}:]", chars)
    head, inner = ("[^", text[2:-1]) if text[1] == "^" else ("[", text[1:-1])
    inner = inner.replace("\\", "\\\\").replace("\\\\s", "\\s").replace("[", "\\[").replace("]", "\\]")
    return f"{head}{inner}]"


# -- grep -----------------------------------------------------------------------------------------------------

_GREP_LONGS = (
    "regexp= file= max-count= context= after-context= before-context= include= exclude= exclude-dir= glob= iglob= type="
    " type-not= binary-files= directories= devices= label= max-depth= threads= sort= sortr= replace= encoding= pre="
    " color= colour= colors= exclude-from= ignore-file= max-filesize= group-separator= pre-glob="
    " invert-match ignore-case extended-regexp fixed-strings basic-regexp perl-regexp word-regexp line-regexp quiet"
    " silent count only-matching null null-data files-with-matches files-without-match files recursive"
    " dereference-recursive no-filename with-filename line-number hidden unrestricted smart-case no-messages"
    " no-ignore text"
)

#: Options that make a line something else than the line of the file.
_CHANGED = "n H b A B C c line-number with-filename byte-offset context after-context before-context"


class _Grep:
    """One `grep` or `rg`: its options, its pattern and its files."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.rg = call.name == "rg"
        valued = "efmABCgtTjMrdD" if self.rg else "efmABCdD"
        found = told_apart(call.args, valued, _GREP_LONGS)
        self.options = [pair for pair in found if pair[0]]
        self.flags = {name for name, _ in self.options}
        self.names = [value for name, value in found if not name]
        texts = [value for name, value in self.options if name in ("e", "regexp")]
        for name, value in self.options:
            if name in ("f", "file"):
                text = call.world.stdin if value == "-" else call.walk.read_file(call.path(value))
                texts.append(UNKNOWN if text is None else text.removesuffix("\n"))
        if not texts and "files" not in self.flags:
            texts, self.names = self.names[:1] or [""], self.names[1:]
        self.pattern = self._pattern(texts)
        self.inverted = self.has("v", "invert-match")

    def has(self, *names: str) -> bool:
        return not self.flags.isdisjoint(names)

    def _pattern(self, texts: list[str]) -> Pattern:
        kind = "G"
        if self.rg or self.has("P", "perl-regexp"):
            kind = "P"
        if (self.has("E", "extended-regexp") and not self.rg) or self.call.name == "egrep":
            kind = "E"
        if self.has("F", "fixed-strings") or self.call.name == "fgrep":
            kind = "F"
        folds = self.has("i", "ignore-case", "y") or (self.has("S", "smart-case") and texts == [texts[0].lower()])
        words, whole = self.has("w", "word-regexp"), self.has("x", "line-regexp")
        return Pattern(texts, kind, ignores_case=folds, words=words, whole=whole)

    @property
    def recursive(self) -> bool:
        return self.rg or self.has("r", "R", "recursive", "dereference-recursive")

    def filtered(self, text: str) -> str:
        """The lines that would be printed; those that may be are among them."""
        if self.has("c", "count"):
            return UNKNOWN
        end = "\0" if self.has("z", "null-data") else "\n"
        lines = []
        for line in text.removesuffix(end).split(end) if text else []:
            fits = self.pattern.fits(line)
            if fits is None or fits is not self.inverted:
                lines += self.pattern.parts(line) if self.has("o", "only-matching") else [line]
        most = next((value for name, value in self.options if name in ("m", "max-count")), "")
        if most.isdigit() and UNKNOWN not in text:
            lines = lines[: int(most[:6])]
        return "".join(line + end for line in lines)

    def files(self) -> Iterator[tuple[str, str]]:
        """(as it is shown, where it is) for everything that is searched."""
        for start in self.names or ["."]:
            if not self.recursive:
                yield start, self.call.path(start)
                continue
            follows = self.has("R", "L", "dereference-recursive", "follow")
            for entry in tree(self.call, start, follows=follows, follows_start=True, deepest=999):
                entry.pruned = entry.depth > 0 and self._left_out(entry)
                if entry.kind in ("f", "") and not entry.pruned:
                    yield entry.shown if self.names else entry.shown.removeprefix("./"), entry.full

    def _left_out(self, entry: Entry) -> bool:
        if self.rg:
            hidden = self.has("hidden", ".", "unrestricted") or len([1 for name, _ in self.options if name == "u"]) > 1
            if entry.name[:1] == "." and not hidden:
                return True
            globs = [value for name, value in self.options if name in ("g", "glob", "iglob")]
            wanted = [glob for glob in globs if glob[:1] != "!"]
            if any(_glob_fits(entry, glob[1:]) for glob in globs if glob[:1] == "!"):
                return True
            return bool(wanted) and entry.kind == "f" and not any(_glob_fits(entry, glob) for glob in wanted)
        wanted = [value for name, value in self.options if name == "include"]
        option = "exclude-dir" if entry.kind == "d" else "exclude"
        if any(matches(entry.name, value.rstrip("/")) for name, value in self.options if name == option):
            return True
        return bool(wanted) and entry.kind == "f" and not any(matches(entry.name, glob) for glob in wanted)


def _glob_fits(entry: Entry, glob: str) -> bool:
    from fusewire.globs import path_matches

    path = entry.shown.removeprefix("./").lstrip("/")
    glob = glob.lstrip("/") if "/" in glob.strip("/") else glob.strip("/")
    if "{" in glob:
        from fusewire.words import braces_expanded

        return any(path_matches(path, one) for one in braces_expanded(glob))
    return path_matches(path, glob) or matches(entry.name, glob)


def _grep(call: Call) -> None:
    grep = _Grep(call)
    call.world.status = None
    if grep.has("help", "version", "V"):
        return
    names = [name for name in grep.names if name != "-"]
    from_input = not names and (
        not grep.recursive or (grep.rg and call.world.stdin is not None and not grep.has("files"))
    )
    if grep.has("q", "quiet", "silent"):
        return
    if from_input:
        call.print(grep.filtered(UNKNOWN if call.world.stdin is None else call.world.stdin))
    elif grep.has("l", "L", "files-with-matches", "files-without-match", "files"):
        _print_files(grep)
    else:
        _print_lines(grep, names)


def _print_files(grep: _Grep) -> None:
    """`-l`, `-L`, `rg --files`: the names of files, which are really searched."""
    without = (grep.has("L") and not grep.rg) or grep.has("files-without-match")
    end = "\0" if grep.has("Z", "null") or (grep.rg and grep.has("0")) else "\n"
    total = 0
    for number, (shown, path) in enumerate(grep.files()):
        text = "" if grep.has("files") else grep.call.walk.files.get(path)
        size = len(text) if text is not None else _size(path)
        total += size
        if number >= _FILES or total > _TOTAL:
            grep.call.print(UNKNOWN)
            return
        if text is None:
            text = UNKNOWN if size > _SIZE or UNKNOWN in path else _text(path)
        if grep.has("files"):
            grep.call.print(shown + end)
        elif text is not None:
            fits = _fits_file(grep, text)
            if fits is None or fits is not without:
                grep.call.print(shown + end)


def _fits_file(grep: _Grep, text: str) -> bool | None:
    if not grep.inverted:
        return grep.pattern.fits_any(text)
    answers = {grep.pattern.fits(line) for line in text.splitlines()}
    return True if False in answers else None if None in answers else False


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def _text(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(_SIZE + 1).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None


def _print_lines(grep: _Grep, names: list[str]) -> None:
    """The lines of a file, where nothing is put in front of them."""
    call = grep.call
    for name in names:
        call.effect(READ, name)
    if grep.recursive or grep.has(*_CHANGED.split()) or (len(names) > 1 and not grep.has("h", "no-filename")):
        call.print(UNKNOWN)
        return
    for name in names:
        text = call.walk.read_file(call.path(name))
        if text is not None:
            call.print(grep.filtered(text))
        elif call.disk.exists(call.path(name)) or not call.walk.pristine or UNKNOWN in name:
            call.print(UNKNOWN)


# -- xargs and parallel ---------------------------------------------------------------------------------------

_XARGS_LONGS = (
    "null delimiter= max-args= max-lines max-procs= replace arg-file= no-run-if-empty verbose interactive eof"
    " max-chars= exit show-limits process-slot-var= open-tty help version"
)


def _xargs(call: Call) -> None:
    found = told_apart(call.args, "dnLPIaEsJRS", _XARGS_LONGS, optional="iel", permutes=False)
    words = [value for name, value in found if not name] or ["echo"]
    values = {name: value for name, value in found if name}
    if "help" in values or "version" in values:
        return
    text = _input(call, values.get("a", values.get("arg-file")))
    mark = values.get("I", values.get("J"))
    if mark is None and ("i" in values or "replace" in values):
        mark = values.get("i") or values.get("replace") or "{}"
    lines = mark is not None and "J" not in values
    groups = _xargs_groups(text, values, lines)
    if mark is None:
        for chunk in _bounded(_chunks(groups, values)):
            if any(chunk) or (len(words) > 1 and "r" not in values and "no-run-if-empty" not in values):
                call.run([*words, *chunk], stdin="")
        return
    for arguments in _bounded(groups if lines else _chunks(groups, {})):
        call.run(_replaced(words, mark, arguments), stdin="")


def _xargs_groups(text: str, values: dict[str, str], lines: bool) -> list[list[str]]:
    """The arguments of each line; the line itself as one if `lines`."""
    separator = "\0" if "0" in values or "null" in values else values.get("d", values.get("delimiter"))
    if separator is not None:
        end = {"\\n": "\n", "\\0": "\0", "\\t": "\t"}.get(separator, separator)[:1] or "\0"
        return [[part] for part in text.removesuffix(end).split(end)] if text else []
    if lines:
        return [["".join(_unquoted(line.lstrip(" \t"), ""))] for line in text.splitlines() if line.strip()]
    return [parts for parts in (_unquoted(line) for line in _lines(text)) if parts]


def _chunks(groups: list[list[str]], values: dict[str, str]) -> list[list[str]]:
    """The arguments of each command: all, or as many words or lines as `-n` and `-L` say."""
    arguments = [part for group in groups for part in group]
    size = values.get("n", values.get("max-args", ""))
    if size.isdigit() and int(size[:6]) and arguments:
        step = int(size[:6])
        return [arguments[at : at + step] for at in range(0, len(arguments), step)]
    size = values.get("L") or values.get("l") or values.get("max-lines") or ("1" if "l" in values else "")
    if size.isdigit() and int(size[:6]) and arguments:
        step = int(size[:6])
        return [[part for group in groups[at : at + step] for part in group] for at in range(0, len(groups), step)]
    return [arguments]


def _input(call: Call, name: str | None) -> str:
    if name == "/dev/null":
        return ""
    text = call.world.stdin if name in (None, "-") else call.walk.read_file(call.path(name or ""))
    return UNKNOWN if text is None else text


def _bounded(groups: list[list[str]]) -> list[list[str]]:
    return groups if len(groups) <= _RUNS else [*groups[:_RUNS], [UNKNOWN]]


def _replaced(words: list[str], mark: str, values: list[str]) -> list[str]:
    """`-I {}` replaces it wherever it is; BSD's `-J {}` puts all arguments in its place."""
    if len(values) == 1:
        return [words[0], *(word.replace(mark, values[0]) if mark else word for word in words[1:])]
    result: list[str] = []
    for word in words:
        result += values if word == mark else [word]
    return result


def _lines(text: str) -> list[str]:
    """Lines, those that a backslash or a blank at the end continues as one."""
    return text.replace("\\\n", "\\n").split("\n")


def _unquoted(line: str, blanks: str = " \t\r\f\v") -> list[str]:
    """The words of a line as `xargs` takes them apart."""
    words: list[str] = []
    word, quote, begun = "", "", False
    chars = iter(line)
    for char in chars:
        if quote:
            quote = "" if char == quote else quote
            word += char if quote else ""
        elif char in ("'", '"'):
            quote, begun = char, True
        elif char == "\\":
            word, begun = word + next(chars, ""), True
        elif char in blanks:
            words += [word] if begun else []
            word, begun = "", False
        else:
            word, begun = word + char, True
    return [*words, word] if begun else words


_PARALLEL_LONGS = (
    "jobs= max-procs= max-args= arg-file= colsep= delimiter= halt= delay= timeout= joblog= results= tmpdir= workdir="
    " retries= load= memfree= nice= sshlogin= basefile= env= tagstring= block= recstart= recend= shellquote dry-run"
    " dryrun keep-order quote will-cite bar progress eta null pipe link verbose group ungroup line-buffer tag no-notice"
    " no-run-if-empty xargs resume semaphore trim= limit= rpl="
)

_MARKS = ("{}", "{.}", "{/}", "{//}", "{/.}")


def _parallel(call: Call) -> None:
    """`parallel COMMAND ::: a b`: the command is a text for a shell in which each `{}` is a quoted argument."""
    found = told_apart(call.args, "jnNIaCdPSLst", _PARALLEL_LONGS, permutes=False)
    words = [value for name, value in found if not name]
    values = {name: value for name, value in found if name}
    for name in ("joblog", "results"):
        if values.get(name):
            call.write(values[name])
    at = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
    command, sources = words[:at], _sources(call, words[at:])
    if "dry-run" in values or "dryrun" in values:
        call.print(UNKNOWN)
        return
    if "pipe" in values:
        call.script(" ".join(command))
        return
    if not sources:
        text = _input(call, values.get("a", values.get("arg-file")))
        end = "\0" if "0" in values or "null" in values else "\n"
        sources = [[line for line in text.split(end) if line]]
    command = [quoted(word) for word in command] if "q" in values or "quote" in values else command
    for arguments in _combined(sources, "link" in values):
        call.script(_parallel_text(" ".join(command), arguments, values.get("I", "{}")))


def _sources(call: Call, words: list[str]) -> list[list[str]]:
    sources: list[list[str]] = []
    files = False
    for word in words:
        if word in (":::", "::::", ":::+", "::::+"):
            files = word.startswith("::::")
            sources.append([])
        elif files:
            sources[-1] += [line for line in _input(call, word).split("\n") if line]
        else:
            sources[-1].append(word)
    return sources


def _combined(sources: list[list[str]], linked: bool) -> list[list[str]]:
    """Every argument of the first source with every one of the next."""
    if linked:
        return [list(row) for row in zip(*sources, strict=False)][:_RUNS]
    rows: list[list[str]] = [[]]
    for source in sources:
        rows = [[*row, value] for row in rows for value in source]
        if len(rows) > _RUNS:
            rows = [*rows[:_RUNS], [UNKNOWN] * len(rows[0])]
    return rows


def _parallel_text(text: str, arguments: list[str], mark: str) -> str:
    if not text:
        return " ".join(arguments)
    text = text.replace(mark, "{}")
    whole = " ".join(map(quoted, arguments))
    if not any(one in text for one in _MARKS) and not any(f"{{{number}" in text for number in range(1, 10)):
        return f"{text} {whole}"
    for number, argument in enumerate(arguments, 1):
        for one in _MARKS:
            text = text.replace(f"{{{number}{one[1:]}", quoted(_filled(one, argument)))
    for one in _MARKS[1:]:
        text = text.replace(one, " ".join(quoted(_filled(one, argument)) for argument in arguments))
    return text.replace("{}", whole)


def _filled(word: str, name: str) -> str:
    """`{}` the name, `{/}` without its folder, `{//}` the folder, `{.}` without its ending, `{/.}` both."""
    folder, slash, base = name.rstrip("/").rpartition("/")
    stem, dot, _ = base.rpartition(".")
    stem = stem if dot and stem else base
    word = word.replace("{//}", (folder or "/") if slash else ".").replace("{/.}", stem).replace("{/}", base)
    return word.replace("{.}", folder + slash + stem).replace("{}", name)


PROGRAMS: dict[str, Program] = {
    "egrep": _grep,
    "fd": _fd,
    "fdfind": _fd,
    "fgrep": _grep,
    "find": _find,
    "grep": _grep,
    "parallel": _parallel,
    "rg": _grep,
    "xargs": _xargs,
}
