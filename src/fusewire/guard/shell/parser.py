"""Parse commands: lists, pipelines, compound and simple commands, redirections.

It is more patient than a shell: behind a syntax error it goes on with the next word, because what stands there may
be run in another way.
"""

from __future__ import annotations

from fusewire.guard.shell.lexer import BREAKS, DEPTH, SUBSCRIPT, Budget, Lexer
from fusewire.guard.shell.tree import (
    QUOTED,
    AndOr,
    Case,
    For,
    Function,
    Group,
    If,
    Node,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Test,
    While,
)
from fusewire.util.quoting import NAME_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.shell.tree import Word

_THEN, _FI, _DO, _DONE, _BRACE = map(frozenset, (("then",), ("elif", "else", "fi"), ("do",), ("done",), ("}",)))
_ESAC = frozenset(("esac", ";;"))

#: Reserved words that cannot start a command.
_MISPLACED = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", "in", "]]"))

_COMPOUND = frozenset(("if", "while", "until", "for", "select", "case", "{", "[[", "function"))

#: Words in front of a pipeline.
_PREFIXES = ("!", "time", "coproc")

_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))

_REDIRECTIONS = ("&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">")


def parse(text: str) -> Sequence:
    """What the line would run."""
    return Parser(text, 0, Budget(len(text))).sequence(frozenset(), "")


class Parser(Lexer):
    # -- blanks and reserved words ----------------------------------------------------------------------

    def _skip_blanks(self) -> None:
        text, size = self.text, self.size
        while self.at < size:
            char = text[self.at]
            if char == " " or char == "\t":
                self.at += 1
            elif char == "\\" and text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end
            else:
                return

    def _skip_lines(self) -> None:
        while True:
            self._skip_blanks()
            if self.at >= self.size or self.text[self.at] != "\n":
                return
            self.at += 1
            if self.pending:
                self.read_heredocs()

    def _reserved(self) -> str:
        """The plain word that starts here, without moving; empty if it is long."""
        text, end = self.text, self.at
        limit = min(end + 9, self.size)
        while end < limit and text[end] not in BREAKS:
            end += 1
        if end < self.size and (text[end] not in BREAKS or text.startswith(("<(", ">("), end)):
            return ""
        return text[self.at : end]

    def _expect(self, word: str) -> None:
        self._skip_lines()
        if self._reserved() == word:
            self.at += len(word)

    def _breaks(self) -> bool:
        """Whether no word can start here."""
        at = self.at
        return at >= self.size or (self.text[at] in BREAKS and not self.text.startswith(("<(", ">("), at))

    # -- lists and pipelines ----------------------------------------------------------------------------

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
            if word in _MISPLACED:
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
        self._skip_blanks()
        while (word := self._reserved()) in _PREFIXES:
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

    # -- compound commands ------------------------------------------------------------------------------

    def _command(self) -> Node:
        self._skip_blanks()
        if self.text[self.at : self.at + 1] == "(":
            return self._redirected(self._bracket())
        word = self._reserved()
        if word not in _COMPOUND:
            return self._simple()
        if self.depth >= DEPTH:
            return self.unread()
        self.depth += 1
        self.at += len(word)
        if word == "if":
            node: Node = self._if()
        elif word in ("while", "until"):
            condition = self.sequence(_DO, "")
            node = While(condition, self._do_done(), word == "until")
        elif word in ("for", "select"):
            node = self._for()
        elif word == "case":
            node = self._case()
        elif word == "{":
            node = Group(self._braced(), False)
        elif word == "[[":
            node = self._double_bracket()
        else:
            name = self._name()
            self._skip_blanks()
            if self.text.startswith("(", self.at):
                self._empty_brackets()
            node = self._function(name)
        self.depth -= 1
        return self._redirected(node)

    def _redirected(self, node: Node) -> Node:
        while True:
            self._skip_blanks()
            redirect = self._redirect()
            if redirect is None:
                return node
            node.redirects.append(redirect)

    def _bracket(self) -> Node:
        """`( ... )`, or `((...))` if it is arithmetic."""
        if self.text.startswith("((", self.at):
            expression = self.expression()
            if expression is not None:
                return Test([expression])
        self.at += 1
        return Group(self.nested(), True)

    def _braced(self) -> Node:
        body = self.sequence(_BRACE, "")
        self._expect("}")
        return body

    def _if(self) -> Node:
        branches: list[tuple[Node, Node]] = []
        otherwise = None
        while True:
            condition = self.sequence(_THEN, "")
            self._expect("then")
            branches.append((condition, self.sequence(_FI, "")))
            word = self._reserved()
            if word not in ("elif", "else"):
                break
            self.at += 4
            if word == "else":
                otherwise = self.sequence(frozenset(("fi",)), "")
                break
        self._expect("fi")
        return If(branches, otherwise)

    def _do_done(self) -> Node:
        self._skip_lines()
        if self._reserved() == "{":
            self.at += 1
            return self._braced()
        self._expect("do")
        body = self.sequence(_DONE, "")
        self._expect("done")
        return body

    def _for(self) -> Node:
        self._skip_blanks()
        name, words = "", None
        if self.text.startswith("((", self.at):
            node = self._bracket()
            words = node.words if isinstance(node, Test) else []
        else:
            name = self._name()
            self._skip_lines()
            if self._reserved() == "in":
                self.at += 2
                words = self._words_until("\n;&|)")
        self._skip_blanks()
        self.at += self.text.startswith(";", self.at)
        return For(name, words, self._do_done())

    def _name(self) -> str:
        """The name of a loop's variable or of a function: any word, as it is written."""
        self._skip_blanks()
        start = self.at
        self.word()
        return self.text[start : self.at]

    def _words_until(self, ends: str) -> list[Word]:
        """The words before one of these characters; operators that are none of them are passed over."""
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= self.size or self.text[self.at] in ends:
                return words
            if self._breaks():
                self.at += 1
            else:
                words.append(self.word())

    def _case(self) -> Node:
        self._skip_blanks()
        word = self.word()
        self._expect("in")
        branches: list[tuple[list[Word], Node]] = []
        while True:
            self._skip_lines()
            if self.at >= self.size or self._reserved() == "esac":
                self.at = min(self.at + 4, self.size)
                return Case(word, branches)
            self.at += self.text[self.at] == "("
            patterns = self._words_until("\n;)")
            self.at += 1
            branches.append((patterns, self.sequence(_ESAC, "")))
            self.at += next((len(mark) for mark in (";;&", ";;", ";&") if self.text.startswith(mark, self.at)), 0)

    def _double_bracket(self) -> Node:
        """The words of `[[ ... ]]`, in which brackets, `|` and `<` are operators."""
        words: list[Word] = []
        while True:
            self._skip_lines()
            if self.at >= self.size or self._reserved() == "]]":
                self.at = min(self.at + 2, self.size)
                return Test(words)
            if self._breaks():
                self.at += 1
                if self.text[self.at - 1] == ";":
                    return Test(words)
            else:
                words.append(self.word())

    # -- functions and simple commands ------------------------------------------------------------------

    def _empty_brackets(self) -> bool:
        """`()` behind a function's name; passed if it is there."""
        start = self.at
        self.at += 1
        self._skip_blanks()
        if self.text[self.at : self.at + 1] == ")":
            self.at += 1
            return True
        self.at = start
        return False

    def _function(self, name: str) -> Node:
        self._skip_lines()
        if self.depth >= DEPTH:
            return self.unread()
        self.depth += 1
        body = self._command()
        self.depth -= 1
        return Function(name, body)

    def _simple(self) -> Node:
        text, size = self.text, self.size
        command = Simple()
        first = self.at
        while True:
            self._skip_blanks()
            if self.at >= size:
                return command
            char = text[self.at]
            if char in "\n;|)" or (char == "&" and not text.startswith("&>", self.at)):
                return command
            if char == "(":
                named = len(command.words) == 1 and not command.assignments and not command.redirects
                name = text[first : self.at].rstrip(" \t") if named else ""
                if named and self._empty_brackets():
                    return self._function(name)
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

    def _assignment(self, command: Simple) -> bool:
        """`name=value`, `name[1]+=value`, `name=(a b)`."""
        text, start = self.text, self.at
        at = start
        while at < self.size and text[at] in NAME_CHARS:
            at += 1
        if at == start or text[start] in "0123456789":
            return False
        if text.startswith("[", at):
            at = text.find("]", at, at + SUBSCRIPT) + 1 or at
        appended = text.startswith("+=", at)
        if not appended and text[at : at + 1] != "=":
            return False
        name = text[start:at]
        self.at = at + 1 + appended
        value: Word | list[Word] = ""
        if text.startswith("(", self.at):
            value = self._array()
        elif not self._breaks():
            value = self.word()
        command.assignments.append((name, appended, value))
        return True

    def _array(self) -> list[Word]:
        self.at += 1
        words: list[Word] = []
        while True:
            self._skip_lines()
            if self.text[self.at : self.at + 1] in (")", ""):
                self.at += 1
                return words
            if self._breaks():
                self.at += 1
            else:
                words.append(self.word())

    # -- redirections -----------------------------------------------------------------------------------

    def _redirect(self) -> Redirect | None:
        """The redirection that starts here, with its target; None (and not moved) if there is none."""
        text, start = self.text, self.at
        at = self._behind_descriptor()
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
            whole = (
                target
                if isinstance(target, str)
                else "".join(part[1] if part[0] <= QUOTED else part[-1] for part in target)
            )
            self.pending.append((redirect, whole, quoted, operator == "<<-"))
        else:
            redirect.target = target
        return redirect

    def _behind_descriptor(self) -> int:
        """Behind the descriptor that a redirection may start with: `2`, `{name}`; where it stands if there is none."""
        text, start = self.text, self.at
        at = start
        while at < self.size and text[at] in "0123456789":
            at += 1
        if at == start and text.startswith("{", at):
            at += 1
            while at < self.size and text[at] in NAME_CHARS:
                at += 1
            at = at + 1 if at > start + 1 and text.startswith("}", at) else start
        return at if text[at : at + 1] in ("<", ">") else start
