"""Interpreters and editors: what their one-liners and scripts do to files."""

from __future__ import annotations

from fusewire.guard.effects import DELETE, LINK, MODE, MOVE, READ, WRITE, Options
from fusewire.paths import normal
from fusewire.shell.outputs import printed
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.guard.effects import Call, Program

#: A longer script on the disk is not read; the integrity check stands behind it.
_SCRIPT_LIMIT = 20_000

_KINDS = {
    "write": WRITE,
    "delete": DELETE,
    "delete_tree": DELETE,
    "move": MOVE,
    "mode": MODE,
    "link": LINK,
    "read": READ,
}


def _code(call: Call, language: str, code: str, arguments: list[str]) -> None:
    """Tell the effects of a piece of code, in the order in which they would come."""
    from fusewire.guard.code import code_effects

    call.rule = f"guard.{language}"
    folder: str | None = None
    for kind, text in code_effects(language, code, arguments, cwd_hint=call.world.cwd):
        if kind == "chdir":
            folder = text if folder is None or text[:1] == "/" else f"{folder}/{text}"
            continue
        if kind == "shell":
            call.script(text, cwd=folder)
            continue
        text = call.walk.tainted(text) if text == UNKNOWN else text
        path = text if folder is None or text[:1] == "/" else f"{folder}/{text}"
        call.effect(_KINDS[kind], path, recursive=kind in ("delete_tree", "move"))
    call.walk.pristine = False
    call.print(UNKNOWN)


def _script(call: Call, language: str, name: str, arguments: list[str]) -> None:
    """A file of code: what the line has written into it, or what is on the disk and certain."""
    path = call.path(name)
    text = call.walk.files.get(normal(path))
    if text is None and not path.startswith("/dev/"):
        text = call.disk.read(path)
        if text is not None and len(text) <= _SCRIPT_LIMIT:
            with call.effects.unsure():
                _code(call, language, text, arguments)
        return
    if text is not None and UNKNOWN not in text:
        _code(call, language, text, arguments)


def _input(call: Call, language: str, arguments: list[str]) -> None:
    if call.world.stdin is not None and UNKNOWN not in call.world.stdin:
        _code(call, language, call.world.stdin, arguments)
    call.walk.pristine = False
    call.print(UNKNOWN)


def _interpreter(language: str, code: tuple[str, ...], valued: tuple[str, ...] = (), ends: str = "") -> Program:
    """An interpreter that takes code behind one of some options; `ends` is one that hides the rest (`-m`)."""

    def program(call: Call) -> None:
        args = call.args
        at = 0
        while at < len(args):
            word = args[at]
            if word in code:
                _code(call, language, "".join(args[at + 1 : at + 2]), args[at + 2 :])
                return
            name, equals, value = word.partition("=")
            if equals and name in code:
                _code(call, language, value, args[at + 1 :])
                return
            short = word[:1] == "-" and word[1:2] != "-"
            letter = next((one[1] for one in code if len(one) == 2 and short and one[1] in word[1:]), "")
            if letter and language == "python":  # -Ic CODE, -cCODE
                rest = word.partition(letter)[2]
                _code(call, language, rest or "".join(args[at + 1 : at + 2]), args[at + (1 if rest else 2) :])
                return
            if ends and short and word[-1:] == ends:
                _module(call, args[at + 1 :])
                return
            if word in ("-", "/dev/stdin"):
                _input(call, language, args[at + 1 :])
                return
            if word[:1] != "-":
                _script(call, language, word, args[at + 1 :])
                return
            at += 2 if word in valued else 1
        if "--version" not in args and "-V" not in args and "-v" not in args:
            _input(call, language, [])

    return program


def _module(call: Call, words: list[str]) -> None:
    """`python -m`: the modules that write where they are told."""
    if words[:1] == ["json.tool"]:
        names = Options(words[1:], "", ("indent",)).operands
        if len(names) > 1:
            call.write(names[1], rule="guard.python")
    elif words[:1] in (["zipfile"], ["tarfile"]) and words[1:2] in (["-e"], ["--extract"]):
        folder = words[3] if len(words) > 3 else "."
        call.run([{"zipfile": "unzip", "tarfile": "tar"}[words[0]], *_extracting(words[0], words[2], folder)])
    elif words:
        call.run([words[0], *words[1:]])
    call.print(UNKNOWN)


def _extracting(module: str, archive: str, folder: str) -> list[str]:
    return ["-o", archive, "-d", folder] if module == "zipfile" else ["-xf", archive, "-C", folder]


def _line_editor(language: str) -> Program:
    """perl and ruby: `-pi.bak -e CODE FILES`."""

    def program(call: Call) -> None:
        codes: list[str] = []
        inplace = False
        args = call.args
        at = 0
        while at < len(args):
            word = args[at]
            if word == "--":
                at += 1
                break
            if word[:1] != "-" or len(word) < 2:
                break
            at += 1
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in "eE":
                    codes.append(letters or "".join(args[at : at + 1]))
                    at += 0 if letters else 1
                    break
                if letter == "i":
                    inplace = True
                    break
                if letter in "MmIxCF":
                    at += 1 if letter == "I" and not letters else 0
                    break
                if letter == "r" and language == "ruby":
                    at += 0 if letters else 1
                    break
                if letter in "0l":
                    letters = letters.lstrip("0123456789abcdefx") if letter == "0" else letters.lstrip("0123456789")
        operands = args[at:]
        if inplace:
            for name in operands if codes else operands[1:]:
                if call.disk.exists(call.path(name)) or UNKNOWN in name or not call.walk.pristine:
                    call.effect(WRITE, name, follows=False)
        if codes:
            _code(call, language, "\n".join(codes), operands)
        elif operands and operands[0] != "-":
            _script(call, language, operands[0], operands[1:])
        elif "-v" not in args:
            _input(call, language, operands[1:])

    return program


def _awk(call: Call) -> None:
    codes: list[str] = []
    variables: list[str] = []
    inplace = False
    args = call.args
    at = 0
    while at < len(args) and args[at][:1] == "-" and len(args[at]) > 1:
        word = args[at]
        at += 1
        if word == "--":
            break
        option, value = word[:2], word[2:]
        if word in ("--include", "--assign", "--file", "--source", "--field-separator") or (
            option in ("-i", "-v", "-f", "-e", "-F") and not value
        ):
            value = "".join(args[at : at + 1])
            at += 1
        inplace = inplace or (option in ("-i", "--") and "inplace" in value)
        if option == "-v" or word == "--assign":
            variables.append(value)
        elif option == "-e" or word == "--source":
            codes.append(value)
        elif option == "-f" or word == "--file":
            codes.append(call.walk.read_file(call.path(value)) or "")
    operands = args[at:]
    if not codes:
        codes, operands = operands[:1], operands[1:]
    if inplace:
        for name in operands:
            call.effect(WRITE, name, follows=False)
    _code(call, "awk", "\n".join(codes), [*variables, *operands])


_SED_OPTIONS = ("in-place", "follow-symlinks", "expression", "file")


def _sed(call: Call) -> None:
    scripts: list[str] = []
    operands: list[str] = []
    inplace = follows = False
    args = call.args
    at = 0
    while at < len(args):
        word = args[at]
        at += 1
        if word == "--":
            operands += args[at:]
            break
        if word[:2] == "--":
            name, equals, value = word[2:].partition("=")
            name = next((one for one in _SED_OPTIONS if one.startswith(name)), name)
            inplace = inplace or name == "in-place"
            follows = follows or name == "follow-symlinks"
            if name in ("expression", "file"):
                if not equals:
                    value = "".join(args[at : at + 1])
                    at += 1
                scripts.append(value if name == "expression" else call.walk.read_file(call.path(value)) or "")
        elif word[:1] == "-" and len(word) > 1:
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter == "i":
                    inplace = True
                    break
                if letter in "efl":
                    value = letters
                    if not value:
                        value = "".join(args[at : at + 1])
                        at += 1
                    if letter != "l":
                        scripts.append(value if letter == "e" else call.walk.read_file(call.path(value)) or "")
                    break
        else:
            operands.append(word)
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    for name in operands:
        if not inplace:
            call.effect(READ, name)
        elif call.disk.exists(call.path(name)) or UNKNOWN in name or not call.walk.pristine:
            call.effect(WRITE, name, follows=follows)
    script = "\n".join(scripts)
    if "w" in script or "e" in script or "W" in script:
        from fusewire.guard.code import code_effects

        for kind, text in code_effects("sed", script, operands):
            if kind == "shell":
                call.script(text)
            elif text not in ("/dev/stdout", "/dev/stderr"):
                call.effect(_KINDS[kind], text)
    if not inplace:
        stdin = call.world.stdin
        if operands:
            texts = [call.walk.read_file(call.path(name)) for name in operands]
            stdin = "".join(UNKNOWN if text is None else text for text in texts)
        call.print(printed(["sed", script], stdin) or "" if len(scripts) == 1 else UNKNOWN)


def _ed(call: Call) -> None:
    """`ed FILE < script`: the script decides whether it writes."""
    options = Options(call.args, "p")
    if call.world.stdin is None:
        return
    if UNKNOWN in call.world.stdin:
        for name in options.operands:
            call.write(name)
        return
    _code(call, "ed", call.world.stdin, options.operands)


def _vi(call: Call) -> None:
    """`vim -es -c CMD FILE`, `ex FILE < script`."""
    commands: list[str] = []
    operands: list[str] = []
    args = call.args
    at = 0
    while at < len(args):
        word = args[at]
        at += 1
        if word in ("-c", "--cmd", "-S", "-s", "-u", "-i"):
            value = "".join(args[at : at + 1])
            if word == "-s" and (call.name == "ex" or "-e" in args):
                continue
            at += 1
            if word in ("-c", "--cmd"):
                commands.append(value)
            elif word in ("-S", "-s"):
                commands.append(call.walk.read_file(call.path(value)) or "")
        elif word[:1] == "+" and len(word) > 1:
            commands.append(word[1:])
        elif word[:1] != "-":
            operands.append(word)
    if not commands or "-e" in args or "-es" in args or call.name == "ex":
        commands.append(call.world.stdin or "")
    script = "\n".join(commands)
    if UNKNOWN in script:
        for name in operands:
            call.write(name)
    elif script.strip():
        _code(call, "ed", script, operands)


def _make(call: Call) -> None:
    """A makefile that the line itself has written or feeds in; others are not read."""
    options = Options(call.args, "fCIjlo", ("file", "directory"))
    name = options.value("f", "file")
    text = call.world.stdin if name == "-" else call.walk.files.get(normal(call.path(name or "Makefile")))
    with call.effects.unsure():
        for line in (text or "").splitlines():
            if line[:1] == "\t":
                call.script(line.lstrip("\t@-+").replace("$(", "${"), cwd=options.value("C", "directory"))
    call.walk.pristine = False
    call.print(UNKNOWN)


def _deno(call: Call) -> None:
    if call.args[:1] == ["eval"]:
        _code(call, "node", "".join(call.args[1:2]), call.args[2:])
    else:
        _interpreter("node", ("-e", "--eval"))(call)


_python: Callable[[Call], None] = _interpreter("python", ("-c",), ("-W", "-X", "--check-hash-based-pycs"), "m")
_node = _interpreter("node", ("-e", "--eval", "-p", "--print", "-pe"), ("-r", "--require", "--import"))

PROGRAMS: dict[str, Program] = {
    "awk": _awk,
    "bun": _node,
    "deno": _deno,
    "ed": _ed,
    "ex": _vi,
    "gawk": _awk,
    "gsed": _sed,
    "gmake": _make,
    "lua": _interpreter("lua", ("-e",), ("-l",)),
    "make": _make,
    "mawk": _awk,
    "nawk": _awk,
    "node": _node,
    "nodejs": _node,
    "nvim": _vi,
    "perl": _line_editor("perl"),
    "php": _interpreter("php", ("-r", "--run"), ("-d", "-c")),
    "pypy": _python,
    "pypy3": _python,
    "python": _python,
    "python2": _python,
    "python3": _python,
    "ruby": _line_editor("ruby"),
    "sed": _sed,
    "vi": _vi,
    "view": _vi,
    "vim": _vi,
}
