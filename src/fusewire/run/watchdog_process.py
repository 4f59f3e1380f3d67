"""What the warden's process does: read what there is to watch, and end it when the supervisor is gone.

It is started without the installed packages, and imports little: it lives as long as the run, beside it.
"""

from __future__ import annotations

import os
import signal
import time

from fusewire.util.processes import Process
from fusewire.util.reaper import end

#: Seconds for the agent between being asked to end and being killed. Nobody listens to it any more.
_GRACE = 2.0

#: An agent may have been in the middle of being started: so often it is looked for, with pauses of so many seconds.
_LOOKS, _PAUSE = 4, 0.1


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # those who end the supervisor mean the supervisor
    watched = _last_line()
    if watched:
        pid, start, mark = watched.split(" ")
        _end(mark, Process(int(pid), 0, int(pid), 0, start, False) if int(pid) else None)


def _last_line() -> str:
    """The last thing that the supervisor has said before the pipe was closed; it speaks in whole lines."""
    last, rest = b"", b""
    while data := os.read(0, 65536):
        *lines, rest = (rest + data).split(b"\n")
        last = lines[-1] if lines else last
    return last.decode()


def _end(mark: str, leader: Process | None) -> None:
    for _ in range(_LOOKS):
        end(mark, leader, _GRACE)
        time.sleep(_PAUSE)
