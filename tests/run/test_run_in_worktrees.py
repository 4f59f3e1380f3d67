"""Loops in several worktrees of one repository: real git, real runs side by side, agents in sh."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.breakers.loop.worktrees import other_loops
from tests.helpers.agents import comes_true
from tests.helpers.agents.run_stage import IDLE, Stage, prepared

COMMITS = 'echo "$n" > "step$n.py"; git add -A; git commit -qm "step $n"'


class Repository:
    """A repository with two linked worktrees, one beside it and one inside of it, each with runs of its own."""

    def __init__(self, folder: Path) -> None:
        self.main = self._stage(prepared(folder / "main"), folder)
        self.beside = self._linked(folder / "beside", "beside", folder)
        self.inside = self._linked(folder / "main" / "trees" / "inside", "inside", folder)
        self.git("config", "status.showUntrackedFiles", "all")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.main.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def _linked(self, path: Path, branch: str, folder: Path) -> Stage:
        self.git("worktree", "add", "-q", str(path), "-b", branch)
        return self._stage(path, folder)

    def _stage(self, root: Path, folder: Path) -> Stage:
        outside = folder / f"outside of {root.name}"
        outside.mkdir()
        return Stage(root, outside)

    def close(self) -> None:
        for stage in (self.main, self.beside, self.inside):
            stage.close()


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    repository = Repository(tmp_path)
    yield repository
    repository.close()


def busy(stage: Stage) -> None:
    """Start a loop that commits until it is ended."""
    stage.start(f"{COMMITS}; sleep 0.1")
    assert comes_true(lambda: len(stage.starts()) >= 2)


@pytest.mark.parametrize("neighbour", ["beside", "inside"])
def test_a_neighbours_commits_are_no_progress_of_a_loop_that_is_stuck(repository: Repository, neighbour: str) -> None:
    """It is stopped at its number while the other one goes on and is not concerned."""
    other: Stage = getattr(repository, neighbour)
    busy(other)
    before = len(other.starts())
    ended = repository.main.run(f"{IDLE}; sleep 0.5")
    assert (ended.returncode, repository.main.starts()) == (3, [1, 2, 3]), ended.stderr
    assert comes_true(lambda: len(other.starts()) > before + 1)
    assert other.loop()["state"] == "CLOSED"


def test_a_loop_in_a_worktree_is_not_fed_by_the_main_one_either(repository: Repository) -> None:
    busy(repository.main)
    ended = repository.beside.run(f"{IDLE}; sleep 0.5")
    assert (ended.returncode, repository.beside.starts()) == (3, [1, 2, 3]), ended.stderr


def test_loops_that_work_side_by_side_each_make_progress(repository: Repository) -> None:
    busy(repository.beside)
    ended = repository.main.run(COMMITS, "--max-iterations", "6")
    assert ended.returncode == 4, ended.stderr
    assert "1 file, 1 commit" in ended.stderr
    assert {repository.main.loop()["state"], repository.beside.loop()["state"]} == {"CLOSED"}


def test_merging_a_neighbours_branch_is_work(repository: Repository) -> None:
    busy(repository.beside)
    ended = repository.main.run("sleep 0.3; git merge -q --no-edit beside", "--max-iterations", "4")
    assert ended.returncode == 4, ended.stderr


@pytest.mark.parametrize("where", ["../beside", "trees/inside"])
def test_what_the_agent_itself_commits_in_a_worktree_counts(repository: Repository, where: str) -> None:
    """No loop runs there: the worktree is the agent's own."""
    ended = repository.main.run(f"cd {where} && {COMMITS}", "--max-iterations", "5", "--no-sandbox")
    assert ended.returncode == 4, ended.stderr


def test_a_loop_that_has_ended_before_does_not_own_its_worktree_for_ever(repository: Repository) -> None:
    repository.beside.run(COMMITS, "--max-iterations", "2")
    ended = repository.main.run(f"cd ../beside && n=late$n && {COMMITS}", "--max-iterations", "4", "--no-sandbox")
    assert ended.returncode == 4, ended.stderr


def test_the_status_of_a_loop_shows_those_of_the_other_worktrees(repository: Repository) -> None:
    assert "OTHER WORKTREES" not in repository.main.call("status", "loop").stdout
    repository.beside.run(IDLE)
    shown = repository.main.call("status", "loop").stdout
    assert f"LOOPS IN OTHER WORKTREES\n  {repository.beside.root} (beside): OPEN, 3 iterations\n" in shown
    assert [one.folder for one in other_loops(str(repository.inside.root))] == [str(repository.beside.root)]


def test_a_damaged_state_elsewhere_disturbs_no_loop(repository: Repository) -> None:
    (repository.beside.root / ".fusewire").mkdir()
    (repository.beside.root / ".fusewire" / "state.db").write_bytes(b"no database" * 500)
    assert other_loops(str(repository.main.root)) == []
    assert repository.main.run(COMMITS, "--max-iterations", "2").returncode == 4
