"""Start a second process that outlives the supervisor: if that dies, whatever kills it, its agent is still ended.

The warden's process reads a pipe of which only the supervisor has the other end, and acts when that end is closed. It
starts without the installed packages and imports little, because it lives as long as the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from fusewire.util.processes import Process, look
from fusewire.util.reaper import check_mark, end

#: What the interpreter may need; the warden must not have the mark of an agent that this supervisor may run in.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

#: Without the installed packages and without the user's settings it starts faster, and nothing can be put before it.
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from fusewire.run.watchdog import main; main()"

#: Seconds in which a warden whose pipe was closed ends.
_ENDING = 5.0

#: Seconds for an agent without a supervisor between SIGTERM and SIGKILL; its output goes nowhere any more.
_GRACE = 2.0

#: The agent may have been in the middle of being started: how often it is looked for, and the seconds in between.
_LOOKS, _PAUSE = 4, 0.1


class Warden:
    """Started once for a whole run; told before and after each agent what there is to end."""

    def __init__(self) -> None:
        self._start()

    def __enter__(self) -> Warden:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch(self, pgid: int, mark: str) -> None:
        """From now on this is what has to be ended; `pgid` is 0 while the agent is being started."""
        leader = look(pgid) if pgid else None
        line = f"{pgid} {leader.start} {check_mark(mark)}\n" if leader else f"0 0 {check_mark(mark)}\n"
        try:
            os.write(self._write, line.encode())
        except OSError:  # it was killed, or stopped so long ago that the pipe is full
            self._stop(0.0)
            self._start()
            os.write(self._write, line.encode())

    def rest(self) -> None:
        """Nothing has to be ended."""
        try:
            os.write(self._write, b"\n")
        except OSError:
            pass  # it is gone, or will find that what it has to end is gone

    def close(self) -> None:
        """End it; what it watched is left alone."""
        self.rest()
        self._stop(_ENDING)

    def _start(self) -> None:
        read, self._write = os.pipe()  # inherited by nobody, or the warden would never see its end
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _source()],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._write)
            raise
        finally:
            os.close(read)
        os.set_blocking(self._write, False)

    def _stop(self, seconds: float) -> None:
        os.close(self._write)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _source() -> str:
    """The folder that has the package."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# -- the warden's process ------------------------------------------------------------------------------------


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
