"""Agents that behave badly, each a small program, and what the tests need to run them and to see what is left of them.

They say `ready` once they are in place. Those that would live for ever end by themselves after a minute, so that a
test that fails leaves a machine that can be used.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fusewire.run.process import ProcessEnd, run_agent

HERE = Path(__file__).parent
PYTHON = [sys.executable, "-I", "-S"]


def agent(name: str, *arguments: object) -> list[str]:
    """The command that starts the agent of this name."""
    interpreter = PYTHON if name.endswith(".py") else ["sh"]
    return [*interpreter, str(HERE / name), *map(str, arguments)]


class Run:
    """One run, with everything that it has said."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.output = bytearray()
        self.error = bytearray()
        self.ticks: list[float] = []

    def __call__(self, command: list[str], **changes: Any) -> ProcessEnd:
        settings: dict[str, Any] = {
            "cwd": str(self.folder),
            "environment": os.environ,
            "given": b"",
            "timeout": 50.0,
            "idle": None,
            "on_output": self.output.extend,
            "on_error": self.error.extend,
            "on_tick": lambda: self.ticks.append(time.monotonic()),
            "stop": lambda: False,
            "mark": self.mark,
            "grace": 0.3,
        }
        return run_agent(command, **{**settings, **changes})

    def is_ready(self) -> bool:
        """For `stop`: the agent is in place."""
        return b"ready" in self.output


def state(pid: int) -> str:
    """The letter that the system has for the state of a process; "" if there is none."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def carriers(mark: str) -> list[int]:
    """The processes with this mark, found without the code that is tested."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            entries = (folder / "environ").read_bytes().split(b"\0") if folder.name.isdecimal() else []
        except OSError:
            continue
        if f"FUSEWIRE_MARK={mark}".encode() in entries and is_running(int(folder.name)):
            found.append(int(folder.name))
    return found


def comes_true(question: Callable[[], object], seconds: float = 45.0) -> bool:
    """Whether the answer becomes true in time: long, because it costs nothing on a machine that is not busy."""
    until = time.monotonic() + seconds
    while not question():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
