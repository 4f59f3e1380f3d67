"""A program run with nothing of ours in its environment, ended when its time is up, with nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """How a program ended; `code` is None if it had to be killed because its time was up."""

    code: int | None
    seconds: float
    stdout: str
    stderr: str
    left: tuple[str, ...] = ()


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    home: Path,
    seconds: float,
    meanwhile: Callable[[], None] | None = None,
) -> Ended:
    """Run a command to its end, or for so many seconds. `meanwhile` is called once it has been started.

    What it starts may leave its group, so processes are also known by the throw-away home in their environment; each
    is ended by its number.
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            if meanwhile:
                meanwhile()
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            took = time.monotonic() - begun
            left = tuple(_end_all(process, home))
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Ended(code, took, texts[0], texts[1], left)


def _end_all(process: subprocess.Popen[bytes], home: Path) -> list[str]:
    """End the program and whatever of its own still runs; the command lines of the latter."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return end_left(home)


def end_left(home: Path) -> list[str]:
    """End whatever was started with this home and still runs; the command lines of those."""
    left = []
    for pid, line in living(home):
        left.append(line)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def comes_true(question: Callable[[], object], seconds: float = 60) -> bool:
    """Whether the answer becomes true in time: long, because it costs nothing on a machine that is not busy."""
    until = time.monotonic() + seconds
    while not question():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def living(home: Path) -> list[tuple[int, str]]:
    """Processes that were started with this home: their numbers and command lines."""
    mark = f"HOME={home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                found.append((int(entry.name), line))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found
