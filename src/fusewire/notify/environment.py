"""The environment of a delivery: where messages go is not for the command of an agent to say.

A proxy, certificates, a `PATH`, a folder of configuration, the variable with a URL: whoever sets them for one command
leads its messages astray, on purpose or because a test wants them so. A hook is started by the agent itself. A command
is started by the agent's shell, and what that was started with is still on record, whatever was set in it since.
"""

from __future__ import annotations

import os
import sys

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"))


def surroundings() -> dict[str, str]:
    """Ours; for a command of an agent, what the agent gave it. Where nobody knows that (no /proc), ours again."""
    given = b"" if os.path.basename(sys.argv[0]) == "hook.py" else _given()
    entries = (entry.partition(b"=") for entry in given.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries if name} or dict(os.environ)


def take_surroundings() -> None:
    """For a command that delivers itself, before it does."""
    found = surroundings()
    os.environ.clear()
    os.environ.update(found)


def _given() -> bytes:
    """What the outermost agent above started its shell with; without a shell, what it was started with itself.

    A shell may have given way to the only command in its line, and then the record is that of the command.
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
