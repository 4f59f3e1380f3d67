"""`fusewire watch` on a pseudo-terminal, read as a person sees it, and a project that has something to show."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import Doing
from tests.helpers.project import Project

#: Seconds after which what has not come will not come.
DEADLINE = 30

WATCH = [sys.executable, "-m", "fusewire", "watch"]

AT_ONE = "circuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
AT_FIVE = "circuit_breaker:\n  violation_threshold: 5\n  dedup_seconds: 0\n"

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"

#: Everything that the screen may send besides text: colours, places, erasing, and a screen of its own.
ALLOWED = re.compile(rb"\x1b\[[0-9;:]*m|\x1b\[[0-9]+;[0-9]+H|\x1b\[K|\x1b\[2J|\x1b\[\?1049[hl]")


class Terminal:
    """A pseudo-terminal with a program on it, `fusewire watch` unless told otherwise."""

    def __init__(
        self, root: Path, *arguments: str, columns: int = 110, lines: int = 30, command: list[str] = WATCH, **env: str
    ) -> None:
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.sent = bytearray()
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=root,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.slave = slave

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self, seconds: float) -> bool:
        """Feed the screen with what has come; whether anything has."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        data = os.read(self.master, 65536)
        self.sent += data
        self.stream.feed(data)
        return True

    def until(self, seen: Callable[[str], object], keys: str = "") -> str:
        """Press keys and wait until the screen is as wanted; what stands on it then."""
        if keys:
            self.press(keys)
        deadline = time.monotonic() + DEADLINE
        while self.read(0) or not self._whole() or not seen(self.text()):
            assert time.monotonic() < deadline, f"after {keys!r}:\n{self.text()}"
            self.read(0.1)
        return self.text()

    def _whole(self) -> bool:
        """Whether what has come ends with the place of the cursor, as every picture of the view does."""
        return (
            b"\x1b[?1049h" not in self.sent
            or re.search(rb"\x1b\[\d+;\d+H\Z|1049l.*\Z", self.sent[-5000:], re.DOTALL) is not None
        )

    def shows(self, *words: str, keys: str = "", without: str = "\0") -> str:
        return self.until(lambda text: all(word in text for word in words) and without not in text, keys)

    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.screen.display]

    def text(self) -> str:
        return "\n".join(self.rows())

    def chosen(self) -> str:
        """The row with the mark; the cursor stands on it."""
        marked = [at for at, row in enumerate(self.rows()) if row.startswith("> ")]
        assert marked == [self.screen.cursor.y], self.text()
        return self.rows()[marked[0]]

    def color_of(self, word: str) -> str:
        for y, row in enumerate(self.screen.display):
            if word in row:
                return str(self.screen.buffer[y][row.index(word)].fg)
        raise AssertionError(f"{word!r} is not on the screen:\n{self.text()}")

    def wait(self) -> int:
        """The exit code; what was sent until then has been read, and the terminal's modes are as they were."""
        deadline = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        while self.read(0):
            pass
        code = self.process.wait(0)
        assert termios.tcgetattr(self.slave) == self.before
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


Make = Callable[..., Terminal]


@contextmanager
def terminals() -> Iterator[Make]:
    """Makes terminals, which are closed at the end."""
    made: list[Terminal] = []

    def make(*arguments: Any, **options: Any) -> Terminal:
        made.append(Terminal(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def filled(root: Path) -> Project:
    """A project with one open circuit, one near its limit, 40 closed ones, a halted session and a loop."""
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    project = Project(root)
    project.constraint("force-push", AT_ONE, "# Never force-push\n")
    project.constraint("no-secrets", AT_FIVE, "# No secrets here\n")
    project.constraint("comes-later", AT_ONE)
    with Breaker.open(project=root) as breaker:
        breaker.record("force-push", "git push --force origin main", session=SESSION)
        for number in range(4):
            breaker.record("no-secrets", f"cat .env {number}")
        for number in range(40):
            breaker.record(f"tool/tool_failure/Bash(program-{number:02})/{SESSION}", "exit 1")
        breaker.record("loop/no_progress", "nothing")
        now = time.time()
        with breaker.store.transact() as transaction:
            facts = {"at": now, "halted": {"text": "HALTED tool.repetition: six times the same\nmore"}}
            transaction.remember(f"session/{SESSION}", {**facts, "spend": {"usd": 1.25}}, now)
            transaction.remember("session/over", {"at": now - 100, "ended": now - 90}, now - 90)
            transaction.happened(Doing(SESSION, "", now, "refused", "Bash", "git push --force"))
            transaction.notice("something was mended", now)
    return project
