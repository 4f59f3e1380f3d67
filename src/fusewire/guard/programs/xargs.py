"""xargs and parallel: they run others with the words that they read."""

from __future__ import annotations

from fusewire.guard.programs.marks import MARKS, filled
from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import UNKNOWN
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program

#: Commands that one `xargs -n1` is followed into; one more stands for the rest.
_RUNS = 2000

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
        for chunk in bounded(_chunks(groups, values)):
            if any(chunk) or (len(words) > 1 and "r" not in values and "no-run-if-empty" not in values):
                call.run([*words, *chunk], stdin="")
        return
    for arguments in bounded(groups if lines else _chunks(groups, {})):
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


def bounded(groups: list[list[str]]) -> list[list[str]]:
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
        return bounded([list(row) for row in zip(*sources, strict=False)])
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
    if not any(one in text for one in MARKS) and not any(f"{{{number}" in text for number in range(1, 10)):
        return f"{text} {whole}"
    for number, argument in enumerate(arguments, 1):
        for one in MARKS:
            text = text.replace(f"{{{number}{one[1:]}", quoted(filled(one, argument)))
    for one in MARKS[1:]:
        text = text.replace(one, " ".join(quoted(filled(one, argument)) for argument in arguments))
    return text.replace("{}", whole)


PROGRAMS: dict[str, Program] = {"parallel": _parallel, "xargs": _xargs}
