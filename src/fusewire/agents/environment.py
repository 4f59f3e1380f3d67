"""Find the environment that an agent gave its command, whatever the command line has set since.

A delivery must not depend on what one command sets: a proxy, certificates, `PATH`, a configuration folder or the
variable with a URL would send its messages elsewhere. A hook is started by the agent itself. A command is started by
the agent's shell, and the environment of that shell is still readable in /proc.
"""

from __future__ import annotations

import os
import sys

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"))


def surroundings() -> dict[str, str]:
    """Our environment; for a command of an agent, what the agent gave it, where /proc shows that."""
    given = b"" if os.path.basename(sys.argv[0]) == "hook.py" else _given()
    entries = (entry.partition(b"=") for entry in given.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries if name} or dict(os.environ)


def take_surroundings() -> None:
    """Replace our environment by it: for a command that delivers in its own process."""
    found = surroundings()
    os.environ.clear()
    os.environ.update(found)


def _given() -> bytes:
    """The environment of the shell that the outermost agent started; without a shell, that of the agent.

    A shell may have been replaced by the only command in its line; then the record is that of the command.
    """
    from fusewire.agents.caller import is_agent
    from fusewire.util.processes import ancestors, environment, started_as

    lines = [(pid, started_as(pid)) for pid in (os.getpid(), *ancestors())]
    agents = [at for at, (_, words) in enumerate(lines) if at and is_agent(words)]
    if not agents:
        return b""
    lowest = agents.pop()
    while agents and agents[-1] == lowest - 1:  # one that has started itself once more
        lowest = agents.pop()
    below, words = lines[lowest - 1]
    is_shell = words[0].rpartition("/")[2].lstrip("-") in _SHELLS
    return environment(below if is_shell else lines[lowest][0])
