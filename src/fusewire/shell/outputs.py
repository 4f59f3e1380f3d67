"""What simple programs print, where that follows from their words and their input alone."""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN
from fusewire.words import escaped

_LINES = 2000


def printed(words: list[str], stdin: str | None = None) -> str | None:
    """The output of a command that only works on text; None if this is no such command."""
    name = words[0].rsplit("/", 1)[-1]
    maker = _MAKERS.get(name)
    if maker is None:
        return None
    return maker(words[1:], UNKNOWN if stdin is None else stdin)


def is_text_program(name: str) -> bool:
    return name in _MAKERS


def _operands(words: list[str], valued: str = "") -> list[str]:
    """The words that are no options; an option of `valued` takes the next word."""
    found: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return found + words[at + 1 :]
        if word[:1] == "-" and len(word) > 1:
            at += 1 if len(word) == 2 and word[1] in valued else 0
        else:
            found.append(word)
        at += 1
    return found


def _echo(words: list[str], stdin: str) -> str:
    newline, escapes = "\n", False
    at = 0
    while at < len(words) and words[at] in ("-n", "-e", "-E", "-ne", "-en", "-nE", "-En"):
        newline = "" if "n" in words[at] else newline
        escapes = escapes or "e" in words[at]
        at += 1
    text = " ".join(words[at:])
    return (_unescaped(text) if escapes else text) + newline


def _unescaped(text: str) -> str:
    return escaped(text.replace("'", "\\'"), 0)[0] if "\\" in text else text


def _printf(words: list[str], stdin: str) -> str:
    """`%s`, `%b`, `%d`, `%q`; the format is used again while there are arguments."""
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        return ""
    form, arguments = _unescaped(words[0]), words[1:]
    result = ""
    for _ in range(_LINES):
        text, used = _formatted(form, arguments)
        result += text
        arguments = arguments[used:]
        if not arguments or not used:
            return result
    return UNKNOWN


def _formatted(form: str, arguments: list[str]) -> tuple[str, int]:
    result, used, at = "", 0, 0
    while at < len(form):
        if form[at] != "%":
            result += form[at]
            at += 1
            continue
        end = at + 1
        while end < len(form) and form[end] in "-+ #0123456789.*":
            end += 1
        kind = form[end : end + 1]
        if kind == "%":
            result += "%"
        elif kind in ("s", "b", "q", "d", "i", "u", "c"):
            value = arguments[used] if used < len(arguments) else ""
            used += 1
            value = _unescaped(value) if kind == "b" else value[:1] if kind == "c" else value
            precision = form[at + 1 : end].partition(".")[2]
            result += value[: int(precision)] if precision.isdigit() and kind == "s" else value
        else:
            result += UNKNOWN
            used += 1
        at = end + 1
    return result, used


def _cat(words: list[str], stdin: str) -> str:
    names = _operands(words)
    return stdin if not names or names == ["-"] else UNKNOWN


def _basename(words: list[str], stdin: str) -> str:
    names = _operands(words, "s")
    if not names:
        return ""
    name = names[0].rstrip("/").rsplit("/", 1)[-1]
    return (name.removesuffix(names[1]) if len(names) == 2 else name) + "\n"


def _dirname(words: list[str], stdin: str) -> str:
    lines = []
    for name in _operands(words):
        folder, slash, _ = name.rstrip("/").rpartition("/")
        lines.append((folder or "/") if slash else ".")
    return "".join(f"{line}\n" for line in lines)


def _reversed(words: list[str], stdin: str) -> str:
    if _operands(words) or UNKNOWN in stdin:
        return UNKNOWN
    return "".join(f"{line[::-1]}\n" for line in stdin.splitlines())


def _base64(words: list[str], stdin: str) -> str:
    decodes = any(word in ("-d", "-D", "--decode", "-di") for word in words)
    if not decodes or _operands(words) or UNKNOWN in stdin:
        return UNKNOWN
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(stdin.encode()).decode("utf-8", "replace")
    except (Error, ValueError):
        return UNKNOWN


def _xxd(words: list[str], stdin: str) -> str:
    flags = "".join(words)
    if "r" not in flags or "p" not in flags or UNKNOWN in stdin:
        return UNKNOWN
    try:
        return bytes.fromhex(stdin).decode("utf-8", "replace")
    except ValueError:
        return UNKNOWN


def _seq(words: list[str], stdin: str) -> str:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        return UNKNOWN
    first, step, last = {1: [1, 1, *numbers], 2: [*numbers[:1], 1, *numbers[1:]], 3: numbers}.get(
        len(numbers), [1, 1, 0]
    )
    values = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
    return UNKNOWN if len(values) > _LINES else "".join(f"{value}\n" for value in values)


def _tr(words: list[str], stdin: str) -> str:
    """Sets of the same size, and the classes that people write."""
    sets = [_unescaped(word) for word in _operands(words)]
    if UNKNOWN in stdin:
        return UNKNOWN
    if "-d" in words and len(sets) == 1:
        return "".join(char for char in stdin if char not in _set_of(sets[0]))
    if len(sets) != 2 or any(word[:1] == "-" and word != "--" for word in words):
        return UNKNOWN
    old, new = _set_of(sets[0]), _set_of(sets[1])
    if not old or not new:
        return UNKNOWN
    new += new[-1] * (len(old) - len(new))
    return stdin.translate({ord(a): b for a, b in zip(old, new, strict=False)})


def _set_of(text: str) -> str:
    text = text.replace("[:upper:]", "A-Z").replace("[:lower:]", "a-z").replace("[:space:]", " \t\n")
    result, at = "", 0
    while at < len(text):
        if at + 2 < len(text) and text[at + 1] == "-":
            result += "".join(map(chr, range(ord(text[at]), min(ord(text[at + 2]), ord(text[at]) + 256) + 1)))
            at += 3
        else:
            result += text[at]
            at += 1
    return result


def _head(words: list[str], stdin: str) -> str:
    return stdin if not _operands(words, "nc") else UNKNOWN


def _same(words: list[str], stdin: str) -> str:
    """Sorted, cut or repeated lines: what comes out is among what goes in."""
    return stdin if not _operands(words, "kto") else UNKNOWN


def _sed(words: list[str], stdin: str) -> str:
    """`s/a/b/` and `s/a/b/g` with plain text; everything else is unknown."""
    scripts = [word for word in words if word[:1] != "-"]
    if (
        len(scripts) != 1
        or UNKNOWN in stdin
        or any(word not in ("-e", "-E", "-r") for word in words if word[:1] == "-")
    ):
        return UNKNOWN
    script = scripts[0]
    if len(script) < 4 or script[0] != "s":
        return UNKNOWN
    parts = script[2:].split(script[1])
    if len(parts) != 3 or parts[2] not in ("", "g"):
        return UNKNOWN
    old, new = parts[0], parts[1]
    plain = old.lstrip("^")
    if any(mark in plain for mark in "\\.*[]$+?()|{}^") or "\\" in new or "&" in new:
        return UNKNOWN
    lines = []
    for line in stdin.splitlines():
        if old[:1] == "^":
            line = new + line[len(plain) :] if line.startswith(plain) else line
        else:
            line = line.replace(plain, new) if parts[2] else line.replace(plain, new, 1)
        lines.append(f"{line}\n")
    return "".join(lines)


def _nothing(words: list[str], stdin: str) -> str:
    return ""


_MAKERS = {
    "base64": _base64,
    "basename": _basename,
    "cat": _cat,
    "dirname": _dirname,
    "echo": _echo,
    "head": _head,
    "printf": _printf,
    "rev": _reversed,
    "sed": _sed,
    "seq": _seq,
    "sleep": _nothing,
    "sort": _same,
    "tac": _same,
    "tail": _head,
    "tr": _tr,
    "true": _nothing,
    "uniq": _same,
    "xxd": _xxd,
}
