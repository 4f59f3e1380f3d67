"""Split text into words: quotes, expansions, here-documents. Characters are read one by one, without `re`.

No input raises. Where quotes or brackets stay open, the rest belongs to them.
"""

from __future__ import annotations

from fusewire.guard.shell.tree import (
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
from fusewire.guard.shell.values import EXTENDED
from fusewire.util.quoting import NAME_CHARS, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.shell.tree import Part, Word

#: Deepest nesting that is read; what lies deeper stays unread.
DEPTH = 24

#: How many times its own length a line may be read in all (backticks and here-documents are read twice).
_BUDGET = 4

#: The longest subscript of an array.
SUBSCRIPT = 200

#: What ends a word that is not quoted.
BREAKS = frozenset(" \t\n;&|()<>")

_QUOTING = frozenset("'\"\\`$")
_SPECIAL = BREAKS | _QUOTING | frozenset("*?[{~")
_ACTIVE = ("*", "?", "[", "{", "~", EXTENDED)
_DOUBLE, _BRACE, _NOTHING = frozenset('"'), frozenset("}"), frozenset("")
_PARAMETER_MARKS = frozenset("@*#?-$!")
_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "~~")


class Budget:
    """How many characters may still be read again."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = _BUDGET * size + 10_000


class Lexer:
    """One text and where the reading stands in it."""

    def __init__(self, text: str, depth: int, budget: Budget) -> None:
        self.text = text
        self.size = len(text)
        self.at = 0
        self.depth = depth
        self.budget = budget
        #: how many `$(...)` are around what is read now
        self.substitutions = 0
        #: here-documents that were announced: the redirect, its delimiter, whether that was quoted, whether tabs go
        self.pending: list[tuple[Redirect, str, bool, bool]] = []

    def sequence(self, stop: frozenset[str], closer: str) -> Sequence:
        raise NotImplementedError

    def _inner(self, text: str) -> Lexer:
        """A reader of the same kind for a text inside this one."""
        self.budget.left -= len(text)
        return type(self)(text, self.depth + 1, self.budget)

    def unread(self) -> Unread:
        """The rest of the text, which is nested too deeply."""
        rest, self.at = self.text[self.at :], self.size
        return Unread(rest)

    # -- words ------------------------------------------------------------------------------------------

    def word(self) -> Word:
        """The word that starts here, up to the next blank or operator."""
        text, at, size = self.text, self.at, self.size
        start = at
        while at < size and text[at] not in _SPECIAL:
            at += 1
        self.at = at
        parts: list[Part] = [(TEXT, text[start:at])] if at > start else []
        if (at >= size or text[at] in BREAKS) and not self._continues(parts):
            return text[start:at]
        while True:
            self._scan(parts, BREAKS, TEXT, "")
            if not self._continues(parts):
                return joined(parts)
            if text[self.at] == "(":
                start = self.at
                self.at += 1
                self.balanced([])
                parts.append((TEXT, EXTENDED + text[start : self.at]))
            else:
                parts.append(self._process())

    def _continues(self, parts: list[Part]) -> bool:
        """Whether the word goes on at a character that would end it: `a<(b)`, `!(a|b)`."""
        pair = self.text[self.at : self.at + 2]
        if pair in ("<(", ">("):
            return True
        before = parts[-1][1][-1:] if parts and parts[-1][0] == TEXT else ""
        return pair[:1] == "(" and pair != "()" and before != "" and before in "?*+@!"

    def _scan(self, parts: list[Part], stops: frozenset[str], kind: int, inside: str) -> None:
        """Up to one of the stops, which is not passed; `inside` is `"` in double quotes, `<<` in a here-document."""
        text, size = self.text, self.size
        ends = stops | _QUOTING
        while self.at < size:
            char = text[self.at]
            if char in stops:
                return
            if char in _QUOTING and self._quoting(char, parts, inside):
                continue
            start = self.at
            self.at += 1
            while self.at < size and text[self.at] not in ends:
                self.at += 1
            parts.append((kind, text[start : self.at]))

    def _quoting(self, char: str, parts: list[Part], inside: str) -> bool:
        """One quoted or expanded piece; False if the character means itself here."""
        if char == "$":
            self._dollar(parts, bool(inside))
        elif char == "`":
            self._backtick(parts, bool(inside))
        elif char == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            if following != "\n":
                escapes = following and (not inside or following in "$`\\" or following == inside)
                parts.append((QUOTED, following if escapes else "\\" + following))
            self.at += 2
        elif char == '"' and inside != "<<":
            self.at += 1
            parts.append((QUOTED, ""))
            self._scan(parts, _DOUBLE, QUOTED, '"')
            self.at += 1
        elif char == "'" and not inside:
            end = self.text.find("'", self.at + 1)
            end = self.size if end < 0 else end
            parts.append((QUOTED, self.text[self.at + 1 : end]))
            self.at = end + 1
        else:
            return False
        return True

    def balanced(self, parts: list[Part]) -> bool:
        """Up to the closing bracket, which is passed; False if the text ends before."""
        stops = frozenset("()")
        brackets = 1
        while True:
            self._scan(parts, stops, QUOTED, "")
            if self.at >= self.size:
                self.at = self.size
                return False
            brackets += 1 if self.text[self.at] == "(" else -1
            self.at += 1
            if not brackets:
                return True

    # -- expansions -------------------------------------------------------------------------------------

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        text, start = self.text, self.at
        while text.startswith("\\\n", start + 1):
            start += 2
        self.at = start
        following = text[start + 1 : start + 2]
        if following == "(":
            self.at += 1
            inside = self.expression() if text.startswith("((", start + 1) else None
            if inside is not None:
                parts.append((ARITHMETIC, inside, quoted, text[start : self.at]))
                return
            self.at += 1
            parts.append((COMMAND, self._substituted(), quoted, text[start : self.at]))
        elif following == "{":
            self.at += 2
            self._parameter(parts, quoted, start)
        elif following == "'" and not quoted:
            value, self.at = escaped(text, start + 2)
            parts.append((QUOTED, value))
        elif following == '"' and not quoted:
            self.at += 1
            self._quoting('"', parts, "")
        elif following and (following in NAME_CHARS or following in _PARAMETER_MARKS):
            end = start + 2
            if following in NAME_CHARS and following not in "0123456789":
                while end < self.size and text[end] in NAME_CHARS:
                    end += 1
            self.at = end
            parts.append((PARAMETER, text[start + 1 : end], "", "", quoted, text[start:end]))
        else:
            self.at += 1
            parts.append((QUOTED, "$"))

    def _substituted(self) -> Node:
        self.substitutions += 1
        node = self.nested()
        self.substitutions -= 1
        return node

    def nested(self) -> Node:
        """The commands up to the closing bracket, which is passed."""
        if self.depth >= DEPTH:
            return self.unread()
        self.depth += 1
        node = self.sequence(frozenset(), ")")
        self.depth -= 1
        self.at += 1
        return node

    def _process(self) -> Part:
        """`<(...)` or `>(...)`."""
        start, direction = self.at, self.text[self.at]
        self.at += 2
        return (PROCESS, self._substituted(), direction, self.text[start : self.at])

    def _backtick(self, parts: list[Part], quoted: bool) -> None:
        text, start = self.text, self.at
        at = start + 1
        inside: list[str] = []
        while at < self.size and text[at] != "`":
            if text[at] == "\\" and text[at + 1 : at + 2] in ("`", "\\", "$"):
                at += 1
            inside.append(text[at])
            at += 1
        self.at = at + 1
        code = "".join(inside)
        too_much = self.depth >= DEPTH or self.budget.left < len(code)
        node = Unread(code) if too_much else self._inner(code).sequence(frozenset(), "")
        parts.append((COMMAND, node, quoted, text[start : self.at]))

    def expression(self) -> Word | None:
        """`((...))`, which is passed; None (and not moved) if these brackets hold commands."""
        start, pending = self.at, list(self.pending)
        if self.depth >= DEPTH or self.budget.left < 0:
            return None
        self.at += 2
        self.depth += 1
        parts: list[Part] = []
        closed = self.balanced(parts) and self.text.startswith(")", self.at)
        self.depth -= 1
        if closed:
            self.at += 1
            return tuple(parts)
        self.budget.left -= self.at - start
        self.at, self.pending = start, pending
        return None

    def _parameter(self, parts: list[Part], quoted: bool, start: int) -> None:
        """`${name}`, `${name:-word}`, `${!name}`, `${#name}`, `${name[@]}`."""
        text = self.text
        if self.depth >= DEPTH:
            parts.append((COMMAND, self.unread(), quoted, text[start:]))
            return
        prefix, following = text[self.at : self.at + 1], text[self.at + 1 : self.at + 2]
        if prefix in ("!", "#") and following and (following in NAME_CHARS or following in "@*#"):
            self.at += 1
        else:
            prefix = ""
        name = self._parameter_name()
        pair = text[self.at : self.at + 2]
        operator = pair if pair in _OPERATORS else pair[:1]
        if operator == "}":
            operator = ""
        elif operator not in _OPERATORS and operator not in "-=?+#%/^,:@*~":
            operator = "?"  # nothing that a shell knows
        else:
            self.at += len(operator)
        argument: list[Part] = []
        self.depth += 1
        self._scan(argument, _BRACE, TEXT, '"' if quoted and operator.strip(":") in ("-", "=", "?", "+") else "")
        self.depth -= 1
        self.at += 1
        parts.append((PARAMETER, name, prefix + operator, joined(argument), quoted, text[start : self.at]))

    def _parameter_name(self) -> str:
        text, start = self.text, self.at
        self.at += text[start : start + 1] in _PARAMETER_MARKS
        while self.at < self.size and text[self.at] in NAME_CHARS:
            self.at += 1
        if text[self.at : self.at + 1] == "[":
            end = text.find("]", self.at, self.at + SUBSCRIPT)
            self.at = end + 1 if end >= 0 else self.at
        return text[start : self.at]

    # -- here-documents -------------------------------------------------------------------------------------

    def read_heredocs(self) -> None:
        """The bodies of the here-documents that the line before announced."""
        for redirect, delimiter, quoted, strips_tabs in self.pending:
            lines: list[str] = []
            while self.at < self.size:
                start = self.at
                line = self._line(joins=not quoted)
                stripped = line.lstrip("\t") if strips_tabs else line
                if stripped == delimiter:
                    break
                if self.substitutions and stripped.startswith(delimiter) and ")" in stripped[len(delimiter) :]:
                    # `EOF)` in a substitution: bash ends the here-document, and reads the bracket.
                    self.at = start + len(line) - len(stripped) + len(delimiter)
                    break
                lines.append(stripped + "\n")
            redirect.target = self._body("".join(lines), quoted)
        self.pending = []

    def _body(self, body: str, quoted: bool) -> Word:
        if quoted or not ("$" in body or "`" in body or "\\" in body):
            return body
        if self.depth >= DEPTH or self.budget.left < len(body):
            return ((COMMAND, Unread(body), True, body),)
        parts: list[Part] = []
        self._inner(body)._scan(parts, _NOTHING, QUOTED, "<<")
        return joined(parts)

    def _line(self, joins: bool) -> str:
        """The next line; if `joins`, with the one behind it where it ends with a backslash."""
        pieces: list[str] = []
        while True:
            end = self.text.find("\n", self.at)
            end = self.size if end < 0 else end
            line = self.text[self.at : end]
            self.at = min(end + 1, self.size)
            backslashes = len(line) - len(line.rstrip("\\"))
            if not joins or backslashes % 2 == 0 or self.at >= self.size:
                return "".join(pieces) + line
            pieces.append(line[:-1])


def joined(parts: list[Part]) -> Word:
    """A plain string where nothing is left to expand."""
    plain = []
    for part in parts:
        if part[0] > QUOTED or (part[0] == TEXT and any(mark in part[1] for mark in _ACTIVE)):
            return tuple(parts)
        plain.append(part[1])
    return "".join(plain)
