"""What simple programs print, where that follows from their words and their input alone."""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN
from fusewire.words import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[list[str], str], str]

_LINES = 2000


def printed(words: list[str], stdin: str | None = None) -> str | None:
    """The output of a command that only works on text; None if this is no such command."""
    name = words[0].rsplit("/", 1)[-1]
    maker = _MAKERS.get(name)
    if maker is None and name in _OTHERS:
        from fusewire.shell.text_programs import MAKERS

        maker = MAKERS[name]
    return None if maker is None else maker(words[1:], UNKNOWN if stdin is None else stdin)


def is_text_program(name: str) -> bool:
    return name in _MAKERS or name in _OTHERS


def operands(words: list[str], valued: str = "") -> list[str]:
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
    while at < len(words) and len(words[at]) > 1 and words[at][0] == "-" and not words[at][1:].strip("neE"):
        newline = "" if "n" in words[at] else newline
        escapes = "e" in words[at] or (escapes and "E" not in words[at])
        at += 1
    text = " ".join(words[at:])
    if not escapes:
        return text + newline
    text, ended = _echoed(text)
    return text if ended else text + newline


def unescaped(text: str) -> str:
    return escaped(text.replace("'", "\\'"), 0)[0] if "\\" in text else text


def _echoed(text: str) -> tuple[str, bool]:
    r"""The escapes of `echo -e` and `%b`: octal numbers begin with a zero, and `\c` ends it all."""
    result, at = "", 0
    while at < len(text):
        if text[at] != "\\":
            end = text.find("\\", at)
            end = len(text) if end < 0 else end
            result += text[at:end]
            at = end
            continue
        kind = text[at + 1 : at + 2]
        if kind == "c":
            return result, True
        end = at + 2
        if kind in ("x", "u", "U") or (kind and kind in "01234567"):
            most = {"x": 2, "u": 4, "U": 8, "0": 3}.get(kind, 2)
            digits = "01234567" if kind in "01234567" else "0123456789abcdefABCDEF"
            while end < len(text) and end - at - 2 < most and text[end] in digits:
                end += 1
        skipped = kind == "0" and end > at + 2
        part = "\\" + text[at + 2 : end] if skipped else text[at:end]
        result += unescaped(part) if kind else "\\"
        at = end
    return result, False


def _printf(words: list[str], stdin: str) -> str:
    """`%s`, `%b`, `%d`, `%q`; the format is used again while there are arguments."""
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        return ""
    form, arguments = words[0], words[1:]
    form = unescaped(form)
    result = ""
    for _ in range(_LINES):
        text, used, ended = _formatted(form, arguments)
        result += text
        arguments = arguments[used:]
        if not arguments or not used or ended:
            return result
    return UNKNOWN


def filled(form: str, known: dict[str, str], *, flags: str = "-+ #0123456789.", longer: str = "") -> str:
    """A format in which `%x` stands for something, mostly something unknown; one of `longer` has a letter more."""
    result, at = "", 0
    while at < len(form):
        if form[at] != "%":
            result += form[at]
            at += 1
            continue
        end = at + 1
        while end < len(form) and form[end] in flags:
            end += 1
        kind = form[end : end + 1]
        result += "%" if kind == "%" else known.get(kind, UNKNOWN)
        at = end + (2 if kind and kind in longer else 1)
    return result


def _formatted(form: str, arguments: list[str]) -> tuple[str, int, bool]:
    """The format once, how many arguments it took, and whether one of them has ended it."""
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
        how = form[at + 1 : end]
        at = end + 1
        if kind == "%":
            result += "%"
            continue
        for _ in range(how.count("*")):
            how = how.replace("*", arguments[used] if used < len(arguments) else "0", 1)
            used += 1
        value = arguments[used] if used < len(arguments) else ""
        used += 1
        if kind == "b":
            value, ended = _echoed(value)
            if ended:
                return result + value, used, True
        result += _one(kind, how, value)
    return result, used, False


def _one(kind: str, how: str, value: str) -> str:
    """One argument as `%5s` or `%03o` shows it."""
    if kind in ("d", "i", "u", "o", "x", "X") and kind:
        try:
            number = ord(value[1]) if value[:1] in ("'", '"') and len(value) > 1 else int(value or "0", 0)
        except ValueError:
            return value if kind in "diu" else UNKNOWN
        value = {"o": f"{number:o}", "x": f"{number:x}", "X": f"{number:X}"}.get(kind, str(number))
        if how[:1] == "0" and how[1:].isdigit():
            return value.zfill(min(int(how[1:]), 1000))
    elif kind == "c":
        value = value[:1]
    elif kind not in ("s", "b", "q"):
        return UNKNOWN
    width, _, precision = how.partition(".")
    if precision.isdigit() and kind in ("s", "b"):
        value = value[: int(precision[:6])]
    elif "." in how and not precision and kind == "s":
        value = ""
    size = width.lstrip("-+ #0")
    if not size.isdigit() or UNKNOWN in value:
        return value
    room = min(int(size[:6]), 1000)
    return value.ljust(room) if "-" in width else value.rjust(room)


def _cat(words: list[str], stdin: str) -> str:
    names = operands(words)
    return stdin if not names or names == ["-"] else UNKNOWN


def _basename(words: list[str], stdin: str) -> str:
    names = operands(words, "s")
    if not names:
        return ""
    name = names[0].rstrip("/").rsplit("/", 1)[-1]
    return (name.removesuffix(names[1]) if len(names) == 2 else name) + "\n"


def _dirname(words: list[str], stdin: str) -> str:
    lines = []
    for name in operands(words):
        folder, slash, _ = name.rstrip("/").rpartition("/")
        lines.append((folder or "/") if slash else ".")
    return "".join(f"{line}\n" for line in lines)


def _base64(words: list[str], stdin: str) -> str:
    decodes = any(word in ("-d", "-D", "--decode", "-di") for word in words)
    if not decodes or operands(words) or UNKNOWN in stdin:
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


_MAKERS: dict[str, Maker] = {
    "base64": _base64,
    "basename": _basename,
    "cat": _cat,
    "dirname": _dirname,
    "echo": _echo,
    "printf": _printf,
    "sed": _sed,
    "seq": _seq,
    "sleep": _nothing,
    "true": _nothing,
    "xxd": _xxd,
}

#: Those of `text_programs`.
_OTHERS = frozenset(
    "column cut date expand expr fold head nl paste pr rev shuf sort tac tail tr unexpand uniq yes".split()
)
