"""Checkpoints: each kept file byte for byte, whatever state the repository is in, and the user's side untouched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fusewire.util.errors import FusewireError
from fusewire.worktree import contents as keeping
from fusewire.worktree.checkpoint import Checkpoint, Checkpoints


def git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    settings = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).rstrip("\n")


def repository(folder: Path, **files: str) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, content in (files or {"tracked": "one\n"}).items():
        (folder / name).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def held(folder: Path, commit: str) -> dict[str, str]:
    """The files that a commit of ours holds, with their content."""
    rows = git(folder, "ls-tree", "-r", "-z", commit).split("\0")[:-1]
    return {row.partition("\t")[2]: git(folder, "cat-file", "blob", row.split()[2]) for row in rows}


def users_side(root: Path) -> dict[str, bytes]:
    """Everything in the git directory but objects and our own refs."""
    found = {}
    for path in sorted((root / ".git").rglob("*")):
        name = str(path.relative_to(root / ".git"))
        if path.is_file() and not name.startswith(("objects/", "refs/fusewire/", "modules/")):
            found[name] = path.read_bytes()
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "project", tracked="one\n", other="two\n")


class TestWhatIsKept:
    def test_dirty_staged_and_untracked_files_are_held_and_ignored_ones_are_not(self, root: Path) -> None:
        (root / ".gitignore").write_text("*.log\n")
        (root / "tracked").write_text("changed\n")
        (root / "new").write_text("untracked\n")
        (root / "staged").write_text("staged\n")
        git(root, "add", "staged")
        (root / "staged").write_text("and changed again\n")
        (root / "x.log").write_text("noise\n")
        (root / "other").unlink()
        taken = Checkpoints(str(root)).take("S-1", "before the first attempt")
        assert held(root, taken.commit) == {
            ".gitignore": "*.log",
            "new": "untracked",
            "staged": "and changed again",
            "tracked": "changed",
        }
        assert taken.ref == "refs/fusewire/checkpoints/S-1/000001"
        assert git(root, "rev-parse", taken.ref) == taken.commit
        assert git(root, "rev-parse", f"{taken.ref}^") == taken.head == git(root, "rev-parse", "HEAD")
        assert taken.branch == "main"
        assert "before the first attempt" in git(root, "log", "-1", "--format=%B", taken.ref)
        assert git(root, "log", "-1", "--format=%an <%ae> %cn <%ce>", taken.ref) == " ".join(
            ["fusewire <fusewire@localhost>"] * 2
        )

    def test_a_tracked_file_is_kept_although_a_rule_ignores_it(self, root: Path) -> None:
        (root / ".gitignore").write_text("tracked\n")
        assert "tracked" in held(root, Checkpoints(str(root)).take("S").commit)

    def test_the_users_side_stays_as_it_is_to_the_byte(self, root: Path) -> None:
        (root / "tracked").write_text("stashed\n")
        git(root, "stash")
        (root / "staged").write_text("x")
        git(root, "add", "staged")
        hook = root / ".git" / "hooks" / "reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{root}/hook-ran'\n")
        hook.chmod(0o755)
        (root / "tracked").write_text("dirty\n")
        before = users_side(root)
        points = Checkpoints(str(root))
        points.changed_since(points.take("S"))
        assert users_side(root) == before
        assert not (root / "hook-ran").exists()
        assert git(root, "status", "--porcelain") == "A  staged\n M tracked"
        git(root, "fsck", "--strict")

    def test_our_own_state_is_not_part_of_it(self, root: Path) -> None:
        for name in (".fusewire/x", ".prp-session/circuit-breaker.json", "docs/constraints/.circuit-state.json"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("{}")
        (root / ".prp-session" / "notes").write_text("kept")
        git(root, "add", "-f", "docs", ".prp-session")
        assert held(root, Checkpoints(str(root)).take("S").commit).keys() == {"tracked", "other", ".prp-session/notes"}

    def test_contents_are_kept_byte_for_byte_whatever_the_attributes_say(self, root: Path) -> None:
        git(root, "config", "core.autocrlf", "true")
        git(root, "config", "filter.lfs.clean", "git-lfs-that-is-not-there clean -- %f")
        git(root, "config", "filter.lfs.required", "true")
        (root / ".gitattributes").write_text(
            "*.txt text eol=crlf\n*.bin filter=lfs -text\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n"
        )
        contents = {"a.txt": b"one\r\ntwo\n", "b.bin": b"\0\xff\r\n", "c.id": b"$Id: old $\n", "d.u16": b"\xff\xfea\0"}
        for name, content in contents.items():
            (root / name).write_bytes(content)
        taken = Checkpoints(str(root)).take("S")
        for name, content in contents.items():
            path = subprocess.run(["git", "cat-file", "blob", f"{taken.commit}:{name}"], cwd=root, capture_output=True)
            assert path.stdout == content, name

    def test_odd_names_modes_and_links(self, root: Path) -> None:
        names = ["-dash", "new\nline", 'quo"te', "\udcff\udcfe", "git~1", "back\\slash", " space ", "*", ":(top)x", "é"]
        for name in names:
            Path(os.fsdecode(os.fsencode(str(root)) + b"/" + os.fsencode(name))).write_text("x")
        (root / "run").write_text("#!")
        (root / "run").chmod(0o755)
        (root / "dangling").symlink_to("nowhere/at/all")
        (root / "folder-link").symlink_to("/")
        (root / "empty").touch()
        taken = Checkpoints(str(root)).take("S")
        assert {*names, "run", "dangling", "folder-link", "empty"} <= held(root, taken.commit).keys()
        modes = dict(row.split()[::3] for row in git(root, "ls-tree", taken.commit, "run", "dangling").splitlines())
        assert modes == {"100755": "run", "120000": "dangling"}
        assert taken.left_out == ()

    def test_large_and_special_files_are_left_out_and_named(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(keeping, "LARGEST", 1000)
        (root / "large").write_bytes(b"x" * 1001)
        (root / "fits").write_bytes(b"x" * 1000)
        (root / "tracked").unlink()
        os.mkfifo(root / "tracked")
        (root / ".GIT").mkdir()
        (root / ".GIT" / "x").write_text("git refuses such a name")
        taken = Checkpoints(str(root)).take("S")
        assert taken.left_out == (".GIT/x", "large", "tracked")
        assert held(root, taken.commit).keys() == {"fits", "other"}

    def test_a_linked_folder_is_not_followed(self, root: Path, tmp_path: Path) -> None:
        (root / "folder").mkdir()
        (root / "folder" / "file").write_text("x")
        git(root, "add", "folder")
        (root / "folder" / "file").unlink()
        (root / "folder").rmdir()
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "file").write_text("not of the project")
        (root / "folder").symlink_to(tmp_path / "outside")
        assert held(root, Checkpoints(str(root)).take("S").commit).keys() == {"folder", "tracked", "other"}


class TestStatesOfARepository:
    def test_before_the_first_commit(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q")
        (tmp_path / "a").write_text("x")
        taken = Checkpoints(str(tmp_path)).take("S")
        assert (taken.head, held(tmp_path, taken.commit)) == (None, {"a": "x"})

    def test_an_empty_folder_and_an_empty_repository(self, tmp_path: Path) -> None:
        for name in ("folder", "repository"):
            (tmp_path / name).mkdir()
        git(tmp_path / "repository", "init", "-q")
        for name in ("folder", "repository"):
            points = Checkpoints(str(tmp_path / name))
            assert points.changed_since(points.take("S")) == []

    def test_no_repository_at_all(self, tmp_path: Path) -> None:
        (tmp_path / ".gitignore").write_text("*.log\n")
        (tmp_path / "x.log").touch()
        (tmp_path / "a").write_text("1")
        (tmp_path / "node_modules").mkdir()
        (tmp_path / "node_modules" / "m").touch()
        points = Checkpoints(str(tmp_path))
        taken = points.take("S")
        assert (taken.head, taken.branch) == (None, None)
        (tmp_path / "a").write_text("2")
        (tmp_path / "b").write_text("2")
        (tmp_path / "x.log").write_text("2")
        assert points.changed_since(taken) == ["a", "b"]
        assert points.load(taken.ref) == points.load(taken.commit) == taken

    def test_a_folder_that_becomes_a_repository_keeps_its_checkpoints(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1")
        (tmp_path / "same").write_text("in the folder's own store already")
        points = Checkpoints(str(tmp_path))
        taken = points.take("S")
        git(tmp_path, "init", "-q")
        (tmp_path / "a").write_text("2")
        later = points.take("S")
        assert points.changed_since(taken) == ["a"]
        points.restore(points.load(taken.ref if later.ref != taken.ref else taken.commit))
        assert (tmp_path / "a").read_text() == "1"
        git(tmp_path, "fsck", "--strict")

    def test_a_detached_head(self, root: Path) -> None:
        git(root, "checkout", "-q", "--detach")
        taken = Checkpoints(str(root)).take("S")
        assert (taken.head, taken.branch) == (git(root, "rev-parse", "HEAD"), None)

    def test_a_merge_with_conflicts_and_an_intent_to_add(self, root: Path) -> None:
        git(root, "checkout", "-q", "-b", "side")
        (root / "tracked").write_text("side\n")
        git(root, "commit", "-qam", "side")
        git(root, "checkout", "-q", "main")
        (root / "tracked").write_text("main\n")
        git(root, "commit", "-qam", "main")
        with pytest.raises(AssertionError):
            git(root, "merge", "-q", "side")
        (root / "later").write_text("x")
        git(root, "add", "-N", "later")
        before = users_side(root)
        points = Checkpoints(str(root))
        taken = points.take("S")
        assert "<<<<<<<" in held(root, taken.commit)["tracked"]
        assert held(root, taken.commit)["later"] == "x"
        (root / "tracked").write_text("resolved\n")
        restored = points.restore(taken)
        assert "<<<<<<<" in (root / "tracked").read_text()
        assert any("a merge is under way" in note for note in restored.notes)
        assert users_side(root) == before

    def test_a_linked_worktree(self, root: Path, tmp_path: Path) -> None:
        git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
        (tmp_path / "tree" / "new").write_text("x")
        here, there = Checkpoints(str(root)), Checkpoints(str(tmp_path / "tree"))
        taken = [here.take("S"), there.take("S"), here.take("S"), there.take("S")]
        assert len({one.ref for one in taken}) == 4
        assert "new" in held(tmp_path / "tree", taken[3].commit)
        assert "new" not in held(root, taken[2].commit)
        assert [one.branch for one in taken[:2]] == ["main", "side"]

    def test_a_shallow_clone_with_borrowed_objects(self, root: Path, tmp_path: Path) -> None:
        (root / "tracked").write_text("two\n")
        git(root, "commit", "-qam", "second")
        git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
        git(tmp_path, "clone", "-q", "--shared", str(root), "borrowing")
        for name in ("shallow", "borrowing"):
            points = Checkpoints(str(tmp_path / name))
            taken = points.take("S")
            (tmp_path / name / "tracked").write_text("changed")
            points.restore(taken)
            assert (tmp_path / name / "tracked").read_text() == "two\n"
            git(tmp_path / name, "fsck")

    def test_a_sparse_checkout_lacks_files_and_they_are_no_deletions(self, root: Path) -> None:
        (root / "in").mkdir()
        (root / "out").mkdir()
        (root / "in" / "a").write_text("a")
        (root / "out" / "b").write_text("b")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "folders")
        git(root, "sparse-checkout", "set", "in")
        points = Checkpoints(str(root))
        taken = points.take("S")
        assert points.changed_since(taken) == []
        (root / "in" / "a").write_text("changed")
        assert points.restore(taken).written == ("in/a",)
        assert not (root / "out").exists()

    def test_a_repository_of_sha256(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", "--object-format=sha256")
        (tmp_path / "a").write_text("1")
        points = Checkpoints(str(tmp_path))
        taken = points.take("S")
        assert len(taken.commit) == 64
        (tmp_path / "a").write_text("2")
        assert points.restore(taken).written == ("a",)

    def test_a_project_in_a_folder_of_a_repository(self, root: Path) -> None:
        below = root / "deep" / "project"
        below.mkdir(parents=True)
        (below / "mine").write_text("1")
        (root / "deep" / "neighbour").write_text("1")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "folders")
        points = Checkpoints(str(below))
        taken = points.take("S")
        assert git(root, "diff-tree", "-r", taken.head or "", taken.commit) == ""
        (below / "mine").write_text("2")
        (below / "new").write_text("2")
        (root / "deep" / "neighbour").write_text("2")
        assert points.changed_since(taken) == ["mine", "new"]
        restored = points.restore(taken)
        assert (restored.written, restored.removed) == (("mine",), ("new",))
        assert (root / "deep" / "neighbour").read_text() == "2"
        assert git(root, "diff-tree", "-r", "--name-only", taken.commit, restored.saved.commit).split() == [
            "deep/project/mine",
            "deep/project/new",
        ]

    def test_a_folder_that_the_repository_above_ignores_is_a_project_of_its_own(self, root: Path) -> None:
        (root / ".gitignore").write_text("/scratch/\n")
        (root / "scratch").mkdir()
        (root / "scratch" / "a").write_text("1")
        points = Checkpoints(str(root / "scratch"))
        taken = points.take("S")
        (root / "scratch" / "a").write_text("2")
        assert points.changed_since(taken) == ["a"]
        assert git(root, "for-each-ref", "refs/fusewire/") == ""

    def test_a_project_that_the_repository_above_ignores_later_keeps_its_checkpoints(self, root: Path) -> None:
        (root / "below").mkdir()
        (root / "below" / "a").write_text("1")
        points = Checkpoints(str(root / "below"))
        taken = points.take("S")
        (root / ".gitignore").write_text("/below/\n")
        (root / "below" / "a").write_text("2")
        assert points.changed_since(taken) == ["a"]
        assert held(root, points.restore(taken).saved.commit)["below/a"] == "2"
        assert (root / "below" / "a").read_text() == "1"

    def test_a_work_tree_elsewhere(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "project").mkdir()
        git(tmp_path / "project", "init", "-q")
        git(tmp_path / "project", "config", "core.worktree", str(tmp_path / "elsewhere"))
        (tmp_path / "project" / "a").write_text("1")
        points = Checkpoints(str(tmp_path / "project"))
        taken = points.take("S")
        (tmp_path / "project" / "a").write_text("2")
        assert points.changed_since(taken) == ["a"]


class TestRepositoriesInside:
    def test_submodules_and_clones_have_their_own_part(self, root: Path, tmp_path: Path) -> None:
        library = repository(tmp_path / "library", lib="1\n")
        git(root, "submodule", "--quiet", "add", str(library), "module")
        git(root, "commit", "-qm", "module")
        repository(root / "tools" / "clone", tool="1\n")
        (root / "module" / "untracked").write_text("1")
        points = Checkpoints(str(root))
        taken = points.take("S")
        assert taken.nested.keys() == {"module", "tools/clone"}
        assert held(root / "module", taken.nested["module"]) == {"lib": "1", "untracked": "1"}
        assert points.load(taken.ref) == taken
        (root / "module" / "lib").write_text("2\n")
        (root / "tools" / "clone" / "new").write_text("2\n")
        assert points.changed_since(taken) == ["module/lib", "tools/clone/new"]

    def test_one_in_one_in_one(self, root: Path) -> None:
        repository(root / "a", x="1")
        repository(root / "a" / "b", y="1")
        points = Checkpoints(str(root))
        taken = points.take("S")
        assert taken.nested.keys() == {"a", "a/b"}
        (root / "a" / "b" / "y").write_text("2")
        (root / "a" / "b" / "new").write_text("2")
        assert points.changed_since(taken) == ["a/b/new", "a/b/y"]

    def test_one_that_came_or_went_is_one_path(self, root: Path) -> None:
        repository(root / "old", x="1")
        points = Checkpoints(str(root))
        taken = points.take("S")
        (root / "old").rename(root / "new")
        assert points.changed_since(taken) == ["new", "old"]

    def test_a_broken_one_is_left_out(self, root: Path) -> None:
        repository(root / "broken", x="1")
        (root / "broken" / ".git" / "index").write_text("nonsense\n")
        taken = Checkpoints(str(root)).take("S")
        assert (taken.nested, taken.left_out) == ({}, ("broken",))

    def test_one_that_is_none_to_git_is_a_folder(self, root: Path) -> None:
        repository(root / "inside", x="1")
        (root / "inside" / ".git" / "HEAD").unlink()
        taken = Checkpoints(str(root)).take("S")
        assert (taken.nested, taken.left_out) == ({}, ())
        assert held(root, taken.commit).keys() == {"tracked", "other", "inside/x"}

    def test_a_submodule_that_is_not_checked_out_is_nothing(self, root: Path, tmp_path: Path) -> None:
        library = repository(tmp_path / "library", lib="1\n")
        git(root, "submodule", "--quiet", "add", str(library), "module")
        git(root, "commit", "-qm", "module")
        git(root, "submodule", "--quiet", "deinit", "-f", "module")
        taken = Checkpoints(str(root)).take("S")
        assert (taken.nested, taken.left_out) == ({}, ())


class TestNamesAndNumbers:
    @pytest.mark.parametrize(
        "name", ["", "S-1", "../../heads/main", "a b~^:?*[\\@{}", ".lock", "x.lock", "-x", "é\n\udcff", "n" * 500]
    )
    def test_any_text_is_a_name(self, root: Path, name: str) -> None:
        points = Checkpoints(str(root))
        first, second = points.take(name), points.take(name)
        assert first.ref != second.ref
        assert first.ref.rpartition("/")[0] == second.ref.rpartition("/")[0]
        assert points.load(second.ref) == second
        assert git(root, "for-each-ref", "--format=%(refname)", "refs/heads").split() == ["refs/heads/main"]

    def test_names_that_differ_late_have_numbers_of_their_own(self, root: Path) -> None:
        points = Checkpoints(str(root))
        assert {points.take("n" * 500 + end).ref[-6:] for end in "ab"} == {"000001"}

    def test_the_newest_of_a_name_stay(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fusewire.worktree.refs._NEWEST", 3)
        points = Checkpoints(str(root))
        other = points.take("other")
        taken = [points.take("S") for _ in range(5)]
        refs = git(root, "for-each-ref", "--format=%(refname)", "refs/fusewire/").split()
        assert [ref for ref in refs if "/S/" in ref] == [one.ref for one in taken[2:]]
        assert len([ref for ref in refs if "/facts/" in ref]) == 4
        assert points.load(other.ref) == other
        for call in (points.changed_since, points.restore):
            with pytest.raises(FusewireError, match="is gone"):
                call(taken[0])

    @pytest.mark.parametrize("ref", ["refs/heads/main", "HEAD", "nothing", "--help", "", "0" * 40, "a b\nc"])
    def test_only_ours_can_be_loaded(self, root: Path, ref: str) -> None:
        points = Checkpoints(str(root))
        points.take("S")
        with pytest.raises(FusewireError, match="no checkpoint"):
            points.load(ref)

    def test_data_there_and_back(self, root: Path) -> None:
        repository(root / "inside", x="1")
        taken = Checkpoints(str(root)).take("S")
        assert Checkpoint.from_data(taken.to_data()) == taken

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda data: None,
            lambda data: [],
            lambda data: {},
            lambda data: data | {"commit": 1},
            lambda data: data | {"commit": ""},
            lambda data: data | {"nested": [1]},
            lambda data: data | {"nested": {"a": 1}},
            lambda data: data | {"left_out": None},
            lambda data: data | {"head": 5},
        ],
    )
    def test_data_that_is_no_checkpoint(self, spoil: Callable[[dict[str, object]], object]) -> None:
        with pytest.raises(ValueError, match="no checkpoint"):
            Checkpoint.from_data(spoil(Checkpoint("c", "r").to_data()))


class TestTheIndexBetweenTakes:
    def test_objects_that_were_collected_are_written_again(self, root: Path) -> None:
        (root / "new").write_text("untracked")
        points = Checkpoints(str(root))
        points.take("S")
        for ref in git(root, "for-each-ref", "--format=%(refname)", "refs/fusewire/").split():
            git(root, "update-ref", "-d", ref)
        git(root, "gc", "-q", "--prune=now")
        assert held(root, points.take("S").commit)["new"] == "untracked"
        git(root, "fsck", "--strict")

    def test_objects_that_only_a_comparison_wrote_are_written_again(self, root: Path) -> None:
        points = Checkpoints(str(root))
        taken = points.take("S")
        (root / "new").write_text("untracked")
        assert points.changed_since(taken) == ["new"]
        git(root, "gc", "-q", "--prune=now")
        assert held(root, points.take("S").commit)["new"] == "untracked"
        git(root, "fsck", "--strict")

    def test_a_damaged_index_or_a_lock_left_behind_is_no_hindrance(self, root: Path) -> None:
        points = Checkpoints(str(root))
        points.take("S")
        (root / ".fusewire" / "checkpoints.git" / "index").write_bytes(b"nonsense")
        (root / ".fusewire" / "checkpoints.git" / "index.lock").touch()
        (root / "new").write_text("x")
        assert "new" in held(root, points.take("S").commit)

    def test_a_change_of_equal_size_right_after_is_seen(self, root: Path) -> None:
        points = Checkpoints(str(root))
        for number in range(5):
            (root / "tracked").write_text(f"{number}")
            taken = points.take("S")
            (root / "tracked").write_text(f"{number + 5}")
            assert points.changed_since(taken) == ["tracked"]

    def test_a_file_that_becomes_a_folder_and_back(self, root: Path) -> None:
        points = Checkpoints(str(root))
        points.take("S")
        (root / "tracked").unlink()
        (root / "tracked").mkdir()
        (root / "tracked" / "inside").write_text("x")
        taken = points.take("S")
        assert held(root, taken.commit).keys() == {"tracked/inside", "other"}
        (root / "tracked" / "inside").unlink()
        (root / "tracked").rmdir()
        (root / "tracked").write_text("x")
        assert points.changed_since(taken) == ["tracked", "tracked/inside"]


class TestErrors:
    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(FusewireError):
            Checkpoints(str(tmp_path / "file" / "x")).take("S")

    def test_a_repository_that_git_cannot_read(self, root: Path) -> None:
        (root / ".git" / "index").write_text("nonsense\n")
        with pytest.raises(FusewireError, match="index file"):
            Checkpoints(str(root)).take("S")


def test_two_processes_on_two_slices(root: Path) -> None:
    """Each sees its own numbers, and every checkpoint holds the whole project."""
    script = (
        "import sys; from fusewire.worktree.checkpoint import Checkpoints\n"
        "for _ in range(4): print(Checkpoints(sys.argv[1]).take(sys.argv[2]).ref)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(root), name], stdout=subprocess.PIPE, text=True)
        for name in ("S-1", "S-2")
    ]
    printed = [process.communicate(timeout=60)[0].split() for process in started]
    assert printed == [[f"refs/fusewire/checkpoints/S-{at}/{n:06}" for n in range(1, 5)] for at in (1, 2)]
    for ref in printed[0] + printed[1]:
        assert held(root, ref) == {"tracked": "one", "other": "two"}
