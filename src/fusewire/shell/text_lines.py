"""Programs that print some of the lines that they read, or all in another order.

Where a line has something unknown in it, all lines that could come out are in what is printed.
"""

from __future__ import annotations

from fusewire.shell.outputs import operands
from fusewire.shell.values import UNKNOWN

#: The letters of each program that take a value.
VALUED = {
    "column": "tcosNRHOW",
    "cut": "bcdf",
    "date": "dfrI",
    "expand": "t",
    "fold": "w",
    "head": "nc",
    "nl": "bdfhilnsvw",
    "paste": "d",
    "pr": "DehilNoSwW",
    "shuf": "inor",
    "sort": "ktSTo",
    "tail": "ncs",
    "unexpand": "t",
    "uniq": "fsw",
}


class Given:
    """The options of a command and its operands; a long one counts as its first letter but for those that differ."""

    def __init__(self, name: str, words: list[str], longs: str = "") -> None:
        valued = VALUED.get(name, "")
        known = dict(pair.split("=") for pair in longs.split())
        self.values: dict[str, str] = {}
        self.all: list[tuple[str, str]] = []
        self.operands: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                self.operands += words[at:]
                break
            if word[:2] == "--":
                long, equals, value = word[2:].partition("=")
                letter = next((short for full, short in known.items() if full.startswith(long)), long)
                if letter in valued and not equals and at < len(words):
                    value = words[at]
                    at += 1
                self._add(letter, value)
            elif word[:1] == "-" and len(word) > 1:
                for number, letter in enumerate(word[1:], 2):
                    if letter in valued:
                        value = word[number:]
                        if not value and at < len(words):
                            value = words[at]
                            at += 1
                        self._add(letter, value)
                        break
                    self._add(letter, "")
            else:
                self.operands.append(word)

    def _add(self, letter: str, value: str) -> None:
        self.values[letter] = value
        self.all.append((letter, value))

    def has(self, *letters: str) -> bool:
        return any(letter in self.values for letter in letters)


def lines_of(text: str, end: str = "\n") -> list[str]:
    return text.removesuffix(end).split(end) if text else []


def joined(lines: list[str], end: str = "\n") -> str:
    return "".join(line + end for line in lines)


def count_of(text: str) -> int | None:
    return int(text[:7]) if text.isdigit() else None


# -- some of the lines ------------------------------------------------------------------------------------------


def head(words: list[str], stdin: str) -> str:
    old = words[0][1:] if words and words[0][:1] == "-" and words[0][1:].isdigit() else ""
    words = words[1:] if old else words
    given = Given("head", words, "lines=n bytes=c zero-terminated=z quiet=q verbose=v")
    if given.operands and given.operands != ["-"]:
        return UNKNOWN
    if UNKNOWN in stdin:
        return stdin
    size = given.values.get("c", given.values.get("n", old or "10"))
    count = count_of(size.removeprefix("-"))
    if count is None:
        return stdin
    stop = -count if size[:1] == "-" and count else count
    if given.has("c"):
        return stdin[:stop] if stdin.isascii() else stdin
    end = "\0" if given.has("z") else "\n"
    return joined(lines_of(stdin, end)[:stop], end)


def tail(words: list[str], stdin: str) -> str:
    old = words[0] if words and words[0][:1] in ("-", "+") and words[0][1:].isdigit() else ""
    words = words[1:] if old else words
    given = Given("tail", words, "lines=n bytes=c zero-terminated=z quiet=q follow=f retry=F pid=p")
    if given.operands and given.operands != ["-"]:
        return UNKNOWN
    if UNKNOWN in stdin:
        return stdin
    size = given.values.get("c", given.values.get("n", old or "10"))
    count = count_of(size.lstrip("+-"))
    if count is None:
        return stdin
    start = max(0, count - 1) if size[:1] == "+" else -count
    if given.has("c"):
        return stdin[start:] if stdin.isascii() and (start or size[:1] == "+") else "" if not start else stdin
    end = "\0" if given.has("z") else "\n"
    lines = lines_of(stdin, end)
    return joined(lines[start:] if start or size[:1] == "+" else [], end)


def uniq(words: list[str], stdin: str) -> str:
    given = Given("uniq", words, "count=c repeated=d unique=u ignore-case=i all-repeated=D skip-fields=f skip-chars=s")
    if given.operands and given.operands != ["-"]:
        return UNKNOWN
    if given.has("f", "s", "w", "D", "z") or UNKNOWN in stdin:
        return _counted(stdin) if given.has("c") else stdin
    groups: list[tuple[str, int]] = []
    for line in lines_of(stdin):
        same = groups and (groups[-1][0] == line or (given.has("i") and groups[-1][0].lower() == line.lower()))
        if same:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((line, 1))
    if given.has("d"):
        groups = [group for group in groups if group[1] > 1]
    if given.has("u"):
        groups = [group for group in groups if group[1] == 1]
    return joined([f"{count:>7} {line}" if given.has("c") else line for line, count in groups])


def _counted(text: str) -> str:
    return joined([f"      {UNKNOWN} {line}" for line in lines_of(text)])


def sort(words: list[str], stdin: str) -> str:
    """By text, by numbers, by one field; with anything else in their old order, which may not be the right one."""
    given = Given("sort", words, "unique=u reverse=r numeric-sort=n key=k field-separator=t zero-terminated=z output=o")
    if given.operands and given.operands != ["-"]:
        return UNKNOWN
    end = "\0" if given.has("z") else "\n"
    lines = lines_of(stdin, end)
    if given.has("u"):
        lines = list(dict.fromkeys(lines))
    if UNKNOWN not in stdin and not given.has("R", "c", "C", "m", "M", "V", "h", "g"):
        keys = [value for letter, value in given.all if letter == "k"]
        numeric = given.has("n") or any("n" in key for key in keys)
        reverse = given.has("r") or any("r" in key for key in keys)
        folds = given.has("f")
        field = count_of(keys[0].partition(",")[0].partition(".")[0].rstrip("nrbfd")) if keys else 0
        separator = given.values.get("t")

        def place(line: str) -> tuple[float, str, str]:
            part = line
            if field:
                parts = line.split(separator) if separator else line.split()
                part = (separator or " ").join(parts[field - 1 : field] if "," in keys[0] else parts[field - 1 :])
            part = part.lower() if folds else part
            return (_number(part), line, "") if numeric else (0, part, line)

        lines.sort(key=place, reverse=reverse)
    return joined(lines, end)


def _number(text: str) -> float:
    """The number at the beginning of a text, as `sort -n` reads it."""
    text = text.lstrip()
    end = 1 if text[:1] == "-" else 0
    while end < len(text) and (text[end].isdigit() or text[end] == "."):
        end += 1
    try:
        return float(text[:end])
    except ValueError:
        return 0.0


def shuf(words: list[str], stdin: str) -> str:
    """Any order, any of them."""
    given = Given("shuf", words, "echo=e input-range=i head-count=n output=o zero-terminated=z repeat=r")
    if given.has("e"):
        return joined(given.operands)
    if given.has("i"):
        return UNKNOWN
    return stdin if not given.operands or given.operands == ["-"] else UNKNOWN


def tac(words: list[str], stdin: str) -> str:
    return joined(lines_of(stdin)[::-1]) if not operands(words, "s") and "-s" not in words else UNKNOWN
