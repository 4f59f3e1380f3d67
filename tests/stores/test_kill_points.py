"""Killed at any writing system call: the next command finds everything in order, and nothing that was open is closed.

`strace` kills the program at its Nth call, for N from 1 until it ends by itself. A normal run takes every few points
with a seed; `make test-slow` takes them all.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.views.warnings import warnings
from tests.helpers import SOURCE
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

#: System calls that write; what is created is written to, too.
WRITING = ("write", "pwrite64", "ftruncate", "rename", "unlink")

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None and not os.environ.get("CI"), reason="strace is not installed (apt install strace)"
)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose rule is open, with another that is one violation away from it, and a session likewise."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(home))
        project = Project(tmp_path_factory.mktemp("ready") / "project")
        (project.root / ".git").mkdir(parents=True)
        for rule in ("rule", "near"):
            project.constraint(rule, "match:\n  command: git push --force\ncircuit_breaker:\n  dedup_seconds: 0\n")
            for number in range(5 if rule == "rule" else 4):
                assert project.run("record", rule, "--action", f"number {number}").returncode == 0
        session = Session(project)
        for _ in range(2):
            session.fails("./deploy.sh")
    return project


def hook(name: str, project: Project) -> tuple[list[str], bytes]:
    payload = project.bash("./deploy.sh" if name != "PreToolUse" else "ls", hook_event_name=name)
    payload |= {"error": "Exit code 3\nboom", "is_interrupt": False} if name == "PostToolUseFailure" else {}
    return [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"], json.dumps(payload).encode()


def command(*arguments: str) -> Callable[[Project], tuple[list[str], bytes]]:
    return lambda project: ([sys.executable, "-m", "fusewire", *arguments], b"")


def rebuild(project: Project) -> tuple[list[str], bytes]:
    os.truncate(project.root / ".fusewire/state.db", 7000)
    return command("check", "rule")(project)


ACTS: dict[str, Callable[[Project], tuple[list[str], bytes]]] = {
    "PreToolUse": lambda project: hook("PreToolUse", project),
    "a trip": lambda project: hook("PostToolUseFailure", project),
    "record": command("record", "near", "--action", "the last"),
    "reset": command("reset", "rule", "--reason", "seen"),
    "check": command("check", "rule"),
    "begin": command("loop", "begin"),
    "janitor": command("janitor"),
    "rebuild": rebuild,
}


def killed_at(project: Project, act: str, call: str, number: int) -> bool:
    """Whether the program was killed there; False if it ended by itself."""
    arguments, given = ACTS[act](project)
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
    inject = ["-e", f"inject={call}:signal=KILL:when={number}"]
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)}
    done = subprocess.run(
        [*strace, *inject, *arguments], input=given, cwd=project.root, env=environment, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    return done.returncode in (-9, 137)


def assert_in_order(project: Project, act: str, what: str) -> None:
    rows = {row["id"]: row["state"] for row in project.json("status", "--all")["circuits"]}
    assert rows["rule"] == "OPEN" or act == "reset", what
    done = project.run("check", "rule")
    assert done.returncode == 3 or act == "reset", (what, done.stderr)
    assert "Traceback" not in done.stderr
    assert project.run("record", "near", "--action", "one more").returncode == 0, what
    assert project.run("check", "near").returncode == 3, (what, "four and one more: nothing was lost")
    with Breaker.open(project=project.root) as breaker:
        with breaker.store.transact() as transaction:
            transaction.acknowledge()
        assert [*breaker.verify(), *warnings(breaker)] == [], what


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("act", ACTS)
def test_whoever_is_killed_leaves_everything_in_order(ready: Project, tmp_path: Path, act: str, every: bool) -> None:
    chance = random.Random(f"kill {act}")
    kills = 0
    for call in WRITING:
        number = 1 if every else chance.randint(1, 2)
        while True:
            root = tmp_path / f"{call}-{number}"
            shutil.copytree(ready.root, root)
            project = Project(root)
            if not killed_at(project, act, call, number):
                break
            kills += 1
            assert_in_order(project, act, f"{act}: {call} number {number}")
            number += 1 if every else chance.randint(2, 6)
    assert kills or act == "check"
