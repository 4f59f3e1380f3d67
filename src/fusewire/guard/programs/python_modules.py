"""`python -m`: modules that write where they are told, and those that run other code."""

from __future__ import annotations

from fusewire.guard.effects import Options
from fusewire.guard.plain import writes_to
from fusewire.guard.programs.running import run_code, run_input, run_script, written
from fusewire.shell.values import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import Call

#: Modules that run a script, and their options with a value.
_RUNNERS = {"cProfile": "os", "profile": "os", "pdb": "c", "trace": "fCRs", "runpy": ""}

_LONG = ("outfile", "sort", "command", "file", "coverdir", "ignore-module", "ignore-dir")


def run_module(call: Call, words: list[str]) -> None:
    """A module by its name, with the words behind it."""
    name = words[0] if words else ""
    given = words[1:]
    own = next((path for path in _files_of(name) if written(call, path) is not None), None)
    if own is not None:
        run_script(call, "python", own, given)
    elif name in _RUNNERS:
        _runner(call, name, given)
    elif name in ("pytest", "unittest", "py.test"):
        run_tests(call, given)
    elif name in ("asyncio", "code"):
        run_input(call, "python", given)
    elif name == "timeit":
        _timed(call, given)
    elif name in ("zipfile", "tarfile"):
        _archive(call, name, given)
    elif name in _WRITERS:
        _WRITERS[name](call, given)
    elif name:
        call.run([name, *given])
    call.print(UNKNOWN)


def _files_of(name: str) -> list[str]:
    path = name.replace(".", "/")
    return [f"{path}.py", f"{path}/__main__.py"] if name else []


def _runner(call: Call, name: str, words: list[str]) -> None:
    """`cProfile -o FILE SCRIPT`, `pdb SCRIPT`, `trace -C FOLDER SCRIPT`, `runpy MODULE`."""
    at = 0
    while at < len(words) and words[at][:1] == "-" and words[at] != "-m":
        word = words[at]
        at += 2 if word[-1:] in (_RUNNERS[name] or "-") and word[:2] != "--" else 1
        if word[:2] == "--" and "=" not in word and any(one == word[2:] for one in _LONG):
            at += 1
    options = Options(words[:at], _RUNNERS[name], _LONG)
    for target in (options.value("o", "outfile"), options.value("f", "file")):
        if name != "pdb" and target:
            call.write(target, rule="guard.python")
    if name == "trace" and options.value("C", "coverdir"):
        call.write(f"{options.value('C', 'coverdir')}/{UNKNOWN}", rule="guard.python")
    rest = words[at:]
    if rest[:1] == ["-m"] or (name == "runpy" and rest):
        run_module(call, rest[1:] if rest[0] == "-m" else rest)
    elif rest:
        run_script(call, "python", rest[0], rest[1:])


def _timed(call: Call, words: list[str]) -> None:
    options = Options(words, "nrsu", ("number", "repeat", "setup", "unit"))
    code = [options.value("s", "setup") or "", *options.operands]
    run_code(call, "python", "\n".join(code), [])


def _archive(call: Call, name: str, words: list[str]) -> None:
    if words[:1] in (["-e"], ["--extract"]) and len(words) > 1:
        folder = words[2] if len(words) > 2 else "."
        tar = ["tar", "-xf", words[1], "-C", folder]
        call.run(["unzip", "-o", words[1], "-d", folder] if name == "zipfile" else tar)
    for at, word in enumerate(words[:-1]):
        if word in ("-c", "--create"):
            call.write(words[at + 1], rule="guard.python")


def _json_tool(call: Call, words: list[str]) -> None:
    for target in Options(words, "", ("indent",)).operands[1:2]:
        call.write(target, rule="guard.python")


def _venv(call: Call, words: list[str]) -> None:
    options = Options(words, "", ("prompt",))
    for folder in options.operands:
        if options.has("clear"):
            call.delete(folder, recursive=True, rule="guard.python")
        call.write(folder, rule="guard.python")


def _zipapp(call: Call, words: list[str]) -> None:
    target = Options(words, "omp", ("output", "main", "python")).value("o", "output")
    if target:
        call.write(target, rule="guard.python")


def _uu(call: Call, words: list[str]) -> None:
    for target in Options(words).operands[1:2]:
        call.write(target, rule="guard.python")


def _pydoc(call: Call, words: list[str]) -> None:
    for name in words[1:] if words[:1] == ["-w"] else []:
        call.write(f"{name.rstrip('/').rpartition('/')[2]}.html", rule="guard.python")


def _converter(call: Call, words: list[str]) -> None:
    """`lib2to3 -w -o FOLDER FILES`."""
    options = Options(words, "ofxj", ("output-dir", "fix", "nofix", "processes"))
    if not options.has("w", "write"):
        return
    folder = options.value("o", "output-dir")
    for name in options.operands:
        call.write(f"{folder}/{name}" if folder else name, rule="guard.python")


def _compiler(call: Call, words: list[str]) -> None:
    for name in Options(words, "rlwspdexio").operands:
        folder = name if call.disk.is_folder(call.path(name)) else name.rpartition("/")[0] or "."
        call.write(f"{folder}/__pycache__", rule="guard.python")


_WRITERS = {
    "json.tool": _json_tool,
    "venv": _venv,
    "zipapp": _zipapp,
    "uu": _uu,
    "pydoc": _pydoc,
    "lib2to3": _converter,
    "compileall": _compiler,
    "py_compile": _compiler,
}

#: Options of pytest that name a file or folder besides those whose name says so.
_PYTEST_FILES = ("--debug", "--log-file", "--basetemp", "--cov-config", "--junitxml", "--junit-xml")


def run_tests(call: Call, words: list[str]) -> None:
    """pytest and unittest: files of code that the line has written below here are run, tests in them too."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        value = value if equals else "".join(words[at + 1 : at + 2])
        if word == "-o" or (word == "--override-ini" and not equals):
            key, _, value = value.partition("=")
            if key.endswith(("_dir", "_file")):
                call.write(value, rule="guard.pytest")
        elif name in _PYTEST_FILES or writes_to(name):
            call.write(value, rule="guard.pytest")
    here = call.path(".").rstrip("./") + "/"
    for path, text in list(call.walk.files.items()):
        if path.startswith(here) and path.endswith(".py") and UNKNOWN not in text:
            run_code(call, "python", f"{text}\n{_calls(text)}", [], folder=path.rpartition("/")[0])
    call.walk.pristine = False
    call.effects.opaque = True
    call.print(UNKNOWN)


def _calls(text: str) -> str:
    """Code that calls the tests and fixtures of a file; what they are given is somewhere below /tmp."""
    lines: list[str] = []
    group = ""
    marked = False
    for line in text.splitlines():
        word = line.strip().removeprefix("async ")
        if word[:6] == "class ":
            group = word[6:].partition(":")[0].partition("(")[0].strip()
        elif word[:4] == "def ":
            name, _, rest = word[4:].partition("(")
            names = [one.partition(":")[0].partition("=")[0].strip(" *") for one in rest.partition(")")[0].split(",")]
            given = ", ".join(f"{one}=__import__('pathlib').Path('/tmp/pytest')" for one in names if one.isidentifier())
            owner = f"{group}()." if line[:1] in " \t" and group else ""
            given = "" if owner and not given else given
            is_run = name.startswith(("test", "pytest_", "setup", "teardown", "setUp", "tearDown")) or marked
            if is_run and (owner or line[:1] not in " \t"):
                lines.append(f"{owner}{name}({given})".replace("self=__import__('pathlib').Path('/tmp/pytest'), ", ""))
            group = group if line[:1] in " \t" else ""
        marked = word[:1] == "@" and "fixture" in word
    return "\n".join(lines)
