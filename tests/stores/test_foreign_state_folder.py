"""A `.fusewire/` that came with a clone, or that somebody else owns, is set aside before anything in it is trusted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.config.rules import sealed, unsealed
from tests.guard.test_hostile_links import ECHO, answer_of, is_open, trip
from tests.helpers import SOURCE
from tests.helpers.project import Project

TRACKED = ".fusewire came with the repository"


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)


def clone_of(project: Project, place: Path) -> Project:
    """A clone of everything, the state folder too, as an attacker publishes it."""
    (project.root / ".fusewire" / ".gitignore").unlink()
    git(project.root, "add", "-f", ".")
    git(project.root, "commit", "-qm", "all of it")
    git(project.root.parent, "clone", "-q", str(project.root), str(place))
    assert (place / ".fusewire" / "state.db").exists()
    return Project(place)


def test_a_state_folder_that_came_with_a_clone_is_set_aside(project: Project, tmp_path: Path) -> None:
    """Its database says that a circuit was overridden, its blob that there are no rules: neither is read."""
    project.constraint("no-echo", ECHO)
    trip(project)
    assert project.run("override", "no-echo", "--for", "23h", "--reason", "x").returncode == 0
    (project.root / "docs" / "constraints" / ".circuit-state.json").unlink()
    there = clone_of(project, tmp_path / "clone")
    said = [answer_of(there.hook(there.bash(command))) for command in ("ls", "ls", "echo a", "echo b")]
    assert [TRACKED in one for one in said] == [True, False, False, False], said
    assert "BLOCKED constraint:no-echo" in said[-1], "no override of a stranger holds here"
    assert (there.root / ".fusewire.set-aside-1" / "state.db").exists(), "nothing is deleted"
    assert TRACKED in there.run("doctor").stdout
    assert TRACKED in there.run("status").stderr


def test_a_command_is_as_careful_as_the_hook(project: Project, tmp_path: Path) -> None:
    """`status` in a fresh clone says so at once, and shows nothing of what was shipped."""
    project.constraint("no-echo", ECHO)
    trip(project)
    (project.root / "docs" / "constraints" / ".circuit-state.json").unlink()
    there = clone_of(project, tmp_path / "clone")
    shown = there.run("status", "no-echo")
    assert TRACKED in shown.stderr
    assert not is_open(there)


def test_a_mark_that_is_shipped_fits_nowhere_else(project: Project, tmp_path: Path) -> None:
    """Git writes files with inodes and times of their own."""
    project.constraint("no-echo", ECHO)
    trip(project)
    there = clone_of(project, tmp_path / "clone")
    facts = (there.root / ".fusewire").stat()
    mark = there.root / ".fusewire" / "mark"
    mark.write_text(f"{facts.st_ino} {mark.stat().st_ino}\n")  # even if both inodes could be guessed
    assert TRACKED in answer_of(there.hook(there.bash("ls")))


def test_adding_the_folder_to_the_index_frees_nobody(project: Project) -> None:
    """Where the mark fits, the folder is ours whatever git says; and the hook refuses an agent that tries."""
    project.constraint("no-echo", ECHO)
    trip(project)
    assert project.hook(project.bash("git add -f .fusewire")).returncode == 2
    git(project.root, "add", "-f", ".fusewire")
    said = answer_of(project.hook(project.bash("echo again")))
    assert "BLOCKED constraint:no-echo" in said
    assert "set aside" not in said
    assert is_open(project)
    assert not list(project.root.glob(".fusewire.set-aside*"))


@pytest.mark.parametrize("how", ["without a mark", "copied", "moved"])
def test_a_folder_that_git_does_not_track_keeps_its_state(project: Project, tmp_path: Path, how: str) -> None:
    """A folder of version 0.1, a copy of a project, a restored backup, a project that was moved."""
    project.constraint("no-echo", ECHO)
    trip(project)
    there = project
    if how == "without a mark":
        (project.root / ".fusewire" / "mark").unlink()
    else:
        (shutil.copytree if how == "copied" else shutil.move)(project.root, tmp_path / "there")
        there = Project(tmp_path / "there")
    (there.root / "docs" / "constraints" / ".circuit-state.json").unlink()
    said = answer_of(there.hook(there.bash("echo again")))
    assert "BLOCKED constraint:no-echo" in said
    assert "set aside" not in said
    assert (there.root / ".fusewire" / "mark").exists()
    assert not list(there.root.rglob("*set-aside*"))


def test_a_compiled_file_that_was_not_made_here_is_not_read(project: Project) -> None:
    """The blob of a folder that is taken over is made again: what it says need not be what the files say."""
    project.constraint("no-echo", ECHO)
    trip(project)
    blob = project.root / ".fusewire" / f"rules.{sys.implementation.cache_tag}.bin"
    form, made_from, (policies, _, *rest) = unsealed(blob.read_bytes())
    blob.write_bytes(sealed((form, made_from, (policies, {}, *rest))))
    assert "BLOCKED" not in answer_of(project.hook(project.bash("echo again"))), "the test of the test"
    (project.root / ".fusewire" / "mark").unlink()
    assert "BLOCKED constraint:no-echo" in answer_of(project.hook(project.bash("echo again")))


def test_git_is_asked_once(project: Project, tmp_path: Path) -> None:
    """Not on every call: a process costs more than all of the hook."""
    project.constraint("no-echo", ECHO)
    trip(project)
    (project.root / ".fusewire" / "mark").unlink()
    log, bin_ = tmp_path / "asked", tmp_path / "bin"
    bin_.mkdir()
    real = shutil.which("git")
    (bin_ / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
    (bin_ / "git").chmod(0o755)
    for _ in range(3):
        project.hook(project.bash("ls"), env={"PATH": f"{bin_}:{os.environ['PATH']}"})
    assert log.read_text().count("ls-files") == 1


# -- owners ---------------------------------------------------------------------------------------------------

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def give(folder: Path, user: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


@needs_root
def test_the_folder_of_another_user_is_set_aside(project: Project) -> None:
    """Whoever may write into a project folder could else put a database there."""
    project.constraint("no-echo", ECHO)
    trip(project)
    give(project.root / ".fusewire", 61234)
    (project.root / "docs" / "constraints" / ".circuit-state.json").unlink()
    said = answer_of(project.hook(project.bash("ls")))
    assert ".fusewire belongs to another user (uid 61234)" in said
    assert (project.root / ".fusewire.set-aside-1").exists()


@needs_root
def test_the_owner_of_the_project_is_trusted_by_root(project: Project) -> None:
    """A container: the project is mounted and belongs to uid 1000, the agent is root."""
    project.constraint("no-echo", ECHO)
    trip(project)
    give(project.root, 61234)
    said = answer_of(project.hook(project.bash("echo again")))
    assert "BLOCKED constraint:no-echo" in said
    assert "set aside" not in said
    assert project.run("reset", "no-echo", "--reason", "x").returncode == 0
    assert not list(project.root.rglob("*set-aside*"))


@needs_root
def test_a_folder_that_a_group_shares_is_everybodys_in_it(project: Project) -> None:
    """Group-writable, not open to all: whoever made the state folder first."""
    project.constraint("no-echo", ECHO)
    trip(project)
    project.root.chmod(0o2775)
    give(project.root / ".fusewire", 61234)
    assert "set aside" not in answer_of(project.hook(project.bash("echo again")))
    assert is_open(project)


@needs_root
def test_what_cannot_be_set_aside_is_said_in_one_line(tmp_path: Path) -> None:
    """The failure policy: rules that are files still hold, what needs the state is refused or said."""
    if not os.access(SOURCE, os.R_OK) or shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    root = Path("/tmp") / f"fusewire-{os.getpid()}"
    shutil.copytree(tmp_path, root, dirs_exist_ok=True)
    try:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / ".fusewire").symlink_to(tmp_path)
        root.chmod(0o555)
        done = Project(root)
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable, "-I", "-S"]
        result = subprocess.run(
            [*words, str(SOURCE / "hook.py"), "claude"],
            input=json.dumps(done.bash("ls")).encode(),
            env={**os.environ, "CLAUDE_PROJECT_DIR": str(root)},
            capture_output=True,
            check=False,
        )
        text = answer_of(result)
        assert result.returncode == 0, text
        assert "Traceback" not in text
        assert text.count("cannot be set aside") == 1
        assert os.listdir(tmp_path) == []
    finally:
        root.chmod(0o755)
        shutil.rmtree(root)


def test_the_settings_of_a_private_git_folder_are_not_read(project: Project, tmp_path: Path) -> None:
    """A folder that is taken over keeps its checkpoints; what git settings in it name does not run."""
    canary = tmp_path / "ran"
    assert project.run("attempt", "start", "S-1", "test_a").returncode == 0
    private = project.root / ".fusewire" / "checkpoints.git"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    (private / "config").write_text(f'[core]\n\tbare = false\n[filter "evil"]\n\tclean = {script}\n')
    (private / "info").mkdir()
    (private / "info" / "attributes").write_text("* filter=evil\n")
    (project.root / "a.txt").write_text("changed\n")
    (project.root / ".fusewire" / "mark").unlink()
    assert project.run("attempt", "start", "S-1", "test_b").returncode == 0
    assert not canary.exists()
