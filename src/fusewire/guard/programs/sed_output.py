"""What sed prints: substitutions, lines that are printed, deleted or put in, where the script has nothing else."""

from __future__ import annotations

from fusewire.guard.programs.patterns import translated
from fusewire.shell.text_lines import lines_of
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    #: a number, "$" for the last line, an expression, or None
    Address = int | str | re.Pattern[str] | None

#: Lines times commands.
_STEPS = 100_000

_LONGEST = 4000

_ESCAPES = {"n": "\n", "t": "\t"}


class _Unreadable(Exception):
    """More than one-liners have."""


class _Command:
    def __init__(self, name: str) -> None:
        self.name = name
        self.first: Address = None
        self.last: Address = None
        self.inverted = False
        self.inside = False
        #: where a block ends
        self.end = 0
        self.text = ""
        self.pattern: re.Pattern[str] | None = None
        self.replace: Callable[[re.Match[str]], str] | None = None
        self.flags = ""


def sed_prints(script: str, options: list[str], stdin: str | None) -> str | None:
    """The output of a sed script; None if it does more than this knows.

    `options` are its options without scripts and files (`-n`, `-E`, `-ne` as `-n`), `stdin` is what it reads.
    """
    letters = "".join(word[1:] for word in options if word[:1] == "-" and word[1:2] != "-")
    longs = {word for word in options if word[:2] == "--"}
    quiet = "n" in letters or bool(longs & {"--quiet", "--silent"})
    extended = "E" in letters or "r" in letters or "--regexp-extended" in longs
    end = "\0" if "z" in letters or "--null-data" in longs else "\n"
    if UNKNOWN in script or len(script) > _LONGEST:
        return None
    try:
        commands = _Script(script, "E" if extended else "G").commands()
        return _run(commands, lines_of(UNKNOWN if stdin is None else stdin, end), quiet, end)
    except (_Unreadable, RecursionError, ValueError, IndexError):
        return None


def _run(commands: list[_Command], lines: list[str], quiet: bool, end: str) -> str:
    result: list[str] = []
    steps = _STEPS
    for number, line in enumerate(lines, 1):
        steps -= len(commands)
        if steps < 0:
            raise _Unreadable
        after: list[str] = []
        at, deleted, ends = 0, False, False
        while at < len(commands):
            command = commands[at]
            at += 1
            chosen = _chosen(command, line, number, len(lines))
            if chosen is False:
                at = command.end if command.name == "{" else at
                continue
            if command.name == "s":
                line, made = _substituted(command, line)
                if made and "p" in command.flags:
                    result.append(line)
            elif command.name == "y":
                line = line.translate(dict(zip(map(ord, command.text), command.flags, strict=True)))
            elif command.name == "p":
                result.append(line)
            elif command.name in ("d", "c") and chosen:
                deleted = True
                result += [command.text] if command.name == "c" and (number == len(lines) or not command.inside) else []
                break
            elif command.name == "i":
                result.append(command.text)
            elif command.name == "a":
                after.append(command.text)
            elif command.name == "=":
                result.append(str(number))
            elif command.name in ("q", "Q") and chosen:
                ends, deleted = True, command.name == "Q"
                break
        result += ([] if quiet or deleted else [line]) + after
        if ends:
            break
    return "".join(line + end for line in result)


def _chosen(command: _Command, line: str, number: int, count: int) -> bool | None:
    """Whether a command is for this line; None if it may be."""
    answer: bool | None = True
    if command.last is not None:
        answer = _in_range(command, line, number, count)
    elif command.first is not None:
        answer = _fits(command.first, line, number, count)
    return answer if answer is None or not command.inverted else not answer


def _in_range(command: _Command, line: str, number: int, count: int) -> bool:
    if not command.inside:
        command.inside = _fits(command.first, line, number, count) is not False
        if command.inside and isinstance(command.last, int) and command.last <= number:
            command.inside = False
            return True
        return command.inside
    if _fits(command.last, line, number, count) is True:
        command.inside = False
    return True


def _fits(address: Address, line: str, number: int, count: int) -> bool | None:
    if isinstance(address, int):
        return number == address
    if address == "$":
        return number == count
    if address is None or isinstance(address, str):
        return True
    return True if address.search(line) else None if UNKNOWN in line else False


def _substituted(command: _Command, line: str) -> tuple[str, int]:
    assert command.pattern is not None and command.replace is not None
    which = "".join(char for char in command.flags if char.isdigit())
    if which and int(which) != 1:
        found = list(command.pattern.finditer(line))
        if len(found) < int(which):
            return line, 0
        match = found[int(which) - 1]
        return line[: match.start()] + command.replace(match) + line[match.end() :], 1
    return command.pattern.subn(command.replace, line, count=0 if "g" in command.flags else 1)


class _Script:
    """A script as commands."""

    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind
        self.at = 0
        self.last_pattern = ""

    def commands(self) -> list[_Command]:
        found: list[_Command] = []
        open_blocks: list[_Command] = []
        while True:
            self._skip(" \t\n;")
            if self.at >= len(self.text):
                break
            if self.text[self.at] == "#":
                self.at = self._line_end()
                continue
            if self.text[self.at] == "}":
                open_blocks.pop().end = len(found)
                self.at += 1
                continue
            command = self._command()
            found.append(command)
            if command.name == "{":
                open_blocks.append(command)
        if open_blocks:
            raise _Unreadable
        return found

    def _skip(self, chars: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _command(self) -> _Command:
        first = self._address()
        last: Address = None
        self._skip(" \t")
        if first is not None and self.text[self.at : self.at + 1] == ",":
            self.at += 1
            self._skip(" \t")
            last = self._address()
            if last is None:
                raise _Unreadable
        self._skip(" \t")
        inverted = self.text[self.at : self.at + 1] == "!"
        self.at += inverted
        self._skip(" \t")
        command = _Command(self.text[self.at : self.at + 1])
        command.first, command.last, command.inverted = first, last, inverted
        self.at += 1
        if command.name == "s":
            self._substitution(command)
        elif command.name == "y":
            mark = self.text[self.at]
            command.text, command.flags = self._until(mark), self._until(mark, again=True)
        elif command.name in ("a", "i", "c") and command.name:
            self._skip(" \t")
            if self.text.startswith("\\", self.at):
                self.at += 1
                self._skip(" \t\n")
            end = self._line_end()
            command.text = self.text[self.at : end]
            self.at = end
            if command.text.endswith("\\"):
                raise _Unreadable
        elif command.name not in ("p", "d", "q", "Q", "=", "{") or not command.name:
            raise _Unreadable
        return command

    def _address(self) -> Address:
        char = self.text[self.at : self.at + 1]
        if char == "$":
            self.at += 1
            return "$"
        if char.isdigit():
            end = self.at
            while end < len(self.text) and self.text[end].isdigit():
                end += 1
            number = int(self.text[self.at : end][:9])
            self.at = end
            if self.text[end : end + 1] in ("~", "+"):
                raise _Unreadable
            return number
        if char not in ("/", "\\") or not char:
            return None
        self.at += char == "\\"
        pattern = self._pattern(self._until(self.text[self.at]))
        if self.text[self.at : self.at + 1] == "I":
            raise _Unreadable
        return pattern

    def _until(self, mark: str, *, again: bool = False) -> str:
        """What is between two marks; the first was read already if there are three."""
        at = self.at + (not again)
        result = ""
        while at < len(self.text) and self.text[at] != mark:
            if self.text[at] == "[" and mark == "/" and not again and "]" in self.text[at:]:
                end = self.text.index("]", at + 2 if self.text[at + 1 : at + 2] in ("]", "^") else at + 1)
                if mark in self.text[at:end]:
                    result += self.text[at:end]
                    at = end
                    continue
            if self.text[at] == "\\" and at + 1 < len(self.text):
                result += self.text[at + 1] if self.text[at + 1] == mark else self.text[at : at + 2]
                at += 2
                continue
            result += self.text[at]
            at += 1
        if at >= len(self.text):
            raise _Unreadable
        self.at = at + 1
        return result

    def _pattern(self, text: str, flags: str = "") -> re.Pattern[str]:
        import re

        self.last_pattern = text = text or self.last_pattern
        known = translated(text, self.kind, 4)
        if known is None or not text:
            raise _Unreadable
        try:
            return re.compile(known, re.IGNORECASE if "I" in flags or "i" in flags else 0)
        except re.error as error:
            raise _Unreadable from error

    def _substitution(self, command: _Command) -> None:
        mark = self.text[self.at : self.at + 1]
        if not mark or mark in "\n\\":
            raise _Unreadable
        old, new = self._until(mark), self._until(mark, again=True)
        end = self.at
        while end < len(self.text) and self.text[end] in "gpiIM0123456789":
            end += 1
        command.flags = self.text[self.at : end]
        self.at = end
        self._skip(" \t")
        if self.text[self.at : self.at + 1] not in ("", ";", "\n", "}", "#") or "M" in command.flags:
            raise _Unreadable  # `w FILE`, `e`
        command.pattern = self._pattern(old, command.flags)
        command.replace = _replacement(new)


def _replacement(text: str) -> Callable[[re.Match[str]], str]:
    """`&` and `\\1` in what is put in."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "&":
            parts.append(0)
        elif char == "\\" and at < len(text):
            kind = text[at]
            at += 1
            if kind.isdigit():
                parts.append(int(kind))
            elif kind in "ULEul":
                raise _Unreadable
            else:
                parts.append(_ESCAPES.get(kind, kind))
        else:
            parts.append(char)

    def replace(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)

    return replace
