"""The simple commands in a command line, as lists of words: what would be run, not what is merely said.

`git commit -m "git push --force"` runs `git commit`; `cd x && sudo git push -f` runs `git push -f`. The characters are
walked without `re`; nothing is executed, no input raises, and the work is bounded: a line that nests its text again
and again is read flat in the end. Expanded is what stands in the line itself: literal variables, braces,
`$(echo ...)`. Constraints match on these words. (The guard on protected files needs more than words: it will read
redirections and effects.)
"""

from __future__ import annotations

from fusewire.words import NAME_CHARS, braces_expanded, escaped, matching_brace, parameter
from fusewire.wrappers import is_assignment, program, reads_input, scripts_of, unwrapped

__all__ = ["program", "simple_commands"]

#: Deeper nesting than anybody writes. Beyond it, and beyond the budget, quotes and brackets are read as separators,
#: so that what is hidden there is still found.
_DEPTH = 12

#: How many times its own length a line may be read in all.
_BUDGET = 6

_SEPARATORS = " \t\n;&|()<>"

_KEYWORDS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "coproc", "time"))

#: What ends a compound command; a reserved word behind it starts another command (`if [[ 1 ]] then git push`).
_CLOSERS = frozenset(("}", "fi", "done", "esac", "]]"))

#: A variable that is longer than this is not followed.
_VALUE_LIMIT = 4096

_DECLARATIONS = frozenset(("export", "declare", "local", "readonly", "typeset"))


def simple_commands(line: str) -> list[list[str]]:
    """Every command that the line would run, outermost first; wrapped ones also without their wrapper."""
    return _Shared(len(line)).commands_in(line, 0)


class _Shared:
    """What the readers of one line have in common: the work that is left, and the variables that are known."""

    def __init__(self, size: int) -> None:
        self.budget = _BUDGET * size + 10_000
        self.variables: dict[str, str] = {}

    def commands_in(self, text: str, depth: int) -> list[list[str]]:
        return self.read(text, depth).found

    def read(self, text: str, depth: int) -> _List:
        """A text as commands; flat if it is nested too deeply or too much was read already."""
        self.budget -= len(text)
        if depth <= _DEPTH and self.budget >= 0:
            return _Reader(text, depth, self).read_list("")
        flat = _List()
        flat.found = _flat(text)
        return flat

    def substituted_in(self, text: str, depth: int) -> list[list[str]]:
        """The commands that a text runs when it is only expanded, as in a here-document or in `${...}`."""
        inner = _List()
        if "$(" in text or "`" in text:
            self.budget -= len(text)
            if self.budget > 0:
                _Reader(text, depth, self)._quoted([], inner, "")
        return inner.nested


def _flat(text: str) -> list[list[str]]:
    for mark in "'\"`$(){};&|\\":
        text = text.replace(mark, "\n")
    return [words for part in text.split("\n") if (words := part.split())]


class _Heredoc:
    """A here-document that was announced; its body starts at the next line."""

    __slots__ = ("delimiter", "pipeline", "quoted", "strips_tabs")

    def __init__(self, delimiter: str, quoted: bool, strips_tabs: bool, pipeline: int) -> None:
        self.delimiter, self.quoted, self.strips_tabs = delimiter, quoted, strips_tabs
        self.pipeline = pipeline


class _List:
    """What is known of one list of commands while it is read."""

    __slots__ = (
        "at_start",
        "brackets",
        "cases",
        "found",
        "here_text",
        "heredocs",
        "nested",
        "output",
        "piped",
        "pipeline",
        "shells",
        "testing",
        "words",
    )

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
        #: the number of the current pipeline, and those in which a shell reads commands from its input
        self.pipeline = 0
        self.shells: set[int] = set()
        #: whether the next word is where a command begins, and a reserved word is one
        self.at_start = True
        #: how many `(` are open, how many `case` (whose patterns end with a `)`), and whether this is in `[[ ... ]]`
        self.brackets = 0
        self.cases = 0
        self.testing = False
        #: what a single `echo` or `cat <<EOF` would print
        self.output: str | None = None


class _Reader:
    def __init__(self, text: str, depth: int, shared: _Shared) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.shared = shared
        #: whether the word that was just read is split at its blanks, and whether an array is being read
        self.splits = False
        self.in_array = False

    def read_list(self, closer: str) -> _List:
        """The commands up to the closing bracket (or the end)."""
        text, size = self.text, len(self.text)
        now = _List()
        while self.at < size:
            char = text[self.at]
            if char in " \t":
                self.at += 1
            elif char == "\n":
                self.at += 1
                self._end_command(now, "")
                self._read_heredocs(now)
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif char in ";&|()<>" and now.testing:
                self.at += 1
            elif char == closer and not now.cases and not now.brackets:
                break
            elif text.startswith("((", self.at) and (now.at_start or now.words == ["for"]):
                self.at += 2
                if not self._arithmetic(now):
                    self.at -= 1
                    now.brackets += 1
                    self._end_command(now, "")
            elif char in ";&|()":
                if text.startswith("&>", self.at):
                    self._redirection(now)
                else:
                    pair = text[self.at : self.at + 2]
                    operator = pair if pair in ("||", "&&", "|&") else char
                    self.at += len(operator)
                    now.brackets = max(0, now.brackets + (char == "(") - (char == ")" and now.brackets > 0))
                    self._end_command(now, operator)
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = size if end < 0 else end
            elif char in "<>" or self._is_numbered_redirection():
                if now.words and now.words[-1][:1] == "{" and text[self.at - 1] == "}":
                    now.words.pop()  # {fd}>file
                self._redirection(now)
            else:
                self._take_word(now)
        self._end_command(now, "")
        self.at += 1
        return now

    def _take_word(self, now: _List) -> None:
        self.splits = False
        start = self.at
        word = self._word(now)
        raw = self.text[start : self.at]
        if raw == word:
            self._notice_reserved(word, now)
        else:
            now.at_start = now.at_start and is_assignment(word)
        if self.splits:
            now.words += word.split()
        elif "{" in raw and "," in raw and "'" not in raw and '"' not in raw:
            now.words += braces_expanded(word)
        else:
            now.words.append(word)

    def _notice_reserved(self, word: str, now: _List) -> None:
        """A reserved word is one only where a command begins, and only without quotes."""
        if now.at_start:
            now.cases = max(0, now.cases + (word == "case") - (word == "esac"))
            now.testing = word == "[["
            now.at_start = word in _KEYWORDS or word in _CLOSERS or is_assignment(word)
        elif word == "]]":
            now.testing = False
            now.at_start = True

    def _end_command(self, now: _List, operator: str) -> None:
        words = [word.rstrip("\r") for word in now.words]
        now.at_start, now.testing = True, False
        candidates = [unwrapped(candidate) for candidate in self._candidates(words)]
        if words:
            now.output = None
        for stages in candidates:
            now.found += stages
        now.found += now.nested
        for stages in candidates:
            self._run_scripts(stages, now)
        if program(words) == "echo" and len(now.found) <= 1:
            now.output = " ".join(word for word in words[1:] if word not in ("-n", "-e"))
        now.piped = words if operator in ("|", "|&") else []
        if operator not in ("|", "|&"):
            now.pipeline += 1
        now.words, now.nested, now.here_text = [], [], None

    def _candidates(self, words: list[str]) -> list[list[str]]:
        """The command without what stands before it, and what a reserved word behind a compound command starts."""
        first = 0
        while first < len(words) and (
            words[first] in _KEYWORDS or words[first] in _CLOSERS or is_assignment(words[first])
        ):
            timed = words[first] == "time" and words[first + 1 : first + 2] in (["-p"], ["--"])
            first += 2 if timed else 1
        if first < len(words) and words[first] == "function":
            first += 2  # its name
            first += words[first : first + 1] == ["{"]
        command = words[first:]
        self._learn(words[:first] if not command else command[1:] if command[0] in _DECLARATIONS else [])
        found = [command] if command else []
        for at in range(first + 1, len(words) - 1):
            behind = words[at - 1] in _CLOSERS or (words[0] == "for" and at == 2)
            if behind and words[at] in _KEYWORDS:
                found.append(words[at + 1 :])
                break
        return found

    def _learn(self, assignments: list[str]) -> None:
        for word in assignments:
            if is_assignment(word):
                name, _, value = word.partition("=")
                if name.endswith("+"):
                    name = name[:-1]
                    value = self.shared.variables.get(name, "") + value
                self.shared.budget -= len(value)
                if len(value) <= _VALUE_LIMIT:
                    self.shared.variables[name] = value
                else:
                    self.shared.variables.pop(name, None)

    def _run_scripts(self, stages: list[list[str]], now: _List) -> None:
        """Commands that a command reads as text: `bash -c`, `eval`, a here-string, an echo into a shell."""
        last = len(stages) - 1
        for at in sorted({0, max(0, last - 1), last}):
            for script in scripts_of(stages[at]):
                now.found += self.shared.commands_in(script, self.depth + 1)
        if any(reads_input(command) for command in stages):
            now.shells.add(now.pipeline)
            if now.here_text is not None:
                now.found += self.shared.commands_in(now.here_text, self.depth + 1)
            if program(now.piped) in ("echo", "printf"):
                joint = " " if program(now.piped) == "echo" else "\n"
                now.found += self.shared.commands_in(joint.join(now.piped[1:]), self.depth + 1)

    # -- redirections and here-documents --------------------------------------------------------------

    def _is_numbered_redirection(self) -> bool:
        end = self.at
        while end < len(self.text) and self.text[end] in "0123456789":
            end += 1
            if end - self.at > 4:
                return False
        return self.at < end < len(self.text) and self.text[end] in "<>"

    def _redirection(self, now: _List) -> None:
        """The operator and its target; a here-document's body is read at the end of the line."""
        text = self.text
        while self.at < len(text) and text[self.at] in "0123456789&":
            self.at += 1
        if text.startswith(("<(", ">("), self.at):
            self.at += 2
            now.nested += self._nested(now).found
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
            target = self._word(now)
            if here_text:
                now.here_text = target
            elif heredoc:
                raw = text[start : self.at]
                quoted = "'" in raw or '"' in raw or "\\" in raw
                now.heredocs.append(_Heredoc(target, quoted, strips_tabs, now.pipeline))

    def _read_heredocs(self, now: _List) -> None:
        """The bodies announced on the line that just ended: code if a shell of their pipeline reads them."""
        for heredoc in now.heredocs:
            start = self.at
            body_end = len(self.text)
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                one = self.text[self.at : end]
                body_end, self.at = self.at, end + 1
                if (one.lstrip("\t") if heredoc.strips_tabs else one) == heredoc.delimiter:
                    break
                body_end = len(self.text)
            body = self.text[start:body_end]
            if heredoc.pipeline in now.shells:
                now.found += self.shared.commands_in(body, self.depth + 1)
            elif not heredoc.quoted:
                now.found += self.shared.substituted_in(body, self.depth + 1)
            now.output = body.rstrip("\n") if now.found == [["cat"]] else None
        now.heredocs = []

    # -- words ----------------------------------------------------------------------------------------

    def _word(self, now: _List) -> str:
        """One word with its quotes taken off; the commands that it substitutes are put aside."""
        text, size = self.text, len(self.text)
        parts: list[str] = []
        unknown = ""
        while self.at < size:
            char = text[self.at]
            if char == "(" and not self.in_array and parts[-1:] == ["="] and len(parts) < 200:
                if not is_assignment("".join(parts)):
                    break
                self.at += 1
                parts.append(self._array(now))
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
                part, self.at = escaped(text, self.at + 2)
                parts.append(part)
            elif char == '"' or text.startswith('$"', self.at):
                self.at += 1 if char == '"' else 2
                unknown = self._quoted(parts, now, '"') or unknown
            elif char in "$`":
                value, raw = self._expansion(now)
                if value is None:
                    unknown = raw
                else:
                    parts.append(value)
                    self.splits = self.splits or " " in value or "\n" in value
            else:
                parts.append(char)
                self.at += 1
        # What cannot be known is nothing inside a word, and stays as it is written where it is the whole word.
        return "".join(parts) or unknown

    def _quoted(self, parts: list[str], now: _List, closer: str) -> str:
        """Inside double quotes, or a here-document that is expanded like them; what of it cannot be known."""
        text, size = self.text, len(self.text)
        unknown = ""
        while self.at < size and text[self.at] != closer:
            char = text[self.at]
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                parts.append(following if following in '"\\$`' else "" if following == "\n" else char + following)
                self.at += 2
            elif char in "$`":
                value, raw = self._expansion(now)
                if value is None:
                    unknown = unknown or raw
                else:
                    parts.append(value)
            else:
                parts.append(char)
                self.at += 1
        self.at += 1
        return unknown

    def _expansion(self, now: _List) -> tuple[str | None, str]:
        """What `$x`, `${x}`, `$(...)` or a backtick stands for, if that can be known, and how it is written."""
        text, start = self.text, self.at
        if text[start] == "`":
            end = start + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            self.at = end + 1
            inner = self.shared.read(text[start + 1 : end].replace("\\`", "`"), self.depth + 1)
            now.nested += inner.found
            return inner.output, text[start : self.at]
        if text.startswith("$((", start):
            self.at += 3
            if self._arithmetic(now):
                return None, text[start : self.at]
            self.at = start + 2
            now.nested += self._nested(now).found
            return None, text[start : self.at]
        if text.startswith("$(", start):
            self.at += 2
            inner = self._nested(now)
            now.nested += inner.found
            return inner.output, text[start : self.at]
        if text.startswith("$[", start):
            end = text.find("]", start)
            self.at = len(text) if end < 0 else end + 1
            return None, text[start : self.at]
        if text.startswith("${", start):
            end = matching_brace(text, start + 2)
            self.at = end + 1
            inside = text[start + 2 : end]
            now.nested += self.shared.substituted_in(inside, self.depth + 1)
            return parameter(inside, self.shared.variables), text[start : self.at]
        end = start + 1
        while end < len(text) and text[end] in NAME_CHARS:
            end += 1
        self.at = end
        name = text[start + 1 : end]
        return self.shared.variables.get(name) if name else "$", text[start:end]

    def _nested(self, outer: _List) -> _List:
        if self.depth >= _DEPTH:
            rest = self.shared.read(self.text[self.at :], _DEPTH + 1)
            self.at = len(self.text)
            return rest
        self.depth += 1
        found = self.read_list(")")
        self.depth -= 1
        for heredoc in found.heredocs:  # announced on a line that is not at its end yet
            heredoc.pipeline = -1
        outer.heredocs += found.heredocs
        return found

    def _array(self, now: _List) -> str:
        """`name=(...)`: words that are kept, not run; what they substitute is run. The words, joined."""
        words = []
        self.in_array = True
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] in _SEPARATORS:
                self.at += 1
            else:
                words.append(self._word(now))
        self.in_array = False
        self.at += 1
        return " ".join(words)

    def _arithmetic(self, now: _List) -> bool:
        """Past `((...))`, where only substitutions run commands; False (and not moved) if it is two subshells."""
        start, brackets = self.at, 2
        text = self.text
        while self.shared.budget > 0 and self.at < len(text):
            char = text[self.at]
            if text.startswith("$(", self.at) and not text.startswith("$((", self.at):
                self._expansion(now)
                continue
            if char in "'\"":
                end = text.find(char, self.at + 1)
                self.at = len(text) if end < 0 else end
            elif char == "(":
                brackets += 1
            elif char == ")":
                brackets -= 1
                if brackets == 1 and not text.startswith("))", self.at):
                    break
                if brackets == 0:
                    self.at += 1
                    return True
            self.at += 1
        self.shared.budget -= self.at - start
        self.at = start
        return False
