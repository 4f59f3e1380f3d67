"""Reading words: quotes, expansions, here-documents. The characters are walked one by one, without `re`.

No input raises. Where quotes or brackets stay open, the rest belongs to them.
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
    Simple,
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
_ACTIVE = ("*", "?", "[", "{", "~", EXTENDED)
_IN_DOUBLE = frozenset('"\\$`')
_IN_BRACE = frozenset("}'\"\\$`<>")
_IN_SUBSCRIPT = frozenset("]}'\"\\$`")
_PARAMETER_MARKS = frozenset("@*#?-$!")
_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "~~")


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
        #: how many `$(...)` are around what is read now
        self.substitutions = 0
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
        return self.inner(text).sequence(frozenset(), "")

    # -- words ------------------------------------------------------------------------------------------

    def word(self) -> Word:
        """The word that starts here, up to the next blank or operator."""
        text, at, size = self.text, self.at, self.size
        start = at
        while at < size and text[at] not in _SPECIAL:
            at += 1
        self.at = at
        if (at >= size or text[at] in BREAKS) and not self._continues(text[at - 1 : at] if at > start else ""):
            return text[start:at]
        parts: list[Part] = [(TEXT, text[start:at])] if at > start else []
        self._read_parts(parts)
        return joined(parts)

    def _continues(self, before: str) -> bool:
        """Whether the word goes on at a character that would end it: `a<(b)`, `!(a|b)`."""
        pair = self.text[self.at : self.at + 2]
        if pair in ("<(", ">("):
            return True
        return pair[:1] == "(" and pair != "()" and before != "" and before in "?*+@!"

    def _read_parts(self, parts: list[Part]) -> None:
        text, size = self.text, self.size
        while self.at < size:
            char = text[self.at]
            if char in BREAKS:
                if not self._continues(parts[-1][1][-1:] if parts and parts[-1][0] == TEXT else ""):
                    return
                if char == "(":
                    self._extended(parts)
                else:
                    parts.append(self.process())
            elif not self._read_quoting(char, parts):
                start = self.at
                while self.at < size and text[self.at] not in _QUOTING:
                    self.at += 1
                parts.append((TEXT, text[start : self.at]))

    def _read_quoting(self, char: str, parts: list[Part]) -> bool:
        """One quoted or expanded piece outside of double quotes; False if there is none here."""
        text = self.text
        if char == "'":
            end = text.find("'", self.at + 1)
            end = self.size if end < 0 else end
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

    def expanded_text(self) -> Word:
        """All of the text as in double quotes: a here-document's body, an arithmetic expression."""
        parts: list[Part] = []
        self._double(parts, "")
        return joined(parts)

    def _extended(self, parts: list[Part]) -> None:
        """`!(a|b)`, a pattern where `extglob` is on; otherwise no shell takes it."""
        start = self.at
        self.at += 1
        inside: list[Part] = []
        self.balanced(inside, "(", ")")
        parts.append((TEXT, EXTENDED + self.text[start : self.at]))
        parts += self.hidden(inside)

    def balanced(self, parts: list[Part], opener: str, closer: str) -> bool:
        """Up to the closing bracket, which is passed; what is quoted or expanded on the way is read as such.

        False if the text ends before.
        """
        text, size = self.text, self.size
        brackets = 1
        plain = self.at
        while self.at < size:
            char = text[self.at]
            if char == opener:
                brackets += 1
            elif char == closer:
                brackets -= 1
                if not brackets:
                    parts.append((QUOTED, text[plain : self.at]))
                    self.at += 1
                    return True
            elif char == "\\":
                self.at += 1
            elif char in "'\"$`":
                parts.append((QUOTED, text[plain : self.at]))
                if char in "'\"":
                    self._read_quoting(char, parts)
                elif char == "`":
                    self._backtick(parts, quoted=True)
                else:
                    self._dollar(parts, quoted=True)
                plain = self.at
                continue
            self.at += 1
        parts.append((QUOTED, text[plain:size]))
        self.at = size
        return False

    def hidden(self, parts: list[Part]) -> list[Part]:
        """What runs where only its running counts, as in `${a[$(b)]}`: a substitution that gives nothing."""
        if not any(part[0] > PARAMETER or (part[0] == PARAMETER and not isinstance(part[3], str)) for part in parts):
            return []
        command = Simple()
        command.assignments.append(("_", False, tuple(parts)))
        return [(COMMAND, Sequence([(command, False)]), True, "")]

    # -- expansions -------------------------------------------------------------------------------------

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        text, start = self.text, self.at
        while text.startswith("\\\n", start + 1):
            start += 2
        self.at = start
        following = text[start + 1 : start + 2]
        if following == "(":
            if text.startswith("((", start + 1):
                parts.append(self._double_round(quoted))
                return
            self.at += 2
            self.substitutions += 1
            node = self.nested()
            self.substitutions -= 1
            parts.append((COMMAND, node, quoted, text[start : self.at]))
        elif following == "{":
            self.at += 2
            self._parameter(parts, quoted, start)
        elif following == "[":
            self.at += 2
            inside: list[Part] = []
            self._read_deeper(inside, "[", "]")
            parts.append((ARITHMETIC, tuple(inside), quoted, text[start : self.at]))
        elif following == "'" and not quoted:
            value, self.at = escaped(text, start + 2)
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

    def nested(self, subshell: bool = False) -> Node:
        """The commands up to the closing bracket, which is passed."""
        if self.depth >= DEPTH:
            node: Node = Unread(self.text[self.at :])
            self.at = self.size
            return node
        announced: list[tuple[Redirect, str, bool, bool]] = []
        if not subshell:
            announced, self.pending = self.pending, []
        self.depth += 1
        node = self.sequence(frozenset(), ")")
        self.depth -= 1
        self.pending = announced + self.pending
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
        self.at = at + 1
        parts.append((COMMAND, self.read_inner("".join(inside)), quoted, text[start : self.at]))

    def _read_deeper(self, parts: list[Part], opener: str, closer: str) -> None:
        if self.depth >= DEPTH:
            parts.append((COMMAND, Unread(self.text[self.at :]), True, ""))
            self.at = self.size
            return
        self.depth += 1
        self.balanced(parts, opener, closer)
        self.depth -= 1

    def _double_round(self, quoted: bool) -> Part:
        """`$((...))`, or `$((a); b)`."""
        text, start = self.text, self.at
        self.at += 1
        inside = self.expression()
        if inside is not None:
            return (ARITHMETIC, inside, quoted, text[start : self.at])
        self.at += 1
        return (COMMAND, self.nested(), quoted, text[start : self.at])

    def expression(self) -> Word | None:
        """`((...))`, which is passed; None (and not moved) if these brackets hold commands."""
        start, pending = self.at, self.pending
        if self.depth >= DEPTH or self.budget.left < 0:
            return None
        self.at += 2
        self.pending = []
        self.depth += 1
        parts: list[Part] = []
        closed = self.balanced(parts, "(", ")") and self.text.startswith(")", self.at)
        self.depth -= 1
        if closed:
            self.at += 1
            self.pending = pending + self.pending
            return tuple(parts)
        self.budget.left -= self.at - start
        self.at, self.pending = start, pending
        return None

    def _parameter(self, parts: list[Part], quoted: bool, start: int) -> None:
        """`${name}`, `${name:-word}`, `${!name}`, `${#name}`, `${name[@]}`."""
        text = self.text
        prefix = text[self.at : self.at + 1]
        following = text[self.at + 1 : self.at + 2]
        if prefix in ("!", "#") and following and (following in NAME_CHARS or following in "@*#"):
            self.at += 1
        else:
            prefix = ""
        name = self._parameter_name(parts)
        operator = ""
        literal = False
        if text[self.at : self.at + 1] != "}":
            pair = text[self.at : self.at + 2]
            operator = pair if pair in _OPERATORS else pair[:1]
            if operator and (operator in _OPERATORS or operator in "-=?+#%/^,:@*~"):
                self.at += len(operator)
                literal = quoted and operator.strip(":") in ("-", "=", "?", "+")
            else:
                operator = "?"  # nothing that a shell knows
        if self.depth >= DEPTH:
            parts.append((COMMAND, Unread(text[self.at :]), quoted, text[start:]))
            self.at = self.size
            return
        self.depth += 1
        argument = self._until_brace(literal)
        self.depth -= 1
        raw = text[start : self.at]
        parts.append((PARAMETER, name, (prefix + operator) if prefix else operator, argument, quoted, raw))

    def _parameter_name(self, parts: list[Part]) -> str:
        text, start = self.text, self.at
        if text[start : start + 1] in _PARAMETER_MARKS and start < self.size:
            self.at += not (text.startswith("$", start) and text[start + 1 : start + 2] in ("{", "(", "["))
        while self.at < self.size and text[self.at] in NAME_CHARS:
            self.at += 1
        if text[self.at : self.at + 1] == "[":
            inside: list[Part] = []
            self.at += 1
            while self.at < self.size and text[self.at] not in "]}" and self.depth < DEPTH:
                if text[self.at] not in _IN_SUBSCRIPT:
                    self.at += 1
                    continue
                self.depth += 1
                self._read_quoting(text[self.at], inside)
                self.depth -= 1
            self.at += text.startswith("]", self.at)
            parts += self.hidden(inside)
        return text[start : self.at]

    def _until_brace(self, quoted: bool) -> Word:
        text, size = self.text, self.size
        parts: list[Part] = []
        while self.at < size:
            char = text[self.at]
            if char == "}":
                self.at += 1
                return joined(parts)
            if char == "'" and quoted:
                self.at += 1  # in double quotes it means itself
                parts.append((QUOTED, "'"))
            elif char in "<>" and text.startswith("(", self.at + 1):
                parts.append(self.process())
            elif not self._read_quoting(char, parts):
                start = self.at
                self.at += 1
                while self.at < size and text[self.at] not in _IN_BRACE:
                    self.at += 1
                parts.append((TEXT, text[start : self.at]))
        return joined(parts)

    def process(self) -> Part:
        """`<(...)` or `>(...)`."""
        start, direction = self.at, self.text[self.at]
        self.at += 2
        self.substitutions += 1
        node = self.nested()
        self.substitutions -= 1
        return (PROCESS, node, direction, self.text[start : self.at])

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
            body = "".join(lines)
            if quoted or not ("$" in body or "`" in body or "\\" in body):
                redirect.target = body
            elif self.depth >= DEPTH or self.budget.left < len(body):
                redirect.target = ((COMMAND, Unread(body), True, body),)
            else:
                redirect.target = self.inner(body).expanded_text()
        self.pending = []

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
