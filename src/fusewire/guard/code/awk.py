"""awk programs: what `print > file` writes, and what `system()` and pipes run."""

from __future__ import annotations

from itertools import islice, product

from fusewire.guard.code.brackets import CLOSING, OPENING, matching, split
from fusewire.guard.code.lexer import Lexer
from fusewire.guard.code.lexer_texts import Token
from fusewire.guard.code.values import UNKNOWN, Effect, TooMuch, clipped
from fusewire.wrappers import SHELLS, is_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.code.setting import Setting

_WORDS = (">", "|", "system", "getline", "eval")

#: Words that are looked at in one program, each time they are.
_WORK = 300_000

#: Lines of input that are followed one by one.
_LINES = 300

#: Words in a program of which nobody can tell what it prints.
_UNTOLD = frozenset(
    (
        *(
            "if",
            "while",
            "for",
            "do",
            "next",
            "exit",
            "function",
            "getline",
            "system",
            "printf",
            "gsub",
            "sub",
            "split",
        ),
        *("NR", "FNR", "OFS", "ORS", "RS", "FS", "?", "&&", "||", "~", "=", "+=", "++", "--"),
    )
)

#: Files that awk takes for its own streams.
_STREAMS = frozenset(("/dev/stdout", "/dev/stderr", "/dev/stdin", "-"))


def awk_effects(code: str, arguments: list[str], setting: Setting | None = None) -> list[Effect]:
    """What the program would do to files other than its input."""
    if not any(word in code for word in _WORDS) and (setting is None or "print" not in code):
        return []
    program = Program(arguments, setting)
    try:
        tokens = Lexer("awk", code).read()
        program.run(tokens)
    except Exception:
        return [*program.effects, ("write", UNKNOWN)]
    return program.effects


class Program:
    """Reads the statements in the order in which they are written."""

    def __init__(self, arguments: list[str], setting: Setting | None = None) -> None:
        self.effects: list[Effect] = []
        self.setting = setting
        self.record: str | None = None
        #: whether everything that is printed can be told
        self.shows = False
        self.names: dict[str, list[str]] = {}
        self.operands: list[str] = []
        self.work = 0
        for argument in arguments:
            name, _, value = argument.partition("=")
            if is_assignment(argument):
                self.names[name] = [value]
            else:
                self.operands.append(argument)
        self.names["FILENAME"] = self.operands or [UNKNOWN]

    def run(self, tokens: list[Token]) -> None:
        """Once for each line of an input that is known, else once for all."""
        words = [token.text for token in tokens if token.kind != "end"]
        begins = words[:2] == ["BEGIN", "{"]
        inner = words[2 if begins else 1 :]
        depth = sum(token.kind == "sign" and token.text in "{}" for token in tokens)
        told = _UNTOLD.isdisjoint(inner) and depth == 2
        self.shows = self.setting is not None and told and (begins or words[:1] == ["{"])
        stdin = self.setting.stdin if self.setting is not None and not self.operands else None
        lines = stdin.splitlines() if stdin is not None and not begins else []
        if lines and len(lines) <= _LINES and stdin != UNKNOWN:
            for line in lines:
                self.record = line
                self.scan(tokens)
        else:
            self.scan(tokens)
        if self.setting is not None and not self.shows:
            self.effects.append(("print", UNKNOWN))

    def field(self, number: str) -> str:
        """`$1` of the line that is read."""
        if self.record is None or (number in ("", "NF") and UNKNOWN in self.record):
            return UNKNOWN
        if number == "0":
            return self.record
        known, mark, _ = self.record.partition(UNKNOWN)
        between = self.names.get("FS", [" "])[0]
        parts = known.split() if between == " " else known.split(between)
        if mark and parts and not known.endswith((" ", between)):
            parts.pop()
        if number == "NF":
            return parts[-1] if parts else ""
        at = int(number[:6]) - 1 if number.isdecimal() else len(parts)
        return parts[at] if at < len(parts) else self.record[len(known) :] if mark else ""

    def scan(self, tokens: list[Token]) -> None:
        for at, token in enumerate(tokens):
            after = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if token.kind != "name":
                continue
            if after == "=" and tokens[at + 1].kind == "sign":
                self.names[token.text] = self.value(tokens[at + 2 : self.end(tokens, at + 2)])
            elif after == "+=":
                self.names[token.text] = [UNKNOWN]
            elif token.text in ("print", "printf"):
                self.printed(tokens[at + 1 : self.end(tokens, at + 1)])
            elif token.text == "system" and after == "(":
                self.add("shell", self.value(tokens[at + 2 : matching(tokens, at + 1)]))
            elif token.text == "getline":
                self.got(tokens, at)

    def add(self, kind: str, values: list[str]) -> None:
        self.effects += [(kind, text) for text in values if text and text not in _STREAMS]

    def end(self, tokens: list[Token], at: int) -> int:
        """Where the statement ends."""
        depth = 0
        for spot in range(at, len(tokens)):
            token = tokens[spot]
            self.work += 1
            if self.work > _WORK:
                raise TooMuch
            if not depth and (token.kind == "end" or (token.kind == "sign" and token.text in (";", "}", ")"))):
                return spot
            depth += (token.kind == "sign" and token.text in OPENING) - (token.kind == "sign" and token.text in CLOSING)
        return len(tokens)

    def printed(self, tokens: list[Token]) -> None:
        """`print ... > file`, `print ... | command`."""
        self.spoken(tokens)
        depth = 0
        for at, token in enumerate(tokens):
            is_sign = token.kind == "sign"
            depth += (is_sign and token.text in OPENING) - (is_sign and token.text in CLOSING)
            if is_sign and not depth and token.text in (">", ">>", "|"):
                target = tokens[at + 1 :]
                if token.text == "|" and self.record is not None and self.is_shell(target):
                    self.add("shell", self.value(tokens[:at]) or [self.record])
                self.add(
                    "shell" if token.text == "|" else "write", self.value(target[1:] if _is_and(target) else target)
                )
                return

    def is_shell(self, tokens: list[Token]) -> bool:
        return any(line.strip().rpartition("/")[2] in SHELLS for line in self.value(tokens))

    def spoken(self, tokens: list[Token]) -> None:
        """What goes to the output, if nothing else is done with it."""
        if not self.shows or any(token.kind == "sign" and token.text in (">", ">>", "|") for token in tokens):
            return
        parts = [self.value(part) for part in split(tokens)]
        if tokens and not all(len(part) == 1 for part in parts):
            self.effects.append(("print", UNKNOWN))
        elif parts or self.record is not None:
            self.effects.append(("print", (" ".join(part[0] for part in parts) if parts else self.record or "") + "\n"))
        else:
            self.effects.append(("print", UNKNOWN))

    def got(self, tokens: list[Token], at: int) -> None:
        """`command | getline`, `getline < file`."""
        before = tokens[at - 1].text if at else ""
        if before == "&" and at > 1:
            at, before = at - 1, tokens[at - 2].text
        if before == "|":
            start = at - 1
            while start and tokens[start - 1].kind != "end" and tokens[start - 1].text not in ("{", ";", "(", "while"):
                start -= 1
            self.add("shell", self.value(tokens[start : at - 1]))
            return
        for spot in range(at + 1, min(at + 4, len(tokens))):
            if tokens[spot].kind == "sign" and tokens[spot].text == "<":
                self.add("read", self.value(tokens[spot + 1 : self.end(tokens, spot + 1)]))
                return

    def value(self, tokens: list[Token]) -> list[str]:
        """What an expression may be: texts and variables one behind the other are one text."""
        terms: list[list[str]] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            follows = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if token.kind == "text" or token.kind == "number":
                terms.append([token.text])
            elif token.kind == "name" and token.text == "ARGV" and follows == "[":
                terms.append(self.operands or [UNKNOWN])
                at = matching(tokens, at + 1)
            elif token.kind == "name" and token.text == "ENVIRON" and follows == "[" and self.setting is not None:
                found = self.setting.variable(tokens[at + 2].text)
                terms.append([UNKNOWN if found is None else found])
                at = matching(tokens, at + 1)
            elif token.kind == "name" and token.text in ("tolower", "toupper", "sprintf") and follows == "(":
                end = matching(tokens, at + 1)
                terms.append(self.made(token.text, [self.value(part) for part in split(tokens[at + 2 : end])]))
                at = end
            elif token.kind == "name" and follows in ("(", "["):
                terms.append([UNKNOWN])
                at = matching(tokens, at + 1)
            elif token.kind == "name":
                terms.append(self.names.get(token.text, [UNKNOWN]))
            elif token.kind == "sign" and token.text == "(":
                end = matching(tokens, at)
                terms.append(self.value(tokens[at + 1 : end]) or [UNKNOWN])
                at = end
            elif token.kind == "sign" and token.text == "$":
                terms.append([self.field(follows)])
                at = matching(tokens, at + 1) if follows == "(" else at + 1
            elif token.kind != "end":
                return [UNKNOWN]  # arithmetic, conditions
            at += 1
        return [clipped("".join(row)) for row in islice(product(*terms), 16)] if terms else []

    def made(self, name: str, values: list[list[str]]) -> list[str]:
        """`tolower(text)`, `sprintf(format, ...)`."""
        if not all(len(options) == 1 for options in values) or not values:
            return [UNKNOWN]
        first, *rest = [options[0] for options in values]
        if name != "sprintf":
            return [first.lower() if name == "tolower" else first.upper()]
        parts = first.split("%s")
        if len(parts) != len(rest) + 1 or "%" in "".join(parts):
            return [UNKNOWN]
        return [parts[0] + "".join(given + part for given, part in zip(rest, parts[1:], strict=True))]


def _is_and(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[0].kind == "sign" and tokens[0].text == "&"
