"""Reading awk: a program as rules, statements and expressions, as far as one-liners go."""

from __future__ import annotations

from fusewire.guard.programs.awk_tokens import FUNCTIONS, WORDS, Unreadable, tokens_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: ("kind", part, ...)
    Node = tuple[Any, ...]
    #: BEGIN, END, an expression, or None for every line; then what is done, None for printing the line
    Rule = tuple[Node | str | None, list[Node] | None]

_VARIABLES = frozenset("NF NR FNR FS OFS ORS RS FILENAME".split())


class Reader:
    def __init__(self, code: str) -> None:
        self.tokens = tokens_of(code)
        self.at = 0
        self.depth = 0

    # -- rules and statements ---------------------------------------------------------------------------------

    def rules(self) -> list[Rule]:
        found: list[Rule] = []
        self._blanks()
        while self.at < len(self.tokens):
            pattern: Node | str | None = None
            if self._is("BEGIN") or self._is("END"):
                pattern = self._next()[1]
            elif not self._is("{"):
                pattern = self.expression()
                if self._is(","):
                    raise Unreadable
            found.append((pattern, self._block() if self._is("{") else None))
            self._blanks()
        return found

    def _block(self) -> list[Node]:
        self._want("{")
        statements: list[Node] = []
        self._blanks()
        while not self._is("}"):
            statements.append(self._statement())
            self._blanks()
        self._want("}")
        return statements

    def _statement(self) -> Node:
        self.depth += 1
        if self.depth > 50:
            raise Unreadable
        kind, text = self._peek()
        if text == "{" and kind == "op":
            node: Node = ("block", self._block())
        elif kind == "name" and text in ("print", "printf"):
            node = self._print()
        elif kind == "name" and text in ("next", "exit"):
            self.at += 1
            node = (text,)
        elif kind == "name" and text == "if":
            node = self._if()
        elif kind == "name" and text == "for":
            node = self._for()
        elif kind == "name" and text in WORDS:
            raise Unreadable
        else:
            node = ("do", self.expression())
        self.depth -= 1
        return node

    def _print(self) -> Node:
        name = self._next()[1]
        arguments: list[Node] = []
        if not self._ends() and not self._is("|", ">", ">>"):
            bracketed = self._is("(") and self._whole_bracket()
            self.at += bracketed
            arguments.append(self.expression(compares=bracketed))
            while self._is(","):
                self.at += 1
                arguments.append(self.expression(compares=bracketed))
            if bracketed:
                self._want(")")
        elsewhere = self._is("|", ">", ">>")
        if elsewhere:
            self.at += 1
            self.expression(compares=False)
        return (name, arguments, elsewhere)

    def _whole_bracket(self) -> bool:
        """Whether all that is printed is in one pair of brackets."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            text = self.tokens[at][1] if self.tokens[at][0] == "op" else ""
            depth += (text == "(") - (text == ")")
            if not depth:
                following = self.tokens[at + 1] if at + 1 < len(self.tokens) else ("op", ";")
                return following[0] == "op" and following[1] in (";", "}", "\n", "|", ">", ">>")
        return False

    def _if(self) -> Node:
        self.at += 1
        self._want("(")
        condition = self.expression()
        self._want(")")
        self._blanks(";" if self._is("\n") else "")
        then = self._statement()
        mark = self.at
        self._blanks()
        if self._is("else"):
            self.at += 1
            self._blanks()
            return ("if", condition, then, self._statement())
        self.at = mark
        return ("if", condition, then, None)

    def _for(self) -> Node:
        """Only `for (k in a)`."""
        self.at += 1
        self._want("(")
        name = self._next()
        if name[0] != "name" or not self._is("in"):
            raise Unreadable
        self.at += 1
        array = self._next()[1]
        self._want(")")
        self._blanks()
        return ("for", name[1], array, self._statement())

    # -- expressions ------------------------------------------------------------------------------------------

    def expression(self, compares: bool = True) -> Node:
        self.depth += 1
        if self.depth > 50:
            raise Unreadable
        node = self._or(compares)
        if self._is("?"):
            self.at += 1
            then = self.expression(compares)
            self._want(":")
            node = ("if", node, then, self.expression(compares))
        elif self._is("=", "+=", "-="):
            operator = self._next()[1]
            value = self.expression(compares)
            node = ("assign", node, value if operator == "=" else ("number", operator[0], node, value))
        self.depth -= 1
        return node

    def _or(self, compares: bool) -> Node:
        node = self._and(compares)
        while self._is("||"):
            self.at += 1
            node = ("or", node, self._and(compares))
        return node

    def _and(self, compares: bool) -> Node:
        node = self._match(compares)
        while self._is("&&"):
            self.at += 1
            node = ("and", node, self._match(compares))
        return node

    def _match(self, compares: bool) -> Node:
        node = self._comparison(compares)
        while self._is("~", "!~"):
            operator = self._next()[1]
            node = ("match", node, self._comparison(compares), operator == "~")
        if self._is("in"):
            self.at += 1
            node = ("has", node, self._next()[1])
        return node

    def _comparison(self, compares: bool) -> Node:
        node = self._joined()
        if self._is("==", "!=", "<", "<=", ">=") or (compares and self._is(">")):
            operator = self._next()[1]
            node = ("compare", operator, node, self._joined())
        return node

    def _joined(self) -> Node:
        parts = [self._sum()]
        while self._begins_operand():
            parts.append(self._sum())
        return parts[0] if len(parts) == 1 else ("join", parts)

    def _begins_operand(self) -> bool:
        kind, text = self._peek()
        if kind == "op":
            return text in ("$", "(")
        return kind in ("string", "number") or (kind == "name" and text not in WORDS)

    def _sum(self) -> Node:
        node = self._product()
        while self._is("+", "-"):
            node = ("number", self._next()[1], node, self._product())
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self._is("*", "/", "%"):
            node = ("number", self._next()[1], node, self._unary())
        return node

    def _unary(self) -> Node:
        if self._is("!"):
            self.at += 1
            return ("not", self._unary())
        if self._is("-"):
            self.at += 1
            return ("number", "-", ("string", "0"), self._unary())
        if self._is("++", "--"):
            operator = self._next()[1]
            node = self._primary()
            return ("assign", node, ("number", operator[0], node, ("string", "1")))
        node = self._primary()
        if self._is("++", "--"):
            node = ("count", node, self._next()[1][0])
        return node

    def _primary(self) -> Node:
        kind, text = self._next()
        if kind in ("string", "number"):
            return ("string", text)
        if kind == "regex":
            return ("regex", text)
        if kind == "op" and text == "$":
            return ("field", self._primary() if not self._is("++", "--", "-") else self._unary())
        if kind == "op" and text == "(":
            node = self.expression()
            self._want(")")
            return ("group", node)
        if kind != "name" or text in WORDS:
            raise Unreadable
        if self._is("[") and kind == "name":
            self.at += 1
            key = self.expression()
            self._want("]")
            return ("element", text, key)
        if text in FUNCTIONS:
            return ("call", text, self._arguments() if self._is("(") else [])
        if self._is("(") and self.tokens[self.at - 1][1] == text and text not in _VARIABLES:
            raise Unreadable  # somebody's own function, or one with effects
        return ("name", text)

    def _arguments(self) -> list[Node]:
        self._want("(")
        found: list[Node] = []
        while not self._is(")"):
            found.append(self.expression())
            if self._is(","):
                self.at += 1
        self._want(")")
        return found

    # -- tokens -----------------------------------------------------------------------------------------------

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        if token[0] == "end":
            raise Unreadable
        self.at += 1
        return token

    def _is(self, *texts: str) -> bool:
        kind, text = self._peek()
        return kind in ("op", "name") and text in texts

    def _want(self, text: str) -> None:
        if not self._is(text):
            raise Unreadable
        self.at += 1

    def _ends(self) -> bool:
        return self._is(";", "}", "\n") or self._peek()[0] == "end"

    def _blanks(self, more: str = ";") -> None:
        while self._is("\n") or (more and self._is(";")):
            self.at += 1
