"""Programs that print what is in files, or something about them, so that what reads their lines can be judged.

What they print about a file that changes from run to run (a size, a time) is unknown; its name is not.
"""

from __future__ import annotations

from fusewire.guard.effects import READ
from fusewire.guard.programs.trees import tree
from fusewire.shell.outputs import filled, printed, unescaped
from fusewire.shell.text_lines import Given, lines_of
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.guard.effects import Call, Program

#: Entries of one `du`.
_MOST = 2000


def long_line(name: str) -> str:
    """A line of `ls -l`: eight columns that nobody knows, and the name."""
    return f"{' '.join([UNKNOWN] * 8)} {name}\n"


def text_of(call: Call, name: str) -> str | None:
    """What is in a file, or what is read if its name is `-`."""
    if name in ("-", "/dev/stdin"):
        return call.world.stdin
    call.effect(READ, name)
    text = call.walk.read_file(call.path(name))
    if text is None and call.walk.pristine and UNKNOWN not in name and not call.disk.exists(call.path(name)):
        call.world.status = False
        return ""
    return text


def _known(text: str | None) -> str:
    return UNKNOWN if text is None else text


def _filter(call: Call) -> None:
    """The files one after the other, or what is read."""
    names = Given(call.name, call.args).operands
    text = call.world.stdin
    if names:
        text = "".join(_known(text_of(call, name)) for name in names)
    words = list(call.args)
    for name in reversed(names):
        del words[len(words) - 1 - words[::-1].index(name)]
    call.print(printed([call.name, *words], text) or "")


def _paste(call: Call) -> None:
    given = Given("paste", call.args, "serial=s delimiters=d")
    if all(name == "-" for name in given.operands):
        call.print(printed(call.words, call.world.stdin) or "")
        return
    from fusewire.shell.text_programs import paste

    columns = [lines_of(_known(text_of(call, name))) for name in given.operands]
    call.print(paste(columns, unescaped(given.values.get("d", "\t")), given.has("s")))


def _comm(call: Call) -> None:
    given = Given("comm", call.args)
    if len(given.operands) != 2:
        return
    one, other = (lines_of(_known(text_of(call, name))) for name in given.operands)
    unsure = any(UNKNOWN in line for line in one + other)
    rows = [(line, "3" if line in other else "1") for line in one]
    rows += [(line, "2") for line in other if line not in one]
    for line, column in sorted(rows):
        if column not in given.values:
            before = sum(str(number) not in given.values for number in range(1, int(column)))
            call.print("\t" * before + line + "\n")
        elif unsure:
            call.print(f"{line}\n")


def _zcat(call: Call) -> None:
    """What the line itself has packed is unpacked again; what is on the disk is not looked into."""
    names = Given("zcat", call.args).operands
    if not names or names == ["-"]:
        call.print(_known(call.world.stdin))
    for name in names:
        call.effect(READ, name)
        call.print(call.walk.files.get(call.path(name), UNKNOWN))


# -- about files ------------------------------------------------------------------------------------------------


def _wc(call: Call) -> None:
    longs = "lines=l words=w bytes=c chars=m max-line-length=L"
    given = Given("wc", call.args, longs)
    kinds = [kind for kind in "lwmcL" if given.has(kind)] or ["l", "w", "c"]
    texts = [(name, text_of(call, name)) for name in given.operands]
    rows = [(_sizes(text, kinds), name) for name, text in texts] or [(_sizes(call.world.stdin, kinds), "")]
    if len(rows) > 1:
        columns = list(zip(*(numbers for numbers, _ in rows), strict=True))
        total = [None if None in column else sum(number or 0 for number in column) for column in columns]
        rows.append((total, "total"))
    size = sum(len(text or "") for _, text in texts)
    width = len(str(size)) if len(rows) > 1 or len(kinds) > 1 else 1
    for numbers, name in rows:
        shown = " ".join(UNKNOWN if number is None else str(number).rjust(width) for number in numbers)
        call.print(f"{shown} {name}".rstrip(" ") + "\n")


def _sizes(text: str | None, kinds: list[str]) -> list[int | None]:
    if text is None or UNKNOWN in text:
        return [None for _ in kinds]
    size = len(text.encode("utf-8", "surrogateescape"))
    known = {"l": text.count("\n"), "w": len(text.split()), "c": size, "m": len(text)}
    return [known.get(kind) for kind in kinds]


def _stat(call: Call) -> None:
    """`stat -c '%n %s'`, `stat -f '%N'`."""
    names, form, end = [], None, "\n"
    words = iter(call.args)
    for word in words:
        if word in ("-c", "--format", "-f"):
            form = next(words, "")
        elif word.startswith(("--format=", "--printf=")):
            form = word.partition("=")[2]
            end = "\n" if word[2] == "f" else ""
        elif word[:2] == "-c":
            form = word[2:]
        elif word[:1] != "-":
            names.append(word)
    for name in names:
        call.effect(READ, name)
        if form is None:
            call.print(f"  File: {name}\n{UNKNOWN}\n")
        else:
            text = filled(
                form if end else unescaped(form), {"n": name, "N": name if "-f" in call.args else f"'{name}'"}
            )
            call.print(text + end)


def _du(call: Call) -> None:
    given = Given("du", call.args, "all=a summarize=s max-depth=d")
    depth = next((word.partition("=")[2] or word[2:] for word in call.args if word.startswith(("--max-d", "-d"))), "")
    deepest = 0 if given.has("s") else int(depth) if depth.isdigit() else 999
    names = [name for name in given.operands if name != depth] or ["."]
    for name in names:
        call.effect(READ, name)
        lines = []
        for entry in tree(call, name, follows=False, follows_start=True, deepest=deepest):
            if entry.kind == "d" or given.has("a") or not entry.depth:
                lines.append(f"{UNKNOWN}\t{entry.shown}\n")
            if len(lines) > _MOST:
                lines.append(f"{UNKNOWN}\n")
                break
        call.print("".join(reversed(lines)))


def _sums(call: Call) -> None:
    given = Given(call.name, call.args)
    for name in given.operands or ["-"]:
        call.effect(READ, name if name != "-" else "")
        if not given.has("c", "check"):
            call.print(f"{UNKNOWN}  {name}\n")


def _file(call: Call) -> None:
    given = Given(call.name, call.args)
    width = max(map(len, given.operands), default=0) + 1
    for name in given.operands:
        call.effect(READ, name)
        call.print(f"{UNKNOWN}\n" if given.has("b", "brief") else f"{name + ':':<{width}} {UNKNOWN}\n")


# -- others -----------------------------------------------------------------------------------------------------


def _printenv(call: Call) -> None:
    names = [word for word in call.args if word[:1] != "-"]
    if not names:
        call.print(UNKNOWN)
    for name in names:
        value = call.world.variables.get(name, call.walk.environment.get(name))
        if isinstance(value, str):
            call.print(f"{value}\n")


def _expr(call: Call) -> None:
    """`expr TEXT : EXPRESSION`, `expr match TEXT EXPRESSION`."""
    words = call.args[1:] if call.args[:1] == ["match"] else call.args
    if len(words) == 3 and words[1] == ":":
        words = [words[0], words[2]]
    elif words is call.args:
        call.print(printed(call.words, call.world.stdin) or "")
        return
    call.print(f"{_matched(*words)}\n" if len(words) == 2 else UNKNOWN)


def _matched(text: str, pattern: str) -> str:
    import re

    from fusewire.guard.programs.patterns import translated

    known = translated(pattern.removeprefix("^"), "G", 4)
    if known is None or UNKNOWN in text + pattern:
        return UNKNOWN
    try:
        match = re.match(known, text)
    except re.error:
        return UNKNOWN
    if match is None:
        return "" if "\\(" in pattern else "0"
    return str(match.group(1) or "") if match.re.groups else str(len(match.group()))


def _jq(call: Call) -> None:
    """Paths into known JSON: `.`, `.a.b`, `.[]`, `.a[0].b`, `keys[]`, one behind the other."""
    words, raw = [], False
    for word in call.args:
        if word[:1] == "-" and len(word) > 1:
            raw = raw or word in ("--raw-output", "--join-output") or (word[1] != "-" and ("r" in word or "j" in word))
            if word not in ("--raw-output", "--compact-output") and word.strip("-rcMe"):
                call.print(UNKNOWN)
                return
        else:
            words.append(word)
    names = words[1:]
    text = "".join(_known(text_of(call, name)) for name in names) if names else call.world.stdin
    values = None if text is None or not words or UNKNOWN in text else _json_values(text, words[0])
    if values is None:
        call.print(UNKNOWN)
        return
    from json import dumps

    if len(values) > _MOST:
        call.print(UNKNOWN)
        return
    for value in values:
        call.print(f"{value if raw and isinstance(value, str) else dumps(value, ensure_ascii=False)}\n")


def _json_values(text: str, path: str) -> list[Any] | None:
    from json import JSONDecoder

    values: list[Any] = []
    decoder, at = JSONDecoder(), 0
    try:
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = decoder.raw_decode(text, at)
            values.append(value)
        for step in path.split("|"):
            for key in _keys(step.strip()):
                values = [found for value in values for found in _stepped(value, key)]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, AttributeError):
        return None
    return values


def _keys(step: str) -> list[str]:
    """`.a.b[0][]` as `a`, `b`, `0]`, `]`."""
    begins = step.startswith((".", "keys", "values"))
    if not begins or any(char in step for char in " (),=<>+*/|@$?:"):
        raise ValueError(step)
    first = ["keys()"] if step.startswith("keys") else []
    step = step.removeprefix("keys").replace('"', "")
    return first + [key for key in step.replace("[", ".[").split(".") if key]


def _stepped(value: Any, key: str) -> list[Any]:
    if key == "keys()":
        return [sorted(value) if isinstance(value, dict) else list(range(len(value)))]
    if key == "[]":
        return list(value.values()) if isinstance(value, dict) else list(value)
    if key[:1] == "[":
        inner = key[1:-1]
        return [value[int(inner)] if isinstance(value, list) else value.get(inner)]
    return [None if value is None else value.get(key)]


PROGRAMS: dict[str, Program] = {
    "column": _filter,
    "comm": _comm,
    "cut": _filter,
    "du": _du,
    "expand": _filter,
    "expr": _expr,
    "file": _file,
    "fold": _filter,
    "gzcat": _zcat,
    "jq": _jq,
    "nl": _filter,
    "paste": _paste,
    "pr": _filter,
    "printenv": _printenv,
    "stat": _stat,
    "unexpand": _filter,
    "wc": _wc,
    "zcat": _zcat,
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"), _sums),
}
