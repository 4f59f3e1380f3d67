"""Compute what a few programs print, where that follows from their words and their input: all else is unknown."""

from __future__ import annotations

from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import UNKNOWN
from fusewire.util.quoting import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[list[str], str], str]

#: Times that `printf` uses its format again.
_TURNS = 2000


def printed(words: list[str], stdin: str | None = None) -> str | None:
    """The output of a command that only works on text; None if this is no such command."""
    maker = _MAKERS.get(words[0].rsplit("/", 1)[-1])
    return None if maker is None else maker(words[1:], UNKNOWN if stdin is None else stdin)


def unescaped(text: str) -> str:
    return escaped(text.replace("'", "\\'"), 0)[0] if "\\" in text else text


def _echo(words: list[str], stdin: str) -> str:
    newline, escapes, at = "\n", False, 0
    while at < len(words) and len(words[at]) > 1 and words[at][0] == "-" and not words[at][1:].strip("neE"):
        newline = "" if "n" in words[at] else newline
        escapes = "e" in words[at] or (escapes and "E" not in words[at])
        at += 1
    text = " ".join(words[at:])
    return (unescaped(text) if escapes else text) + newline


def _printf(words: list[str], stdin: str) -> str:
    """`%s`, `%b`, `%d` and `%q` without widths; the format is used again while there are arguments."""
    words = words[1:] if words[:1] == ["--"] else words
    form, arguments = unescaped(words[0]) if words else "", words[1:]
    result = ""
    for _ in range(_TURNS):
        pieces = form.replace("%%", "\0").split("%")
        result += pieces[0]
        for piece in pieces[1:]:
            value = arguments.pop(0) if arguments else ""
            result += (value if piece[:1] in ("s", "d", "b", "q", "i") else UNKNOWN) + piece[1:]
        if not arguments or len(pieces) == 1:
            break
    return result.replace("\0", "%")


def _cat(words: list[str], stdin: str) -> str:
    names = Argv(words).operands
    return stdin if not names or names == ["-"] else UNKNOWN


def _filter(words: list[str], stdin: str) -> str:
    """`sort` and `uniq`: the same lines, of which only the order and the number differ."""
    return stdin if all(word[:1] == "-" for word in words) else UNKNOWN


def _basename(words: list[str], stdin: str) -> str:
    names = Argv(words, "s").operands or [""]
    name = names[0].rstrip("/").rsplit("/", 1)[-1]
    return (name.removesuffix(names[1]) if len(names) == 2 else name) + "\n"


def _dirname(words: list[str], stdin: str) -> str:
    pairs = [name.rstrip("/").rpartition("/") for name in Argv(words).operands]
    return "".join(f"{(folder or '/') if slash else '.'}\n" for folder, slash, _ in pairs)


def _grep(words: list[str], stdin: str) -> str:
    """`ls | grep -v src`: the lines of a known input that have a pattern, or have not."""
    argv = Argv(words, "efmABC", "regexp= file= max-count= include= exclude=")
    patterns = argv.values("e", "regexp") or argv.operands[:1]
    if len(argv.operands) > len(patterns[:1]) - bool(argv.values("e", "regexp")) or UNKNOWN in stdin:
        return UNKNOWN
    if argv.has("c", "o", "q", "n", "f", "P", "m", "A", "B", "C", "l", "z") or not patterns or len(stdin) > 100_000:
        return UNKNOWN
    import re

    text = "|".join(map(re.escape, patterns) if argv.has("F", "fixed-strings") or words[0] == "fgrep" else patterns)
    if not argv.has("E", "extended-regexp") and any(mark in text for mark in ("\\|", "\\(", "+", "?", "{", "|", "(")):
        return UNKNOWN  # basic expressions have another syntax
    try:
        wanted = re.compile(text, re.IGNORECASE if argv.has("i", "ignore-case") else 0)
    except re.error:
        return UNKNOWN
    inverted = argv.has("v", "invert-match")
    return "".join(f"{line}\n" for line in stdin.splitlines() if (wanted.search(line) is None) is inverted)


def _wc(words: list[str], stdin: str) -> str:
    return f"{len(stdin.splitlines())}\n" if words == ["-l"] and UNKNOWN not in stdin else UNKNOWN


def _nothing(words: list[str], stdin: str) -> str:
    return ""


_MAKERS: dict[str, Maker] = {
    "basename": _basename,
    "cat": _cat,
    "dirname": _dirname,
    "echo": _echo,
    "grep": _grep,
    "printf": _printf,
    "sleep": _nothing,
    "sort": _filter,
    "true": _nothing,
    "uniq": _filter,
    "wc": _wc,
}
