"""Reading compound commands: brackets, `if for while case`, `[[ ... ]]`, the bodies of functions and coprocesses."""

from __future__ import annotations

from fusewire.shell.lexer import BREAKS, DEPTH, WordReader
from fusewire.shell.tree import QUOTED, Case, For, Group, If, Node, Test, Unread
from fusewire.words import NAME_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Part, Word

_THEN, _FI, DO, _DONE, BRACE = map(frozenset, (("then",), ("elif", "else", "fi"), ("do",), ("done",), ("}",)))
ESAC = frozenset(("esac", ";;"))

#: Reserved words that cannot start a command.
MISPLACED = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", "in", "]]"))

COMPOUND = frozenset(("if", "while", "until", "for", "select", "case", "{", "[[", "function", "coproc"))

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

    def _expect(self, word: str) -> None:
        self._skip_lines()
        if self._reserved() == word:
            self.at += len(word)

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
        return Group(self.nested(subshell=True), True)

    def _if(self) -> Node:
        branches: list[tuple[Node, Node]] = []
        while True:
            condition = self.sequence(_THEN, "")
            self._expect("then")
            branches.append((condition, self.sequence(_FI, "")))
            word = self._reserved()
            self.at += len(word) if word in _FI else 0
            if word == "elif":
                continue
            if word != "else":
                return If(branches, None)
            otherwise = self.sequence(frozenset(("fi",)), "")
            self._expect("fi")
            return If(branches, otherwise)

    def _do_done(self) -> Node:
        self._skip_lines()
        if self._reserved() == "{":
            self.at += 1
            body = self.sequence(BRACE, "")
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
            name = self._name()
            self._skip_lines()
            if self._reserved() == "in":
                self.at += 2
                words = self._words_of_line()
        self._skip_blanks()
        self.at += self.text.startswith(";", self.at)
        return For(name, words, self._do_done())

    def _name(self) -> str:
        """The name of a loop's variable or of a function: any word, as it is written."""
        self._skip_blanks()
        start = self.at
        word = self.word()
        return word if isinstance(word, str) else self.text[start : self.at]

    def _words_of_line(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= self.size or self.text[self.at] in "\n;":
                return words
            if self._breaks():
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
            if self.at >= self.size or self._reserved() == "esac":
                self.at = min(self.at + 4, self.size)
                return Case(word, branches)
            patterns = self._patterns()
            body = self.sequence(ESAC, "")
            terminator = next((mark for mark in (";;&", ";;", ";&") if self.text.startswith(mark, self.at)), "")
            self.at += len(terminator)
            branches.append((patterns, body, terminator))

    def _patterns(self) -> list[Word]:
        """`(a|b)` in front of a branch."""
        self.at += self.text[self.at] == "("
        patterns: list[Word] = []
        while True:
            self._skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char != "|" and self._breaks():
                self.at += 1
                return patterns
            if char == "|":
                self.at += 1
            else:
                patterns.append(self.word())

    def _double_bracket(self) -> Node:
        """The words of `[[ ... ]]`, in which brackets and `<` are operators; behind `=~` brackets belong to a word."""
        words: list[Word] = []
        while True:
            self._skip_lines()
            if self.at >= self.size or self._reserved() == "]]":
                self.at = min(self.at + 2, self.size)
                return Test(words)
            if words[-1:] == ["=~"]:
                words.append(self._regex())
            elif self._breaks():
                self.at += 1
                if self.text[self.at - 1] == ";":
                    return Test(words)
            else:
                words.append(self.word())

    def _regex(self) -> Word:
        parts: list[Part] = []
        while self.at < self.size:
            char = self.text[self.at]
            if char == "(":
                self.at += 1
                self.balanced(parts, "(", ")")
            elif char == "|":
                self.at += 1
            elif self._breaks():
                break
            else:
                word = self.word()
                parts += word if isinstance(word, tuple) else ((QUOTED, word),)
        return tuple(parts)

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
            rest, self.at = self.text[self.at :], self.size
            return Unread(rest)
        self.depth += 1
        node = self._command()
        self.depth -= 1
        return node

    def _coproc(self) -> Node:
        """`coproc COMMAND`, `coproc NAME { ... }`."""
        self._skip_blanks()
        start = self.at
        if self._reserved() not in COMPOUND and not self._breaks():
            self.word()
            self._skip_blanks()
            if self._reserved() not in COMPOUND and not self.text.startswith("(", self.at):
                self.at = start  # no name
        return self._command()
