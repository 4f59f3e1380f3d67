"""Whose iteration is it? The script that called `fusewire loop`, however many subshells and wrappers lie in between."""

from __future__ import annotations

import os

from fusewire.runner.proctable import process_identity

#: Programs that only start another one and pass its end on.
_WRAPPERS = {
    *("chronic", "doas", "env", "ionice", "mise", "nice", "nohup", "npx", "pdm", "pipx", "poetry", "setsid", "stdbuf"),
    *("sudo", "time", "timeout", "uv", "uvx", "xargs"),
}

#: More processes above one another than anybody has.
_DEEPEST = 64


def owner() -> str:
    """The nearest process above us that stays: no wrapper, and no copy of a shell that it made for one command."""
    pids = _above()
    for pid, parent in zip(pids, [*pids[1:], 0], strict=True):
        if _name(pid) not in _WRAPPERS and _command(pid) != _command(parent):
            return process_identity(pid) or ""
    return process_identity(os.getppid()) or ""


def possible_owners() -> list[str]:
    """This process itself (a shell becomes its last command) and everything above it."""
    return [identity for pid in [os.getpid(), *_above()] if (identity := process_identity(pid))]


def _above() -> list[int]:
    found = [os.getppid()]
    while len(found) < _DEEPEST and (parent := _parent(found[-1])) > 1:
        found.append(parent)
    return found


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _name(pid: int) -> str:
    return os.path.basename(_command(pid).partition(b"\0")[0].decode("utf-8", "replace"))
