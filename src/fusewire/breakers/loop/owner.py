"""Find the script that called `fusewire loop`, however many subshells and wrappers lie in between."""

from __future__ import annotations

import os

from fusewire.util.processes import ancestors, process_identity

#: Programs that only start another one and pass its end on.
_WRAPPERS = {
    *("chronic", "doas", "env", "ionice", "mise", "nice", "nohup", "npx", "pdm", "pipx", "poetry", "setsid", "stdbuf"),
    *("sudo", "time", "timeout", "uv", "uvx", "xargs"),
}


def owner() -> str:
    """The nearest process above us that stays: no wrapper, and no copy of a shell that it made for one command."""
    pids = ancestors()
    for pid, parent in zip(pids, [*pids[1:], 0], strict=True):
        if _name(pid) not in _WRAPPERS and _command(pid) != _command(parent):
            return process_identity(pid) or ""
    return process_identity(os.getppid()) or ""


def possible_owners() -> list[str]:
    """This process itself (a shell becomes its last command) and everything above it."""
    return [identity for pid in [os.getpid(), *ancestors()] if (identity := process_identity(pid))]


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _name(pid: int) -> str:
    return os.path.basename(_command(pid).partition(b"\0")[0].decode("utf-8", "replace"))
