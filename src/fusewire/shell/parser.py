"""Reading commands: lists, pipelines, groups, `if for while case`, functions, redirections.

It is more patient than a shell: behind a syntax error it goes on with the next word, because what stands there may
be run in another way. `complete` tells what `bash -n` would say.
"""

from __future__ import annotations

from fusewire.shell.lexer import BREAKS, DEPTH, Budget, WordReader
from fusewire.shell.tree import (
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
    Unread,
    While,
)
from fusewire.words import NAME_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Word

_NONE: frozenset[str] = frozenset()
_THEN, _FI, _DO, _DONE, _BRACE = map(frozenset, (("then",), ("elif", "else", "fi"), ("do",), ("done",), ("}",)))
_ESAC = frozenset(("esac", ";;"))

#: Reserved words that cannot start a command.
_MISPLACED = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", "in"))

_COMPOUND = frozenset(("if", "while", "until", "for", "select", "case", "{", "[[", "function", "coproc"))

_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))

_REDIRECTIONS = ("&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">")


def parse(text: str) -> tuple[Sequence, bool]:
    """What the line would run, and whether it is a complete command."""
    reader = Parser(text, 0, Budget(len(text)))
    node = reader.sequence(_NONE, "")
    return node, reader.complete


class Parser(WordReader):
    def sequence(self, stop: frozenset[str], closer: str) -> Sequence:
        """Commands up to a reserved word of `stop`, the closing bracket, or the end."""
        text, size = self.text, self.size
        items: list[tuple[Node, bool]] = []
        while True:
            self._skip_lines()
            if self.at >= size:
                break
            char = text[self.at]
            if char == closer:
                break
            if char in ";&|)" and not text.startswith("&>", self.at):
                if ";;" in stop and text.startswith((";;", ";&"), self.at):
                    break
                self.complete = False
                self.at += 1
                continue
            word = self._reserved()
            if word in stop:
                break
            if word in _MISPLACED and word != "in":
                self.complete = False
                self.at += len(word)
                continue
            node = self._and_or()
            self._skip_blanks()
            background = False
            if self.at < size and text[self.at] in ";&":
                if ";;" in stop and text.startswith((";;", ";&"), self.at):
                    items.append((node, False))
                    break
                background = text[self.at] == "&"
                self.at += 1
            items.append((node, background))
        if not items and (stop or closer) and stop != _ESAC and closer != ")":
            self.complete = False
        return Sequence(items)

    # -- blanks -----------------------------------------------------------------------------------------

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
        """The plain word that starts here, without moving; empty if it is quoted or long."""
        text, at = self.text, self.at
        end = at
        limit = min(at + 9, self.size)
        while end < limit and text[end] not in BREAKS:
            end += 1
        if end < self.size and text[end] not in BREAKS:
            return ""
        return text[at:end]

    def _expect(self, word: str) -> bool:
        self._skip_lines()
        if self._reserved() == word:
            self.at += len(word)
            return True
        self.complete = False
        return False

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
            self._require_command()
            rest.append((operator, self._pipeline()))

    def _require_command(self) -> None:
        at = self.at
        if at >= self.size or (self.text[at] in ";&|)" and not self.text.startswith("&>", at)):
            self.complete = False

    def _pipeline(self) -> Node:
        negated = False
        while True:
            self._skip_blanks()
            word = self._reserved()
            if word == "!":
                negated = not negated
                self.at += 1
            elif word == "time":
                self.at += 4
                self._skip_blanks()
                for option in ("-p", "--"):
                    if self._reserved() == option:
                        self.at += 2
                        self._skip_blanks()
            else:
                break
        commands = [self._command()]
        while True:
            self._skip_blanks()
            if self.text[self.at : self.at + 1] != "|" or self.text.startswith("||", self.at):
                break
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self._skip_lines()
            self._require_command()
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(commands, negated)

    def _command(self) -> Node:
        self._skip_blanks()
        text = self.text
        if text[self.at : self.at + 1] == "(":
            return self._redirected(self._bracket())
        word = self._reserved()
        if word not in _COMPOUND:
            return self._simple()
        if self.depth >= DEPTH:
            self.complete = False
            rest, self.at = text[self.at :], self.size
            return Unread(rest)
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
            body = self.sequence(_BRACE, "")
            self._expect("}")
            node = Group(body, False)
        elif word == "[[":
            node = self._double_bracket()
        elif word == "function":
            self._skip_blanks()
            name = self._plain(self.word())
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
                break
            node.redirects.append(redirect)
        following = self.text[self.at : self.at + 1]
        if following and following not in "\n;&|)" and self._reserved() not in _MISPLACED:
            self.complete = False
        return node

    # -- compound commands ------------------------------------------------------------------------------

    def _bracket(self) -> Node:
        """`( ... )`, or `((...))` if it is arithmetic."""
        if self.text.startswith("((", self.at):
            end = self.arithmetic_end(self.at + 2)
            if end >= 0:
                inside = self.inner(self.text[self.at + 2 : end])
                self.at = end + 2
                return Test([inside.expanded_text()] if self.budget.left >= 0 else [])
        self.at += 1
        body = self.nested()
        if isinstance(body, Sequence) and not body.items:
            self.complete = False
        return Group(body, True)

    def _if(self) -> Node:
        branches: list[tuple[Node, Node]] = []
        otherwise: Node | None = None
        while True:
            condition = self.sequence(_THEN, "")
            self._expect("then")
            branches.append((condition, self.sequence(_FI, "")))
            word = self._reserved()
            self.at += len(word) if word in _FI else 0
            if word == "elif":
                continue
            if word == "else":
                otherwise = self.sequence(frozenset(("fi",)), "")
                self._expect("fi")
            elif word != "fi":
                self.complete = False
            return If(branches, otherwise)

    def _do_done(self) -> Node:
        self._skip_lines()
        if self._reserved() == "{":
            self.at += 1
            body = self.sequence(_BRACE, "")
            self._expect("}")
            return body
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
            name = self._plain(self.word())
            if not name:
                self.complete = False
            self._skip_lines()
            if self._reserved() == "in":
                self.at += 2
                words = self._words_of_line()
        self._skip_blanks()
        if self.text[self.at : self.at + 1] == ";":
            self.at += 1
        return For(name, words, self._do_done())

    def _words_of_line(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= self.size or self.text[self.at] in "\n;":
                return words
            if self.text.startswith(("<(", ">("), self.at):
                words.append(self.process())
            elif self.text[self.at] in BREAKS:
                self.complete = False
                self.at += 1
                if self.text[self.at - 1] in "&|)":
                    return words
            else:
                words.append(self.word())

    def _case(self) -> Node:
        self._skip_blanks()
        word = self.word()
        self._expect("in")
        branches: list[tuple[list[Word], Node, str]] = []
        while True:
            self._skip_lines()
            if self.at >= self.size:
                self.complete = False
                break
            if self._reserved() == "esac":
                self.at += 4
                break
            patterns = self._patterns()
            body = self.sequence(_ESAC, "")
            terminator = next((mark for mark in (";;&", ";;", ";&") if self.text.startswith(mark, self.at)), "")
            self.at += len(terminator)
            branches.append((patterns, body, terminator))
        return Case(word, branches)

    def _patterns(self) -> list[Word]:
        """`(a|b)` in front of a branch."""
        if self.text[self.at] == "(":
            self.at += 1
        patterns: list[Word] = []
        while True:
            self._skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char == ")":
                self.at += 1
                self.complete = self.complete and bool(patterns)
                return patterns
            if char == "|":
                self.at += 1
            elif not char or char in BREAKS:
                self.complete = False
                self.at += 1
                return patterns
            else:
                patterns.append(self.word())

    def _double_bracket(self) -> Node:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= self.size:
                self.complete = False
                return Test(words)
            if self._reserved() == "]]":
                self.at += 2
                return Test(words)
            if self.text[self.at] in BREAKS:
                self.at += 1
                if self.text[self.at - 1] == ";":
                    self.complete = False
                    return Test(words)
            else:
                words.append(self.word())

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

    def _body(self) -> Node:
        if self.depth >= DEPTH:
            self.complete = False
            rest, self.at = self.text[self.at :], self.size
            return Unread(rest)
        self.depth += 1
        node = self._command()
        self.depth -= 1
        if isinstance(node, Simple):
            self.complete = False
        return node

    def _coproc(self) -> Node:
        self._skip_blanks()
        start = self.at
        name = self._plain(self.word()) if self.at < self.size and self.text[self.at] not in BREAKS else ""
        self._skip_blanks()
        named = self._reserved() in _COMPOUND or self.text[self.at : self.at + 1] == "("
        if not name or name in _COMPOUND or not named:
            self.at = start
        self._require_command()
        return self._command()

    # -- simple commands --------------------------------------------------------------------------------

    def _simple(self) -> Node:
        text, size = self.text, self.size
        command = Simple()
        declares = False
        while True:
            self._skip_blanks()
            if self.at >= size:
                break
            char = text[self.at]
            if char in "\n;|)" or (char == "&" and not text.startswith("&>", self.at)):
                break
            if char == "(":
                name = command.words[0] if len(command.words) == 1 and not command.assignments else None
                if isinstance(name, str) and not command.redirects and self._empty_brackets():
                    self._skip_lines()
                    return Function(name, self._body())
                self.complete = False
                self.at += 1
                continue
            if char in "<>&" or char in "0123456789{":
                redirect = self._redirect()
                if redirect is not None:
                    command.redirects.append(redirect)
                    continue
                if char in "<>":  # a process substitution
                    command.words.append(self.process())
                    continue
            if (declares or not command.words) and self._assignment(command):
                continue
            if not command.words:
                command.words.append(self.word())
                declares = command.words[0] in _DECLARATIONS
            else:
                command.words.append(self.word())
        return command

    def _assignment(self, command: Simple) -> bool:
        text, start = self.text, self.at
        at = start
        while at < self.size and text[at] in NAME_CHARS:
            at += 1
        if at == start or text[start] in "0123456789":
            return False
        if text[at : at + 1] == "[":
            end = text.find("]", at)
            if end < 0 or "\n" in text[at:end] or " " in text[at:end]:
                return False
            at = end + 1
        name = text[start:at]
        appended = text.startswith("+=", at)
        if not appended and text[at : at + 1] != "=":
            return False
        self.at = at + 1 + appended
        value: Word | list[Word]
        if text[self.at : self.at + 1] == "(":
            value = self._array()
        elif self.at < self.size and text[self.at] in BREAKS:
            value = ""
        else:
            value = self.word()
        command.assignments.append((name, appended, value))
        return True

    def _array(self) -> list[Word]:
        self.at += 1
        words: list[Word] = []
        while True:
            self._skip_lines()
            char = self.text[self.at : self.at + 1]
            if char == ")":
                self.at += 1
                return words
            if not char:
                self.complete = False
                return words
            if self.text.startswith(("<(", ">("), self.at):
                words.append(self.process())
            elif char in BREAKS:
                self.complete = False
                self.at += 1
            else:
                words.append(self.word())

    def _plain(self, word: Word) -> str:
        return word if isinstance(word, str) else ""

    # -- redirections -----------------------------------------------------------------------------------

    def _redirect(self) -> Redirect | None:
        """The redirection that starts here, with its target; None (and not moved) if there is none."""
        text, start = self.text, self.at
        at = start
        while at < self.size and text[at] in "0123456789":
            at += 1
        if at == start and text[at : at + 1] == "{":
            end = at + 1
            while end < self.size and text[end] in NAME_CHARS:
                end += 1
            at = end + 1 if end > at + 1 and text[end : end + 1] == "}" else at
        if at >= self.size or text[at] not in "<>&" or (text[at] == "&" and at > start):
            return None
        operator = next((mark for mark in _REDIRECTIONS if text.startswith(mark, at)), "")
        if not operator or (operator in "<>" and text.startswith("(", at + 1)):
            return None
        redirect = Redirect(operator, text[start:at], "")
        self.at = at + len(operator)
        self._skip_blanks()
        begin = self.at
        if begin >= self.size or text[begin] in BREAKS:
            if text.startswith(("<(", ">("), begin):
                redirect.target = self.process()
            else:
                self.complete = False
            return redirect
        target = self.word()
        if operator in ("<<", "<<-"):
            raw = text[begin : self.at]
            quoted = any(mark in raw for mark in "'\"\\")
            self.pending.append((redirect, target if isinstance(target, str) else raw, quoted, operator == "<<-"))
        else:
            redirect.target = target
        return redirect
