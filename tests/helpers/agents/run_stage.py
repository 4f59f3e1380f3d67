"""A project on which `fusewire run` is played: the real program, agents in sh, and what they did counted outside of it.

Everything that an agent starts inherits OUT, so that what is left of it is found without the code that is tested.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fusewire.breakers.loop.overview import overview
from fusewire.engine.breaker import Breaker
from fusewire.engine.status import Status
from tests.helpers import DATA
from tests.helpers.agents import is_running, kill
from tests.helpers.program import fusewire

ANSWERS = DATA / "agent_output"

#: What every agent does first: it counts itself.
_COUNTED = 'n=$FUSEWIRE_ITERATION\necho "$n" >> "$OUT/starts"\n'

#: Commands of agents that several tests use.
IDLE = "echo thinking"
WORK = 'echo "content $n" > "work$n.txt"'


def claude(text: str, **fields: Any) -> str:
    """The command that prints one answer of Claude Code."""
    answer = {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s", **fields}
    return f"printf '%s\\n' '{json.dumps(answer)}'"


def status(**fields: object) -> str:
    """The command that prints a status block."""
    lines = "\\n".join(f"{name.upper()}: {value}" for name, value in fields.items())
    return f'printf -- "---RALPH_STATUS---\\n{lines}\\n---END_RALPH_STATUS---\\n"'


class Stage:
    """One project, a folder outside of it, and the runs in it."""

    def __init__(self, root: Path, outside: Path) -> None:
        self.root = root
        self.outside = outside
        self._started: list[subprocess.Popen[str]] = []

    def run(self, script: str, *options: str, wait: bool = False, timeout: float = 60) -> Any:
        """A run to its end; `--no-wait` unless it is to wait."""
        return self.call(*_run(script, options, wait), timeout=timeout)

    def call(self, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Any command of the program."""
        done = fusewire(*arguments, cwd=self.root, env=self.environment(), timeout=timeout)
        printed = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, *printed)

    def start(self, script: str, *options: str, wait: bool = False) -> subprocess.Popen[str]:
        """A run in the background; what it says is in `said`."""
        with (self.outside / f"said{len(self._started)}").open("w") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "fusewire", *_run(script, options, wait)],
                cwd=self.root,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                text=True,
            )
        self._started.append(process)
        return process

    def said(self, run: int = -1) -> str:
        """What a run in the background has printed so far."""
        return (self.outside / f"said{range(len(self._started))[run]}").read_text(errors="replace")

    def starts(self) -> list[int]:
        """The number of every iteration whose agent was started, in order."""
        return [int(word) for word in self.read("starts").split()]

    def read(self, name: str) -> str:
        """What an agent left outside of the project; nothing if it left nothing."""
        path = self.outside / name
        return path.read_text(errors="replace") if path.exists() else ""

    def write(self, name: str, text: str) -> None:
        """A file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def loop(self) -> dict[str, Any]:
        """The loop as `status` shows it; read here, because a process for each look would take longer than the runs."""
        with Breaker.open(project=self.root) as breaker:
            return asdict(overview(breaker))

    def circuits(self) -> dict[str, Status]:
        """The loop's circuits by their id."""
        with Breaker.open(project=self.root) as breaker:
            return {one.id: one for one in breaker.statuses() if one.kind == "loop"}

    def reset(self) -> None:
        """As a person: end the cooldown of every circuit that is open."""
        with Breaker.open(project=self.root) as breaker:
            for one in breaker.statuses():
                if breaker.status(one.id).state == "OPEN":
                    breaker.reset(one.id, "looked at")

    def left(self) -> list[int]:
        """Processes of this stage that are still there, the runs in the background among them."""
        mark = f"OUT={self.outside}".encode()
        found = []
        for folder in Path("/proc").iterdir():
            try:
                entries = (folder / "environ").read_bytes().split(b"\0") if folder.name.isdecimal() else []
            except OSError:
                continue
            if mark in entries and is_running(int(folder.name)):
                found.append(int(folder.name))
        return found

    def close(self) -> None:
        """Whatever a failing test has left is killed, one by one."""
        for process in self._started:
            process.kill()
            process.wait()
        for pid in self.left():
            kill(pid)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "OUT": str(self.outside), "ANSWERS": str(ANSWERS), "PYTHON": sys.executable}


def _run(script: str, options: tuple[str, ...], wait: bool) -> list[str]:
    return ["run", *([] if wait else ["--no-wait"]), *options, "--", "sh", "-c", _COUNTED + script]


def prepared(folder: Path) -> Path:
    """A repository with a program and its test, to be copied."""
    (folder / "src").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "src" / "app.py").write_text("def total(items):\n    return sum(items)\n")
    (folder / "tests" / "test_app.py").write_text("def test_total():\n    assert total([1, 2]) == 3\n")
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Agent"],
        ["config", "user.email", "agent@example.org"],
        ["config", "gc.auto", "0"],
        ["add", "-A"],
        ["commit", "-q", "-m", "start"],
    ):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    return folder


def staged(folder: Path, repository: Path | None) -> Stage:
    """A fresh stage in a folder: with a copy of the repository, or without any."""
    root, outside = folder / "project", folder / "outside"
    outside.mkdir()
    if repository is None:
        root.mkdir()
    else:
        shutil.copytree(repository, root)
    return Stage(root, outside)
