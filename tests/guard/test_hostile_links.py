"""A repository that ships links: nothing of ours is opened, created, appended to or renamed through one of them."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.project import Project

#: Trips at the first violation, whatever is echoed.
ECHO = "match:\n  - command: 'echo *'\ncircuit_breaker:\n  violation_threshold: 1\n  dedup_seconds: 0\n"
PRECIOUS = b"alias ll='ls -l'\n"
LINKED = ".fusewire/audit.jsonl is a symbolic link"

#: Everything that writes, so that every file of ours is made, renewed or locked.
COMMANDS = (
    *(("record", "no-echo", "x"), ("reset", "no-echo", "--reason", "x"), ("check", "no-echo")),
    *(("phase", "start"), ("phase", "begin", "GREEN"), ("phase", "end", "GREEN", "--metric", "tests_passing=4")),
    *(("loop", "begin"), ("loop", "end"), ("guard", "snapshot"), ("guard", "verify")),
    *(("scope", "set", "S-1", "a.py"), ("attempt", "start", "S-1", "test_a")),
    *(("attempt", "run", "S-1", "test_a", "--", "false"), ("run", "--max-iterations", "1", "--", "true")),
    *(("janitor",), ("status",), ("doctor",)),
)

BLOB = f"rules.{sys.implementation.cache_tag}.bin"

#: What lies in a state folder: each of them may be shipped as a link, a pipe, a folder.
CHILDREN = (
    *("state.db", "state.db-wal", "state.db-shm", "state.db-journal", "audit.jsonl", BLOB, "scope.bin", "mark"),
    *(".gitignore", "recovery.lock", "mirror.lock", "phases.lock", "scope.lock", "checkpoints.lock", "janitor.json"),
    *(
        "loop/status.md",
        "guard/manifest.json",
        "guard/manifest.bin",
        "guard.id",
        "guard/lock",
        "guard/halt",
        "loop/output/iteration-000001.log",
    ),
)
#: What the seeds have us write elsewhere, with the names under which it is prepared.
MIRRORS = (
    *("docs/constraints/.circuit-state.json", "docs/constraints/.circuit-state.json.tmp"),
    *("docs/constraints/.circuit-state-archive.json", ".prp-session/circuit-breaker.json"),
    *(".prp-session/circuit-breaker.json.tmp", ".prp-session/.gitignore"),
    ".claude/memory/circuit_breaker_incidents.jsonl",
)
FOLDERS = (
    ("guard", "loop", "checkpoints.git", "attempts"),
    ("guard/blobs", "loop/output", "checkpoints.git/objects", "attempts/S-1"),
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Somebody's folder outside the project, with a file in it that a shell executes."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / ".bashrc").write_bytes(PRECIOUS)
    (folder / ".bashrc").chmod(0o644)
    return folder


def is_untouched(outside: Path) -> bool:
    """Nothing was made in it, and its file is what it was, rights and all."""
    facts = (outside / ".bashrc").stat()
    content = (outside / ".bashrc").read_bytes()
    return os.listdir(outside) == [".bashrc"] and content == PRECIOUS and stat.S_IMODE(facts.st_mode) == 0o644


def answer_of(done: Any) -> str:
    return str((done.stdout + done.stderr).decode())


def trip(project: Project) -> list[str]:
    """What the hook says to the calls that open the circuit, and to the one after them."""
    return [answer_of(project.hook(project.bash(f"echo owned-{number}"))) for number in range(3)]


def is_open(project: Project, name: str = "no-echo") -> bool:
    (circuit,) = project.json("status", name)["circuits"]
    return bool(circuit["state"] == "OPEN")


def use_everything(project: Project) -> None:
    """Hooks and commands that write every file of ours. None of them may fail with a traceback."""
    for command in ("ls", "echo owned", "touch a.py"):
        said = answer_of(project.hook(project.bash(command)))
        assert "Traceback" not in said, said
    for arguments in COMMANDS:
        done = project.run(*arguments)
        assert "Traceback" not in done.stderr, (arguments, done.stderr)


def plant(place: Path, target: Path) -> None:
    """A link where a file of ours is, or will be."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def test_a_trip_appends_nothing_to_what_the_audit_trail_points_to(project: Project, outside: Path) -> None:
    """The issue's reproduction: the text of a trip went into ~/.bashrc, and the next shell ran it."""
    project.constraint("no-echo", ECHO)
    plant(project.root / ".fusewire" / "audit.jsonl", Path("../../outside/.bashrc"))
    said = trip(project)
    assert is_untouched(outside)
    assert is_open(project)
    trail = project.root / ".fusewire" / "audit.jsonl"
    assert stat.S_ISREG(trail.lstat().st_mode)
    assert '"to":"open"' in trail.read_text().replace(" ", "")
    assert [LINKED in one for one in said] == [True, False, False], "the agent is told once"
    assert LINKED in project.run("doctor").stdout
    assert LINKED in project.run("status").stderr
    assert os.readlink(project.root / ".fusewire" / "audit.jsonl.set-aside-1") == "../../outside/.bashrc"


@pytest.mark.parametrize("is_claimed", [False, True], ids=["shipped", "planted-later"])
def test_no_file_of_the_state_folder_is_a_way_out(project: Project, outside: Path, is_claimed: bool) -> None:
    """Shipped with a project that has no git index, or put there while the folder was ours already."""
    project.constraint("no-echo", ECHO)
    if is_claimed:
        use_everything(project)
    places = [project.root / ".fusewire" / name for name in CHILDREN]
    for place in places:
        plant(place, outside / ".bashrc")
    use_everything(project)
    assert is_untouched(outside)
    trip(project)
    assert is_untouched(outside)
    assert is_open(project)
    links = [place.name for place in places if place.is_symlink()]
    assert set(links) <= {"janitor.json", "halt"}, "written only when there is something to write"


@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.db-shm", "state.db-journal", BLOB, "mark"])
def test_one_link_beside_files_of_ours_loses_no_state(project: Project, outside: Path, name: str) -> None:
    """The audit trail and the mirror have what a lost database had."""
    project.constraint("no-echo", ECHO)
    trip(project)
    plant(project.root / ".fusewire" / name, outside / ".bashrc")
    assert "BLOCKED constraint:no-echo" in answer_of(project.hook(project.bash("echo again")))
    assert is_open(project)
    assert is_untouched(outside)


def test_no_mirrored_file_is_a_way_out(project: Project, outside: Path) -> None:
    """The seeds' files are only mirrors: the link is set aside, and the state is where it was."""
    project.constraint("no-echo", ECHO)
    for name in MIRRORS:
        plant(project.root / name, outside / ".bashrc")
    use_everything(project)
    trip(project)
    assert is_untouched(outside)
    assert is_open(project)
    for name in (MIRRORS[0], MIRRORS[3]):
        assert not (project.root / name).is_symlink(), name
        assert os.readlink(project.root / f"{name}.set-aside-1") == str(outside / ".bashrc")


@pytest.mark.parametrize("names", FOLDERS, ids=["above", "below"])
def test_no_folder_of_the_state_folder_is_a_way_out(project: Project, outside: Path, names: tuple[str, ...]) -> None:
    """Put there while the folder was ours already."""
    project.constraint("no-echo", ECHO)
    use_everything(project)
    for name in names:
        plant(project.root / ".fusewire" / name, outside)
    use_everything(project)
    assert is_untouched(outside)
    trip(project)
    assert is_open(project)


@pytest.mark.parametrize("name", ["docs", "docs/constraints", ".prp-session", ".claude", ".claude/memory"])
def test_nothing_is_written_through_a_folder_that_is_a_link(project: Project, outside: Path, name: str) -> None:
    """A person may keep the constraints elsewhere: they hold, the link stays, and only the mirror is not written."""
    place = project.root / name
    elsewhere = outside.parent / "elsewhere"
    elsewhere.mkdir()
    if name.startswith("docs"):
        project.constraint("no-echo", ECHO)
        shutil.rmtree(elsewhere)
        place.rename(elsewhere)
    else:
        project.constraint("no-echo", ECHO)
        place.parent.mkdir(exist_ok=True)
    before = sorted(str(path.relative_to(elsewhere)) for path in elsewhere.rglob("*"))
    place.symlink_to(elsewhere)
    use_everything(project)
    trip(project)
    assert sorted(str(path.relative_to(elsewhere)) for path in elsewhere.rglob("*")) == before
    assert place.is_symlink()
    assert is_open(project)
    if name.startswith("docs"):
        notices = [
            line for line in project.run("status").stderr.splitlines() if "nothing is written through it" in line
        ]
        assert len(notices) == 1, notices


def test_the_state_folder_itself_is_no_way_out(project: Project, outside: Path) -> None:
    """`.fusewire -> ~` is renamed, and a folder of our own takes its place."""
    project.constraint("no-echo", ECHO)
    (project.root / ".fusewire").symlink_to("../outside")
    said = trip(project)
    use_everything(project)
    assert is_untouched(outside)
    assert os.readlink(project.root / ".fusewire.set-aside-1") == "../outside"
    assert [".fusewire is a symbolic link" in one for one in said] == [True, False, False]
    assert ".fusewire is a symbolic link" in project.run("doctor").stdout


def test_a_second_name_of_a_file_is_not_written_to(project: Project, tmp_path: Path) -> None:
    """`cp -al` of a project, as backups are made: the copy stays what it was, and nothing is lost here."""
    project.constraint("no-echo", ECHO)
    trip(project)
    folder, copy = project.root / ".fusewire", tmp_path / "copy"
    shutil.copytree(folder, copy, copy_function=os.link)
    before = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file() and "shm" not in path.name}
    assert project.run("reset", "no-echo", "--reason", "mended").returncode == 0
    trip(project)
    use_everything(project)
    assert {name: (copy / name).read_bytes() for name in before} == before
    trail = (folder / "audit.jsonl").read_text()
    assert trail.count('"to":"open"') >= 2, "the trail goes on where it was"


def test_a_project_behind_a_link_is_a_project(project: Project, tmp_path: Path) -> None:
    """~/code -> /data/code, /tmp -> private/tmp: the way to a project may have links in it."""
    project.constraint("no-echo", ECHO)
    (tmp_path / "code").symlink_to(project.root.parent)
    there = Project(tmp_path / "code" / project.root.name)
    use_everything(there)
    assert not any("symbolic link" in one for one in trip(there))
    assert is_open(project)
    assert "set aside" not in project.run("doctor").stdout
    assert not list(project.root.rglob("*set-aside*"))


@pytest.mark.parametrize("path", ["~/.bashrc", "../outside/.bashrc", "{outside}/.bashrc"])
def test_a_project_names_no_log_outside_of_itself(project: Project, outside: Path, path: str) -> None:
    """Its settings come with a clone; only the user's own may have the incidents logged elsewhere."""
    (Path(os.environ["HOME"]) / ".bashrc").write_bytes(PRECIOUS)
    (project.root / "fusewire.toml").write_text(f'[tool]\nincidents = "{path.format(outside=outside)}"\n')
    for _ in range(4):
        project.hook(project.bash("false"))
        project.hook(project.bash("false", hook_event_name="PostToolUseFailure", error="Exit code 1"))
    assert is_untouched(outside)
    assert (Path(os.environ["HOME"]) / ".bashrc").read_bytes() == PRECIOUS
    assert "incidents" in project.run("status").stderr
