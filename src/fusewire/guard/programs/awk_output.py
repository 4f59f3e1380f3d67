"""What awk's one-liners print: `{print $2}`, `-F: '/x/{print "rm " $1}'`, `NR>1 && !seen[$0]++`.

Where a line or a condition is unknown, what may be printed is printed.
"""

from __future__ import annotations

from fusewire.guard.programs.awk_read import Reader
from fusewire.guard.programs.awk_tokens import Unreadable
from fusewire.guard.programs.awk_values import number_of, regex, shown
from fusewire.shell.outputs import printed, unescaped
from fusewire.shell.text_lines import lines_of
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.guard.programs.awk_read import Node

_STEPS = 100_000


def awk_prints(code: str, options: list[str], stdin: str | None, name: str = "") -> str | None:
    """The output of an awk program; None if it does more than this knows.

    `options` are the words before the program (`-F`, `:`, `-v`, `x=1`), `stdin` is what it reads, from files or a pipe,
    `name` that of the only file.
    """
    if UNKNOWN in code:
        return None
    try:
        machine = _Machine(options, name)
        rules = Reader(code).rules()
        machine.run(rules, UNKNOWN if stdin is None else stdin)
    except (Unreadable, RecursionError, ValueError, OverflowError):
        return None
    return machine.out


class _Next(Exception):
    pass


class _Exit(Exception):
    pass


class _Machine:
    def __init__(self, options: list[str], name: str) -> None:
        self.names = {"FS": " ", "OFS": " ", "ORS": "\n", "RS": "\n", "NR": "0", "NF": "0", "FILENAME": name}
        self.arrays: dict[str, dict[str, str]] = {}
        self.line = ""
        self.fields: list[str] = []
        self.out = ""
        self.steps = _STEPS
        at = 0
        while at < len(options):
            word = options[at]
            at += 1
            option, value = word[:2], word[2:]
            if option == "--":
                long, _, value = word[2:].partition("=")
                option = {"field-separator": "-F", "assign": "-v"}.get(long, "")
            if option not in ("-F", "-v"):
                raise Unreadable
            if not value:
                value = "".join(options[at : at + 1])
                at += 1
            if option == "-F":
                self.names["FS"] = "\t" if value == "t" else unescaped(value)
            else:
                variable, _, text = value.partition("=")
                self.names[variable] = unescaped(text)

    def run(self, rules: list[Any], stdin: str) -> None:
        try:
            self._all(rules, "BEGIN")
            if all(pattern == "BEGIN" for pattern, _ in rules):
                return
            if self.names["RS"] not in ("\n", ""):
                raise Unreadable
            for line in lines_of(stdin, "\n\n" if not self.names["RS"] else "\n"):
                self.names["NR"] = self.names["FNR"] = str(int(self.names["NR"]) + 1)
                self.put(line)
                self._line(rules)
        except _Exit:
            pass
        try:
            self._all(rules, "END")
        except _Exit:
            pass

    def _all(self, rules: list[Any], when: str) -> None:
        for pattern, statements in rules:
            if pattern == when:
                self._statements(statements or [])

    def _line(self, rules: list[Any]) -> None:
        try:
            for pattern, statements in rules:
                if pattern in ("BEGIN", "END"):
                    continue
                if pattern is None or self.truth(pattern) is not False:
                    if statements is None:
                        self.out += self.line + self.names["ORS"]
                    else:
                        self._statements(statements)
        except _Next:
            pass

    def put(self, line: str) -> None:
        self.line = line
        self.fields = self.split(line, self.names["FS"])
        self.names["NF"] = str(len(self.fields))

    def split(self, text: str, separator: str) -> list[str]:
        if not text:
            return []
        if separator == " ":
            return text.split()
        if len(separator) == 1 and separator != "|" and separator not in ".*+?[](){}^$\\":
            return text.split(separator)
        if separator in ("|", "."):
            return text.split(separator)
        return [part or "" for part in regex(separator).split(text)]

    # -- statements -------------------------------------------------------------------------------------------

    def _statements(self, statements: list[Node]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: Node) -> None:
        kind = node[0]
        if kind in ("print", "printf"):
            self._print(node)
        elif kind == "do":
            self.value(node[1])
        elif kind == "block":
            self._statements(node[1])
        elif kind == "if":
            answer = self.truth(node[1])
            if answer is not False:
                self._statement(node[2])
            if answer is not True and node[3] is not None:
                self._statement(node[3])
        elif kind == "for":
            for key in list(self.arrays.get(node[2], {})):
                self.names[node[1]] = key
                self._statement(node[3])
        elif kind == "next":
            raise _Next
        else:
            raise _Exit

    def _print(self, node: Node) -> None:
        values = [self.value(part) for part in node[1]]
        if node[2]:
            return  # into a file or another program
        if node[0] == "printf":
            self.out += printed(["printf", *values]) or "" if values else ""
        else:
            self.out += (self.names["OFS"].join(values) if values else self.line) + self.names["ORS"]

    # -- expressions ------------------------------------------------------------------------------------------

    def truth(self, node: Node) -> bool | None:
        kind = node[0]
        if kind == "regex":
            return self._matches(self.line, node[1])
        if kind == "not":
            answer = self.truth(node[1])
            return None if answer is None else not answer
        if kind in ("and", "or"):
            decides = kind == "or"
            first = self.truth(node[1])
            if first is decides:
                return decides
            second = self.truth(node[2])
            return second if first is not None or second is decides else None
        if kind == "group":
            return self.truth(node[1])
        value = self.value(node)
        if UNKNOWN in value:
            return None
        number = number_of(value)
        if kind == "string":
            return bool(value) if number is None else number != 0
        return number != 0 if number is not None else bool(value)

    def _matches(self, text: str, pattern: str) -> bool | None:
        if regex(pattern).search(text):
            return True
        return None if UNKNOWN in text else False

    def value(self, node: Node) -> str:
        self.steps -= 1
        if self.steps < 0 or len(self.out) > 1 << 20:
            raise Unreadable
        method = getattr(self, f"_{node[0]}", None)
        if method is None:
            answer = self.truth(node)
            return UNKNOWN if answer is None else str(int(answer))
        return str(method(*node[1:]))

    def _string(self, text: str) -> str:
        return text

    def _group(self, node: Node) -> str:
        return self.value(node)

    def _join(self, parts: list[Node]) -> str:
        return "".join(self.value(part) for part in parts)

    def _name(self, name: str) -> str:
        return self.names.get(name, "")

    def _if(self, condition: Node, then: Node, other: Node) -> str:
        answer = self.truth(condition)
        return UNKNOWN if answer is None else self.value(then if answer else other)

    def _element(self, name: str, key: Node) -> str:
        return self.arrays.get(name, {}).get(self.value(key), "")

    def _has(self, key: Node, name: str) -> str:
        return str(int(self.value(key) in self.arrays.get(name, {})))

    def _field(self, node: Node) -> str:
        text = self.value(node)
        number = number_of(text)
        if number is None or number < 0:
            return UNKNOWN
        if number == 0:
            return self.line
        if number <= len(self.fields):
            return self.fields[int(number) - 1]
        return UNKNOWN if UNKNOWN in self.line else ""

    def _match(self, node: Node, pattern: Node, wanted: bool) -> str:
        text = pattern[1] if pattern[0] == "regex" else self.value(pattern)
        answer = self._matches(self.value(node), text)
        return UNKNOWN if answer is None else str(int(answer is wanted))

    def _compare(self, operator: str, one: Node, other: Node) -> str:
        first, second = self.value(one), self.value(other)
        if UNKNOWN in first or UNKNOWN in second:
            return UNKNOWN
        a, b = number_of(first), number_of(second)
        literal = (one[0] == "string" and a is None) or (other[0] == "string" and b is None)
        x, y = (a, b) if a is not None and b is not None and not literal else (first, second)
        if not first and a is None and b is not None:
            x, y = 0.0, b
        answers = {"==": x == y, "!=": x != y}
        if operator in answers:
            return str(int(answers[operator]))
        less = x < y  # type: ignore[operator]
        return str(int({"<": less, "<=": less or x == y, ">": not less and x != y, ">=": not less}[operator]))

    def _number(self, operator: str, one: Node, other: Node) -> str:
        first, second = self.value(one), self.value(other)
        if UNKNOWN in first or UNKNOWN in second:
            return UNKNOWN
        a, b = number_of(first) or 0.0, number_of(second) or 0.0
        if operator in "/%" and not b:
            raise Unreadable
        if operator in "+-*":
            return shown(a + b if operator == "+" else a - b if operator == "-" else a * b)
        return shown(a / b if operator == "/" else a - b * int(a / b))

    def _count(self, node: Node, operator: str) -> str:
        before = self.value(node) or "0"
        self._assign(node, ("number", operator, node, ("string", "1")))
        return before

    def _assign(self, node: Node, value: Node) -> str:
        text = self.value(value)
        if node[0] == "name":
            if node[1] == "NF":
                raise Unreadable
            self.names[node[1]] = text
        elif node[0] == "element":
            self.arrays.setdefault(node[1], {})[self.value(node[2])] = text
        elif node[0] == "field":
            self._put_field(int(number_of(self.value(node[1])) or 0), text)
        else:
            raise Unreadable
        return text

    def _put_field(self, number: int, text: str) -> None:
        if not number:
            self.put(text)
            return
        if number > 1000:
            raise Unreadable
        self.fields += [""] * (number - len(self.fields))
        self.fields[number - 1] = text
        self.names["NF"] = str(len(self.fields))
        self.line = self.names["OFS"].join(self.fields)

    def _call(self, name: str, nodes: list[Node]) -> str:
        if name in ("sub", "gsub"):
            return self._substitute(nodes, 0 if name == "gsub" else 1)
        if name == "split":
            separator = self.value(nodes[2]) if len(nodes) > 2 else self.names["FS"]
            parts = self.split(self.value(nodes[0]), separator)
            self.arrays[nodes[1][1]] = {str(number): part for number, part in enumerate(parts, 1)}
            return str(len(parts))
        values = [self.value(node) for node in nodes] or [self.line]
        if name == "sprintf":
            return printed(["printf", *values]) or ""
        if name in ("tolower", "toupper"):
            return values[0].lower() if name == "tolower" else values[0].upper()
        if UNKNOWN in values[0]:
            return UNKNOWN
        if name == "length":
            return str(len(values[0]))
        if name == "index":
            return str(values[0].find(values[1]) + 1)
        if name == "int":
            return str(int(number_of(values[0]) or 0))
        start = int(number_of(values[1]) or 0)
        end = start + int(number_of(values[2]) or 0) if len(values) > 2 else len(values[0]) + 1
        return values[0][max(0, start - 1) : max(0, end - 1)]

    def _substitute(self, nodes: list[Node], count: int) -> str:
        pattern = nodes[0][1] if nodes[0][0] == "regex" else self.value(nodes[0])
        new = self.value(nodes[1])
        target = nodes[2] if len(nodes) > 2 else ("field", ("string", "0"))
        parts = new.replace("\\&", "\0").split("&")
        text, made = regex(pattern).subn(
            lambda match: match.group().join(parts).replace("\0", "&"), self.value(target), count=count
        )
        if made:
            self._assign(target, ("string", text))
        return str(made)
