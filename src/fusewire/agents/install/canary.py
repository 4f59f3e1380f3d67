"""Put a forbidden call to a registered command line, exactly as the agent would make it.

The hook is asked whether a protected file may be deleted, in a project that exists only for this; and where a shell
wrapper is registered, a command that writes to that file is run through it. Only this shows that a registration works:
its program starts, reads this agent's words and refuses in them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fusewire.agents.caller import AGENT_VARIABLES
from fusewire.agents.install.client import Client
from fusewire.agents.install.command import parts_of
from fusewire.agents.registry import CLIENTS
from fusewire.util.fast_json import JsonObject
from fusewire.util.gitdir import make_git_dir
from fusewire.util.quoting import quoted

FORBIDDEN = "rm -rf specs"

_PROTECTED = "# Nothing deletes this\n"

#: Calls that import different modules, as they differ from Claude Code's question about a plain command.
_KINDS: tuple[JsonObject, ...] = (
    {"hook_event_name": "SessionStart", "source": "startup"},
    {"hook_event_name": "UserPromptSubmit", "prompt": "Begin"},
    {},
    {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "specs", "stderr": "", "interrupted": False}},
    {"tool_input": {"command": "cd specs && grep -n 'a b' *.md | head -5 > found.txt"}},
    {"tool_input": {"command": FORBIDDEN}},
    {"tool_name": "Edit", "tool_input": {"file_path": "a.py", "old_string": "a", "new_string": "b"}},
    {"hook_event_name": "Stop"},
)

#: Longer than the hook's own deadline.
_PATIENCE = 20


@dataclass(frozen=True, slots=True)
class Canary:
    """Whether a forbidden call was refused, what was said, and what an allowed one costs beside bare Python."""

    blocked: bool
    allows: bool
    answer: str
    allowed_ms: float | None = None
    bare_ms: float | None = None
    #: what the agent's own way to start a hook costs before it, such as reading the user's whole profile
    shell_ms: float = 0.0
    #: whether a write through the agent's shell left a protected file as it was; None where no ring one is registered
    intact: bool | None = None

    @property
    def ratio(self) -> float | None:
        """The hook's own time in units of an interpreter that does nothing."""
        return (self.allowed_ms - self.shell_ms) / self.bare_ms if self.allowed_ms and self.bare_ms else None

    @property
    def problem(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if not self.blocked:
            return f"the hook did not refuse `{FORBIDDEN}`: {self.answer or 'it said nothing'}"
        return "" if self.allows else f"the hook does not let a harmless call pass: {self.answer}"


def fly(client: Client, handler: JsonObject, rounds: int = 0, wrapper: str = "") -> Canary:
    """Make the forbidden call and a harmless one; then measure so many rounds of harmless ones. With a `wrapper`, also
    write to a protected file through it."""
    with _project() as root:
        code, said = _call(client, handler, root, FORBIDDEN, 0)
        blocked = code == 2 and "BLOCKED" in said
        if not blocked:
            return Canary(False, True, _first_line(said, code))
        code, harmless = _call(client, handler, root, "ls", 1)
        if code or "BLOCKED" in harmless:
            return Canary(True, False, _first_line(harmless, code))
        measured = _measured(client, handler, root, rounds)
        return Canary(True, True, _first_line(said, 2), *measured, _stays_intact(client, root, wrapper))


def _stays_intact(client: Client, root: str, wrapper: str) -> bool | None:
    """Whether a command that the agent's shell runs can write to its own files, and not to a protected one."""
    if not wrapper:
        return None
    tried = "echo changed >> specs/a.md; echo written > done.txt"
    text = f"eval {quoted(tried)} < /dev/null && pwd -P >| {quoted(os.path.join(root, 'cwd'))}"
    environment = _environment(client, root) | {"CLAUDE_CODE_SESSION_ATTENDED": "0"}
    _run(["/bin/sh", "-c", f"{quoted(wrapper)} {quoted(text)}"], root, environment, b"")
    with open(os.path.join(root, "specs", "a.md")) as file:
        return file.read() == _PROTECTED and os.path.exists(os.path.join(root, "done.txt"))


def exercise(client: Client, handler: JsonObject) -> None:
    """Make a call of each common kind, after which the hook's start-up cache has the code for all of them."""
    with _project() as root:
        call = _payload(client, root, "ls", 0)
        for difference in _KINDS:
            _run(_words(client, handler), root, _environment(client, root), json.dumps(call | difference).encode())


def _measured(client: Client, handler: JsonObject, root: str, rounds: int) -> tuple[float | None, float | None, float]:
    """Milliseconds of an allowed call, of bare Python, and of a login shell where there is one: medians."""
    allowed: list[float] = []
    bare: list[float] = []
    shell: list[float] = []
    environment = _environment(client, root)
    python = parts_of(handler, client.name)[0] or sys.executable
    for number in range(rounds):  # in turns, so that whatever else the machine does falls on all
        bare.append(_timed([python, "-I", "-S", "-c", "pass"], root, environment, b""))
        if client.hook_shell == "login":
            shell.append(_timed(_words(client, {"command": "exec true"}), root, environment, b""))
        given = json.dumps(_payload(client, root, f"ls {number}", number + 2)).encode()
        allowed.append(_timed(_words(client, handler), root, environment, given))
    if not rounds:
        return None, None, 0.0
    return statistics.median(allowed), statistics.median(bare), statistics.median(shell) if shell else 0.0


def _timed(words: list[str], root: str, environment: dict[str, str], given: bytes) -> float:
    start = time.perf_counter()
    _run(words, root, environment, given)
    return 1000 * (time.perf_counter() - start)


def _first_line(said: str, code: int) -> str:
    line = said.strip().partition("\n")[0][:200]
    return line or f"exit code {code}"


def _call(client: Client, handler: JsonObject, root: str, command: str, number: int) -> tuple[int, str]:
    """One question to the hook; its exit code, and everything that it said."""
    payload = json.dumps(_payload(client, root, command, number)).encode()
    return _run(_words(client, handler), root, _environment(client, root), payload)


def _words(client: Client, handler: JsonObject) -> list[str]:
    """How this agent starts a hook: by its words, or with the shell that it uses."""
    program = next(str(handler[key]) for key in ("exec", "command", "bash") if key in handler)
    arguments = handler.get("args")
    if isinstance(arguments, list):
        return [program, *map(str, arguments)]
    return client.hook_words(program)


def _environment(client: Client, root: str) -> dict[str, str]:
    """What the agent gives its hook; the variables of an agent around us would lead it astray."""
    theirs = {*AGENT_VARIABLES, *(name for one in CLIENTS.values() for name in one.project_variables)}
    theirs |= {one.hook_folder_variable for one in CLIENTS.values()}
    kept = {key: value for key, value in os.environ.items() if key not in theirs and not key.startswith("FUSEWIRE_")}
    return kept | client.hook_environment(root)


def _payload(client: Client, root: str, command: str, number: int) -> JsonObject:
    """What the agent sends before it runs a command."""
    payload: JsonObject = {
        "session_id": "fusewire-canary",
        "cwd": root,
        "hook_event_name": client.gate,
        "tool_name": client.shell_tool,
        "tool_input": {"command": command, "description": "fusewire doctor"},
    }
    if client.calls_have_ids:
        return payload | {"permission_mode": "default", "tool_use_id": f"canary-{number}"}
    return payload | {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())}


@contextmanager
def _project() -> Iterator[str]:
    """A repository with one protected file, gone afterwards."""
    root = os.path.realpath(tempfile.mkdtemp(prefix="fusewire-canary-"))
    try:
        os.makedirs(os.path.join(root, "specs"))
        with open(os.path.join(root, "specs", "a.md"), "w") as file:
            file.write(_PROTECTED)
        make_git_dir(root)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _run(words: list[str], root: str, environment: dict[str, str], given: bytes) -> tuple[int, str]:
    try:
        process = subprocess.Popen(
            words,
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{words[0]}: {error.strerror}"
    with process:
        try:
            printed, said = process.communicate(given, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it has just ended; macOS calls that not permitted
            process.communicate()
            return 124, f"no answer within {_PATIENCE} s"
    return process.returncode, (said + b"\n" + printed).decode(errors="replace").strip()
