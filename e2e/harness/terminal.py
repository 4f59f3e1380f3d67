"""A program at a terminal of its own, with a person in front of it who reads the screen and presses keys."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from harness.processes import end_left

_T = TypeVar("_T")

#: A step that takes longer than this has failed: everything here takes a second or two.
PATIENCE = 40

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

        return self.reads_until(lambda: self.shows(*texts), f"none of {texts}", seconds)

    def shows(self, *texts: str) -> str:
        """Which of these is shown since the last key."""
        screen = _letters(self._raw[self._read :])
        return next((text for text in texts if _letters(text.encode()) in screen), "")

    def reads_until(
        self, question: Callable[[], _T], what: str = "it does not come to that", seconds: float = PATIENCE
    ) -> _T:
        """Read the screen until the answer is true; what it was."""
        until = time.monotonic() + seconds
        while not (answer := question()):
            if time.monotonic() > until:
                raise AssertionError(f"{what} within {seconds} s; the end of the screen:\n{self.screen()[-3000:]}")
            self._wait()
        return answer

    def begins(self, ready: str, words: str, has_begun: Callable[[], object]) -> None:
        """Wait until the program waits for words, and say them; again, should it not have listened yet."""
        self.sees(ready)
        for _ in range(10):
            self.types(words)
            self.sees(words)
            with contextlib.suppress(AssertionError):
                return self.presses("\r", has_begun, times=1)
        raise AssertionError(f"it does not begin:\n{self.screen()[-3000:]}")

    def presses(self, key: str, is_done: Callable[[], object], times: int = 5) -> None:
        """Press a key until it is done: on a busy machine, a question may be shown before it takes an answer."""
        while True:
            times -= 1
            self.types(key)
            with contextlib.suppress(AssertionError):
                self.reads_until(is_done, seconds=8)
                return
            assert times, f"{key!r} does nothing; the end of the screen:\n{self.screen()[-3000:]}"

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
