"""A second process that outlives the supervisor: if it dies, whatever kills it, its agent is ended nevertheless.

The warden reads a pipe of which only the supervisor has the other end, and acts when that end is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType

from fusewire.util.processes import look
from fusewire.util.reaper import check_mark

#: What the interpreter may need; the warden must not have the mark of an agent that this supervisor may run in.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

#: Without the installed packages and without the user's settings it starts faster, and nothing can be put before it.
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from fusewire.run.watchdog_process import main; main()"

#: Seconds in which a warden that was told to end does so.
_ENDING = 5.0


class Warden:
    """Started once for a whole run; told before and after each agent what there is to end."""

    def __init__(self) -> None:
        self._start()

    def __enter__(self) -> Warden:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        except OSError:  # somebody has ended it, or stopped it so long ago that the pipe is full
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
