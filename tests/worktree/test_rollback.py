"""Going back to a checkpoint: nothing is lost, nothing that is not saved is touched, and a kill is only a pause."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusewire.util.errors import FusewireError
from fusewire.worktree import contents as keeping
from fusewire.worktree.checkpoint import Checkpoint, Checkpoints
from fusewire.worktree.rollback import ChangedSince
from tests.worktree.test_checkpoint import git, held, repository, users_side

Shown = dict[str, tuple[str, bytes]]


def shown(root: Path) -> Shown:
    """Every file and link below a folder, but not git's and ours: its kind and content."""
    found = {}
    for at, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".fusewire")]
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        for name in files + links:
            full = os.path.join(at, name)
            path = os.path.relpath(full, root)
            if name == ".git":
                continue
            if os.path.islink(full):
                found[path] = ("link", os.fsencode(os.readlink(full)))
            elif os.path.isfile(full):
                kind = "program" if os.stat(full).st_mode & 0o100 else "file"
                found[path] = (kind, Path(full).read_bytes())
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "project", tracked="one\n", other="two\n")


@pytest.fixture
def points(root: Path) -> Checkpoints:
    return Checkpoints(str(root))


class TestTheWayBackAndForth:
    def test_changed_added_deleted_renamed_and_binary_files(self, root: Path, points: Checkpoints) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "binary").write_bytes(bytes(range(256)))
        (root / "dirty").write_text("untracked, before")
        then = shown(root)
        taken = points.take("S-1")
        (root / "tracked").write_text("changed\n")
        (root / "folder" / "binary").write_bytes(bytes(255))
        (root / "dirty").rename(root / "renamed")
        (root / "other").unlink()
        (root / "deep" / "er").mkdir(parents=True)
        (root / "deep" / "er" / "new").write_text("new")
        edited = shown(root)
        restored = points.restore(taken, name="S-1")
        assert shown(root) == then
        assert restored.written == ("dirty", "folder/binary", "other", "tracked")
        assert restored.removed == ("deep/er/new", "renamed")
        assert restored.left == ()
        assert not (root / "deep").exists()
        assert restored.saved.ref == "refs/fusewire/saved/S-1/000001"
        points.restore(points.load(restored.saved.ref))
        assert shown(root) == edited

    def test_nothing_to_do(self, points: Checkpoints) -> None:
        restored = points.restore(points.take("S"))
        assert (restored.written, restored.removed, restored.left, restored.notes) == ((), (), (), ())

    def test_the_users_side_stays_to_the_byte(self, root: Path, points: Checkpoints) -> None:
        taken = points.take("S")
        (root / "tracked").write_text("stashed\n")
        git(root, "stash")
        (root / "new").write_text("x")
        git(root, "add", "new")
        (root / "tracked").write_text("changed\n")
        before = users_side(root)
        points.restore(taken)
        assert users_side(root) == before
        git(root, "fsck", "--strict")

    def test_files_become_folders_links_and_programs_and_back(self, root: Path, points: Checkpoints) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "a").write_text("a")
        (root / "link").symlink_to("folder")
        (root / "run").write_text("#!/bin/sh\n")
        then = shown(root)
        taken = points.take("S")
        shutil.rmtree(root / "folder")
        (root / "folder").write_text("a file now")
        (root / "tracked").unlink()
        (root / "tracked" / "sub").mkdir(parents=True)
        (root / "tracked" / "sub" / "b").write_text("b")
        (root / "link").unlink()
        (root / "link").mkdir()
        (root / "link" / "a").write_text("no link any more")
        (root / "run").chmod(0o755)
        (root / "other").unlink()
        (root / "other").symlink_to("nowhere")
        edited = shown(root)
        restored = points.restore(taken)
        assert shown(root) == then
        assert restored.left == ()
        points.restore(restored.saved)
        assert shown(root) == edited

    def test_permissions_that_git_does_not_know_come_back(self, root: Path, points: Checkpoints) -> None:
        (root / "secret").write_text("x")
        (root / "secret").chmod(0o600)
        (root / "read-only").write_text("x")
        (root / "read-only").chmod(0o444)
        taken = points.take("S")
        for name in ("secret", "read-only"):
            (root / name).unlink()
            (root / name).write_text("changed")
        points.restore(taken)
        assert [(root / name).stat().st_mode & 0o777 for name in ("secret", "read-only")] == [0o600, 0o444]

    def test_content_is_written_byte_for_byte_whatever_the_attributes_say(
        self, root: Path, points: Checkpoints
    ) -> None:
        git(root, "config", "filter.x.smudge", "tr a-z A-Z")
        git(root, "config", "filter.x.clean", "tr A-Z a-z")
        git(root, "config", "core.autocrlf", "true")
        (root / ".gitattributes").write_text("*.up filter=x\n*.txt eol=crlf\n")
        (root / "a.up").write_bytes(b"Mixed\n")
        (root / "b.txt").write_bytes(b"one\r\ntwo\n")
        then = shown(root)
        taken = points.take("S")
        (root / "a.up").unlink()
        (root / "b.txt").write_bytes(b"")
        points.restore(taken)
        assert shown(root) == then

    @pytest.mark.parametrize("name", ["-dash", "new\nline", 'quo"te', "\udcff\udcfe", "git~1", "back\\slash", "*", "é"])
    def test_odd_names(self, root: Path, points: Checkpoints, name: str) -> None:
        path = root / name / name
        path.parent.mkdir()
        path.write_text("1")
        taken = points.take("S")
        path.write_text("2")
        (root / f"{name}2").write_text("new")
        restored = points.restore(taken)
        assert (restored.written, restored.removed) == ((f"{name}/{name}",), (f"{name}2",))
        assert path.read_text() == "1"

    def test_without_a_repository_and_before_the_first_commit(self, tmp_path: Path) -> None:
        for name in ("folder", "repository"):
            root = tmp_path / name
            root.mkdir()
            if name == "repository":
                git(root, "init", "-q")
            points = Checkpoints(str(root))
            empty = points.take("S")
            (root / "a").write_text("1")
            full = points.take("S")
            (root / "a").write_text("2")
            points.restore(full)
            assert shown(root) == {"a": ("file", b"1")}
            points.restore(empty)
            assert shown(root) == {}
            points.restore(full)
            assert shown(root) == {"a": ("file", b"1")}


class TestIgnoredFiles:
    def test_what_was_ignored_at_the_checkpoint_is_not_removed(self, root: Path, points: Checkpoints) -> None:
        (root / ".gitignore").write_text("*.env\ncache/\n")
        (root / "secret.env").write_text("password")
        (root / "cache").mkdir()
        (root / "cache" / "big").write_text("old")
        taken = points.take("S")
        (root / ".gitignore").unlink()
        (root / "cache" / "more").write_text("new")
        assert points.changed_since(taken) == [".gitignore"]
        restored = points.restore(taken)
        assert restored.removed == ()
        assert shown(root).keys() == {"tracked", "other", ".gitignore", "secret.env", "cache/big", "cache/more"}
        assert [line.partition(":")[0] for line in restored.left] == ["cache/big", "cache/more", "secret.env"]

    def test_what_was_kept_and_is_ignored_now_is_saved_and_brought_back(self, root: Path, points: Checkpoints) -> None:
        (root / "notes").write_text("1")
        taken = points.take("S")
        (root / ".gitignore").write_text("notes\n")
        (root / "notes").write_text("2")
        assert points.changed_since(taken) == [".gitignore", "notes"]
        restored = points.restore(taken)
        assert (root / "notes").read_text() == "1"
        assert held(root, restored.saved.commit)["notes"] == "2"
        points.restore(restored.saved)
        assert (root / "notes").read_text() == "2"

    def test_a_folder_with_nothing_but_ignored_files_is_not_ignored_itself(
        self, root: Path, points: Checkpoints
    ) -> None:
        (root / ".gitignore").write_text("*.log\n")
        (root / "folder").mkdir()
        (root / "folder" / "x.log").write_text("noise")
        taken = points.take("S")
        (root / "folder" / "new").write_text("new")
        assert points.restore(taken).removed == ("folder/new",)
        assert (root / "folder" / "x.log").read_text() == "noise"

    @pytest.mark.parametrize("with_others", [True, False])
    def test_what_was_deleted_in_a_folder_that_is_ignored_now_is_deleted_again(
        self, root: Path, points: Checkpoints, with_others: bool
    ) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "x").write_text("then")
        taken = points.take("S")
        (root / ".git" / "info" / "exclude").write_text("folder/\n")
        (root / "folder" / "x").unlink()
        if with_others:
            (root / "folder" / "y").write_text("ignored")
        edited = shown(root)
        saved = points.restore(taken).saved
        assert (root / "folder" / "x").read_text() == "then"
        points.restore(saved)
        assert shown(root) == edited

    def test_what_is_ignored_now_and_came_later_stays_and_is_named(self, root: Path, points: Checkpoints) -> None:
        taken = points.take("S")
        (root / ".gitignore").write_text("*.log\n")
        (root / "x.log").write_text("noise")
        restored = points.restore(taken)
        assert (root / "x.log").read_text() == "noise"
        assert [line.partition(":")[0] for line in restored.left] == ["x.log"]

    def test_an_ignored_file_in_the_way_is_not_overwritten(self, root: Path, points: Checkpoints) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "a").write_text("a")
        taken = points.take("S")
        shutil.rmtree(root / "folder")
        (root / ".git" / "info" / "exclude").write_text("folder\n*.log\n")
        (root / "folder").write_text("ignored and not saved")
        (root / "tracked").unlink()
        (root / "tracked").mkdir()
        (root / "tracked" / "x.log").write_text("ignored and not saved")
        restored = points.restore(taken)
        assert (root / "folder").read_text() == "ignored and not saved"
        assert (root / "tracked" / "x.log").read_text() == "ignored and not saved"
        assert [line.partition(": left alone: ")[::2] for line in restored.left] == [
            ("folder/a", "folder is in its way and is not saved"),
            ("tracked", "tracked/x.log is in its way and is not saved"),
        ]

    def test_a_link_to_a_folder_is_never_written_through(self, root: Path, points: Checkpoints, tmp_path: Path) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "a").write_text("a")
        (root / "ours").mkdir()
        (root / "ours" / "b").write_text("b")
        taken = points.take("S")
        (tmp_path / "outside").mkdir()
        for name in ("a", "b"):
            (tmp_path / "outside" / name).write_text("not of the project")
        for name in ("folder", "ours"):
            shutil.rmtree(root / name)
            (root / name).symlink_to(tmp_path / "outside")
        (root / ".git" / "info" / "exclude").write_text("folder\n")
        restored = points.restore(taken)
        assert {name: (tmp_path / "outside" / name).read_text() for name in "ab"} == dict.fromkeys(
            "ab", "not of the project"
        )
        assert (root / "folder").is_symlink()
        assert (root / "ours" / "b").read_text() == "b"
        assert len(restored.left) == 1

    def test_what_was_left_out_is_not_touched(
        self, root: Path, points: Checkpoints, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keeping, "LARGEST", 10)
        (root / "large").write_text("x" * 11)
        (root / "grows").write_text("small")
        taken = points.take("S")
        (root / "large").write_text("small")
        (root / "grows").write_text("x" * 11)
        assert points.changed_since(taken) == []
        restored = points.restore(taken)
        assert ((root / "large").read_text(), (root / "grows").read_text()) == ("small", "x" * 11)
        assert [line.partition(":")[0] for line in restored.left] == ["grows", "large"]


class TestRepositoriesInside:
    def test_submodules_and_clones_go_back_too(self, root: Path, points: Checkpoints, tmp_path: Path) -> None:
        library = repository(tmp_path / "library", lib="1\n")
        git(root, "submodule", "--quiet", "add", str(library), "module")
        repository(root / "clone", tool="1\n")
        repository(root / "clone" / "inner", x="1\n")
        then = shown(root)
        taken = points.take("S")
        (root / "module" / "lib").write_text("2\n")
        git(root / "module", "commit", "-qam", "moved")
        (root / "clone" / "new").write_text("2\n")
        (root / "clone" / "inner" / "x").unlink()
        edited = shown(root)
        head = git(root / "module", "rev-parse", "HEAD")
        restored = points.restore(taken)
        assert shown(root) == then
        assert git(root / "module", "rev-parse", "HEAD") == head
        assert restored.written == ("clone/inner/x", "module/lib")
        assert restored.removed == ("clone/new",)
        points.restore(restored.saved)
        assert shown(root) == edited

    def test_new_and_deleted_ones_are_left_alone_and_named(self, root: Path, points: Checkpoints) -> None:
        repository(root / "old", x="1\n")
        repository(root / "bare-now", y="1\n")
        taken = points.take("S")
        shutil.rmtree(root / "old")
        shutil.rmtree(root / "bare-now" / ".git")
        repository(root / "new", z="1\n")
        restored = points.restore(taken)
        assert shown(root).keys() == {"tracked", "other", "bare-now/y", "new/z"}
        assert (restored.written, restored.removed) == ((), ())
        assert sorted(line.partition(":")[0] for line in restored.left) == ["bare-now", "new", "old"]

    def test_one_that_is_ignored_now_goes_back_too(self, root: Path, points: Checkpoints) -> None:
        repository(root / "inside", x="1\n")
        taken = points.take("S")
        (root / ".gitignore").write_text("inside/\n")
        last = points.take("S")
        (root / "inside" / "x").write_text("2\n")
        assert points.changed_since(taken) == [".gitignore", "inside/x"]
        assert points.changed_since(last) == []
        restored = points.restore(taken, since=last)
        assert (restored.written, restored.left) == (("inside/x",), ())
        assert held(root / "inside", restored.saved.nested["inside"]) == {"x": "2"}

    def test_one_behind_a_link_is_left_alone(self, root: Path, points: Checkpoints, tmp_path: Path) -> None:
        repository(root / "a" / "inside", x="1\n")
        taken = points.take("S")
        (root / "a").rename(tmp_path / "elsewhere")
        (tmp_path / "elsewhere" / "inside" / "x").write_text("2\n")
        (root / "a").symlink_to(tmp_path / "elsewhere")
        restored = points.restore(taken)
        assert (restored.written, restored.removed) == ((), ("a",))
        assert (tmp_path / "elsewhere" / "inside" / "x").read_text() == "2\n"

    def test_one_that_was_replaced_by_another_is_left_alone(self, root: Path, points: Checkpoints) -> None:
        repository(root / "inside", x="1\n")
        taken = points.take("S")
        shutil.rmtree(root / "inside")
        repository(root / "inside", other="2\n")
        restored = points.restore(taken)
        assert shown(root / "inside").keys() == {"other"}
        assert len(restored.left) == 1

    def test_files_of_a_folder_that_became_a_repository_go_back(self, root: Path, points: Checkpoints) -> None:
        (root / "part").mkdir()
        (root / "part" / "a").write_text("1")
        taken = points.take("S")
        git(root / "part", "init", "-q")
        (root / "part" / "a").write_text("2")
        (root / "part" / "b").write_text("2")
        points.restore(taken)
        assert (root / "part" / "a").read_text() == "1"
        assert (root / "part" / "b").read_text() == "2"


class TestNotes:
    def test_commits_since_stay_on_the_branch(self, root: Path, points: Checkpoints) -> None:
        taken = points.take("S")
        for number in range(2):
            (root / "tracked").write_text(f"{number}")
            git(root, "commit", "-qam", "more")
        restored = points.restore(taken)
        assert restored.notes == (f"2 commits since the checkpoint stay on main; to drop them: git reset {taken.head}",)
        git(root, "reset", "-q", taken.head or "")
        assert git(root, "status", "--porcelain") == ""

    def test_the_first_commit_since(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", "-b", "main")
        points = Checkpoints(str(tmp_path))
        taken = points.take("S")
        (tmp_path / "a").write_text("x")
        git(tmp_path, "add", "a")
        git(tmp_path, "commit", "-qm", "first")
        (note,) = points.restore(taken).notes
        assert note == "the commits since the checkpoint stay on main; to drop them: git update-ref -d HEAD"
        git(tmp_path, *note.partition(": git ")[2].split())

    def test_history_that_was_rewritten(self, root: Path, points: Checkpoints) -> None:
        taken = points.take("S")
        git(root, "commit", "-q", "--amend", "-m", "other words")
        (note,) = points.restore(taken).notes
        assert note.endswith(f"to set it back: git reset {taken.head}")

    @pytest.mark.parametrize("detached_then", [True, False])
    def test_another_branch_or_none(self, root: Path, points: Checkpoints, detached_then: bool) -> None:
        git(root, "checkout", "-q", *(["--detach"] if detached_then else ["-b", "side"]))
        taken = points.take("S")
        git(root, "checkout", "-q", "main")
        (root / "tracked").write_text("changed\n")
        (note,) = points.restore(taken).notes
        git(root, *note.partition(": git ")[2].split())
        assert points.take("S").branch == taken.branch
        assert git(root, "status", "--porcelain") == ""

    def test_staged_changes_stay(self, root: Path, points: Checkpoints) -> None:
        taken = points.take("S")
        (root / "tracked").write_text("changed\n")
        git(root, "add", "tracked")
        assert points.restore(taken).notes == ("1 staged change stays in the index; to unstage: git reset",)
        assert git(root, "diff", "--cached", "--name-only") == "tracked"


class TestChangesBySomebodyElse:
    def test_a_change_since_the_last_attempt_is_refused_and_nothing_is_touched(
        self, root: Path, points: Checkpoints
    ) -> None:
        taken = points.take("S")
        (root / "tracked").write_text("the agent's\n")
        last = points.take("S")
        (root / "other").write_text("a person's\n")
        before = shown(root)
        with pytest.raises(ChangedSince, match=r"changed since the last recorded attempt: other$") as refusal:
            points.restore(taken, since=last)
        assert isinstance(refusal.value, FusewireError)
        assert refusal.value.paths == ["other"]
        assert shown(root) == before
        assert "refs/fusewire/saved" not in git(root, "for-each-ref")
        restored = points.restore(taken, since=last, force=True)
        assert (root / "other").read_text() == "two\n"
        assert held(root, restored.saved.commit)["other"] == "a person's"

    def test_no_change_since_is_no_refusal(self, root: Path, points: Checkpoints) -> None:
        (root / "kept").write_text("1")
        taken = points.take("S")
        (root / ".gitignore").write_text("kept\nx.log\n")
        (root / "x.log").write_text("1")
        (root / "late").write_text("1")
        last = points.take("S")
        (root / "x.log").write_text("2")
        (root / ".git" / "info" / "exclude").write_text("late\n")
        assert points.restore(taken, since=last).removed == (".gitignore", "late")

    def test_ten_are_named(self, root: Path, points: Checkpoints) -> None:
        last = points.take("S")
        for number in range(13):
            (root / f"n{number:02}").touch()
        with pytest.raises(ChangedSince, match=r"n09 and 3 more$"):
            points.restore(last, since=last)

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ("open(root + '/z', 'w').write('a person')", {"z": ("file", b"a person")}),
            ("os.unlink(root + '/z')", {"z": None}),
            ("os.unlink(root + '/z'); os.mkdir(root + '/z')", {"z": None}),
            ("open(root + '/gone', 'w').write('a person')", {"gone": ("file", b"a person")}),
            ("os.chmod(root + '/z', 0o755)", {"z": ("program", b"agent")}),
        ],
    )
    def test_a_change_in_the_middle_takes_all_of_it_back(
        self, root: Path, points: Checkpoints, change: str, expected: dict[str, tuple[str, bytes] | None]
    ) -> None:
        """Somebody writes while the first file is moved; `z` and `gone` come last."""
        (root / "folder" / "deep").mkdir(parents=True)
        (root / "folder" / "deep" / "x").write_text("1")
        (root / "gone").write_text("1")
        (root / "z").write_text("1")
        taken = points.take("S")
        (root / "a-new").mkdir()
        (root / "a-new" / "x").write_text("agent")
        shutil.rmtree(root / "folder")
        (root / "gone").unlink()
        (root / "tracked").unlink()
        (root / "z").write_text("agent")
        before = shown(root)
        done = in_a_process(root, taken, f"if event == 'os.rename' and 'aside' in str(values[1]): armed = 0; {change}")
        assert done.returncode == 7, done.stderr
        assert b"in this moment" in done.stdout
        after: dict[str, tuple[str, bytes] | None] = {**before, **expected}
        assert shown(root) == {path: one for path, one in after.items() if one}
        assert not (root / "folder").exists()
        restored = points.restore(taken, force=True)
        assert restored.notes == ()

    def test_a_folder_that_becomes_a_link_in_the_middle_is_not_followed(
        self, root: Path, points: Checkpoints, tmp_path: Path
    ) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "x").write_text("1")
        taken = points.take("S")
        (root / "folder" / "x").write_text("agent")
        (root / "new").write_text("agent")
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "x").write_text("agent")
        swap = "os.rename(root + '/folder', root + '/moved'); os.symlink('../outside', root + '/folder')"
        done = in_a_process(root, taken, f"if event == 'os.rename' and 'aside' in str(values): armed = 0; {swap}")
        assert done.returncode == 7, done.stderr
        assert (tmp_path / "outside" / "x").read_text() == "agent"
        assert (root / "moved" / "x").read_text() == (root / "new").read_text() == "agent"


PROCESS = """
import os, signal, sys
from fusewire.worktree.checkpoint import Checkpoint, Checkpoints
from fusewire.worktree.rollback import ChangedSince
root, armed, count = sys.argv[1], 1, 0
def hook(event, values):
    global armed, count
    if not armed or not event.startswith(("os.", "subprocess.Popen", "open")) or event == "os.fwalk":
        return
    count += 1
    {reaction}
points = Checkpoints(root)
taken = points.load(sys.argv[2])
since = points.load(sys.argv[3]) if sys.argv[3] else None
sys.addaudithook(hook)
try:
    points.restore(taken, since=since, name="S")
except ChangedSince as refusal:
    print(refusal)
    sys.exit(7)
armed = 0
print(count)
"""


def in_a_process(
    root: Path, taken: Checkpoint, reaction: str, since: Checkpoint | None = None
) -> subprocess.CompletedProcess[bytes]:
    """A rollback in a process of its own, which does something at each step that Python's audit tells of."""
    script = PROCESS.format(reaction=reaction)
    command = [sys.executable, "-c", script, str(root), taken.ref, since.ref if since else ""]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_killed_at_any_point_and_completed(tmp_path: Path) -> None:
    """Killed at steps all over the way; the same call again gives the checkpoint, and the way back what was there."""
    source = repository(tmp_path / "source", **{f"f{number}": "then" for number in range(6)})
    (source / "folder").mkdir()
    (source / "folder" / "x").write_text("then")
    then = shown(source)
    taken = Checkpoints(str(source)).take("S")
    for number in range(3):
        (source / f"f{number}").write_text("edited")
    (source / "f3").unlink()
    (source / "new").mkdir()
    (source / "new" / "y").write_text("edited")
    shutil.rmtree(source / "folder")
    (source / "folder").write_text("a file")
    edited = shown(source)
    since = Checkpoints(str(source)).take("S")

    def killed(name: str, reaction: str) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
        shutil.copytree(source, tmp_path / name, symlinks=True)
        return tmp_path / name, in_a_process(tmp_path / name, taken, reaction, since)

    _, whole = killed("whole", "if event == 'os.rename' and 'aside' in str(values): print(count)")
    counts = [int(line) for line in whole.stdout.split()]
    first, last, steps = counts[0], counts[-2], counts[-1]
    middle = 0
    for at in [*range(2, first, first // 4), *range(first + 1, last, (last - first) // 5), last + 1, steps - 1]:
        root, done = killed(f"at-{at}", f"if count == {at}: os.kill(os.getpid(), signal.SIGKILL)")
        assert done.returncode == -signal.SIGKILL
        middle += shown(root) not in (then, edited)
        points = Checkpoints(str(root))
        restored = points.restore(taken, since=since, name="S")
        assert shown(root) == then, at
        points.restore(restored.saved)
        assert shown(root) == edited, at
        assert os.listdir(root / ".fusewire" / "checkpoints.git" / "restore") == ["journal.json"]
        shutil.rmtree(root)
    assert middle >= 2


def test_killed_and_then_changed_by_a_person(root: Path, points: Checkpoints) -> None:
    """What a person writes after the kill is refused, and with force it is saved; the first save is named."""
    taken = points.take("S")
    (root / "tracked").write_text("edited")
    (root / "other").write_text("edited")
    since = points.take("S")
    kill = "if event == 'os.link': os.kill(os.getpid(), signal.SIGKILL)"
    assert in_a_process(root, taken, kill, since).returncode == -signal.SIGKILL
    (root / "person").write_text("new")
    with pytest.raises(ChangedSince, match=r": person$"):
        points.restore(taken, since=since, name="S")
    restored = points.restore(taken, since=since, name="S", force=True)
    assert shown(root) == {"tracked": ("file", b"one\n"), "other": ("file", b"two\n")}
    assert restored.saved.ref == "refs/fusewire/saved/S/000002"
    assert held(root, restored.saved.commit)["person"] == "new"
    assert held(root, "refs/fusewire/saved/S/000001") == {"tracked": "edited", "other": "edited"}
    assert "refs/fusewire/saved/S/000001" in restored.notes[0]


def test_killed_with_a_persons_change_in_hand(root: Path, points: Checkpoints) -> None:
    """A change that was moved aside and not looked at yet is put back first, and then saved."""
    taken = points.take("S")
    (root / "tracked").write_text("edited")
    write_then_kill = (
        "if event == 'os.rename' and 'aside/' in str(values): open(root + '/tracked', 'w').write('me')\n"
        "    if event == 'open' and str(values[0]).endswith('aside/tracked'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert in_a_process(root, taken, write_then_kill).returncode == -signal.SIGKILL
    assert not (root / "tracked").exists()
    restored = points.restore(taken, name="S")
    assert (root / "tracked").read_text() == "one\n"
    assert held(root, restored.saved.commit)["tracked"] == "me"


def test_the_second_time_is_saved_as_well(root: Path, points: Checkpoints) -> None:
    """What came after a finished rollback is not in its save, not even if only we know of the file."""
    (root / "notes").write_text("then")
    taken = points.take("S")
    (root / "notes").unlink()
    (root / ".git" / "info" / "exclude").write_text("notes\n")
    first = points.restore(taken)
    assert points.restore(taken).saved == first.saved, "nothing came after it: it is still the way back"
    (root / "notes").write_text("later")
    second = points.restore(taken)
    assert (root / "notes").read_text() == "then"
    assert held(root, second.saved.commit)["notes"] == "later"


# -- random trees

PARTS = ["a", "b", "x.log", "-d", "n\nl", "\udcff", "deep"]
paths = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("/".join)
rules = st.lists(st.sampled_from(["*.log", "a", "/b", "deep/", "!x.log", "**/a/b", "*"]), max_size=3).map("\n".join)
contents = st.sampled_from([b"", b"1\n", b"2\r\n", b"\0\xff", b"long" * 99])
puts = st.tuples(st.just("put"), paths, contents, st.booleans())
edits = st.lists(
    st.one_of(
        puts,
        puts,
        st.tuples(st.just("link"), paths, st.sampled_from(["a", "..", "deep", "nowhere"])),
        st.tuples(st.just("delete"), paths),
        st.tuples(st.just("rename"), paths, paths),
        st.tuples(st.just("ignore"), st.sampled_from(["", "a/", "deep/"]), rules),
        st.tuples(st.just("exclude"), rules),
        st.tuples(st.just("add"), paths),
        st.tuples(st.just("commit")),
    ),
    max_size=8,
)


def clear(path: Path) -> None:
    """Make room for a file: whatever is there or in place of a folder above goes."""
    for above in [*reversed(path.parents), path]:
        if above.is_symlink() or above.is_file():
            above.unlink()
    if path.is_dir():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)


def apply(root: Path, top: Path | None, edit: tuple[object, ...]) -> None:
    kind, *values = edit
    path = root / str(values[0]) if values else root
    real = not any(above.is_symlink() for above in path.parents)
    if kind == "put":
        clear(path)
        path.write_bytes(values[1])  # type: ignore[arg-type]
        path.chmod(0o755 if values[2] else 0o644)
    elif kind == "link":
        clear(path)
        path.symlink_to(str(values[1]))
    elif kind == "ignore":
        clear(path / ".gitignore")
        (path / ".gitignore").write_text(str(values[1]))
    elif kind == "exclude":
        if top:
            (top / ".git" / "info" / "exclude").write_text(str(values[0]))
    elif not real or not os.path.lexists(path):
        return
    elif kind == "delete":
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    elif kind == "rename":
        target = root / str(values[1])
        if not {path, *path.parents} & {target} and not {target, *target.parents} & {path}:
            clear(target)
            if os.path.lexists(path):
                path.rename(target)
    elif top and kind == "add":
        subprocess.run(["git", "add", "-f", "-A", "--", str(path)], cwd=root, capture_output=True, check=False)
    elif top and kind == "commit":
        git(top, "commit", "-q", "--allow-empty", "-m", "more")


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(before=edits, after=edits, where=st.sampled_from(["repository", "repository", "below", "folder"]))
def test_random_trees_lose_nothing(
    before: list[tuple[object, ...]], after: list[tuple[object, ...]], where: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        root = top / "sub" if where == "below" else top
        root.mkdir(exist_ok=True)
        if where != "folder":
            git(top, "init", "-q", "-b", "main")
        for edit in before:
            apply(root, None if where == "folder" else top, edit)
        points = Checkpoints(str(root))
        taken = points.take("S")
        then = shown(root)
        kept = set(points.levels(taken)[""].entries)
        for edit in after:
            apply(root, None if where == "folder" else top, edit)
        edited = shown(root)
        users = users_side(top)
        changed = points.changed_since(taken)

        restored = points.restore(taken)
        now = shown(root)
        saved = set(points.levels(restored.saved)[""].entries)
        blocked = {path for path in kept if any(line.startswith(f"{path_shown(path)}: ") for line in restored.left)}
        assert users_side(top) == users
        assert {path: now.get(path) for path in kept - blocked} == {path: then[path] for path in kept - blocked}
        for path in edited.keys() - saved:
            assert now.get(path) == edited[path], "what is not saved is not touched"
        for path in now.keys() - kept:
            assert now[path] == edited.get(path), "nothing comes from nowhere"
        for path in saved - kept:
            assert path not in now or path in then or points.levels(taken)[""].may_have_had([path])
        assert {*restored.written, *restored.removed} <= set(changed)

        points.restore(restored.saved)
        again = shown(root)
        assert {path: again.get(path) for path in edited} == edited
        if not blocked:
            assert again == edited
        assert users_side(top) == users


def path_shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
