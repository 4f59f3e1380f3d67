"""awk programs: what `print > file` writes, and what `system()` and pipes run."""

from __future__ import annotations

from itertools import islice, product

from fusewire.guard.code.brackets import CLOSING, OPENING, matching
from fusewire.guard.code.lexer import Lexer
from fusewire.guard.code.lexer_texts import Token
from fusewire.guard.code.values import UNKNOWN, Effect, TooMuch, clipped
from fusewire.wrappers import is_assignment

_WORDS = (">", "|", "system", "getline", "eval")

#: Words that are looked at in one program, each time they are.
_WORK = 300_000

#: Files that awk takes for its own streams.
_STREAMS = frozenset(("/dev/stdout", "/dev/stderr", "/dev/stdin", "-"))


def awk_effects(code: str, arguments: list[str]) -> list[Effect]:
    """What the program would do to files other than its input."""
    if not any(word in code for word in _WORDS):
        return []
    program = Program(arguments)
    try:
        program.scan(Lexer("awk", code).read())
    except Exception:
        return [*program.effects, ("write", UNKNOWN)]
    return program.effects


class Program:
    """Reads the statements in the order in which they are written."""

    def __init__(self, arguments: list[str]) -> None:
        self.effects: list[Effect] = []
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
        depth = 0
        for at, token in enumerate(tokens):
            is_sign = token.kind == "sign"
            depth += (is_sign and token.text in OPENING) - (is_sign and token.text in CLOSING)
            if is_sign and not depth and token.text in (">", ">>", "|"):
                target = tokens[at + 1 :]
                self.add(
                    "shell" if token.text == "|" else "write", self.value(target[1:] if _is_and(target) else target)
                )
                return

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
                terms.append([UNKNOWN])
                at = matching(tokens, at + 1) if follows == "(" else at + 1
            elif token.kind != "end":
                return [UNKNOWN]  # arithmetic, conditions
            at += 1
        return [clipped("".join(row)) for row in islice(product(*terms), 16)] if terms else []


def _is_and(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[0].kind == "sign" and tokens[0].text == "&"
