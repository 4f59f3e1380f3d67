"""Fixtures that every test may use: a project in a fresh folder, a person's environment, the program itself."""

from __future__ import annotations

import compileall
import contextlib
import importlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents import agent_named
from fusewire.agents.caller import AGENT_VARIABLES
from fusewire.gate import process as gate
from fusewire.guard.disk import Disk
from fusewire.guard.effects import Effects
from fusewire.guard.shell.walk import Walk
from program import fusewire

SOURCE = Path(__file__).parents[1] / "src" / "fusewire"

#: Tests change a source and run it again within a second, and Python's caches tell sources apart by whole seconds. Set
#: here and not in a fixture, so that whatever is started for several tests has it, too.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    """Compile the program once: where Python is told to write no bytecode, every process would do it anew."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(SOURCE, quiet=2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many a test waits for a clock, a lock or another process."""
    return (os.cpu_count() or 1) + 1


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the workers share what takes most of the time until the first test: what pytest makes of the asserts.

    Each begins with other files, and finds those of the others done.
    """
    sys.dont_write_bytecode = False
    worker = getattr(session.config, "workerinput", None)
    if worker and session.config.args == session.config.getini("testpaths"):
        names = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
        first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for name in (*names[first:], *names[:first]):
            with contextlib.suppress(Exception):  # pytest itself will say it better
                importlib.import_module(name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") and os.geteuid():
        pytest.skip("only root can make files of another user")


def pytest_collection_finish() -> None:
    """What tests write and import is not to be kept (see above)."""
    sys.dont_write_bytecode = True


@pytest.fixture(scope="session", autouse=True)
def _no_plugins_in_the_pytest_of_a_test() -> None:
    """None is needed there, and loading them takes longer than all else. No sooner: pytest's own workers need them."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Counted here: pytest looks at all earlier folders before it makes another, and there are thousands."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _person_in_an_empty_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent's variables, no configuration of whoever runs the tests."""
    for name in (*AGENT_VARIABLES, "CLAUDE_PROJECT_DIR", "FUSEWIRE_DEPTH", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))


@dataclass
class Project:
    """A folder with a git repository, and the real `fusewire` program run in it."""

    root: Path
    #: Whether a hook is a process, as an agent starts it, or its code is asked in this one: most of what a hook costs
    #: is its interpreter. Here no deadline ends it, and an error of the breaker's own is one of the test.
    starts_hooks: bool = True

    def constraint(self, name: str, front: str = "", body: str = "# A rule\n") -> Path:
        """Write a constraint; `front` is the rest of its front matter."""
        path = self.root / "docs" / "constraints" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nid: {name}\n{front}---\n{body}")
        return path

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        done = fusewire(*arguments, cwd=self.root, env={**os.environ, **(env or {})})
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints; it must print nothing else on standard output."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def hook(
        self, payload: object, *, env: dict[str, str] | None = None, raw: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """One hook call; the process of it is as an agent starts it: by absolute path, isolated, without site."""
        given = json.dumps(payload).encode() if raw is None else raw
        variables = {"CLAUDE_PROJECT_DIR": str(self.root), **(env or {})}
        command = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"]
        if self.starts_hooks:
            environment = {**os.environ, **variables}
            return subprocess.run(
                command, input=given, cwd=self.root, env=environment, capture_output=True, timeout=60, check=False
            )
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            *texts, code = gate.answer(agent_named("claude"), given, os.environ)
        printed = [f"{text}\n".encode() if text else b"" for text in texts]
        return subprocess.CompletedProcess(command, code, *printed)

    def bash(self, command: str, **fields: Any) -> dict[str, Any]:
        """Claude Code's PreToolUse payload of a Bash call."""
        return {
            "session_id": "479528ae-91f4-4945-992c-9db9f0bba192",
            "transcript_path": "/home/dev/.claude/projects/-home-dev-project/479528ae.jsonl",
            "cwd": str(self.root),
            "permission_mode": "bypassPermissions",
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "List"},
            "tool_use_id": "toolu_rig_main_0_0_250622",
            **fields,
        }


@pytest.fixture(scope="session")
def _repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: it is copied in a fraction of the time, two thousand times."""
    home = tmp_path_factory.mktemp("repository")
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    subprocess.run(["git", "init", "-q", "--template=", str(home / "empty")], env=environment, check=True)
    return home / "empty"


@pytest.fixture
def project(tmp_path: Path, _repository: Path) -> Project:
    return Project(shutil.copytree(_repository, tmp_path / "project"))


def lines_run(act: Any, file: str) -> int:
    """How many lines of a file (or folder) were executed: a measure of time that no clock and no process disturbs."""
    ran = 0

    def inside(frame: Any, event: str, _: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return inside

    def called(frame: Any, event: str, _: Any) -> Any:
        return inside if file in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        act()
    finally:
        sys.settrace(before)
    return ran


def effects_of(command: str, folder: Path) -> Effects:
    """What a command would do, as the guard reads it in a folder."""
    disk = Disk()
    effects = Effects(disk)
    walk = Walk(effects, environment=dict(os.environ), globs=disk.glob, reads=disk.read, is_folder=disk.is_folder)
    walk.line(command, str(folder))
    return effects
