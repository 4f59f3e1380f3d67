"""Build the command line that is registered with an agent, and recognise one of ours that was registered earlier."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import Any

import fusewire
from fusewire.agents.install.http import reports_to_us
from fusewire.util.errors import FusewireError
from fusewire.util.quoting import quoted

#: Keys under which agents take the program of a hook, or a whole line for a shell.
_PROGRAMS = ("exec", "command", "bash")

_ASK = "import sys; print(sys.version_info[:2] == {version} and sys.executable)"


def hook_line(name: str) -> list[str]:
    """The hook as a list of words, by absolute paths: the fastest way to start it, whatever folder the agent is in."""
    hook = os.path.join(os.path.dirname(os.path.abspath(fusewire.__file__)), "hook.py")
    if not os.path.isfile(hook):
        raise FusewireError(
            f"{hook} is missing: Fusewire is not installed as files, and an agent cannot start its hook"
        )
    line = [interpreter(), "-I", "-S", hook, name]
    for word in line:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise FusewireError(f"{word!a} is not UTF-8, and settings cannot name it") from None
    return line


def interpreter() -> str:
    """The Python that runs the hook: the one that runs now, by the name that will live as long as this installation.

    A virtual environment's own `bin/python` is right although it is a link: the hook's file lies in the same
    environment, so both come and go together, and what the link points to changes with every update of the system. For
    the same reason a plain `/usr/bin/python3` is not resolved to `python3.12`. But a version manager's shim is no
    interpreter: it looks for one on every start, slowly, and another one in another folder. It is told apart
    by asking: the interpreter behind it names itself.
    """
    version = tuple(sys.version_info[:2])
    for candidate in (sys.executable, getattr(sys, "_base_executable", ""), os.path.realpath(sys.executable or ".")):
        answer = _names_itself(candidate, version) if candidate else ""
        if answer and os.path.realpath(answer) != os.path.realpath(candidate):
            candidate, answer = answer, _names_itself(answer, version)
        if answer and os.path.isabs(candidate):
            return candidate
    raise FusewireError(
        f"no Python {version[0]}.{version[1]} was found that starts with -I -S (tried {sys.executable})"
    )


def _names_itself(program: str, version: tuple[int, ...]) -> str:
    line = [program, "-I", "-S", "-c", _ASK.format(version=version)]
    try:
        done = subprocess.run(line, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    answer = os.fsdecode(done.stdout).strip()
    return answer if done.returncode == 0 and os.path.isabs(answer) else ""


def shell_line(line: list[str], end: str = "exit 1") -> str:
    """The words for a shell of the usual kind, which leaves nothing of itself between the agent and the hook.

    A hook whose files are gone must not lock anybody out of their agent: Python ends with 2 where a script is missing,
    and 2 means "refused" to agents. So the shell looks first, and its `end` is one that lets the agent go on.
    """
    python, hook = quoted(line[0]), quoted(line[3])
    gone = f"echo 'fusewire: this hook is gone, nothing is guarded' >&2; {end};"
    return f"[ -x {python} ] && [ -f {hook} ] || {{ {gone} }}; exec {' '.join(map(quoted, line))}"


def words_of(handler: Any) -> list[str]:
    """The words that a registered hook runs; nothing if it runs no command."""
    if not isinstance(handler, dict):
        return []
    program: str | None = next((handler[key] for key in _PROGRAMS if isinstance(handler.get(key), str)), None)
    if program is None:
        return []
    arguments = handler.get("args")
    if isinstance(arguments, list):
        words = [program, *(word for word in arguments if isinstance(word, str))]
    else:
        words = _split(program)
    if words[-2:-1] == ["-c"]:  # a line for another shell
        words = [*words[:-1], *_split(words[-1])]
    return words


def line_of(handler: Any) -> str | None:
    """What a registered hook runs, as people read it."""
    if isinstance(handler, dict) and not isinstance(handler.get("args"), list):
        return next((handler[key] for key in _PROGRAMS if isinstance(handler.get(key), str)), None)
    return " ".join(map(quoted, words_of(handler))) or None


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def parts_of(handler: Any, name: str) -> tuple[str, str]:
    """The interpreter and the file of a hook that is ours; nothing where it is the program `fusewire` itself."""
    words = words_of(handler)
    for at, word in enumerate(words):
        if word.endswith("/fusewire/hook.py") and words[at + 1 : at + 2] == [name]:
            start = max((place for place in range(at) if not words[place].startswith("-")), default=0)
            return words[start], word
    return "", ""


def is_ours(handler: Any, name: str) -> bool:
    """Whether a registered hook is Fusewire's for this agent: `.../fusewire/hook.py NAME`, or `fusewire hook NAME`; or
    one that reports to our server."""
    words = words_of(handler)
    return reports_to_us(handler, name) or any(
        (word.endswith("/fusewire/hook.py") and words[at + 1 : at + 2] == [name])
        or (os.path.basename(word) == "fusewire" and words[at + 1 : at + 3] == ["hook", name])
        for at, word in enumerate(words)
    )


def is_our_status_line(value: Any) -> bool:
    words = words_of(value)
    return any(
        (word.endswith("/fusewire/hook.py") or os.path.basename(word) == "fusewire")
        and words[at + 1 : at + 2] == ["statusline"]
        for at, word in enumerate(words)
    )
