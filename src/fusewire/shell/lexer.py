"""Reading words: quotes, expansions, here-documents. The characters are walked one by one, without `re`.

No input raises. Where quotes or brackets stay open, the rest belongs to them and `complete` is False, as for a
shell that waits for more.
"""

from __future__ import annotations

from fusewire.shell.tree import (
    ARITHMETIC,
    COMMAND,
    PARAMETER,
    PROCESS,
    QUOTED,
    TEXT,
    Node,
    Redirect,
    Sequence,
    Unread,
)
from fusewire.shell.values import EXTENDED
from fusewire.words import NAME_CHARS, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.shell.tree import Part, Word

#: Deeper nesting than anybody writes; what is beyond stays unread.
DEPTH = 24

#: How many times its own length a line may be read in all (backticks and here-documents are read twice).
BUDGET = 4

#: What ends a word that is not quoted.
BREAKS = frozenset(" \t\n;&|()<>")

_QUOTING = BREAKS | frozenset("'\"\\`$")
_SPECIAL = _QUOTING | frozenset("*?[{~")
_ACTIVE = ("*", "?", "[", "{", "~")
_IN_DOUBLE = frozenset('"\\$`')
_PARAMETER_MARKS = frozenset("@*#?-$!")
_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,")


class Budget:
    """How many characters may still be read anew."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = BUDGET * size + 10_000


class WordReader:
    """One text and where the reading stands in it."""

    def __init__(self, text: str, depth: int, budget: Budget) -> None:
        self.text = text
        self.size = len(text)
        self.at = 0
        self.depth = depth
        self.budget = budget
        self.complete = True
        #: here-documents that were announced: the redirect, its delimiter, whether that was quoted, whether tabs go
        self.pending: list[tuple[Redirect, str, bool, bool]] = []

    def sequence(self, stop: frozenset[str], closer: str) -> Sequence:
        raise NotImplementedError

    def inner(self, text: str) -> WordReader:
        """A reader of the same kind for a text inside this one."""
        self.budget.left -= len(text)
        return type(self)(text, self.depth + 1, self.budget)

    def read_inner(self, text: str) -> Node:
        if self.depth >= DEPTH or self.budget.left < len(text):
            return Unread(text)
        reader = self.inner(text)
        node = reader.sequence(frozenset(), "")
        self.complete = self.complete and reader.complete
        return node

    # -- words ------------------------------------------------------------------------------------------

    def word(self) -> Word:
        """The word that starts here, up to the next blank or operator."""
        text, at, size = self.text, self.at, self.size
        start = at
        while at < size and text[at] not in _SPECIAL:
            at += 1
        self.at = at
        if at >= size or text[at] in BREAKS:
            if at < size and text[at] == "(" and at > start and text[at - 1] in "@+!":
                return self._extended([(TEXT, text[start:at])])
            return text[start:at]
        parts: list[Part] = [(TEXT, text[start:at])] if at > start else []
        self._read_parts(parts)
        return joined(parts)

    def _read_parts(self, parts: list[Part]) -> None:
        text, size = self.text, self.size
        while self.at < size:
            char = text[self.at]
            if char in BREAKS:
                if char == "(" and parts and parts[-1][0] == TEXT and parts[-1][1][-1:] in ("?", "*", "+", "@", "!"):
                    self._extended(parts)
                    continue
                return
            if not self._read_quoting(char, parts):
                start = self.at
                while self.at < size and text[self.at] not in _QUOTING:
                    self.at += 1
                parts.append((TEXT, text[start : self.at]))

    def _read_quoting(self, char: str, parts: list[Part]) -> bool:
        """One quoted or expanded piece outside of double quotes; False if there is none here."""
        text = self.text
        if char == "'":
            end = text.find("'", self.at + 1)
            if end < 0:
                self.complete = False
                end = self.size
            parts.append((QUOTED, text[self.at + 1 : end]))
            self.at = end + 1
        elif char == '"':
            self.at += 1
            self._double(parts)
        elif char == "\\":
            if self.at + 1 >= self.size:
                parts.append((QUOTED, "\\"))
            elif text[self.at + 1] != "\n":
                parts.append((QUOTED, text[self.at + 1]))
            self.at += 2
        elif char == "$":
            self._dollar(parts, quoted=False)
        elif char == "`":
            self._backtick(parts, quoted=False)
        else:
            return False
        return True

    def _double(self, parts: list[Part], closer: str = '"') -> None:
        """Up to the closing double quote; with another closer, the text of a here-document up to its end."""
        text, size = self.text, self.size
        parts.append((QUOTED, ""))
        while self.at < size:
            char = text[self.at]
            if char == closer:
                self.at += 1
                return
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following != "\n":
                    escapes = following and following in '$`"\\' and (following != '"' or closer == '"')
                    parts.append((QUOTED, following if escapes else "\\" + following))
                self.at += 2
            elif char == "$":
                self._dollar(parts, quoted=True)
            elif char == "`":
                self._backtick(parts, quoted=True)
            else:
                start = self.at
                self.at += 1
                while self.at < size and text[self.at] not in _IN_DOUBLE:
                    self.at += 1
                parts.append((QUOTED, text[start : self.at]))
        if closer:
            self.complete = False

    def expanded_text(self) -> Word:
        """All of the text as in double quotes: a here-document's body, an arithmetic expression."""
        parts: list[Part] = []
        self._double(parts, "")
        return joined(parts)

    def _extended(self, parts: list[Part]) -> Word:
        """`!(a|b)`, a pattern where `extglob` is on; otherwise no shell takes it."""
        end = _closing(self.text, self.at + 1)
        self.complete = self.complete and end < self.size and "extglob" in self.text
        parts.append((TEXT, EXTENDED + self.text[self.at : end + 1]))
        self.at = min(end + 1, self.size)
        self._read_parts(parts)
        return tuple(parts)

    # -- expansions -------------------------------------------------------------------------------------

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        text, start = self.text, self.at
        following = text[start + 1 : start + 2]
        if following == "(":
            if text.startswith("$((", start) and self._arithmetic(parts, quoted):
                return
            self.at += 2
            node = self.nested()
            parts.append((COMMAND, node, quoted, text[start : self.at]))
        elif following == "{":
            self.at += 2
            self._parameter(parts, quoted, start)
        elif following == "'" and not quoted:
            value, self.at = escaped(text, start + 2)
            self.complete = self.complete and self.at <= self.size
            parts.append((QUOTED, value))
        elif following == '"' and not quoted:
            self.at += 2
            self._double(parts)
        elif following in NAME_CHARS and following:
            end = start + 2
            if following not in "0123456789":
                while end < self.size and text[end] in NAME_CHARS:
                    end += 1
            self.at = end
            parts.append((PARAMETER, text[start + 1 : end], "", "", quoted, text[start:end]))
        elif following in _PARAMETER_MARKS and following:
            self.at += 2
            parts.append((PARAMETER, following, "", "", quoted, text[start : self.at]))
        else:
            self.at += 1
            parts.append((QUOTED, "$"))

    def nested(self) -> Node:
        """The commands up to the closing bracket, which is passed."""
        if self.depth >= DEPTH:
            node: Node = Unread(self.text[self.at :])
            self.at = self.size
            self.complete = False
            return node
        announced, self.pending = self.pending, []
        self.depth += 1
        node = self.sequence(frozenset(), ")")
        self.depth -= 1
        self.pending = announced + self.pending
        if self.text[self.at : self.at + 1] != ")":
            self.complete = False
        self.at += 1
        return node

    def _backtick(self, parts: list[Part], quoted: bool) -> None:
        text, start = self.text, self.at
        at = start + 1
        inside: list[str] = []
        while at < self.size and text[at] != "`":
            if text[at] == "\\" and text[at + 1 : at + 2] in ("`", "\\", "$") and at + 1 < self.size:
                at += 1
            inside.append(text[at])
            at += 1
        self.complete = self.complete and at < self.size
        self.at = at + 1
        parts.append((COMMAND, self.read_inner("".join(inside)), quoted, text[start : self.at]))

    def _arithmetic(self, parts: list[Part], quoted: bool) -> bool:
        """`$((...))`; False (and not moved) if it is a subshell in a substitution."""
        start = self.at
        end = self.arithmetic_end(start + 3)
        if end < 0:
            return False
        inside = self.inner(self.text[start + 3 : end])
        word = inside.expanded_text() if self.budget.left >= 0 else ""
        self.at = end + 2
        parts.append((ARITHMETIC, word, quoted, self.text[start : self.at]))
        return True

    def arithmetic_end(self, at: int) -> int:
        """Where the `))` stands that closes an arithmetic expression; -1 if it is none."""
        text, brackets = self.text, 2
        start = at
        while at < self.size and self.budget.left > at - start:
            char = text[at]
            if char == "\\":
                at += 1
            elif char in "'\"":
                end = text.find(char, at + 1)
                at = self.size if end < 0 else end
            elif char == "(":
                brackets += 1
            elif char == ")":
                brackets -= 1
                if brackets == 1:
                    if text.startswith("))", at):
                        return at
                    break
            at += 1
        self.budget.left -= at - start
        return -1

    def _parameter(self, parts: list[Part], quoted: bool, start: int) -> None:
        """`${name}`, `${name:-word}`, `${!name}`, `${#name}`, `${name[@]}`."""
        text = self.text
        prefix = text[self.at : self.at + 1]
        following = text[self.at + 1 : self.at + 2]
        if prefix in ("!", "#") and following and (following in NAME_CHARS or following in "@*"):
            self.at += 1
        else:
            prefix = ""
        name = self._parameter_name()
        operator = ""
        if text[self.at : self.at + 1] != "}":
            pair = text[self.at : self.at + 2]
            operator = pair if pair in _OPERATORS else pair[:1]
            if operator and (operator in _OPERATORS or operator in "-=?+#%/^,:@*"):
                self.at += len(operator)
            else:
                operator = "?"  # nothing that a shell knows
        if self.depth >= DEPTH:
            parts.append((COMMAND, Unread(text[self.at :]), quoted, text[start:]))
            self.at, self.complete = self.size, False
            return
        self.depth += 1
        argument = self._until_brace(quoted and operator.strip(":") in ("-", "=", "?", "+"))
        self.depth -= 1
        raw = text[start : self.at]
        parts.append((PARAMETER, name, (prefix + operator) if prefix else operator, argument, quoted, raw))

    def _parameter_name(self) -> str:
        text, start = self.text, self.at
        if text[start : start + 1] in _PARAMETER_MARKS and start < self.size:
            self.at += 1
        while self.at < self.size and text[self.at] in NAME_CHARS:
            self.at += 1
        if text[self.at : self.at + 1] == "[":
            end = text.find("]", self.at)
            brace = text.find("}", self.at)
            if end > 0 and (brace < 0 or end < brace):
                self.at = end + 1
        return text[start : self.at]

    def _until_brace(self, literal_quotes: bool) -> Word:
        text, size = self.text, self.size
        parts: list[Part] = []
        while self.at < size:
            char = text[self.at]
            if char == "}":
                self.at += 1
                return joined(parts)
            if char == "'" and literal_quotes:
                parts.append((QUOTED, "'"))
                self.at += 1
            elif not self._read_quoting(char, parts):
                start = self.at
                self.at += 1
                while self.at < size and text[self.at] not in "}'\"\\$`":
                    self.at += 1
                parts.append((TEXT, text[start : self.at]))
        self.complete = False
        return joined(parts)

    def process(self) -> Word:
        """`<(...)` or `>(...)`."""
        start, direction = self.at, self.text[self.at]
        self.at += 2
        node = self.nested()
        return ((PROCESS, node, direction, self.text[start : self.at]),)

    # -- here-documents -------------------------------------------------------------------------------------

    def read_heredocs(self) -> None:
        """The bodies of the here-documents that the line before announced."""
        for redirect, delimiter, quoted, strips_tabs in self.pending:
            lines: list[str] = []
            while self.at < self.size:
                end = self.text.find("\n", self.at)
                end = self.size if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, self.size)
                line = line.lstrip("\t") if strips_tabs else line
                if line == delimiter:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            if quoted or not ("$" in body or "`" in body or "\\" in body):
                redirect.target = body
            elif self.depth >= DEPTH or self.budget.left < len(body):
                redirect.target = ((COMMAND, Unread(body), True, body),)
            else:
                redirect.target = self.inner(body).expanded_text()
        self.pending = []


def joined(parts: list[Part]) -> Word:
    """A plain string where nothing is left to expand."""
    plain = []
    for part in parts:
        if part[0] > QUOTED or (part[0] == TEXT and any(mark in part[1] for mark in _ACTIVE)):
            return tuple(parts)
        plain.append(part[1])
    return "".join(plain)


def _closing(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
        at += 1
    return len(text)
