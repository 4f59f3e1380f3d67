"""grep and rg: what they find is what other programs are given."""

from __future__ import annotations

import os

from fusewire.globs import matches
from fusewire.guard.effects import READ
from fusewire.guard.programs.patterns import Pattern
from fusewire.guard.programs.trees import Entry, tree
from fusewire.guard.programs.words import told_apart
from fusewire.shell.expansion import VALUE_LIMIT
from fusewire.shell.text_lines import lines_of
from fusewire.shell.values import UNKNOWN, cleaned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import Call, Program

#: Files, characters a file and characters in all that are searched.
_FILES, _SIZE, _TOTAL = 5000, 1 << 20, 32 << 20

_GREP_LONGS = (
    "regexp= file= max-count= context= after-context= before-context= include= exclude= exclude-dir= glob= iglob= type="
    " type-not= binary-files= directories= devices= label= max-depth= threads= sort= sortr= replace= encoding= pre="
    " color= colour= colors= exclude-from= ignore-file= max-filesize= group-separator= pre-glob="
    " invert-match ignore-case extended-regexp fixed-strings basic-regexp perl-regexp word-regexp line-regexp quiet"
    " silent count only-matching null null-data files-with-matches files-without-match files recursive"
    " dereference-recursive no-filename with-filename line-number hidden unrestricted smart-case no-messages"
    " no-ignore text"
)

#: Options that print more than the lines that fit.
_CHANGED = "b A B C byte-offset context after-context before-context z null-data"


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
            found = [self.fits(line) for line in lines_of(text)]
            return f"{UNKNOWN if None in found else found.count(True)}\n"
        end = "\0" if self.has("z", "null-data") else "\n"
        lines = []
        for line in lines_of(text, end):
            if self.fits(line) is not False:
                lines += self.pattern.parts(line) if self.has("o", "only-matching") else [line]
        if self.most >= 0 and UNKNOWN not in text:
            lines = lines[: self.most]
        return "".join(line + end for line in lines)

    def fits(self, line: str) -> bool | None:
        """Whether a line is printed."""
        answer = self.pattern.fits(line)
        return None if answer is None else answer is not self.inverted

    @property
    def most(self) -> int:
        """How many lines of a file are printed; -1 for all."""
        most = next((value for name, value in self.options if name in ("m", "max-count")), "")
        return int(most[:6]) if most.isdigit() else -1

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
        from fusewire.shell.braces import alternatives

        return any(path_matches(path, one) for one in alternatives(glob))
    return path_matches(path, glob) or matches(entry.name, glob)


def _grep(call: Call) -> None:
    call.world.status = None
    if call.name != "rg" and not call.walk.is_heard:
        call.print(UNKNOWN)
        return
    grep = _Grep(call)
    if grep.has("help", "version", "V"):
        return
    for at, word in enumerate(call.args if grep.rg else []):
        name, equals, value = word.partition("=")
        if name in ("--pre", "--hostname-bin"):  # a program that is run on every file
            program = value if equals else "".join(call.args[at + 1 : at + 2])
            call.run([program, *(one for one in call.args[at + 1 :] if one[:1] != "-")])
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
            return cleaned(file.read(_SIZE + 1).decode("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return None


def _print_lines(grep: _Grep, names: list[str]) -> None:
    """The lines of files, with what is put in front of them."""
    call = grep.call
    for name in names:
        call.effect(READ, name)
    if grep.has(*_CHANGED.split()) or ((grep.recursive or len(names) > 1) and not call.walk.is_heard):
        call.print(UNKNOWN)
        return
    named = grep.recursive or len(names) > 1 or grep.has("H", "with-filename")
    if grep.recursive and len(names) == 1 and not call.disk.is_folder(call.path(names[0])):
        named = grep.has("H", "with-filename")
    named = named and not grep.has("h", "no-filename", "I" if grep.rg else "h")
    total = length = 0
    for number, (shown, path) in enumerate(grep.files()):
        text = call.walk.read_file(path)
        if text is None:
            size = _size(path)
            missing = not call.disk.exists(path) and call.walk.pristine and UNKNOWN not in path
            text = "" if missing else UNKNOWN if size > _SIZE or UNKNOWN in path else _text(path)
        total += len(text or "")
        if number >= _FILES or total > _TOTAL or length > VALUE_LIMIT // 2:
            call.print(UNKNOWN)
            return
        found = "" if text is None else _shown_lines(grep, text, shown if named else None, length > VALUE_LIMIT // 4)
        length += len(found)
        call.print(found)


def _shown_lines(grep: _Grep, text: str, name: str | None, brief: bool) -> str:
    """The lines of one file that fit; only the first if there are `brief`ly too many."""
    if "\0" in text:
        return ""
    before = "" if name is None else f"{name}\0" if grep.has("Z", "null") else f"{name}:"
    if grep.has("c", "count"):
        found = [grep.fits(line) for line in lines_of(text)]
        return f"{before}{UNKNOWN if None in found else found.count(True)}\n"
    numbered = grep.has("n", "line-number")
    result, most, count = "", grep.most, 0
    for number, line in enumerate(lines_of(text), 1):
        fits = grep.fits(line)
        if fits is False:
            continue
        count += 1
        for part in grep.pattern.parts(line) if grep.has("o", "only-matching") else [line]:
            result += f"{before}{f'{number}:' if numbered else ''}{part}\n"
        if brief or count == most:
            break
    return result


PROGRAMS: dict[str, Program] = dict.fromkeys(("egrep", "fgrep", "grep", "rg"), _grep)
