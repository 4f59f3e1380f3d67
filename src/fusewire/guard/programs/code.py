"""Find the code that interpreters run, in their words, files or input, and its effects by `guard.code`."""

from __future__ import annotations

from fusewire.guard.code import found_in
from fusewire.guard.effects import DELETE, MODE, MOVE, SCRIPT_LIMIT, WRITE
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.paths import normal
from fusewire.guard.shell.values import UNKNOWN
from fusewire.guard.shell.wrappers import is_wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.effects import ProgramCall

_KINDS = {"write": WRITE, "into": WRITE, "delete": DELETE, "move": MOVE, "mode": MODE}

#: Programs that are not named like their language.
_OTHER_NAMES = {
    **dict.fromkeys(("gawk", "mawk", "nawk"), "awk"),
    **dict.fromkeys(("bun", "deno", "nodejs"), "node"),
    "pypy": "python",
}

#: language -> short options that take code, others that take a value, long options with code
_OPTIONS = {
    "python": ("c", "WX", ""),
    "node": ("ep", "rC", "eval= print= require= import="),
    "perl": ("eE", "IMmxF", ""),
    "ruby": ("e", "IrCEF", ""),
    "php": ("r", "dcf", "run="),
    "lua": ("e", "l", ""),
    "awk": ("e", "vFfi", "source= file= assign= field-separator= include="),
}


def run_code(call: ProgramCall, language: str, code: str, arguments: list[str]) -> None:
    """Tell the effects of a piece of code."""
    call.rule = f"guard.{language}"
    call.walk.pristine = False
    locks = any(word in code for word in ("flock", "lockf", "LOCK_"))
    if locks and (".fusewire" in code or call.redirected_to_state()):
        call.write(call.redirected_to_state() or ".fusewire")  # a lock of our own would keep the hook waiting
    for kind, text, recursive in found_in(language, code, arguments):
        if kind == "shell" and recursive:  # in a folder that is not known: only its words count
            with call.effects.unsure(call.walk):
                call.script(text, cwd=UNKNOWN)
        elif kind == "shell":
            call.script(text)
        elif kind == "lock":
            if (locks or "sqlite3" in code) and call.is_state(text):
                call.write(text)
        elif kind != "write" or not call.disk.is_folder(call.path(text)):
            inside = kind == "into" and call.disk.is_folder(call.path(text))
            call.effect(_KINDS[kind], f"{text}/{UNKNOWN}" if inside else text, recursive=recursive or kind == "move")


def _run_file(call: ProgramCall, language: str, name: str, arguments: list[str]) -> None:
    """A file of code: what the line has written into it, or what is on the disk and certain."""
    path = call.path(name)
    text = call.walk.files.get(normal(path))
    if text is not None:
        run_code(call, language, text, arguments)
        return
    call.walk.pristine = False
    text = call.disk.read(path) if not path.startswith("/dev/") else None
    if text is not None and len(text) <= SCRIPT_LIMIT:
        with call.effects.unsure(call.walk):
            run_code(call, language, text, arguments)


def run_interpreter(call: ProgramCall) -> None:
    """An interpreter with code in its words, in a file or in its input."""
    name = call.name.rstrip("0123456789.")
    language = _OTHER_NAMES.get(name, name)
    call.print(UNKNOWN)
    if language == "python" and "-m" in call.args[:3]:  # a module: what it does is its own affair
        call.walk.pristine = False
        module = call.args[call.args.index("-m") + 1 :]
        if module and is_wrapper(module[0]):
            call.run(module)
        else:
            call.outputs(module)
        return
    if language == "node":
        call.outputs([word for word in call.args if word[:2] == "--"])
    letters, valued, longs = _OPTIONS[language]
    args, evaluates = call.args, call.args[:1] == ["eval"] and name in ("deno", "bun")
    if evaluates or (args[:1] == ["run"] and name in ("deno", "bun")):
        args = args[1:]
    optional = "i0lmM" if language in ("perl", "ruby") else ""
    argv = Argv(args, letters + valued, longs, optional=optional, permutes=False)
    codes = argv.values(*letters, "eval", "print", "run", "source")
    files = argv.values("f", "file") if language == "awk" else []
    operands = argv.operands
    if evaluates or (language == "awk" and not codes and not files):
        codes, operands = operands[:1], operands[1:]
    if argv.has("i") and (optional or "inplace" in (argv.value("i") or "")):
        for operand in operands if codes else operands[1:]:
            if not call.is_missing(operand):
                call.effect(WRITE, operand, follows=False, rule=f"guard.{language}")
    if codes:
        run_code(call, language, "\n".join(codes), operands)
    elif operands and operands[0] not in ("-", "/dev/stdin"):
        _run_file(call, language, operands[0], operands[1:])
    elif call.world.stdin is not None:
        run_code(call, language, call.world.stdin, operands[1:])
    for file in files:
        _run_file(call, language, file, operands)
