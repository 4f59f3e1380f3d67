"""The shell wrapper of Claude Code: runs one command line with protected files read-only.

The wrapper that `install` writes starts it as `python3 -I -S .../fusewire/hook.py shell COMMAND`, for commands of the
Bash tool and nothing else. What it cannot judge runs as it would without it, unless the project says
`sandbox = "require"`: nobody loses their shell.
"""

from __future__ import annotations

import os

from fusewire.guard.sandbox.active import OWN_PREFIX, means_here
from fusewire.guard.sandbox.lines import INSIDE, OUTSIDE, share
from fusewire.rules import find_guarded, load_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from fusewire.rules import Rules

#: Where the client itself looks for a shell, if the user's own is none that it can use.
_SHELLS = tuple(f"{place}/{name}" for name in ("zsh", "bash") for place in ("/bin", "/usr/bin", "/usr/local/bin"))

#: Behind the person's command, in what the client passes.
_END = " && pwd -P >|"

#: Done before this process becomes a shell; `hook` sets it.
at_end: Callable[[], None] | None = None


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the shell that runs the command, inside ring one where that is right."""
    if len(arguments) != 2:
        os.write(2, b"fusewire hook shell: one argument is expected, the command line\n")
        os._exit(2)
    argv, rules = shell_line(arguments[1]), None
    try:
        start = _started_in()
        root = find_guarded(start)
        rules = load_rules(root, keeps=True)
        _confined(command_in(arguments[1]), argv, rules, root)
    except Exception as error:
        if rules is not None and rules.sandbox[0] == "require":
            line = f'fusewire: not run: sandbox = "require", and there is none here: {error}'
            os.write(2, line.replace("\n", " ").encode("utf-8", "replace") + b"\n")
            os._exit(126)
    _finish()
    os.execv(argv[0], argv)


def _confined(line: str, argv: list[str], rules: Rules, root: str) -> None:
    """Become the shell inside ring one; returns if the line runs outside of it."""
    mode, outside = rules.sandbox
    part = share(line, outside, os.getcwd()) if mode != "off" else OUTSIDE
    if part == OUTSIDE:
        return
    means = means_here()
    if not means:
        if mode == "require":
            raise LookupError("fusewire sandbox --check says why")
        return
    from fusewire.guard.policy import protected_of
    from fusewire.guard.sandbox.plan import plan
    from fusewire.guard.sandbox.start import command

    planned = plan(protected_of(root, rules), documents=part == INSIDE)
    _finish()
    command(planned, argv, means=means)


def _finish() -> None:
    if at_end:
        at_end()


def _started_in() -> str:
    """The folder that the agent was started in: its commands may run anywhere."""
    client = os.environ.get("CLAUDE_PID", "")
    try:
        return os.environ.get("CLAUDE_PROJECT_DIR") or os.readlink(f"/proc/{int(client)}/cwd")
    except (OSError, ValueError):
        return os.getcwd()


def command_in(text: str) -> str:
    """The command that the agent has given, out of what its client makes of it; all of it, if it is not found."""
    body = text[: text.rfind(_END)] if _END in text else text
    at = body.find("eval ")
    while at >= 0:
        word, behind = _word(body, at + 5)
        if behind.strip() in ("", "< /dev/null"):
            return word
        at = body.find("eval ", at + 5)
    return text


def _word(text: str, at: int) -> tuple[str, str]:
    """The word that begins at a place, without its quotes, and the text behind it."""
    word, quote = [], ""
    while at < len(text) and (quote or text[at] != " "):
        char = text[at]
        if char == "\\" and quote != "'" and at + 1 < len(text):
            at += 1
            word.append(text[at])
        elif char == quote or (not quote and char in "'\""):
            quote = "" if quote else char
        else:
            word.append(char)
        at += 1
    return "".join(word), text[at:]


def shell_line(text: str) -> list[str]:
    """The shell that the client would have used for a text; a person's own wrapper stands between the two."""
    own = [os.environ.get(name, "") for name in ("CLAUDE_CODE_SHELL", "SHELL")]
    usable = [path for path in own if path.endswith(("/bash", "/zsh"))]
    shell = next((path for path in (*usable, *_SHELLS) if os.access(path, os.X_OK)), "/bin/sh")
    theirs = os.environ.get(OWN_PREFIX, "")
    if not theirs:
        return [shell, "-c", text]
    program, dash, options = theirs.rpartition(" -") if " -" in theirs else (theirs, "", "")  # as the client reads it
    return [shell, "-c", f'"$0"{dash}{options} "$1"', program, text]
