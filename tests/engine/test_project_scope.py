"""All worktrees of one repository share what belongs to the project; what belongs to the work in a tree stays there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.config.rules import is_shared, shared_root
from fusewire.engine.breaker import Breaker
from fusewire.stores import open_store
from fusewire.stores.rows import AuditRow, LogRow
from fusewire.stores.scoped import ScopedStore
from tests.agents.test_hook_claude import assert_denied, assert_silent
from tests.helpers import ROOT
from tests.helpers.project import Project

ID = "no-force"
RULE = "match:\n  command: [git push --force*]\ncircuit_breaker:\n  dedup_seconds: 0\n"
ACT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], env={**os.environ, **ACT}, check=True, capture_output=True)


@pytest.fixture
def trees(project: Project, tmp_path: Path) -> list[Project]:
    """The main worktree and two linked ones, with one constraint."""
    project.constraint(ID, RULE)
    git(project.root, "add", "docs")
    git(project.root, "commit", "-qm", "rules")
    found = [project]
    for name in ("second", "third"):
        git(project.root, "worktree", "add", "-q", str(tmp_path / name))
        found.append(Project(tmp_path / name))
    return found


def state(project: Project, circuit: str = ID) -> tuple[str, int]:
    (found,) = project.json("status", circuit)["circuits"]
    return found["state"], int(found["level"])


def test_violations_in_all_worktrees_count_together(trees: list[Project]) -> None:
    for number, tree in enumerate((*trees, trees[1]), 1):
        tree.run("record", ID, "--action", f"push {number}")
    assert [state(tree) for tree in trees] == [("CLOSED", 4)] * 3
    trees[2].hook(trees[2].bash("git push --force origin main"))
    assert [state(tree)[0] for tree in trees] == ["OPEN"] * 3
    assert "5 violations" in assert_denied(trees[1].hook(trees[1].bash("git push --force origin x")))
    assert_silent(trees[1].hook(trees[1].bash("git push origin x")))


def test_a_person_resets_it_from_any_worktree(trees: list[Project]) -> None:
    for number in range(5):
        trees[0].run("record", ID, "--action", f"push {number}")
    assert trees[2].run("reset", ID, "--reason", "looked into it").returncode == 0
    assert [state(tree)[0] for tree in trees] == ["CLOSED"] * 3
    assert "looked into it" in trees[1].run("history", ID).stdout


def test_the_state_file_of_each_worktree_shows_what_is_shared(trees: list[Project]) -> None:
    trees[1].run("record", ID, "--action", "push 1")
    trees[2].run("record", ID, "--action", "push 2")
    mirrored = json.loads((trees[2].root / "docs/constraints/.circuit-state.json").read_text())
    assert [one["action"] for one in mirrored[ID]["violations"]] == ["push 2", "push 1"]


def test_sessions_loops_and_slices_stay_in_their_worktree(trees: list[Project]) -> None:
    payload = trees[1].bash("ls")
    trees[1].hook(payload)
    with Breaker.open(project=trees[0].root) as main, Breaker.open(project=trees[1].root) as second:
        name = f"session/{payload['session_id']}"
        assert [name for name, _ in main.store.remembered("session/")] == []
        assert second.store.recall(name) is not None
    for circuit in ("loop/no_progress", "phase/GREEN", "attempt/S-1", "tool/repetition/a/b"):
        assert not is_shared(circuit)


def test_the_hourly_limit_holds_for_all_worktrees_together(trees: list[Project]) -> None:
    for tree in trees:
        (tree.root / "fusewire.toml").write_text("[loop]\nmax_calls_per_hour = 3\n")
        assert tree.run("loop", "begin").returncode == 0
        tree.run("loop", "end", "--exit-code", "0")
    refused = trees[0].run("loop", "begin")
    assert (refused.returncode, "3 of 3 calls within 1h" in refused.stderr) == (3, True)
    assert trees[1].run("loop", "begin").returncode == 3


def test_the_status_line_shows_what_is_open_in_another_worktree(trees: list[Project]) -> None:
    trees[2].hook(trees[2].bash("ls"))
    for number in range(5):
        trees[0].run("record", ID, "--action", f"push {number}")
    for tree in trees:
        assert tree.run("statusline").stdout.startswith(f"fusewire OPEN {ID} "), tree.root


def test_a_submodule_and_a_clone_are_projects_of_their_own(trees: list[Project], tmp_path: Path) -> None:
    main = trees[0].root
    git(tmp_path, "clone", "-q", str(main), str(tmp_path / "clone"))
    git(main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "clone"), "part")
    assert shared_root(str(main / "part")) is None
    assert shared_root(str(tmp_path / "clone")) is None
    assert shared_root(str(main)) is None
    assert shared_root(str(trees[1].root)) == str(main)


def test_worktrees_go_on_by_themselves_when_the_main_one_is_gone(trees: list[Project]) -> None:
    trees[0].root.rename(trees[0].root.with_name("moved"))
    second = trees[1]
    assert shared_root(str(second.root)) is None
    for number in range(5):
        second.run("record", ID, "--action", f"push {number}")
    assert state(second)[0] == "OPEN"


def test_an_agent_cannot_write_the_shared_state_from_its_worktree(trees: list[Project]) -> None:
    main, second = trees[0].root, trees[1]
    trees[0].run("record", ID, "--action", "push 1")
    for line in (
        f"rm -rf {main}/.fusewire",
        "rm ../project/.fusewire/state.db",
        f"echo > {main}/.fusewire/state.db",
        f"python3 -c \"open('{main}/.fusewire/state.db', 'w')\"",
        f"mv {main}/.fusewire /tmp/elsewhere",
        f"sqlite3 {main}/.fusewire/state.db 'delete from circuits'",
        f"rm -rf {main}",
    ):
        denied = second.hook(second.bash(line))
        assert denied.returncode == 2, line
    edit = second.bash("", tool_name="Write", tool_input={"file_path": f"{main}/.fusewire/state.db", "content": ""})
    assert_denied(second.hook(edit))
    assert_silent(second.hook(second.bash(f"ls {main}")))


def test_sixteen_processes_in_three_worktrees_lose_no_violation(trees: list[Project]) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.helpers.workers",
                "record",
                str(trees[at % 3].root),
                ID,
                "10",
                f"w{at}",
            ],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for at in range(16)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"\n")
        worker.stdin.flush()
    tripped = [
        action for worker in workers for action in json.loads(worker.communicate(timeout=60)[0].splitlines()[-1])
    ]
    assert len(tripped) == 1
    with Breaker.open(project=trees[2].root) as breaker:
        assert breaker.status(ID).total == 160
        assert breaker.status(ID).state == "OPEN"


# -- from version 0.1 ----------------------------------------------------------------------------------------


def _old_state(folder: Path, opened: bool, at: float) -> None:
    """What a worktree kept by itself: three violations, or five and a trip."""
    store = open_store(f"sqlite:{folder / '.fusewire' / 'state.db'}")
    times = [at + number for number in range(5 if opened else 3)]
    state: dict[str, object] = {"since": at, "meters": {"violations": times}, "total": len(times)}
    if opened:
        state |= {"phase": "open", "opened_at": times[-1], "until": times[-1] + 86400, "trips": 1, "in_a_row": 1}
    with store.transact() as transaction:
        transaction.save(ID, "constraint", "open" if opened else "closed", state, at)
        for when in times:
            transaction.log(LogRow(ID, when, "bad", "violation", "old push", None, 1, "counted"), kept=True)
        if opened:
            transaction.audit(AuditRow(ID, times[-1], "closed", "open", "tripped", "5 violations", ""), dict(state))
    store.close()


@pytest.mark.parametrize("first", [0, 1])
def test_an_open_circuit_of_a_worktree_stays_open_for_all(trees: list[Project], first: int) -> None:
    import time

    now = time.time() - 3600
    _old_state(trees[0].root, False, now)
    _old_state(trees[1].root, True, now)
    assert state(trees[1 - first])[0] == ("CLOSED" if first else "OPEN")  # the main one cannot know yet
    assert state(trees[1])[0] == "OPEN"
    assert [state(tree)[0] for tree in trees] == ["OPEN"] * 3
    assert trees[2].run("history", ID).stdout.count("old push") == 5


def test_a_worktree_that_cannot_be_read_whole_gives_no_closed_circuit(trees: list[Project]) -> None:
    """The state of an open circuit is damaged: it is made again from its log and its last move, and stays open."""
    import sqlite3
    import time

    _old_state(trees[1].root, True, time.time() - 60)
    connection = sqlite3.connect(trees[1].root / ".fusewire" / "state.db")
    connection.execute("UPDATE circuits SET state = 'nonsense'")
    connection.commit()
    connection.close()
    assert [state(tree)[0] for tree in (trees[1], trees[0])] == ["OPEN", "OPEN"]


def test_looking_read_only_shows_the_stricter_of_both_and_writes_nothing(trees: list[Project]) -> None:
    import time

    _old_state(trees[0].root, False, time.time() - 60)
    _old_state(trees[1].root, True, time.time() - 60)
    with Breaker.open(project=trees[1].root, read_only=True) as breaker:
        assert breaker.status(ID).state == "OPEN"
        assert [one.state for one in breaker.statuses() if one.id == ID] == ["OPEN"]
    with Breaker.open(project=trees[0].root, read_only=True) as breaker:
        assert breaker.status(ID).state == "CLOSED"


def test_what_fails_in_the_middle_is_in_neither_store(tmp_path: Path) -> None:
    for name in ("own", "shared"):
        (tmp_path / name).mkdir()
    own, shared = (open_store(f"sqlite:{tmp_path / name / '.fusewire' / 'state.db'}") for name in ("own", "shared"))
    store = ScopedStore(own, lambda: shared, is_shared)

    def fail() -> None:
        with store.transact() as transaction:
            transaction.remember("mine", {"a": 1}, 1.0)
            transaction.save("ours", "constraint", "open", {"since": 1.0}, 1.0)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (own.recall("mine"), shared.circuits()) == (None, [])
    with store.transact() as transaction:
        transaction.remember("mine", {"a": 1}, 1.0)
        transaction.save("ours", "constraint", "open", {"since": 1.0}, 1.0)
        transaction.save("loop/score", "loop", "open", {"since": 1.0}, 1.0)
    assert [row.id for row in own.circuits()] == ["loop/score"]
    assert [row.id for row in shared.circuits()] == ["ours"]
    assert [row.id for row in store.circuits()] == ["loop/score", "ours"]
    store.close()
