"""Reading commands: lists, pipelines, simple commands, redirections.

It is more patient than a shell: behind a syntax error it goes on with the next word, because what stands there may
be run in another way.
"""

from __future__ import annotations

from fusewire.shell.compound import BRACE, COMPOUND, DO, MISPLACED, CompoundReader
from fusewire.shell.lexer import BREAKS, DEPTH, Budget
from fusewire.shell.tree import (
    PARAMETER,
    QUOTED,
    TEXT,
    AndOr,
    Function,
    Group,
    Node,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Unread,
    While,
)
from fusewire.words import NAME_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Part, Word

_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))

_REDIRECTIONS = ("&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">")


def parse(text: str) -> Sequence:
    """What the line would run."""
    return Parser(text, 0, Budget(len(text))).sequence(frozenset(), "")


class Parser(CompoundReader):
    def sequence(self, stop: frozenset[str], closer: str) -> Sequence:
        """Commands up to a reserved word of `stop`, the closing bracket, or the end."""
        text, size = self.text, self.size
        items: list[tuple[Node, bool]] = []
        while True:
            self._skip_lines()
            if self.at >= size or text[self.at] == closer:
                break
            if ";;" in stop and text.startswith((";;", ";&"), self.at):
                break
            if text[self.at] in ";&|)" and not text.startswith("&>", self.at):
                self.at += 1
                continue
            word = self._reserved()
            if word in stop:
                break
            if word in MISPLACED:
                self.at += len(word)
                continue
            node = self._and_or()
            self._skip_blanks()
            items.append((node, text.startswith("&", self.at)))
            if ";;" in stop and text.startswith((";;", ";&"), self.at):
                break
            if self.at < size and text[self.at] in ";&":
                self.at += 1
        return Sequence(items)

    # -- lists and pipelines ----------------------------------------------------------------------------

    def _and_or(self) -> Node:
        first = self._pipeline()
        rest: list[tuple[str, Node]] = []
        while True:
            self._skip_blanks()
            operator = self.text[self.at : self.at + 2]
            if operator not in ("&&", "||"):
                return AndOr(first, rest) if rest else first
            self.at += 2
            self._skip_lines()
            rest.append((operator, self._pipeline()))

    def _pipeline(self) -> Node:
        negated = False
        while True:
            self._skip_blanks()
            word = self._reserved()
            if word not in ("!", "time"):
                break
            negated = negated is not (word == "!")
            self.at += len(word)
            self._skip_blanks()
            while word == "time" and self._reserved() in ("-p", "--"):
                self.at += 2
                self._skip_blanks()
        commands = [self._command()]
        while True:
            self._skip_blanks()
            if self.text[self.at : self.at + 1] != "|" or self.text.startswith("||", self.at):
                break
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self._skip_lines()
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(commands, negated)

    def _command(self) -> Node:
        self._skip_blanks()
        text = self.text
        if text[self.at : self.at + 1] == "(":
            return self._redirected(self._bracket())
        word = self._reserved()
        if word not in COMPOUND:
            return self._simple()
        if self.depth >= DEPTH:
            rest, self.at = text[self.at :], self.size
            return Unread(rest)
        self.depth += 1
        self.at += len(word)
        if word == "if":
            node: Node = self._if()
        elif word in ("while", "until"):
            condition = self.sequence(DO, "")
            node = While(condition, self._do_done(), word == "until")
        elif word in ("for", "select"):
            node = self._for()
        elif word == "case":
            node = self._case()
        elif word == "{":
            body = self.sequence(BRACE, "")
            self._expect("}")
            node = Group(body, False)
        elif word == "[[":
            node = self._double_bracket()
        elif word == "function":
            name = self._name()
            self._skip_blanks()
            if text.startswith("(", self.at):
                self._empty_brackets()
            self._skip_lines()
            node = Function(name, self._body())
        else:
            node = self._coproc()
        self.depth -= 1
        return self._redirected(node)

    def _redirected(self, node: Node) -> Node:
        while True:
            self._skip_blanks()
            redirect = self._redirect()
            if redirect is None:
                return node
            node.redirects.append(redirect)

    # -- simple commands --------------------------------------------------------------------------------

    def _simple(self) -> Node:
        text, size = self.text, self.size
        command = Simple()
        first = self.at
        while True:
            self._skip_blanks()
            if self.at >= size:
                break
            char = text[self.at]
            if char in "\n;|)" or (char == "&" and not text.startswith("&>", self.at)):
                break
            if char == "(":
                named = len(command.words) == 1 and not command.assignments and not command.redirects
                name = text[first : self.at].rstrip(" \t") if named else ""
                if named and self._empty_brackets():
                    self._skip_lines()
                    return Function(name, self._body())
                self.at += 1
                continue
            if char in "<>&" or char in "0123456789{":
                redirect = self._redirect()
                if redirect is not None:
                    command.redirects.append(redirect)
                    continue
            declares = not command.words or command.words[0] in _DECLARATIONS
            if not declares or not self._assignment(command):
                command.words.append(self.word())
        return command

    def _assignment(self, command: Simple) -> bool:
        """`name=value`, `name[1]+=value`, `name=(a b)`."""
        text, start = self.text, self.at
        at = start
        while at < self.size and text[at] in NAME_CHARS:
            at += 1
        if at == start or text[start] in "0123456789":
            return False
        subscript: list[Part] = []
        if text.startswith("[", at):
            if self.budget.left < 0:
                return False
            pending = self.pending
            self.at = at + 1
            closed = self.balanced(subscript, "[", "]")
            at = self.at
            if not closed or not text.startswith(("=", "+="), at):
                self.budget.left -= at - start
                self.at, self.pending = start, pending
                return False
        name = text[start:at]
        appended = text.startswith("+=", at)
        if not appended and text[at : at + 1] != "=":
            return False
        self.at = at + 1 + appended
        value: Word | list[Word] = ""
        if text.startswith("(", self.at):
            value = self._array()
        elif not self._breaks():
            value = self.word()
        if any(part[0] > PARAMETER for part in subscript):
            command.assignments.append(("_", False, tuple(subscript)))
        command.assignments.append((name, appended, value))
        return True

    def _array(self) -> list[Word]:
        self.at += 1
        words: list[Word] = []
        while True:
            self._skip_lines()
            char = self.text[self.at : self.at + 1]
            if char in (")", ""):
                self.at += 1
                return words
            if self._breaks():
                self.at += 1
            else:
                words.append(self._keyed() if char == "[" else self.word())

    def _keyed(self) -> Word:
        """An element of an array: `[a b]=c` is one word, and its value is what counts."""
        start = self.at
        parts: list[Part] = []
        self.at += 1
        closed = self.budget.left >= 0 and self.balanced(parts, "[", "]")
        key = self.text[start : self.at]
        if closed and self.text.startswith("=", self.at):
            self.at += 1
            rest = "" if self._breaks() else self.word()
            return (*self.hidden(parts), *(rest if isinstance(rest, tuple) else ((QUOTED, rest),)))
        if closed and any(char in BREAKS for char in key):
            return ((TEXT, key), *self.hidden(parts))
        self.budget.left -= self.at - start
        self.at = start
        return self.word()

    # -- redirections -----------------------------------------------------------------------------------

    def _redirect(self) -> Redirect | None:
        """The redirection that starts here, with its target; None (and not moved) if there is none."""
        text, start = self.text, self.at
        at = self._numbered(start)
        if at >= self.size or text[at] not in "<>&" or (text[at] == "&" and at > start):
            return None
        operator = next((mark for mark in _REDIRECTIONS if text.startswith(mark, at)), "")
        if not operator or (operator in "<>" and text.startswith("(", at + 1)):
            return None
        redirect = Redirect(operator, text[start:at], "")
        self.at = at + len(operator)
        self._skip_blanks()
        begin = self.at
        if self._breaks():
            return redirect
        target = self.word()
        if operator in ("<<", "<<-"):
            quoted = any(mark in text[begin : self.at] for mark in "'\"\\")
            delimiter = target if isinstance(target, str) else "".join(map(_written, target))
            self.pending.append((redirect, delimiter, quoted, operator == "<<-"))
        else:
            redirect.target = target
        return redirect


def _written(part: Part) -> str:
    text: str = part[1] if part[0] <= QUOTED else part[-1]
    return text
