"""Scripts of line editors: sed, ed, and the commands of ex and vim."""

from __future__ import annotations

from fusewire.guard.code.values import UNKNOWN, Effect

_STREAMS = frozenset(("/dev/stdout", "/dev/stderr"))

#: Input that is looked at line by line.
_INPUT = 4000

#: Commands of ex that write the file they are in, then those that write every file.
_WRITING = frozenset(
    (
        "w",
        "wr",
        "wri",
        "writ",
        "write",
        "wq",
        "W",
        "Wq",
        "x",
        "xi",
        "xit",
        "exi",
        "exit",
        "up",
        "upd",
        "update",
        "wn",
        "ZZ",
    )
)
_WRITING_ALL = frozenset(("wa", "wall", "wqa", "wqall", "xa", "xall"))
_SAVING = frozenset(("sav", "save", "saveas"))
_EDITING = frozenset(
    ("e", "E", "ed", "edi", "edit", "ex", "vi", "visual", "f", "fi", "file", "n", "next", "sp", "new", "tabe")
)
_MAKING = frozenset(
    ("mks", "mksession", "mkvie", "mkview", "mkexrc", "mkvimrc", "wundo", "wviminfo", "hardcopy", "TOhtml")
)
_READING = frozenset(("r", "re", "rea", "read"))

#: Words before a command of ex that change nothing about what it does.
_PREFIXES = ("silent", "sil", "noautocmd", "keepjumps", "keepalt", "bufdo", "argdo", "windo", "tabdo", "exe", "execute")


def sed_effects(code: str, stdin: str | None = None) -> list[Effect]:
    """What a sed script does besides printing: files that it writes or reads, commands that it runs."""
    effects: list[Effect] = []
    at = 0
    while at < len(code):
        at = _after_address(code, at)
        if at < len(code):
            at = _sed_command(code, at, effects)
    if stdin is None or UNKNOWN in stdin or len(stdin) > _INPUT:
        return effects
    return [found for effect in effects for found in _on_lines(effect, stdin)]


def _on_lines(effect: Effect, stdin: str) -> list[Effect]:
    """What is run of lines that are known: each of them, with what is added before and behind it."""
    kind, text = effect
    if kind != "shell" or UNKNOWN not in text:
        return [effect]
    return [effect, *[(kind, text.replace(UNKNOWN, line, 1).replace(UNKNOWN, "")) for line in stdin.splitlines()]]


def _line_end(code: str, at: int) -> int:
    end = code.find("\n", at)
    return len(code) if end < 0 else end


def _delimited(code: str, at: int, mark: str) -> int:
    """Behind the next mark that is neither escaped nor in a set of characters."""
    in_set = False
    while at < len(code) and (code[at] != mark or in_set):
        if code[at] == "\\":
            at += 1
        elif code[at] == "[" and not in_set:
            in_set = "]" in code[at + 2 :] and mark in code[code.find("]", at + 2) :]
            at += 1 + (code[at + 1 : at + 2] == "^")
        elif code[at] == "]":
            in_set = False
        at += 1
    return at + 1


def _after_address(code: str, at: int) -> int:
    """Behind the lines to which a command applies."""
    while at < len(code):
        char = code[at]
        if char == "/":
            at = _delimited(code, at + 1, "/")
        elif char == "\\" and at + 1 < len(code):
            at = _delimited(code, at + 2, code[at + 1])
        elif char.isspace() or char in ";{}!,$~+-" or char.isdigit() or (char in "IM" and at and code[at - 1] in "/"):
            at += 1
        else:
            break
    return at


def _sed_command(code: str, at: int, effects: list[Effect]) -> int:
    """Read the command at `at`; where the next one may begin."""
    char = code[at]
    end = _line_end(code, at)
    if char in "wWrR":
        effects += _named("write" if char in "wW" else "read", code[at + 1 : end])
        return end
    if char == "e":
        effects.append(("shell", code[at + 1 : end].strip() or UNKNOWN))
        return end
    if char in "aic":
        while end < len(code) and code[end - 1] == "\\":
            end = _line_end(code, end + 1)
        return end
    if char in ":btT#}":
        stop = code.find(";", at) if char in "btT" else -1
        return min(end, stop) if stop >= 0 else end
    if char in "sy" and at + 1 < len(code):
        return _substitution(code, at, effects)
    return at + 1


def _substitution(code: str, at: int, effects: list[Effect]) -> int:
    """`s/regex/replacement/flags`, of which `w file` and `e` do something."""
    mark = code[at + 1]
    middle = _delimited(code, at + 2, mark)
    behind = middle
    while behind < len(code) and code[behind] != mark:
        behind += 2 if code[behind] == "\\" else 1
    replacement = code[middle:behind]
    regex = code[at + 2 : middle - 1]
    is_substitution = code[at] == "s"
    at = behind + 1
    while is_substitution and at < len(code) and code[at] not in ";}\n#":
        if code[at] == "w":
            end = _line_end(code, at)
            effects += _named("write", code[at + 1 : end])
            return end
        if code[at] == "e":
            effects.append(("shell", _replaced(regex, replacement)))
        at += 1
    return at


def _replaced(regex: str, replacement: str) -> str:
    """The line that `s///e` runs: the replacement, with something unknown for what the pattern leaves."""
    text = replacement.replace("\\&", "\0").replace("&", UNKNOWN).replace("\0", "&")
    for digit in "123456789":
        text = text.replace("\\" + digit, UNKNOWN)
    return text if regex.strip("^$") == ".*" else f"{UNKNOWN}{text}{UNKNOWN}"


def _named(kind: str, path: str) -> list[Effect]:
    path = path.strip()
    return [(kind, path)] if path and path not in _STREAMS else []


def ed_effects(code: str, arguments: list[str]) -> list[Effect]:
    """What the commands of ed, ex or vim write and run; `arguments` are the files that are edited."""
    editor = Editor(arguments)
    in_text = False
    for line in code.split("\n"):
        if in_text:
            in_text = line.strip() != "."
            continue
        in_text = _starts_text(line)
        if not in_text:
            editor.run(line)
    return editor.effects


def _starts_text(line: str) -> bool:
    """Whether lines of text follow: `a`, `3i`, `$c`, `append`."""
    return _command(line)[0] in ("a", "i", "c", "append", "insert", "change")


def _command(line: str) -> tuple[str, str]:
    """The name of the command behind its address, and the rest."""
    at = _after_ed_address(line)
    end = at
    while end < len(line) and line[end].isalpha():
        end += 1
    return line[at:end], line[end:]


def _after_ed_address(line: str) -> int:
    at = 0
    while at < len(line):
        char = line[at]
        if char in "/?":
            at = _delimited(line, at + 1, char)
        elif char == "'":
            at += 2
        elif char.isspace() or char in ".$,;%:+-*" or char.isdigit():
            at += 1
        else:
            break
    return at


class Editor:
    """Remembers which file is edited."""

    def __init__(self, arguments: list[str]) -> None:
        self.effects: list[Effect] = []
        self.files = arguments
        self.file = arguments[0] if arguments else ""

    def run(self, line: str, depth: int = 0) -> None:
        """One command, and those behind its bars."""
        name, rest = _command(line)
        if depth > 8:
            return
        if not name:
            at = _after_ed_address(line)
            if line[at : at + 1] == "!":
                self.effects.append(("shell", line[at + 1 :].lstrip("!").strip() or UNKNOWN))
            return
        inner = rest.removeprefix("!").strip().strip("'\"")
        if name in _PREFIXES and inner[:1] == "!":
            self.effects.append(("shell", inner.lstrip("!").strip() or UNKNOWN))
        elif name in _PREFIXES or name.rstrip("!") in _PREFIXES:
            self.run(rest.lstrip("! ").strip("'\""), depth + 1)
        elif name in ("g", "v", "global", "vglobal") or (name[0] in "gGvV" and rest[:1] in ("/",)):
            body = rest.lstrip("!")
            self.run(body[_delimited(body, 1, body[0]) :] if body else "", depth + 1)
        elif name in ("s", "substitute", "normal", "norm"):
            self.behind_bar(rest, depth)
        elif name in ("call", "let", "echo"):
            self.run_function(rest)
        elif name in ("lua", "python", "py", "python3", "py3", "pyx", "perl", "ruby"):
            self.run_code(name, rest)
        else:
            self.run_file_command(name, rest, depth)

    def run_file_command(self, name: str, rest: str, depth: int) -> None:
        own, _, following = rest.partition("|") if "!" not in rest.lstrip("!") else (rest, "", "")
        is_forced = own.startswith("!") and (own[1:2] in ("", " ") or name in _WRITING_ALL)
        target = own[1:].strip() if is_forced else own.strip()
        if target.startswith("!") and name in (*_WRITING, *_READING, *_EDITING):
            self.effects.append(("shell", target[1:].strip() or UNKNOWN))
        elif name in _WRITING_ALL:
            self.effects += [("write", path) for path in self.files]
        elif name in _WRITING or name in _SAVING:
            path = target.removeprefix(">>").strip().replace("%", self.file or UNKNOWN) or self.file
            self.effects += _named("write", path)
            self.file = self.file or path
        elif name in _EDITING and target:
            self.file = target
            self.effects += _named("read", target) if name not in ("f", "fi", "file") else []
        elif name in _READING:
            self.effects += _named("read", target)
        elif name in ("redi", "redir") and target.lstrip("!")[:1] == ">":
            self.effects += _named("write", target.lstrip("!> "))
        elif name in _MAKING and target:
            self.effects += _named("write", target)
        elif name in ("cd", "lcd", "chdir"):
            self.effects += _named("chdir", target)
        if following:
            self.run(following, depth + 1)

    def behind_bar(self, rest: str, depth: int) -> None:
        """`s/a/b/ | w`: a bar behind the last slash begins another command."""
        mark = rest[:1]
        if mark and not mark.isalnum() and mark not in ' "|':
            end = _delimited(rest, _delimited(rest, 1, mark), mark)
            rest = rest[end:]
        _, bar, following = rest.partition("|")
        if bar:
            self.run(following, depth + 1)

    def run_function(self, rest: str) -> None:
        """`call delete('x')`, `call writefile([...], 'x')`, `call system('x')`."""
        from fusewire.guard.code.brackets import matching, split
        from fusewire.guard.code.lexer import Lexer

        tokens = Lexer("lua", rest).read()
        for at, token in enumerate(tokens):
            if token.kind != "name" or at + 1 >= len(tokens) or tokens[at + 1].text != "(":
                continue
            inner = split(tokens[at + 2 : matching(tokens, at + 1)])
            given = [part[0].text if len(part) == 1 and part[0].kind == "text" else UNKNOWN for part in inner]
            kinds = {"delete": ("delete",), "rename": ("move", "write"), "system": ("shell",), "mkdir": ("write",)}
            if token.text == "writefile":
                self.effects += [("write", path) for path in given[1:2]]
            elif token.text == "delete" and given[1:2] == ["rf"]:
                self.effects.append(("delete_tree", given[0]))
            else:
                self.effects += list(zip(kinds.get(token.text.removesuffix("list"), ()), given, strict=False))

    def run_code(self, name: str, rest: str) -> None:
        from fusewire.guard.code import code_effects

        language = name if name in ("lua", "perl", "ruby") else "python"
        self.effects += code_effects(language, rest.strip(), [])
