"""Run one command line of Claude Code's shell with protected files read-only.

The wrapper that `install` writes starts it for commands of the Bash tool and for nothing else. What it cannot do leaves
the command as it would be without it, unless the project says `sandbox = "require"`: nobody loses their shell.
"""

import posix as os

from fusewire.guard.sandbox.lines import INSIDE, OUTSIDE, share, simple_commands
from fusewire.guard.sandbox.namespaces import environment
from fusewire.guard.sandbox.prepared import prepare
from fusewire.guard.sandbox.start import NOT_RUNNABLE, command, execute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

#: Where the client looks for a shell, if the user's own is none that it can use.
_SHELLS = tuple(f"{place}/{name}" for name in ("zsh", "bash") for place in ("/bin", "/usr/bin", "/usr/local/bin"))

#: Behind the agent's command, in what the client passes.
_END = " && pwd -P >|"

_EXECUTE = 1


def main(arguments: "Sequence[str]") -> "NoReturn":
    """Become the shell that runs the command, inside ring one where that is right."""
    if len(arguments) != 1:
        os.write(2, b"fusewire: the shell wrapper takes one argument, the command line\n")
        os._exit(2)
    argv, mode = shell_line(arguments[0]), ""
    try:
        root = project_of(_started_in() or os.getcwd())
        plan, means, (mode, outside) = prepare(root, documents=True)
        part = share(command_in(arguments[0]), outside) if mode != "off" else OUTSIDE
        if part != OUTSIDE and not means and mode == "require":
            raise LookupError("this machine has none; fusewire sandbox --check says why")
        if part != OUTSIDE and means:
            plan = plan if part == INSIDE else prepare(root, documents=False)[0]
            plan.missing = ()  # a placeholder would come and go with each command, and the client watches these folders
            command(plan, argv, means=means, required=mode == "require")
    except Exception as error:
        if mode == "require":
            line = f'fusewire: not run, because sandbox = "require": {error}'.replace("\n", " ")
            os.write(2, line.encode("utf-8", "replace") + b"\n")
            os._exit(NOT_RUNNABLE)
    execute(argv)


def _variable(name: bytes) -> str:
    return environment().get(name, b"").decode("utf-8", "surrogateescape")


def _started_in() -> str:
    """The folder that the client was started in: its commands may run elsewhere."""
    try:
        return os.readlink(f"/proc/{int(_variable(b'CLAUDE_PID'))}/cwd")
    except (OSError, ValueError):
        return ""


def project_of(start: str) -> str:
    """The project that guards a folder, as `rules.find_guarded` finds it."""
    folder, nearest, inside, repository = start, "", "", ""
    while True:
        if not nearest and _is_there(f"{folder}/docs/constraints/."):
            nearest = folder
        if _is_there(f"{folder}/.git"):
            inside, repository = nearest, repository or folder
        parent = folder.rpartition("/")[0]
        if not parent:
            return inside or repository or start
        folder = parent


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except OSError:
        return False
    return True


def command_in(text: str) -> str:
    """The command that the agent has given, out of what its client makes of it; all of it, if it is not found."""
    for words in simple_commands(text.rpartition(_END)[0] or text):
        if words[0] == "eval" and len(words) > 1 and words[2:] in ([], ["/dev/null"]):
            return words[1]
    return text


def shell_line(text: str) -> "list[str]":
    """The shell that the client would have used for a text; a person's own wrapper stands between the two."""
    usable = [path for path in map(_variable, (b"CLAUDE_CODE_SHELL", b"SHELL")) if path.endswith(("/bash", "/zsh"))]
    shell = next((path for path in (*usable, *_SHELLS) if os.access(path, _EXECUTE)), "/bin/sh")
    theirs = _variable(b"FUSEWIRE_SHELL_PREFIX")
    if not theirs:
        return [shell, "-c", text]
    program, dash, options = theirs.rpartition(" -") if " -" in theirs else (theirs, "", "")  # as the client reads it
    return [shell, "-c", f'"$0"{dash}{options} "$1"', program, text]
