"""sqlite3: the databases that it writes, and the files and shells that its commands reach."""

from __future__ import annotations

from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program

#: option -> words that belong to it
_VALUED = {
    **dict.fromkeys(("cmd", "init", "separator", "nullvalue", "newline", "mmap", "maxsize", "vfs", "nonce", "heap"), 1),
    **dict.fromkeys(("lookaside", "pagecache"), 2),
}

#: Statements that change no database.
_READING = frozenset(
    "select explain values begin commit rollback end attach detach savepoint release pragma with vacuum".split()
)
_CHANGING = ("insert ", "update ", "delete ", "replace ")

#: Commands that name a file which is written, the last of their words.
_WRITING = ("output", "once", "save", "backup", "clone", "log", "trace", "open", "excel")

#: Every command that matters here, in the order in which sqlite3 takes a beginning for one of them.
_COMMANDS = (*_WRITING, "system", "shell", "import", "read", "restore", "archive", "cd", "www")


def _sqlite(call: Call) -> None:
    operands: list[str] = []
    texts: list[str] = []
    flags: set[str] = set()
    at = 0
    while at < len(call.args):
        word = call.args[at]
        at += 1
        if word[:1] != "-" or word == "-":
            operands.append(word)
            continue
        name = word.lstrip("-")
        flags.add(name)
        values = call.args[at : at + _VALUED.get(name, 0)]
        at += len(values)
        if name == "cmd":
            texts += values
        elif name == "init" and values:
            texts.append(call.walk.read_file(call.path(values[0])) or "")
    if flags & {"version", "help"}:
        return
    if len(operands) > 1:
        texts += operands[1:]
    elif call.world.stdin is not None:
        texts.append(call.world.stdin)
    session = _Session(call)
    for text in texts:
        session.read(text)
    database = _file_of(operands[0]) if operands else ""
    made = bool(database) and not call.disk.exists(call.path(database))  # even if it stays empty
    if (made or session.writes) and "readonly" not in flags and "mode=ro" not in "".join(operands[:1]):
        call.write(database)
    for name in session.attached if session.writes else ():
        call.write(_file_of(name))
    call.print(UNKNOWN)


def _file_of(name: str) -> str:
    """The file of a database; none if it is kept in memory."""
    if name.startswith("file:"):
        name = name[5:].partition("?")[0]
    return "" if name.startswith(":memory:") else name


class _Session:
    def __init__(self, call: Call) -> None:
        self.call = call
        self.writes = False
        self.attached: list[str] = []
        self._depth = 0

    def read(self, text: str) -> None:
        """Commands and statements: a line that begins with a dot is a command."""
        statements: list[str] = []
        for line in text.split("\n"):
            if line.lstrip()[:1] == ".":
                self._command(line.strip()[1:])
            elif not line.lstrip().startswith("--"):
                statements.append(line)
        for statement in "\n".join(statements).split(";"):
            self._statement(statement.strip())

    def _command(self, line: str) -> None:
        words = split(line)
        if not words:
            return
        name = next((one for one in _COMMANDS if one.startswith(words[0].lower())), "")
        rest = line.partition(" ")[2].strip()
        operands = [word for word in words[1:] if word[:1] != "-"]
        call = self.call
        if name in ("system", "shell"):
            call.script(rest)
        elif name in ("output", "once", "import", "read") and operands and operands[0][:1] == "|":
            call.script(" ".join(operands)[1:] if name in ("output", "once") else operands[0][1:])
            self.writes = self.writes or name == "import"
        elif name in _WRITING:
            target = _file_of(operands[-1]) if operands else ""
            if target not in ("stdout", "stderr", "off", "on"):
                call.write(target)
        elif name == "read" and operands and self._depth < 4:
            self._depth += 1
            self.read(call.walk.read_file(call.path(operands[0])) or "")
            self._depth -= 1
        elif name in ("import", "restore"):
            self.writes = True
        elif name == "archive":
            self.writes = True
            if any("x" in word for word in words[1:] if word[:1] == "-"):
                call.write(f"./{UNKNOWN}")
        elif name == "cd" and operands:
            call.world.cwd = call.path(operands[0])

    def _statement(self, text: str) -> None:
        if not text:
            return
        low = text.lower()
        first = low.split(None, 1)[0]
        literals = _literals(text)
        if UNKNOWN in text:
            self.writes = True
        if "writefile" in low:
            at = low.index("writefile")
            self.call.write(next(iter(_literals(text[at:])), UNKNOWN))
        if "edit(" in low and len(literals) > 1:
            self.call.script(literals[-1])
        if first == "vacuum":
            if " into" in low:
                self.call.write(literals[-1] if literals else UNKNOWN)
            else:
                self.writes = True
        elif first == "attach":
            words = text.split()
            self.attached.append(literals[0] if literals else words[2 if words[1].lower() == "database" else 1])
        elif (
            first not in _READING
            or (first == "pragma" and "=" in text)
            or (first == "with" and any(word in low for word in _CHANGING))
        ):
            self.writes = True


def _literals(text: str) -> list[str]:
    """What stands between quotes."""
    found: list[str] = []
    at = 0
    while at < len(text):
        mark = text[at]
        at += 1
        if mark in "'\"":
            end = text.find(mark, at)
            end = end if end >= 0 else len(text)
            found.append(text[at:end])
            at = end + 1
    return found


def split(line: str) -> list[str]:
    """Words that spaces separate, unless they stand between quotes."""
    words: list[str] = []
    at = 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        if line[at] in "'\"":
            end = line.find(line[at], at + 1)
            end = end if end >= 0 else len(line)
            words.append(line[at + 1 : end])
            at = end + 1
            continue
        end = at
        while end < len(line) and not line[end].isspace():
            end += 1
        words.append(line[at:end])
        at = end
    return words


PROGRAMS: dict[str, Program] = {"sqlite3": _sqlite}
