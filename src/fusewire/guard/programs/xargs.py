"""xargs: it runs another program with the words that it reads."""

from __future__ import annotations

from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

#: Commands that one `xargs -n1` is followed into; one more stands for the rest.
_RUNS = 2000

_LONGS = "delimiter= max-args= max-procs= arg-file= max-chars= process-slot-var="


def run_xargs(call: ProgramCall) -> None:
    argv = Argv(call.args, "dnLPIaEsJRS", _LONGS, optional="iel", permutes=False)
    if argv.has("help", "version"):
        return
    words = argv.operands or ["echo"]
    text = _input(call, argv.value("a", "arg-file"))
    mark = argv.value("I", "J", "i", "replace")
    if mark is not None:
        mark = mark or "{}"
        groups = _groups(text, argv, lines=not argv.has("J"))
        for group in _bounded(groups if not argv.has("J") else [[part for one in groups for part in one]]):
            call.run([words[0], *_replaced(words[1:], mark, group)], stdin="")
        return
    for chunk in _bounded(_chunks(_groups(text, argv, lines=False), argv)):
        if any(chunk) or (len(words) > 1 and not argv.has("r", "no-run-if-empty")):
            call.run([*words, *chunk], stdin="")


def _input(call: ProgramCall, name: str | None) -> str:
    text = call.text_of(name or "-") if name != "/dev/null" else ""
    return UNKNOWN if text is None else text


def _groups(text: str, argv: Argv, *, lines: bool) -> list[list[str]]:
    """The arguments of each line; the line itself as one if `lines`."""
    separator = "\0" if argv.has("0", "null") else argv.value("d", "delimiter")
    if separator is not None:
        end = {"\\n": "\n", "\\0": "\0", "\\t": "\t"}.get(separator, separator)[:1] or "\0"
        return [[part] for part in text.removesuffix(end).split(end)] if text else []
    if lines:
        return [["".join(_unquoted(line.lstrip(" \t"), ""))] for line in text.splitlines() if line.strip()]
    return [parts for parts in map(_unquoted, text.replace("\\\n", "\\n").split("\n")) if parts]


def _chunks(groups: list[list[str]], argv: Argv) -> list[list[str]]:
    """The arguments of each command: all, or as many words or lines as `-n` and `-L` say."""
    arguments = [part for group in groups for part in group]
    words, lines = argv.value("n", "max-args") or "", argv.value("L", "l", "max-lines")
    if words.isdigit() and int(words[:6]) and arguments:
        step = int(words[:6])
        return [arguments[at : at + step] for at in range(0, len(arguments), step)]
    if lines is not None and arguments:
        step = int(lines[:6]) if lines.isdigit() and int(lines[:6]) else 1
        return [[part for group in groups[at : at + step] for part in group] for at in range(0, len(groups), step)]
    return [arguments]


def _bounded(groups: list[list[str]]) -> list[list[str]]:
    return groups if len(groups) <= _RUNS else [*groups[:_RUNS], [UNKNOWN]]


def _replaced(words: list[str], mark: str, values: list[str]) -> list[str]:
    """`-I {}` replaces it wherever it is; BSD's `-J {}` puts all arguments in its place."""
    if len(values) == 1:
        return [word.replace(mark, values[0]) for word in words]
    return [part for word in words for part in (values if word == mark else [word])]


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
