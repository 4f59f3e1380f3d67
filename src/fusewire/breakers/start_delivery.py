"""Start the process that delivers notifications, and do not wait for it; a hook does this after a circuit has moved.

At most one process of a project delivers and one more waits for its turn: the turn is an open file with a lock on it,
which we take and pass to the process. Where another process holds the lock, it will read what was just written.
"""

from __future__ import annotations

import os
import sys

from fusewire.agents.environment import surroundings
from fusewire.config.rules import STATE_FOLDER
from fusewire.guard.known_agents import OFFLINE_VARIABLES
from fusewire.util.files import FileLock

#: Held from before a process is started until it begins to read; and the number under which it has it.
NEXT_TURN = "notify-next.lock"
HANDED_ON = 3

#: Started here and not reaped yet: in a long-lived process they would stay zombies.
_started: list[int] = []

#: A loop finds the orphans of its agent by this variable, and ends them.
_MARK = "FUSEWIRE_MARK"


def start(root: str) -> None:
    """Start a delivery, best effort: what is not delivered now, the next process delivers."""
    if any(os.environ.get(name) for name in OFFLINE_VARIABLES):
        return  # the message would only be lost
    _reap()
    try:
        with FileLock(os.path.join(root, STATE_FOLDER, NEXT_TURN), wait=0.0) as turn:
            _spawn(root, turn.descriptor)
    except (OSError, ValueError):
        pass


def _spawn(root: str, turn: int) -> None:
    script = os.path.join(os.path.dirname(os.path.dirname(__file__)), "notify", "deliver.py")
    line = [sys.executable, "-I", script, root]
    environment = {name: value for name, value in surroundings().items() if name != _MARK}
    streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    files = [(os.POSIX_SPAWN_DUP2, turn, HANDED_ON), *streams]
    try:
        pid = os.posix_spawn(line[0], line, environment, file_actions=files, setsid=True)
    except NotImplementedError:  # a system that can only leave the group
        pid = os.posix_spawn(line[0], line, environment, file_actions=files, setpgroup=0)
    _started.append(pid)


def _reap() -> None:
    """Reap one by one: another thread may start or reap processes at the same time."""
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
