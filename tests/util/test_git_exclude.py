"""Git sees nothing that we write into a project, and no file of the person is changed for it. Git is the real one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fusewire.breakers.session.incidents import write
from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

LOG = ".claude/memory/circuit_breaker_incidents.jsonl"
NOW = 1_794_000_000.0


def git(folder: Path, *arguments: str) -> str:
    person = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *person, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def seen(folder: Path) -> str:
    return git(folder, "status", "--porcelain", "--untracked-files=all")


def log(folder: Path, path: str = LOG) -> None:
    write(str(folder), path, [{"type": "circuit_trip"}], NOW)


def persons_folder(root: Path) -> Path:
    """A memory folder with the person's own files, as a project has it whose agent keeps notes."""
    folder = root / ".claude" / "memory"
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("notes\n")
    return folder


def test_a_trip_leaves_nothing_that_git_sees(project: Project) -> None:
    session = Session(project)
    for _ in range(4):
        session.fails("make deploy")
    assert "circuit_trip" in (project.root / LOG).read_text()
    assert seen(project.root) == ""


@pytest.mark.parametrize("is_persons", [False, True], ids=["folder of ours", "folder of the person's"])
def test_what_is_the_persons_stays_visible(project: Project, is_persons: bool) -> None:
    folder = persons_folder(project.root) if is_persons else project.root / ".claude" / "memory"
    log(project.root)
    (folder / "notes.md").write_text("notes\n")
    (folder / "other_telemetry.jsonl").write_text("{}\n")
    assert seen(project.root).split() == ["??", ".claude/memory/notes.md", "??", ".claude/memory/other_telemetry.jsonl"]
    assert (folder / ".gitignore").exists() is not is_persons


def test_the_persons_own_gitignore_is_left_alone(project: Project) -> None:
    folder = persons_folder(project.root)
    (folder / ".gitignore").write_text("*.tmp\n")
    log(project.root)
    assert (folder / ".gitignore").read_text() == "*.tmp\n"
    assert "incidents" not in seen(project.root)


def test_a_linked_worktree(project: Project) -> None:
    persons_folder(project.root)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "one")
    git(project.root, "worktree", "add", "-q", "../linked")
    linked = project.root.parent / "linked"
    log(linked)
    log(project.root)
    assert (seen(linked), seen(project.root)) == ("", "")
    assert (project.root / ".git" / "info" / "exclude").read_text().count(f"/{LOG}\n") == 1


def test_a_submodule(project: Project, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    persons_folder(inner)
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "one")
    git(project.root, "submodule", "--quiet", "add", str(inner), "sub")
    git(project.root, "commit", "-qm", "sub")
    log(project.root / "sub")
    assert (seen(project.root / "sub"), seen(project.root)) == ("", "")


def test_a_git_directory_elsewhere_and_a_folder_with_signs(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q", f"--separate-git-dir={tmp_path / 'elsewhere'}")
    (root / "no [tes] *").mkdir()
    (root / "no [tes] *" / "x").write_text("x")
    log(root / "no [tes] *", "trips.jsonl")
    assert seen(root) == '?? "no [tes] */x"\n'


def test_no_repository(tmp_path: Path) -> None:
    """Nothing is made beside the log, but in a folder of ours; a repository that is begun later does not see it."""
    persons_folder(tmp_path)
    log(tmp_path)
    assert sorted(os.listdir(tmp_path / ".claude" / "memory")) == ["circuit_breaker_incidents.jsonl", "notes.md"]
    other = tmp_path / "other"
    other.mkdir()
    log(other)
    git(other, "init", "-q")
    assert seen(other) == ""


def test_a_person_who_wants_to_track_it_can(project: Project) -> None:
    """A line that is commented out, and one that was removed from a .gitignore of ours, stay so."""
    persons_folder(project.root)
    log(project.root)
    exclude = project.root / ".git" / "info" / "exclude"
    exclude.write_text(exclude.read_text().replace("\n/", "\n#/"))
    (project.root / LOG).unlink()
    log(project.root)
    assert f"?? {LOG}\n" in seen(project.root)
    git(project.root, "add", LOG)
    log(project.root)
    assert exclude.read_text().count(LOG) == 1


def test_what_stands_in_the_exclude_file_stays(project: Project) -> None:
    exclude = project.root / ".git" / "info" / "exclude"
    exclude.parent.mkdir()
    exclude.write_text("*.swp")  # no line end
    persons_folder(project.root)
    (project.root / "x.swp").write_text("")
    log(project.root)
    assert exclude.read_text().startswith("*.swp\n#")
    assert seen(project.root) == "?? .claude/memory/notes.md\n"


@pytest.mark.parametrize("link", ["info", "info/exclude"])
def test_nothing_is_written_through_a_link(project: Project, tmp_path: Path, link: str) -> None:
    persons_folder(project.root)
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside if link == "info" else outside / "exclude"
    (project.root / ".git" / "info").mkdir() if link != "info" else None
    (project.root / ".git" / link).symlink_to(target)
    log(project.root)
    assert (project.root / LOG).exists()
    assert os.listdir(outside) == []


def test_a_git_directory_that_cannot_be_written_stops_nothing(project: Project) -> None:
    persons_folder(project.root)
    (project.root / ".git" / "info").write_text("")
    log(project.root)
    assert (project.root / LOG).exists()


def test_rotations_and_archives_are_not_seen_either(project: Project) -> None:
    folder = persons_folder(project.root)
    log(project.root)
    for name in ("circuit_breaker_incidents.jsonl", "own_telemetry.jsonl"):
        (folder / name).write_text('{"n": 1}\n' * 1100)
    (folder / "session_old_state.json").write_text("{}")
    os.utime(folder / "session_old_state.json", (NOW, NOW))
    cleanup = Janitor(str(project.root), Limits()).clean(NOW + 30 * 86400)
    assert (cleanup.files_rotated, cleanup.sessions_pruned) == (2, 1)
    assert len(list(folder.glob("*.gz"))) == 2
    names = seen(project.root).split()[1::2]
    assert names == [".claude/memory/notes.md", ".claude/memory/own_telemetry.jsonl"]
