"""Interpreters: what their one-liners and scripts do to files."""

from __future__ import annotations

from fusewire.guard.effects import WRITE
from fusewire.guard.programs.python_modules import run_module, run_tests
from fusewire.guard.programs.running import run_code, run_input, run_script, variable, written
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call, Program


def _interpreter(language: str, code: tuple[str, ...], valued: tuple[str, ...] = (), ends: str = "") -> Program:
    """An interpreter that takes code behind one of some options; `ends` is one that hides the rest (`-m`)."""

    def program(call: Call) -> None:
        args = call.args
        at = 0
        while at < len(args):
            word = args[at]
            if word in code:
                run_code(call, language, "".join(args[at + 1 : at + 2]), args[at + 2 :])
                return
            name, equals, value = word.partition("=")
            if equals and name in code:
                run_code(call, language, value, args[at + 1 :])
                return
            short = word[:1] == "-" and word[1:2] != "-"
            letter = next((one[1] for one in code if len(one) == 2 and short and one[1] in word[1:]), "")
            if letter and language == "python":  # -Ic CODE, -cCODE
                rest = word.partition(letter)[2]
                run_code(call, language, rest or "".join(args[at + 1 : at + 2]), args[at + (1 if rest else 2) :])
                return
            if ends and short and word[-1:] == ends:
                run_module(call, args[at + 1 :])
                return
            if word in ("-", "/dev/stdin"):
                run_input(call, language, args[at + 1 :])
                return
            if word[:1] != "-":
                run_script(call, language, _folder_script(call, language, word), args[at + 1 :])
                return
            at += 2 if word in valued else 1
        if "--version" not in args and "-V" not in args and "-v" not in args:
            run_input(call, language, [])

    return program


def _python(call: Call) -> None:
    """python, with what it does before it comes to the code."""
    prefix = variable(call, "PYTHONPYCACHEPREFIX")
    for word in call.args:
        prefix = word.partition("=")[2] if "pycache_prefix=" in word else prefix
    if prefix:
        call.write(f"{prefix}/{UNKNOWN}", rule="guard.python")
    for folder in (variable(call, "PYTHONPATH") or "").split(":"):
        for name in ("sitecustomize.py", "usercustomize.py"):
            if folder and written(call, f"{folder}/{name}") is not None:
                run_script(call, "python", f"{folder}/{name}", [])
    startup = variable(call, "PYTHONSTARTUP")
    if startup and written(call, startup) is not None and (not call.args or call.args[0].startswith("-i")):
        run_script(call, "python", startup, [])
    _python_code(call)


def _folder_script(call: Call, language: str, name: str) -> str:
    """`python FOLDER`, `node FOLDER`, `node x`: the file that is meant."""
    ends = ("/__main__.py",) if language == "python" else (".js", ".cjs", ".mjs", "/index.js", "/index.mjs")
    if language not in ("python", "node") or written(call, name) is not None:
        return name
    return next((name + end for end in ends if written(call, name + end) is not None), name)


#: Options of node that name a folder or a file that it writes, and those that name code.
_NODE_FOLDERS = ("--cpu-prof-dir", "--heap-prof-dir", "--report-dir", "--report-directory", "--diagnostic-dir")
_NODE_FILES = (
    *("--redirect-warnings", "--test-reporter-destination", "--trace-event-file-pattern", "--report-filename"),
    "--experimental-sea-config",
)
_NODE_CODE = ("-r", "--require", "--import", "--loader", "--experimental-loader")


def _node(call: Call) -> None:
    """node, with what its options and variables make it write and run besides."""
    given = [*(variable(call, "NODE_OPTIONS") or "").split(), *call.args]
    for at, word in enumerate(given):
        name, equals, value = word.partition("=")
        value = value if equals else "".join(given[at + 1 : at + 2])
        if name in _NODE_FOLDERS:
            call.write(f"{value}/{UNKNOWN}", rule="guard.node")
        elif name in _NODE_FILES and value not in ("stdout", "stderr"):
            call.write(value, rule="guard.node")
        elif name in _NODE_CODE:
            script = _folder_script(call, "node", value)
            if written(call, script) is not None:
                run_script(call, "node", script, [])
    coverage, warnings = variable(call, "NODE_V8_COVERAGE"), variable(call, "NODE_REDIRECT_WARNINGS")
    if coverage:
        call.write(f"{coverage}/{UNKNOWN}", rule="guard.node")
    if warnings:
        call.write(warnings, rule="guard.node")
    shown = [spot for spot, word in enumerate(call.args) if word in ("-p", "--print", "-pe")]
    code = "".join(call.args[shown[0] + 1 : shown[0] + 2]) if shown else ""
    if code and ";" not in code:
        run_code(call, "node", f"console.log({code})", call.args[shown[0] + 2 :])
    else:
        _node_code(call)


def _pytest(call: Call) -> None:
    run_tests(call, call.args)


def _line_editor(language: str) -> Program:
    """perl and ruby: `-pi.bak -e CODE FILES`."""

    def program(call: Call) -> None:
        codes: list[str] = []
        modules: list[str] = []
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
                if letter in "Mm" and language == "perl":
                    module = (letters or "".join(args[at : at + 1])).lstrip("-")
                    at += 0 if letters else 1
                    modules.append(f"use {module.partition('=')[0]};")
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
            run_code(call, language, "\n".join(modules + codes), operands)
        elif operands and operands[0] != "-":
            run_script(call, language, operands[0], operands[1:])
        elif "-v" not in args:
            run_input(call, language, operands[1:])

    return program


def _deno(call: Call) -> None:
    if call.args[:1] == ["eval"]:
        run_code(call, "node", "".join(call.args[1:2]), call.args[2:])
    else:
        _interpreter("node", ("-e", "--eval"))(call)


_python_code = _interpreter("python", ("-c",), ("-W", "-X", "--check-hash-based-pycs"), "m")
_node_code = _interpreter(
    "node", ("-e", "--eval", "-p", "--print", "-pe"), (*_NODE_CODE, *_NODE_FOLDERS, *_NODE_FILES, "--conditions", "-C")
)

PROGRAMS: dict[str, Program] = {
    "bun": _node,
    "deno": _deno,
    "lua": _interpreter("lua", ("-e",), ("-l",)),
    "node": _node,
    "nodejs": _node,
    "perl": _line_editor("perl"),
    "php": _interpreter("php", ("-r", "--run"), ("-d", "-c")),
    "py.test": _pytest,
    "pypy": _python,
    "pypy3": _python,
    "pytest": _pytest,
    "python": _python,
    "python2": _python,
    "python3": _python,
    "ruby": _line_editor("ruby"),
}
