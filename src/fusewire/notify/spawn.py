"""Begin to deliver in a process of its own, which nobody waits for. On a hook's way once something has moved.

One process of a project delivers and one more waits for its turn, however much happens: the turn is an open file with
a lock on it, which we take and hand on. Where somebody has it already, that one will read what was just written.
"""

from __future__ import annotations

import os
import sys

from fusewire.config.rules import STATE_FOLDER
from fusewire.guard.known_agents import OFFLINE_VARIABLES
from fusewire.notify.environment import surroundings
from fusewire.util.files import FileLock

#: Held from before a process is started until it begins to read; and the number under which it has it.
NEXT_TURN = "notify-next.lock"
HANDED_ON = 3

#: What was started here and has not been seen to end: in a process that lives on, it would stay in the table for ever.
_started: list[int] = []

#: By this a loop knows what its agent has left behind, and ends it.
_MARK = "FUSEWIRE_MARK"


def start(root: str) -> None:
    """Best effort: what is not delivered now, the next process delivers."""
    if any(os.environ.get(name) for name in OFFLINE_VARIABLES):
        return  # the message would only be lost
    _reap()
    try:
        with FileLock(os.path.join(root, STATE_FOLDER, NEXT_TURN), wait=0.0) as turn:
            _hand_on(root, turn.descriptor)
    except (OSError, ValueError):
        pass


def _hand_on(root: str, turn: int) -> None:
    script = os.path.join(os.path.dirname(__file__), "deliver.py")
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
