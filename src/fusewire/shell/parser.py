"""Reading commands: lists, pipelines, groups, `if for while case`, functions, redirections.

It is more patient than a shell: behind a syntax error it goes on with the next word, because what stands there may
be run in another way. `complete` tells what `bash -n` would say.
"""

from __future__ import annotations

from fusewire.shell.lexer import BREAKS, DEPTH, Budget, WordReader
from fusewire.shell.tree import (
    PARAMETER,
    QUOTED,
    TEXT,
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
    from fusewire.shell.tree import Part, Word

_NONE: frozenset[str] = frozenset()
_THEN, _FI, _DO, _DONE, _BRACE = map(frozenset, (("then",), ("elif", "else", "fi"), ("do",), ("done",), ("}",)))
_ESAC = frozenset(("esac", ";;"))

#: Reserved words that cannot start a command.
_MISPLACED = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}", "in", "]]"))

_COMPOUND = frozenset(("if", "while", "until", "for", "select", "case", "{", "[[", "function", "coproc"))

#: Words that start a compound command, but neither the body of a function nor a coprocess.
_NO_BODY = frozenset(("function", "coproc"))

_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))

#: Programs of the shell behind which `x=(a b)` may stand.
_TAKES_ARRAYS = _DECLARATIONS | frozenset(("alias", "eval", "let"))

_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknoprstuvwxzGLNORS")
_BINARY = frozenset("= == != =~ -eq -ne -lt -le -gt -ge -nt -ot -ef".split())

_ENDS = BREAKS | {""}

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
            if word in _MISPLACED:
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
                if text.startswith(";&", self.at):
                    self.complete = False
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
        ends = at >= self.size or (self.text[at] == "\\" and at + 1 == self.size)
        if ends or (self.text[at] in "\n;&|)" and not self.text.startswith("&>", at)):
            self.complete = False

    def _pipeline(self) -> Node:
        negated = prefixed = False
        while True:
            self._skip_blanks()
            word = self._reserved()
            if word == "!":
                negated = not negated
                prefixed = True
                self.at += 1
            elif word == "time":
                prefixed = True
                self.at += 4
                self._skip_blanks()
                for option in ("-p", "--"):
                    if self._reserved() == option:
                        self.at += 2
                        self._skip_blanks()
            else:
                break
        if prefixed and self.text[self.at : self.at + 1] not in ("", "\n", ";", "\\"):
            self._require_command()  # alone, `!` and `time` are commands
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
        if word in _MISPLACED or word == "!":
            self.complete = False
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
            node = While(condition, self._do_done(braces=False), word == "until")
        elif word in ("for", "select"):
            node = self._for(word == "for")
        elif word == "case":
            node = self._case()
        elif word == "{":
            body = self.sequence(_BRACE, "")
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
                break
            node.redirects.append(redirect)
        following = self.text[self.at : self.at + 1]
        if not following or following in "\n;&|)" or (following == "\\" and self.at + 1 == self.size):
            return node
        # Behind a redirection no word is reserved.
        if self._reserved() not in _MISPLACED or (node.redirects and self.text[self.at - 1] != "}"):
            self.complete = False
        return node

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
            body = self.sequence(_BRACE, "")
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
            body = self.sequence(_ESAC, "")
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

    def _breaks(self) -> bool:
        """Whether no word can start here."""
        at = self.at
        return at >= self.size or (self.text[at] in BREAKS and not self.text.startswith(("<(", ">("), at))

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
        return (word in _COMPOUND and word not in _NO_BODY) or self.text.startswith("(", self.at)

    def _coproc(self) -> Node:
        self._skip_blanks()
        if self._reserved() in _NO_BODY or self._reserved() in _MISPLACED:
            self.complete = False
        if self._starts_body():
            return self._command()
        self._require_command()
        start = self.at
        if not self._breaks():
            self.word()
            self._skip_blanks()
            word = self._reserved()
            if word in _NO_BODY or word in _MISPLACED or word == "!":
                self.complete = False
            named = "=" not in self.text[start : self.at]
            if not named or (word not in _COMPOUND and not self.text.startswith("(", self.at)):
                self.at = start
        node = self._command()
        if isinstance(node, Function):
            self.complete = False
        return node

    # -- simple commands --------------------------------------------------------------------------------

    def _simple(self) -> Node:
        text, size = self.text, self.size
        command = Simple()
        declares = False
        arrays, self.arrays = self.arrays, False
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
                self.complete = False
                self.at += 1
                continue
            if char in "<>&" or char in "0123456789{":
                redirect = self._redirect()
                if redirect is not None:
                    command.redirects.append(redirect)
                    arrays = False
                    continue
            self.arrays = arrays
            if not command.words:
                if not self._assignment(command, True):
                    start = self.at
                    command.words.append(self.word())
                    declares = command.words[0] in _DECLARATIONS
                    arrays = arrays or text[start : self.at] in _TAKES_ARRAYS
            elif not (declares or arrays) or not self._assignment(command, arrays, declares):
                command.words.append(self.word())
            self.arrays = False
        return command

    def _assignment(self, command: Simple, arrays: bool, plain: bool = True) -> bool:
        """`name=value`, `name[1]+=value`, `name=(a b)`; without `plain` only the last."""
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
            before = self.complete, self.pending
            self.at = at + 1
            closed = self.balanced(subscript, "[", "]")
            at = self.at
            is_assignment = text.startswith(("=", "+="), at)
            if command.words and (not closed or not is_assignment or any(char in BREAKS for char in text[start:at])):
                self.budget.left -= at - start
                self.at = start
                self.complete, self.pending = before
                return False
            if not closed:  # bash looks for the end of the brackets before anything else
                self.budget.left -= at - start
                self.at = start
                self.complete, self.pending = False, before[1]
                return False
            if not is_assignment:
                parts: list[Part] = [(TEXT, text[start:at]), *subscript]
                rest = "" if self._breaks() else self.word()
                parts += rest if isinstance(rest, tuple) else ((QUOTED, rest),)
                command.words.append(tuple(parts))
                return True
        name = text[start:at]
        appended = text.startswith("+=", at)
        if not appended and text[at : at + 1] != "=":
            return False
        value: Word | list[Word]
        if text.startswith("(", at + 1 + appended):
            self.at = at + 1 + appended
            self.complete = self.complete and arrays
            value = self._array()
        elif not plain:
            self.at = start
            return False
        else:
            self.at = at + 1 + appended
            value = "" if self._breaks() else self.word()
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
            if char == ")":
                self.at += 1
                if not self._breaks():
                    words.append(self.word())
                return words
            if not char:
                self.complete = False
                return words
            if self._breaks():
                self.complete = False
                self.at += 1
            else:
                words.append(self._keyed() if char == "[" else self.word())

    def _keyed(self) -> Word:
        """An element of an array: `[a b]=c` is one word."""
        start, complete = self.at, self.complete
        parts: list[Part] = []
        self.at += 1
        closed = self.budget.left >= 0 and self.balanced(parts, "[", "]")
        key = self.text[start : self.at]
        if closed and not any(char in BREAKS for char in key):
            self.complete = complete
        elif closed:
            rest = "" if self._breaks() else self.word()
            return ((TEXT, key), *self.hidden(parts), *(rest if isinstance(rest, tuple) else ((QUOTED, rest),)))
        else:
            self.complete = False
        self.budget.left -= self.at - start
        self.at = start
        return self.word()

    # -- redirections -----------------------------------------------------------------------------------

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
            self.complete = False
            return redirect
        if self._numbered(begin) > begin and (operator not in (">&", "<&") or text[begin] == "{"):
            self.complete = False
        target = self.word()
        if operator in ("<<", "<<-"):
            raw = text[begin : self.at]
            quoted = any(mark in raw for mark in "'\"\\")
            delimiter = target if isinstance(target, str) else "".join(map(_written, target))
            self.pending.append((redirect, delimiter, quoted, operator == "<<-"))
        else:
            redirect.target = target
        return redirect


def _written(part: Part) -> str:
    text: str = part[1] if part[0] <= QUOTED else part[-1]
    return text
