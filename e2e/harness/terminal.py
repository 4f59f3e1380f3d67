"""A program at a terminal of its own, with a person in front of it who reads the screen and presses keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from harness.processes import end_left

#: A step that takes longer than this has failed: everything here takes a second or two.
PATIENCE = 90

#: What moves the cursor or changes colours; and one that stands for a blank.
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_]|[()][0-9A-B])")


class Terminal:
    """The program runs from the beginning of the block to its end, and nothing of it runs any longer."""

    def __init__(self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], home: Path) -> None:
        self._command, self._cwd, self._environment, self._home = list(command), cwd, dict(environment), home
        self._raw = b""
        self._read = 0

    def __enter__(self) -> Terminal:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(self._cwd)
                os.execvpe(self._command[0], self._command, self._environment)
            finally:
                os._exit(127)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._master)
        end_left(self._home)

    def sees(self, *texts: str, seconds: float = PATIENCE) -> str:
        """Wait until one of these is shown that was not there at the last key; which one it was. Blanks do not count:
        programs move the cursor instead of writing them, and break lines where they like."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            screen = _letters(self._raw[self._read :])
            found = next((text for text in texts if _letters(text.encode()) in screen), "")
            if found:
                return found
            self._wait()
        raise AssertionError(f"none of {texts} within {seconds} s; the end of the screen:\n{self.screen()[-3000:]}")

    def types(self, keys: str) -> None:
        """What was shown before is read."""
        self._read = len(self._raw)
        os.write(self._master, keys.encode())

    def screen(self) -> str:
        return _ESCAPES.sub(b" ", self._raw).decode("utf-8", "replace")

    def _wait(self) -> None:
        if select.select([self._master], [], [], 0.1)[0]:
            try:
                self._raw += os.read(self._master, 1 << 16)
            except OSError:  # the other side is closed
                time.sleep(0.1)


def _letters(raw: bytes) -> str:
    return "".join(_ESCAPES.sub(b"", raw).decode("utf-8", "replace").split())
