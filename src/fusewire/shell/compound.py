"""Reading compound commands: brackets, `if for while case`, `[[ ... ]]`, the bodies of functions and coprocesses."""

from __future__ import annotations

from fusewire.shell.lexer import BREAKS, DEPTH, WordReader
from fusewire.shell.tree import QUOTED, Case, For, Function, Group, If, Node, Sequence, Test, Unread
from fusewire.words import NAME_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Part, Word

_THEN, _FI, DO, _DONE, BRACE = map(frozenset, (("then",), ("elif", "else", "fi"), ("do",), ("done",), ("}",)))
ESAC = frozenset(("esac", ";;"))

#: Reserved words that cannot start a command.
MISPLACED = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", "in", "]]"))

COMPOUND = frozenset(("if", "while", "until", "for", "select", "case", "{", "[[", "function", "coproc"))

#: Words that start a compound command, but neither the body of a function nor a coprocess.
_NO_BODY = frozenset(("function", "coproc"))

_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknoprstuvwxzGLNORS")
_BINARY = frozenset("= == != =~ -eq -ne -lt -le -gt -ge -nt -ot -ef".split())

_ENDS = BREAKS | {""}


class CompoundReader(WordReader):
    def _command(self) -> Node:
        raise NotImplementedError

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
        """The plain word that starts here, without moving; empty if it is quoted or long."""
        text, at = self.text, self.at
        end = at
        limit = min(at + 9, self.size)
        while end < limit and text[end] not in BREAKS:
            end += 1
        if "\\" in text[at:end]:
            end = text.find("\\", at)
            behind = end
            while text.startswith("\\\n", behind):
                behind += 2
            return text[at:end] if end > at and behind > end and text[behind : behind + 1] in _ENDS else ""
        if end < self.size and (text[end] not in BREAKS or text.startswith(("<(", ">("), end)):
            return ""
        return text[at:end]

    def _expect(self, word: str) -> bool:
        self._skip_lines()
        if self._reserved() == word:
            self.at += len(word)
            return True
        self.complete = False
        return False

    def _require_command(self) -> None:
        at = self.at
        ends = at >= self.size or (self.text[at] == "\\" and at + 1 == self.size)
        if ends or (self.text[at] in "\n;&|)" and not self.text.startswith("&>", at)):
            self.complete = False

    def _breaks(self) -> bool:
        """Whether no word can start here."""
        at = self.at
        return at >= self.size or (self.text[at] in BREAKS and not self.text.startswith(("<(", ">("), at))

    def _numbered(self, start: int) -> int:
        """Behind the descriptor that a redirection may start with: `2`, `{name}`; `start` if there is none."""
        text, at = self.text, start
        while at < self.size and text[at] in "0123456789":
            at += 1
        if at == start and text.startswith("{", at):
            at += 1
            while at < self.size and text[at] in NAME_CHARS:
                at += 1
            at = at + 1 if at > start + 1 and text.startswith("}", at) else start
        return at if at < self.size and text[at] in "<>" and not text.startswith("(", at + 1) else start

    # -- compound commands ------------------------------------------------------------------------------

    def _bracket(self) -> Node:
        """`( ... )`, or `((...))` if it is arithmetic."""
        if self.text.startswith("((", self.at):
            expression = self.expression()
            if expression is not None:
                return Test([expression])
        self.at += 1
        body = self.nested(subshell=True)
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

    def _do_done(self, braces: bool) -> Node:
        self._skip_lines()
        if braces and self._reserved() == "{":
            self.at += 1
            body = self.sequence(BRACE, "")
            self._expect("}")
            return body
        self._expect("do")
        body = self.sequence(_DONE, "")
        self._expect("done")
        return body

    def _for(self, takes_expressions: bool) -> Node:
        self._skip_blanks()
        name, words = "", None
        if self.text.startswith("((", self.at):
            start = self.at + 2
            node = self._bracket()
            words = node.words if isinstance(node, Test) else []
            if not takes_expressions or not words or self.text.count(";", start, self.at) != 2:
                self.complete = False
            self._skip_blanks()
            self.at += self.text.startswith(";", self.at)
            return For(name, words, self._do_done(braces=True))
        name = self._name()
        self._skip_blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
            return For(name, None, self._do_done(braces=True))
        self._skip_lines()
        if self._reserved() == "in":
            self.at += 2
            words = self._words_of_line()
            self.at += self.text.startswith(";", self.at)
        return For(name, words, self._do_done(braces=True))

    def _name(self) -> str:
        """The name of a loop's variable or of a function: any word, as it is written."""
        self._skip_blanks()
        start = self.at
        word = self.word()
        if self.at == start:
            self.complete = False
        return word if isinstance(word, str) else self.text[start : self.at]

    def _words_of_line(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= self.size or self.text[self.at] in "\n;":
                return words
            if self._breaks():
                self.complete = False
                self.at += 1
                if self.text[self.at - 1] in "&|)":
                    return words
            else:
                words.append(self.word())

    def _case(self) -> Node:
        self._skip_blanks()
        start = self.at
        word = self.word()
        self.complete = self.complete and self.at > start
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
            body = self.sequence(ESAC, "")
            if self._reserved() != "esac" and not self.text.startswith((";;", ";&"), self.at):
                self.complete = False
            terminator = next((mark for mark in (";;&", ";;", ";&") if self.text.startswith(mark, self.at)), "")
            self.at += len(terminator)
            branches.append((patterns, body, terminator))
        return Case(word, branches)

    def _patterns(self) -> list[Word]:
        """`(a|b)` in front of a branch."""
        if self.text[self.at] == "(":
            self.at += 1
        patterns: list[Word] = []
        wanted = True
        while True:
            self._skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char == ")":
                self.at += 1
                self.complete = self.complete and not wanted
                return patterns
            if char == "|":
                self.at += 1
                self.complete = self.complete and not wanted
                wanted = True
            elif self._breaks():
                self.complete = False
                self.at += 1
                return patterns
            else:
                self.complete = self.complete and wanted
                wanted = False
                patterns.append(self.word())

    # -- conditions -------------------------------------------------------------------------------------

    def _double_bracket(self) -> Node:
        """`[[ ... ]]`; behind what bash would not take, the words up to `]]` are still read."""
        words: list[Word] = []
        if not self._either(words, 0) or self._reserved() != "]]":
            self.complete = False
        while True:
            self._skip_blanks()
            if self.at >= self.size:
                self.complete = False
                return Test(words)
            if self._reserved() == "]]":
                self.at += 2
                return Test(words)
            if self._breaks():
                self.at += 1
                if self.text[self.at - 1] == ";":
                    return Test(words)
            else:
                words.append(self.word())

    def _either(self, words: list[Word], depth: int) -> bool:
        """Terms with `&&` and `||` between them; False where bash would stop."""
        while self._term(words, depth):
            self._skip_lines()
            if self.text[self.at : self.at + 2] not in ("&&", "||"):
                return True
            self.at += 2
        return False

    def _term(self, words: list[Word], depth: int) -> bool:
        self._skip_lines()
        while self._reserved() == "!":
            self.at += 1
            self._skip_lines()
        if self.text.startswith("(", self.at):
            self.at += 1
            if depth >= DEPTH or not self._either(words, depth + 1) or not self.text.startswith(")", self.at):
                return False
            self.at += 1
            return True
        first = self._operand(words)
        if not first:
            return False
        self._skip_blanks()
        if first in _UNARY:
            return bool(self._operand(words))
        if self.text[self.at : self.at + 2] in ("&&", "||") or self.text.startswith(")", self.at):
            return True
        if self._reserved() == "]]":
            return True
        if self.text[self.at : self.at + 1] in ("<", ">") and self._breaks():
            self.at += 1
            self._skip_blanks()
            return bool(self._operand(words))
        operator = self._operand(words)
        if operator not in _BINARY:
            return False
        self._skip_blanks()
        if operator == "=~":
            return self._regex(words)
        self.patterns = operator in ("=", "==", "!=")
        found = bool(self._operand(words))
        self.patterns = False
        return found

    def _operand(self, words: list[Word]) -> str:
        """One word of a condition as it is written; empty if there is none."""
        start = self.at
        if self._breaks() or self._reserved() == "]]" or self._numbered(start) > start:
            return ""
        words.append(self.word())
        return self.text[start : self.at].replace("\\\n", "")

    def _regex(self, words: list[Word]) -> bool:
        """The word behind `=~`: brackets and `|` belong to it."""
        parts: list[Part] = []
        start = self.at
        if self._reserved() == "]]" or self._numbered(start) > start:
            return False
        while self.at < self.size:
            char = self.text[self.at]
            if char == "(":
                self.at += 1
                if not self.balanced(parts, "(", ")"):
                    self.complete = False
            elif char == "|":
                self.at += 1
            elif self._breaks():
                break
            else:
                word = self.word()
                parts += word if isinstance(word, tuple) else ((QUOTED, word),)
        words.append(tuple(parts))
        return self.at > start

    # -- functions and coprocesses ----------------------------------------------------------------------

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
        if not self._starts_body():
            self.complete = False
        self.depth += 1
        node = self._command()
        self.depth -= 1
        return node

    def _starts_body(self) -> bool:
        word = self._reserved()
        return (word in COMPOUND and word not in _NO_BODY) or self.text.startswith("(", self.at)

    def _coproc(self) -> Node:
        self._skip_blanks()
        if self._reserved() in _NO_BODY or self._reserved() in MISPLACED:
            self.complete = False
        if self._starts_body():
            return self._command()
        self._require_command()
        start = self.at
        if not self._breaks():
            self.word()
            self._skip_blanks()
            word = self._reserved()
            if word in _NO_BODY or word in MISPLACED or word == "!":
                self.complete = False
            named = "=" not in self.text[start : self.at]
            if not named or (word not in COMPOUND and not self.text.startswith("(", self.at)):
                self.at = start
        node = self._command()
        if isinstance(node, Function):
            self.complete = False
        return node
