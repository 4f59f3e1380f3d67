"""Two hundred sessions of one person in forty trees of twenty repositories, all at once, as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fusewire.breakers.session.names import session_ids
from fusewire.engine.breaker import Breaker
from fusewire.scopes.register import sessions
from fusewire.scopes.user import open_user_store
from tests.engine.test_project_scope import git
from tests.helpers import SOURCE, TESTS
from tests.helpers.project import Project

pytestmark = pytest.mark.slow

ID = "no-force"
FRONT = "match:\n  command: [git push --force*]\ncircuit_breaker:\n  dedup_seconds: 0\n  violation_threshold: 1000\n"
#: Hooks that run at once: the machine of the tests has two processors.
AT_ONCE = 16
REPOSITORIES, TREES, SESSIONS, CALLS = 20, 2, 5, 3


class Running:
    """A session's process, and the lines that it prints."""

    def __init__(self, tree: Path, name: str, turns: tuple[int, int]) -> None:
        self.tree, self.name = tree, name
        words = [sys.executable, "-I", "-S", str(TESTS / "helpers" / "agent_session.py"), str(SOURCE / "hook.py")]
        self.process = subprocess.Popen(
            [*words, str(tree), name, str(CALLS), *map(str, turns)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=turns,
        )

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()


@pytest.fixture
def trees(project: Project, tmp_path: Path) -> list[Path]:
    project.constraint(ID, FRONT)
    git(project.root, "add", "docs")
    git(project.root, "commit", "-qm", "rules")
    found = []
    for number in range(REPOSITORIES):
        main = tmp_path / f"repository-{number}"
        git(tmp_path, "clone", "-q", str(project.root), str(main))
        git(main, "worktree", "add", "-q", str(tmp_path / f"linked-{number}"))
        found += [main, tmp_path / f"linked-{number}"]
    assert len(found) == REPOSITORIES * TREES
    return found


def test_no_count_is_lost_and_a_halt_reaches_all(trees: list[Path], project: Project) -> None:
    turns = os.pipe()
    os.write(turns[1], b"." * AT_ONCE)
    names = [(tree, f"s{at}-{number}") for at, tree in enumerate(trees) for number in range(SESSIONS)]
    running = [Running(tree, name, turns) for tree, name in names]
    try:
        _all_counted(running, trees)
        _all_halted(running, project)
    finally:
        for one in running:
            one.process.kill()
            one.process.communicate()
        for descriptor in turns:
            os.close(descriptor)
    assert [line for line in project.run("status").stderr.splitlines() if "damaged" in line] == []


def _all_counted(running: list[Running], trees: list[Path]) -> None:
    assert [one.line() for one in running] == [b"ready"] * len(running)
    for one in running:
        one.go()
    assert [one.line() for one in running] == [b"counted"] * len(running)
    for at, tree in enumerate(trees):
        with Breaker.open(project=tree) as breaker:
            assert breaker.status(ID).total == TREES * SESSIONS * CALLS  # of both trees of the repository
            assert sorted(session_ids(breaker.store)) == sorted(f"s{at}-{number}" for number in range(SESSIONS))
            for name in session_ids(breaker.store):
                assert [one.kind for one in breaker.store.doings(name)].count("ok") == CALLS


def _all_halted(running: list[Running], project: Project) -> None:
    for one in running:
        one.go()
    began = time.time()
    halted = project.run("halt", "--all", "--reason", "the bill")
    assert (halted.returncode, halted.stderr) == (0, "")
    done = time.time()
    told = [json.loads(one.line()) for one in running]
    assert [one["refused"] for one in told] == [0] * len(running)
    late = [one["allowed_at"] - done for one in told if one["allowed_at"] > done]
    assert late == [], f"calls that began after the halt of {done - began:.2f} s were allowed"
    store = open_user_store(read_only=True)
    known = sessions(store)
    store.close()
    assert {name: one["prompt"] for name, one in known.items()} == {one.name: f"work on {one.name}" for one in running}
