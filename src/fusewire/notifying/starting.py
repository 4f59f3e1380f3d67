"""Begin to deliver in a process of its own, which nobody waits for. On a hook's way once something has moved."""

from __future__ import annotations

import os
import sys

from fusewire.notifying.surroundings import surroundings

#: What was started here and has not been seen to end: in a process that lives on, it would stay in the table for ever.
_started: list[int] = []

#: By this a loop knows what its agent has left behind, and ends it.
_MARK = "FUSEWIRE_MARK"

#: Set where an agent's sandbox lets nothing out: whoever tried from there would only lose the message.
_NO_NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"


def start(root: str) -> None:
    """Best effort: what is not delivered now, the next process delivers."""
    if os.environ.get(_NO_NETWORK):
        return
    _reap()
    script = os.path.join(os.path.dirname(__file__), "deliver.py")
    line = [sys.executable, "-I", script, root]
    environment = {name: value for name, value in surroundings().items() if name != _MARK}
    streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    try:
        try:
            pid = os.posix_spawn(line[0], line, environment, file_actions=streams, setsid=True)
        except NotImplementedError:  # a system that can only leave the group
            pid = os.posix_spawn(line[0], line, environment, file_actions=streams, setpgroup=0)
    except (OSError, ValueError):
        return
    _started.append(pid)


def _reap() -> None:
    """One by one: another thread may start or reap at the same time, and nothing that it wrote may be lost."""
    for pid in tuple(_started):
        if _has_ended(pid):
            try:
                _started.remove(pid)
            except ValueError:
                pass


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
