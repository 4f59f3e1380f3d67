"""The simple commands in a command line, as lists of words: what would be run, not what is merely said.

`git commit -m "git push --force"` runs `git commit`; `cd x && sudo git push -f` runs `git push -f`. A walk over the
characters, once, without `re`; nothing is executed or expanded, and no input raises. Constraints match on
these words. (The guard on protected files needs more than words and will read redirections and effects.)
"""

from __future__ import annotations

#: Deeper nesting than anybody writes; beyond it the text is left alone instead of being walked again.
_DEPTH = 12

_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc"))

_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash"))

#: Programs that run the command behind them, and their options that take a value of their own.
_WRAPPERS: dict[str, frozenset[str]] = {
    "sudo": frozenset(("-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-U", "-D", "-R")),
    "doas": frozenset(("-u", "-C")),
    "env": frozenset(("-u", "-C", "--unset", "--chdir")),
    "nice": frozenset(("-n", "--adjustment")),
    "ionice": frozenset(("-c", "-n", "-p")),
    "timeout": frozenset(("-s", "-k", "--signal", "--kill-after")),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset(("-a",)),
    "xargs": frozenset(("-I", "-n", "-P", "-L", "-d", "-E", "-a", "-s")),
    "watch": frozenset(("-n", "--interval")),
    "busybox": frozenset(),
}

#: Wrappers whose first operand is theirs (`timeout 10 git ...`).
_TAKES_OPERAND = frozenset(("timeout",))


def simple_commands(line: str) -> list[list[str]]:
    """Every command that the line would run, outermost first; wrapped ones also without their wrapper."""
    found: list[list[str]] = []
    _collect(line, found, 0)
    return found


def _collect(text: str, found: list[list[str]], depth: int) -> None:
    if depth > _DEPTH:
        return
    for words, heredoc, nested in _Reader(text).commands():
        _unwrap(words, found, depth)
        if heredoc and words and program(words) in _SHELLS:
            _collect(heredoc, found, depth + 1)
        for inner in nested:
            _collect(inner, found, depth + 1)


def program(words: list[str]) -> str:
    """The name of the program that the words run, without its folder."""
    return words[0].rsplit("/", 1)[-1] if words else ""


def _unwrap(words: list[str], found: list[list[str]], depth: int) -> None:
    while words:
        found.append(words)
        name = program(words)
        if name == "eval":
            _collect(" ".join(words[1:]), found, depth + 1)
            return
        if name in _SHELLS:
            script = _script_of(words)
            if script is not None:
                _collect(script, found, depth + 1)
            return
        if name not in _WRAPPERS:
            return
        words = _behind_wrapper(name, words)


def _script_of(words: list[str]) -> str | None:
    """The text behind `-c` (also `-lc`, `-ec`) of a shell."""
    for at, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word[1:]:
            return words[at + 1] if at + 1 < len(words) else None
        if not word.startswith(("-", "+")):
            return None
    return None


def _behind_wrapper(name: str, words: list[str]) -> list[str]:
    valued = _WRAPPERS[name]
    at = 1
    operands_left = 1 if name in _TAKES_OPERAND else 0
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word.startswith("-") and len(word) > 1:
            at += 2 if word in valued else 1
        elif name in ("env", "sudo") and _is_assignment(word):
            at += 1
        elif operands_left:
            operands_left -= 1
            at += 1
        else:
            break
    return words[at:]


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    name = name.removesuffix("+")
    return bool(equals and name) and name.replace("_", "a").isalnum() and not name[0].isdigit()


class _Reader:
    """One pass over the characters of a command line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.words: list[str] = []
        self.nested: list[str] = []
        #: delimiter, and whether leading tabs are stripped
        self.heredocs: list[tuple[str, bool]] = []
        #: how many commands stood before the current line
        self.line_start = 0

    def commands(self) -> list[tuple[list[str], str, list[str]]]:
        """(words, text of its here-documents, texts of its substitutions) for each simple command."""
        result: list[tuple[list[str], str, list[str]]] = []
        text, size = self.text, len(self.text)
        while self.at < size:
            char = text[self.at]
            if char == "\\" and text.startswith("\\\n", self.at):
                self.at += 2
            elif char in " \t\r":
                self.at += 1
            elif char == "\n":
                self.at += 1
                self._end_command(result)
                self._read_heredocs(result)
                self.line_start = len(result)
            elif char in ";&|()":
                if text.startswith("&>", self.at):
                    self._redirection()
                else:
                    self.at += 1
                    self._end_command(result)
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end
            elif char in "<>" or self._is_numbered_redirection():
                self._redirection()
            else:
                self.words.append(self._word())
        self._end_command(result)
        return result

    def _end_command(self, result: list[tuple[list[str], str, list[str]]]) -> None:
        words = self.words
        first = 0
        while first < len(words) and (words[first] in _KEYWORDS or _is_assignment(words[first])):
            first += 1
        if words or self.nested:
            result.append((words[first:], "", self.nested))
        self.words, self.nested = [], []

    def _is_numbered_redirection(self) -> bool:
        end = self.at
        while end < len(self.text) and self.text[end].isdigit():
            end += 1
        return self.at < end < len(self.text) and self.text[end] in "<>"

    def _redirection(self) -> None:
        """Skip the operator and its target; a here-document's body is read at the end of the line."""
        text = self.text
        while self.at < len(text) and (text[self.at].isdigit() or text[self.at] == "&"):
            self.at += 1
        if text.startswith(("<(", ">("), self.at):
            end = _closing(text, self.at + 2)
            self.nested.append(text[self.at + 2 : end])
            self.at = end + 1
            return
        heredoc = text.startswith("<<", self.at) and not text.startswith("<<<", self.at)
        while self.at < len(text) and text[self.at] in "<>&|":
            self.at += 1
        strips_tabs = heredoc and text.startswith("-", self.at)
        if strips_tabs:
            self.at += 1
        while self.at < len(text) and text[self.at] in " \t":
            self.at += 1
        if self.at < len(text) and text[self.at] not in "\n;|&()<>":
            target = self._word()
            if heredoc:
                self.heredocs.append((target, strips_tabs))

    def _read_heredocs(self, result: list[tuple[list[str], str, list[str]]]) -> None:
        """The bodies announced on the line that just ended: code if a shell of that line may read them."""
        for delimiter, strips_tabs in self.heredocs:
            lines = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = end + 1
                if (line.lstrip("\t") if strips_tabs else line) == delimiter:
                    break
                lines.append(line)
            for at in range(self.line_start, len(result)):
                words, body, nested = result[at]
                if program(words) in _SHELLS:
                    result[at] = (words, body + "\n".join(lines) + "\n", nested)
                    break
        self.heredocs = []

    def _word(self) -> str:
        """One word with its quotes taken off; what it substitutes is put aside."""
        text, size = self.text, len(self.text)
        parts: list[str] = []
        while self.at < size:
            char = text[self.at]
            if char in " \t\r\n;&|()<>":
                break
            if char == "\\":
                if not text.startswith("\\\n", self.at):
                    parts.append(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'" or text.startswith("$'", self.at):
                start = self.at + (1 if char == "'" else 2)
                end = text.find("'", start)
                end = size if end < 0 else end
                parts.append(text[start:end])
                self.at = end + 1
            elif char == '"':
                self._double_quoted(parts)
            elif text.startswith("$(", self.at) or char == "`":
                parts.append(self._substitution())
            else:
                parts.append(char)
                self.at += 1
        return "".join(parts)

    def _double_quoted(self, parts: list[str]) -> None:
        text, size = self.text, len(self.text)
        self.at += 1
        while self.at < size and text[self.at] != '"':
            char = text[self.at]
            if char == "\\":
                escaped = text[self.at + 1 : self.at + 2]
                parts.append(escaped if escaped in '"\\$`' else "" if escaped == "\n" else char + escaped)
                self.at += 2
            elif text.startswith("$(", self.at) or char == "`":
                parts.append(self._substitution())
            else:
                parts.append(char)
                self.at += 1
        self.at += 1

    def _substitution(self) -> str:
        start = self.at
        if self.text[start] == "`":
            end = self.text.find("`", start + 1)
            end = len(self.text) if end < 0 else end
            self.nested.append(self.text[start + 1 : end])
        else:
            end = _closing(self.text, start + 2)
            self.nested.append(self.text[start + 2 : end])
        self.at = end + 1
        return self.text[start : self.at]


def _closing(text: str, at: int) -> int:
    """Where the parenthesis that was opened before `at` is closed, quotes respected; the end if nowhere."""
    depth = 1
    quote = ""
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 1
        elif quote:
            if char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    return len(text)
