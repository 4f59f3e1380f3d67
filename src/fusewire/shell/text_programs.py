"""Programs that take lines apart and put them together: what they print follows from what they read."""

from __future__ import annotations

from fusewire.shell.outputs import filled, operands, unescaped
from fusewire.shell.text_lines import Given, count_of, head, joined, lines_of, shuf, sort, tac, tail, uniq
from fusewire.shell.values import TAINT, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[list[str], str], str]

# -- parts of a line --------------------------------------------------------------------------------------------


def _cut(words: list[str], stdin: str) -> str:
    given = Given("cut", words, "bytes=b characters=c delimiter=d fields=f only-delimited=s complement=C")
    if given.operands and given.operands != ["-"]:
        return UNKNOWN
    wanted = _ranges(given.values.get("f", given.values.get("c", given.values.get("b", ""))))
    if wanted is None or "z" in given.values:
        return UNKNOWN
    outside = given.has("C", "complement")
    result: list[str] = []
    for line in lines_of(stdin):
        if "f" not in given.values:
            result.append(UNKNOWN if UNKNOWN in line else "".join(_picked(list(line), wanted, outside)))
            continue
        separator = given.values.get("d", "\t")[:1] or "\0"
        if separator not in line:
            result += [] if given.has("s") else [line]
            continue
        parts = _picked(line.split(separator), wanted, outside)
        if not parts and UNKNOWN in line:
            parts = [UNKNOWN]
        result.append(given.values.get("output-delimiter", separator).join(parts))
    return joined(result)


def _ranges(text: str) -> list[tuple[int, int]] | None:
    """`1,3-5,7-` as pairs of first and last."""
    found = []
    for part in text.replace(" ", ",").split(","):
        first, dash, last = part.partition("-")
        if (not first and not last) or not (first + last).isdigit():
            return None
        begin = int(first[:6] or "1")
        found.append((begin, int(last[:6] or "999999") if dash else begin))
    return found


def _picked(parts: list[str], wanted: list[tuple[int, int]], outside: bool) -> list[str]:
    return [
        part
        for number, part in enumerate(parts, 1)
        if any(first <= number <= last for first, last in wanted) is not outside
    ]


def _reversed(words: list[str], stdin: str) -> str:
    if operands(words):
        return UNKNOWN
    return joined([UNKNOWN if TAINT in line else line[::-1] for line in lines_of(stdin)])


def _tr(words: list[str], stdin: str) -> str:
    """Sets, classes, complements; with something unknown in the input only what is one for one."""
    flags = "".join(word[1:] for word in words if word[:1] == "-" and word[1:2] != "-" and len(word) > 1)
    flags += "".join(word[2] for word in words if word[:2] == "--" and len(word) > 2)
    sets = [_set_of(_plain(word)) for word in operands(words)]
    if not sets or not sets[0] or flags.strip("dscCt"):
        return UNKNOWN
    inside = set(sets[0])
    inverted = "c" in flags or "C" in flags
    kept = {UNKNOWN, TAINT} if UNKNOWN in stdin else set()
    if "d" in flags:
        return "".join(char for char in stdin if char in kept or (char in inside) is inverted)
    text = stdin
    if len(sets) > 1 and sets[1]:
        old, new = sets[0], sets[1]
        if inverted:
            text = "".join(char if char in inside or char in kept else new[-1] for char in stdin)
        else:
            new += new[-1] * (len(old) - len(new))
            text = stdin.translate({ord(a): b for a, b in zip(old, new, strict=False)})
        inside, inverted = set(sets[1]), False
    elif "s" not in flags:
        return UNKNOWN
    if "s" not in flags:
        return text
    result = ""
    for char in text:
        if result[-1:] != char or (char in inside) is inverted:
            result += char
    return result


def _plain(word: str) -> str:
    """A set without escapes; `\\0` is a character here like any other."""
    return "\0".join(unescaped(part) for part in word.replace("\\000", "\\0").split("\\0"))


_CLASSES = {
    "upper": "A-Z",
    "lower": "a-z",
    "digit": "0-9",
    "alpha": "A-Za-z",
    "alnum": "A-Za-z0-9",
    "space": " \t\n\r\f\v",
    "blank": " \t",
    "punct": "!-/:-@\\[-`{-~",
}


def _set_of(text: str) -> str:
    for name, chars in _CLASSES.items():
        text = text.replace(f"[:{name}:]", chars)
    result, at = "", 0
    while at < len(text):
        if at + 2 < len(text) and text[at + 1] == "-":
            result += "".join(map(chr, range(ord(text[at]), min(ord(text[at + 2]), ord(text[at]) + 256) + 1)))
            at += 3
        else:
            result += text[at]
            at += 1
    return result


# -- lines put together -----------------------------------------------------------------------------------------


def paste(columns: list[list[str]], separators: str, serial: bool) -> str:
    separators = separators or "\0"
    if serial:
        return joined([_woven(lines, separators) for lines in columns])
    rows = max(map(len, columns), default=0)
    return joined([_woven([c[row] if row < len(c) else "" for c in columns], separators) for row in range(rows)])


def _woven(parts: list[str], separators: str) -> str:
    result = parts[0] if parts else ""
    for number, part in enumerate(parts[1:]):
        result += separators[number % len(separators)].replace("\0", "") + part
    return result


def _paste(words: list[str], stdin: str) -> str:
    given = Given("paste", words, "serial=s delimiters=d")
    if any(name != "-" for name in given.operands):
        return UNKNOWN
    lines = lines_of(stdin)
    count = max(1, len(given.operands))
    columns = [lines[at::count] for at in range(count)] if not given.has("s") else [lines]
    return paste(columns, unescaped(given.values.get("d", "\t")), given.has("s"))


def _nl(words: list[str], stdin: str) -> str:
    given = Given("nl", words)
    if given.operands and given.operands != ["-"]:
        return UNKNOWN
    result, number = [], 0
    for line in lines_of(stdin):
        counts = bool(line) or given.values.get("b") == "a"
        number += counts
        result.append(f"{number:>6}{given.values.get('s', chr(9))}{line}" if counts else "       ")
    return joined(result)


def _column(words: list[str], stdin: str) -> str:
    """The words of each line: how far apart they are matters to nobody."""
    given = Given("column", words, "table=t separator=s output-separator=o")
    separator = given.values.get("s")
    lines = [line.split(separator) if separator else line.split() for line in lines_of(stdin)]
    return joined(["  ".join(parts) for parts in lines if parts]) if not given.operands else UNKNOWN


def _unchanged(name: str) -> Maker:
    """Only blanks or line ends change."""

    def maker(words: list[str], stdin: str) -> str:
        given = Given(name, words, "width=w tabs=t")
        if given.operands and given.operands != ["-"]:
            return UNKNOWN
        if name == "pr" and not given.has("t", "T"):
            return UNKNOWN
        width = count_of(given.values.get("w", "80")) if name == "fold" else None
        if not width or UNKNOWN in stdin:
            return stdin.expandtabs(8) if name == "expand" else stdin
        return joined([part for line in lines_of(stdin) for part in _folded(line, width)])

    return maker


def _folded(line: str, width: int) -> list[str]:
    return [line[at : at + width] for at in range(0, max(1, len(line)), width)]


# -- others -----------------------------------------------------------------------------------------------------


def _yes(words: list[str], stdin: str) -> str:
    """It goes on forever; whoever reads it takes a few."""
    return f"{' '.join(words) or 'y'}\n" * 20


def _date(words: list[str], stdin: str) -> str:
    """What the format says as it is, and no time."""
    form = next((word[1:] for word in words if word[:1] == "+"), None)
    if form is None:
        return UNKNOWN
    return filled(form, {"n": "\n", "t": "\t"}, flags="-_0^#:123456789") + "\n"


def _expr(words: list[str], stdin: str) -> str:
    """`expr substr S P L`, `expr length S`, `expr A + B`; the rest needs more than this knows."""
    if any(UNKNOWN in word for word in words):
        return UNKNOWN
    if words[:1] == ["substr"] and len(words) == 4 and words[2].isdigit() and words[3].isdigit():
        start = int(words[2][:6])
        return f"{words[1][start - 1 : start - 1 + int(words[3][:6])] if start else ''}\n"
    if words[:1] == ["length"] and len(words) == 2:
        return f"{len(words[1])}\n"
    try:
        first, operator, second = int(words[0]), words[1], int(words[2])
    except (ValueError, IndexError):
        return f"{words[0]}\n" if len(words) == 1 else UNKNOWN
    if len(words) != 3 or (operator in ("/", "%") and not second):
        return UNKNOWN
    results = {"+": first + second, "-": first - second, "*": first * second}
    if operator in ("/", "%"):
        whole = abs(first) // abs(second) * (1 if (first < 0) is (second < 0) else -1)
        results.update({"/": whole, "%": first - whole * second})
    return f"{results[operator]}\n" if operator in results else UNKNOWN


MAKERS: dict[str, Maker] = {
    "column": _column,
    "cut": _cut,
    "date": _date,
    "expand": _unchanged("expand"),
    "expr": _expr,
    "fold": _unchanged("fold"),
    "head": head,
    "nl": _nl,
    "paste": _paste,
    "pr": _unchanged("pr"),
    "rev": _reversed,
    "shuf": shuf,
    "sort": sort,
    "tac": tac,
    "tail": tail,
    "tr": _tr,
    "unexpand": _unchanged("unexpand"),
    "uniq": uniq,
    "yes": _yes,
}
