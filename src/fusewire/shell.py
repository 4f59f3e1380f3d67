"""The simple commands in a command line, as lists of words: what would be run, not what is merely said.

`git commit -m "git push --force"` runs `git commit`; `cd x && sudo git push -f` runs `git push -f`. One pass over the
characters, without `re`; nothing is executed or expanded, no input raises, and the time is linear in it. Constraints
match on these words. (The guard on protected files needs more than words and will read redirections and effects.)
"""

from __future__ import annotations

from fusewire.wrappers import is_assignment, program, reads_input, scripts_of, unwrapped

__all__ = ["program", "simple_commands"]

#: Deeper nesting than anybody writes. Beyond it quotes and brackets are read as separators, so that what is
#: hidden there is still found.
_DEPTH = 12

_SEPARATORS = " \t\r\n;&|()<>"

_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "coproc"))

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}

#: Digits that may follow `\x`, `\u`, `\U` and a bare backslash in `$'...'`.
_NUMBERED = {"x": (2, 16), "u": (4, 16), "U": (8, 16), "": (3, 8)}

_HEX = "0123456789abcdefABCDEF"


def simple_commands(line: str) -> list[list[str]]:
    """Every command that the line would run, outermost first; wrapped ones also without their wrapper."""
    return _commands_in(line, 0)


def _commands_in(text: str, depth: int) -> list[list[str]]:
    if depth > _DEPTH:
        return [words for part in _flattened(text).split("\n") if (words := part.split())]
    return _Reader(text, depth).read("")


def _flattened(text: str) -> str:
    for mark in "'\"`$(){};&|\\":
        text = text.replace(mark, "\n")
    return text


class _Heredoc:
    """A here-document that was announced; its body starts at the next line."""

    __slots__ = ("delimiter", "quoted", "strips_tabs")

    def __init__(self, delimiter: str, quoted: bool, strips_tabs: bool) -> None:
        self.delimiter, self.quoted, self.strips_tabs = delimiter, quoted, strips_tabs


class _Line:
    """What is known of the commands of one list of commands while it is read."""

    __slots__ = ("found", "here_text", "heredocs", "nested", "piped", "shells", "words")

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.words: list[str] = []
        #: commands of substitutions in the current command
        self.nested: list[list[str]] = []
        self.heredocs: list[_Heredoc] = []
        #: `<<<` of the current command
        self.here_text: str | None = None
        #: words of the command whose output the current one reads
        self.piped: list[str] = []
        #: whether a shell of this line reads its commands from standard input
        self.shells = False


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth

    def read(self, closer: str) -> list[list[str]]:
        """The commands up to the closing bracket (or the end)."""
        text, size = self.text, len(self.text)
        line = _Line()
        while self.at < size:
            char = text[self.at]
            if char in " \t\r":
                self.at += 1
            elif char == "\n":
                self.at += 1
                self._end_command(line)
                self._read_heredocs(line)
                line.shells = False
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif char == closer:
                break
            elif text.startswith("((", self.at) and not line.words:
                self.at += 2
                self._arithmetic(line)
            elif char in ";&|()":
                if text.startswith("&>", self.at):
                    self._redirection(line)
                else:
                    pipe = char == "|" and not text.startswith("||", self.at)
                    self.at += 2 if text[self.at : self.at + 2] in ("||", "&&", "|&") else 1
                    words = line.words
                    self._end_command(line)
                    line.piped = words if pipe else []
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end
            elif char in "<>" or self._is_numbered_redirection():
                self._redirection(line)
            else:
                line.words.append(self._word(line))
        self._end_command(line)
        self.at += 1
        return line.found

    def _end_command(self, line: _Line) -> None:
        words = line.words
        first = 0
        while first < len(words) and (words[first] in _KEYWORDS or is_assignment(words[first])):
            first += 1
        if first < len(words) and words[first] == "function":
            first += 2  # its name
            first += words[first : first + 1] == ["{"]
        words = words[first:]
        for command in unwrapped(words):
            line.found.append(command)
        line.found += line.nested
        if words:
            self._run_scripts(words, line)
        line.words, line.nested, line.here_text, line.piped = [], [], None, []

    def _run_scripts(self, words: list[str], line: _Line) -> None:
        """Commands that the command reads as text: `bash -c`, `eval`, a here-string, an echo into a shell."""
        innermost = unwrapped(words)[-1]
        for script in scripts_of(innermost):
            line.found += _commands_in(script, self.depth + 1)
        if reads_input(innermost):
            line.shells = True
            if line.here_text is not None:
                line.found += _commands_in(line.here_text, self.depth + 1)
            if program(line.piped) in ("echo", "printf"):
                line.found += _commands_in("\n".join(line.piped[1:]), self.depth + 1)
                line.found += _commands_in(" ".join(line.piped[1:]), self.depth + 1)

    # -- redirections and here-documents --------------------------------------------------------------

    def _is_numbered_redirection(self) -> bool:
        end = self.at
        while end < len(self.text) and self.text[end] in "0123456789":
            end += 1
            if end - self.at > 4:
                return False
        return self.at < end < len(self.text) and self.text[end] in "<>"

    def _redirection(self, line: _Line) -> None:
        """The operator and its target; a here-document's body is read at the end of the line."""
        text = self.text
        while self.at < len(text) and text[self.at] in "0123456789&":
            self.at += 1
        if text.startswith(("<(", ">("), self.at):
            self.at += 2
            line.nested += self._nested(")")
            return
        here_text = text.startswith("<<<", self.at)
        heredoc = text.startswith("<<", self.at) and not here_text
        if heredoc or here_text:
            self.at += 2 + here_text
        else:
            while self.at < len(text) and text[self.at] in "<>&|":
                self.at += 1
        strips_tabs = heredoc and text.startswith("-", self.at)
        self.at += strips_tabs
        while self.at < len(text) and text[self.at] in " \t":
            self.at += 1
        start = self.at
        if start < len(text) and text[start] not in "\n;|&()<>":
            target = self._word(line)
            if here_text:
                line.here_text = target
            elif heredoc:
                raw = text[start : self.at]
                quoted = "'" in raw or '"' in raw or "\\" in raw
                line.heredocs.append(_Heredoc(target, quoted, strips_tabs))

    def _read_heredocs(self, line: _Line) -> None:
        """The bodies announced on the line that just ended: code if a shell of that line reads them."""
        for heredoc in line.heredocs:
            start = self.at
            body_end = len(self.text)
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                one = self.text[self.at : end].removesuffix("\r")
                body_end, self.at = self.at, end + 1
                if (one.lstrip("\t") if heredoc.strips_tabs else one) == heredoc.delimiter:
                    break
                body_end = len(self.text)
            body = self.text[start:body_end]
            if line.shells:
                line.found += _commands_in(body, self.depth + 1)
            elif not heredoc.quoted and ("$(" in body or "`" in body):
                inner = _Line()
                _Reader(body, self.depth + 1)._quoted([], inner, "")
                line.found += inner.nested
        line.heredocs = []

    # -- words ----------------------------------------------------------------------------------------

    def _word(self, line: _Line) -> str:
        """One word with its quotes taken off; the commands that it substitutes are put aside."""
        text, size = self.text, len(self.text)
        parts: list[str] = []
        while self.at < size:
            char = text[self.at]
            if char == "(" and parts and parts[-1] == "=" and is_assignment("".join(parts)):
                self.at += 1
                self._array(line)
                continue
            if char in _SEPARATORS:
                break
            if char == "\\":
                if not text.startswith("\\\n", self.at):
                    parts.append(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'":
                end = text.find("'", self.at + 1)
                end = size if end < 0 else end
                parts.append(text[self.at + 1 : end])
                self.at = end + 1
            elif text.startswith("$'", self.at):
                self.at += 2
                self._escaped(parts)
            elif char == '"':
                self.at += 1
                self._quoted(parts, line, '"')
            elif text.startswith("$(", self.at) or char == "`":
                parts.append(self._substitution(line))
            else:
                parts.append(char)
                self.at += 1
        return "".join(parts)

    def _quoted(self, parts: list[str], line: _Line, closer: str) -> None:
        """Inside double quotes, or a here-document that is expanded like them."""
        text, size = self.text, len(self.text)
        while self.at < size and text[self.at] != closer:
            char = text[self.at]
            if char == "\\":
                escaped = text[self.at + 1 : self.at + 2]
                parts.append(escaped if escaped in '"\\$`' else "" if escaped == "\n" else char + escaped)
                self.at += 2
            elif text.startswith("$(", self.at) or char == "`":
                parts.append(self._substitution(line))
            else:
                parts.append(char)
                self.at += 1
        self.at += 1

    def _escaped(self, parts: list[str]) -> None:
        """Inside `$'...'`, where a character may be written as a number."""
        text, size = self.text, len(self.text)
        while self.at < size and text[self.at] != "'":
            char = text[self.at]
            self.at += 1
            if char != "\\" or self.at >= size:
                parts.append(char)
                continue
            kind = text[self.at]
            named = kind if kind in _NUMBERED else "" if kind in "01234567" else None
            if named is None:
                parts.append(_ESCAPES.get(kind, kind))
                self.at += 1
                continue
            self.at += len(named)
            most, base = _NUMBERED[named]
            end = self.at
            while end < size and end - self.at < most and text[end] in (_HEX if base == 16 else "01234567"):
                end += 1
            code = int(text[self.at : end] or "0", base)
            parts.append(chr(code) if code < 0x110000 else "")
            self.at = end
        self.at += 1

    def _substitution(self, line: _Line) -> str:
        start = self.at
        if self.text[start] == "`":
            end = start + 1
            while end < len(self.text) and self.text[end] != "`":
                end += 2 if self.text[end] == "\\" else 1
            inner = self.text[start + 1 : end]
            self.at = end + 1
            line.nested += _commands_in(inner.replace("\\`", "`"), self.depth + 1)
        elif self.text.startswith("$((", start):
            self.at += 3
            self._arithmetic(line)
        else:
            self.at += 2
            line.nested += self._nested(")")
        return self.text[start : self.at]

    def _nested(self, closer: str) -> list[list[str]]:
        if self.depth >= _DEPTH:
            rest = self.text[self.at :]
            self.at = len(self.text)
            return _commands_in(rest, _DEPTH + 1)
        self.depth += 1
        found = self.read(closer)
        self.depth -= 1
        return found

    def _array(self, line: _Line) -> None:
        """`name=(...)`: words that are kept, not run; what they substitute is run."""
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] in _SEPARATORS:
                self.at += 1
            else:
                self._word(line)
        self.at += 1

    def _arithmetic(self, line: _Line) -> None:
        """`((...))`: no commands but those that it substitutes."""
        brackets = 2
        while self.at < len(self.text) and brackets:
            if self.text.startswith("$(", self.at) and not self.text.startswith("$((", self.at):
                self._substitution(line)
                continue
            brackets += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
