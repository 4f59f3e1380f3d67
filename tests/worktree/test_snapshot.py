"""What an iteration changed: snapshots of real repositories, folders and files, and their differences."""

from __future__ import annotations

import hashlib
import marshal
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusewire.worktree.difference import LISTED, TreeChange, difference
from fusewire.worktree.path_kinds import is_by_product, is_test
from fusewire.worktree.snapshot import Snapshot, take
from fusewire.worktree.tasks import boxes
from fusewire.worktree.test_metrics import shape

_AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def sh(folder: Path, script: str) -> str:
    done = subprocess.run(
        ["sh", "-ec", script], cwd=folder, env={**os.environ, **_AUTHOR}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


PYTEST = "def test_a():\n    assert f() == 1\n    assert g() == 2\n\n\ndef test_b():\n    assert h() == 3\n"
FILES = {
    ".gitignore": "*.ignored\nvendor/\n",
    "README.md": "one\n",
    "src/app.py": "def app():\n    return 1\n",
    "src/util.py": "def util():\n    return 2\n",
    "tests/test_app.py": PYTEST,
}

INIT = "git init -q -b main --template= ."
COMMIT = "git add -A && git commit -qm work"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write(root, FILES)
    sh(root, f"{INIT} && {COMMIT}")
    return root


def change(root: Path, act: str | Callable[[], object]) -> TreeChange:
    """What a script or a function changes, as another process would see it: the first snapshot goes through data."""
    before = Snapshot.from_data(marshal.loads(marshal.dumps(take(str(root)).to_data())))
    if isinstance(act, str):
        sh(root, act)
    else:
        act()
    return difference(before, take(str(root), before))


# -- commits and files ------------------------------------------------------------------------------------

OTHER = "git checkout -q -b other; echo o > other.txt; git add -A; git commit -qm o; git checkout -q main"

#: (before, act, commits, files, meaningful)
CASES: dict[str, tuple[str, str, int, str, str]] = {
    "nothing": ("", "true", 0, "", ""),
    "a touched file": ("", "touch -d 2001-01-01 src/app.py", 0, "", ""),
    "a commit": ("", f"echo x >> README.md; {COMMIT}", 1, "README.md", "README.md"),
    "three commits": ("", f"for n in 1 2 3; do echo $n >> README.md; {COMMIT}; done", 3, "README.md", "README.md"),
    "an edit": ("", "echo x >> README.md", 0, "README.md", "README.md"),
    "a staged edit": ("", "echo x >> README.md; git add -A", 0, "README.md", "README.md"),
    "an untracked file": ("", "mkdir new; echo x > new/file", 0, "new/file", "new/file"),
    "an untracked file of nothing": ("", "touch marker", 0, "marker", ""),
    "an untracked file that changes": ("echo x > new", "echo y > new", 0, "new", "new"),
    "a dirty file that stays": ("echo x >> README.md", "true", 0, "", ""),
    "a dirty file that changes": ("echo x >> README.md", "echo y >> README.md", 0, "README.md", "README.md"),
    "a dirty file that is undone": ("echo x >> README.md", "git checkout -q .", 0, "README.md", "README.md"),
    "what was dirty is committed": ("echo x >> README.md", COMMIT, 1, "README.md", "README.md"),
    "what was untracked is committed": ("echo x > new", COMMIT, 1, "new", "new"),
    "what was dirty is staged": ("echo x >> README.md", "git add -A", 0, "", ""),
    "a deletion": ("", "rm src/util.py", 0, "src/util.py", "src/util.py"),
    "a committed deletion": ("", "git rm -q src/util.py; git commit -qm d", 1, "src/util.py", "src/util.py"),
    "no longer tracked": ("", "git rm -q --cached src/util.py", 0, "", ""),
    "no longer tracked, ignored": (
        "",
        "git rm -q --cached src/util.py; mkdir .git/info; echo src/util.py > .git/info/exclude",
        0,
        "src/util.py",
        "src/util.py",
    ),
    "a rename": ("", "git mv src/util.py src/more.py", 0, "src/more.py src/util.py", "src/more.py src/util.py"),
    "a mode": ("", "chmod +x src/app.py", 0, "src/app.py", ""),
    "a committed mode": ("", f"chmod +x src/app.py; {COMMIT}", 1, "src/app.py", ""),
    "an empty commit": ("", "git commit -q --allow-empty -m e", 1, "", ""),
    "a message that is amended": ("", "git commit -q --amend -m other", 1, "", ""),
    "an amended file": ("", "echo x >> README.md; git commit -qa --amend -m o", 1, "README.md", "README.md"),
    "a merge": (OTHER, "git merge -q --no-ff -m m other", 1, "other.txt", "other.txt"),
    "a fast forward": (OTHER, "git merge -q --ff-only other", 0, "other.txt", "other.txt"),
    "a merge of both sides": (
        f"{OTHER}; echo x >> README.md; {COMMIT}",
        "git merge -q -m m other",
        1,
        "other.txt",
        "other.txt",
    ),
    "a checkout": (OTHER, "git checkout -q other", 0, "", ""),
    "a checkout of a commit": (f"echo x >> README.md; {COMMIT}", "git checkout -q HEAD~1", 0, "", ""),
    "a new branch": ("", "git checkout -q -b topic", 0, "", ""),
    "a checkout with a dirty file": (
        f"{OTHER}; echo x >> README.md",
        "git checkout -q other; echo y >> README.md",
        0,
        "README.md",
        "README.md",
    ),
    "a checkout and work": (OTHER, f"git checkout -q other; echo y > mine; {COMMIT}", 1, "mine", "mine"),
    "a checkout, work, and the way back": (
        OTHER,
        f"git checkout -q other; echo y > mine; {COMMIT}; git checkout -q main",
        1,
        "mine",
        "mine",
    ),
    "a checkout and a merge": (
        f"{OTHER}; echo m > m; {COMMIT}",
        "git checkout -q other; git merge -q -m m main",
        1,
        "other.txt",
        "other.txt",
    ),
    "a checkout between commits": (
        f"{OTHER}; git checkout -q --detach",
        "git checkout -q --detach other",
        0,
        "",
        "",
    ),
    "work, and then a checkout": (
        OTHER,
        f"echo m > m; {COMMIT}; git checkout -q other",
        1,
        "m other.txt",
        "m other.txt",
    ),
    "a branch without a past": ("", "git checkout -q --orphan new; git commit -qm first", 1, "", ""),
    "a checkout of a file": (OTHER, "git checkout -q other -- other.txt", 0, "other.txt", "other.txt"),
    "a commit elsewhere": ("", OTHER, 1, "other.txt", "other.txt"),
    "a commit that is undone": (
        "",
        f"echo x >> README.md; {COMMIT}; git revert --no-edit HEAD >&2",
        2,
        "README.md",
        "",
    ),
    "a reset": (f"echo x >> README.md; {COMMIT}", "git reset -q --hard HEAD~1", 0, "README.md", "README.md"),
    "a rebase": (
        f"git checkout -q -b topic; echo t > topic; {COMMIT}; git checkout -q main; echo m > m; {COMMIT};"
        " git checkout -q topic",
        "git rebase -q main",
        1,
        "m",
        "m",
    ),
    "a stash": ("echo x >> README.md; echo n > new", "git stash -q -u", 0, "README.md new", "README.md new"),
    "a detached commit": ("git checkout -q --detach", f"echo x > new; {COMMIT}", 1, "new", "new"),
    "an ignored file": ("", "echo x > a.ignored; mkdir vendor; echo y > vendor/b", 0, "", ""),
    "our own state": (
        "",
        "mkdir -p .fusewire sub/.fusewire; echo x > .fusewire/a; echo y > sub/.fusewire/b",
        0,
        "",
        "",
    ),
    "our own state, committed": ("", f"mkdir .fusewire; echo x > .fusewire/a; {COMMIT}", 1, "", ""),
    "a link": ("ln -s README.md link", "ln -sf src/app.py link", 0, "link", "link"),
    "a link to nowhere": ("", "ln -s nowhere link; ln -s / all", 0, "all link", "all link"),
    "a file becomes a folder": (
        "",
        "rm README.md; mkdir README.md; echo x > README.md/x",
        0,
        "README.md README.md/x",
        "README.md README.md/x",
    ),
    "a folder becomes a file": (
        "",
        "rm -r src; echo x > src",
        0,
        "src src/app.py src/util.py",
        "src src/app.py src/util.py",
    ),
    "a fifo": ("", "mkfifo pipe; rm README.md; mkfifo README.md", 0, "README.md", "README.md"),
    "a conflict": (
        f"git checkout -q -b topic; echo t > README.md; {COMMIT}; git checkout -q main; echo m > README.md; {COMMIT}",
        "git merge -q topic || true",
        0,
        "README.md",
        "README.md",
    ),
    "a conflict that is solved": (
        f"git checkout -q -b topic; echo t > README.md; {COMMIT}; git checkout -q main; echo m > README.md; {COMMIT};"
        " git merge -q topic || true",
        f"echo both > README.md; {COMMIT}",
        1,
        "README.md",
        "README.md",
    ),
    "in the middle of a rebase": (
        f"git checkout -q -b topic; echo t > README.md; {COMMIT}; git checkout -q main; echo m > README.md; {COMMIT};"
        " git rebase -q topic || true",
        "echo x > new",
        0,
        "new",
        "new",
    ),
    "a lock of the index": ("touch .git/index.lock", "echo x > new", 0, "new", "new"),
    "a branch that is deleted": (OTHER, "git branch -q -D other", 0, "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_iteration_changed(repository: Path, name: str) -> None:
    """Commits are counted, files are named, and the same comes out after the snapshot was stored and read again."""
    before, act, commits, files, meaningful = CASES[name]
    sh(repository, before)
    seen = change(repository, act)
    assert (seen.problem, seen.commits) == ("", commits)
    assert (" ".join(seen.files), " ".join(seen.meaningful)) == (files, meaningful)
    assert seen.count == len(seen.files)
    assert seen.tree == take(str(repository)).tree == naive(repository)


def test_line_ends_that_git_changes_make_no_difference(repository: Path) -> None:
    """What is committed with other line ends than the disk has is the same file, before and after."""
    sh(repository, "git config core.autocrlf input; printf 'a\\r\\nb\\r\\n' > crlf.txt")
    dirty = take(str(repository))
    seen = change(repository, f"{COMMIT} 2>&1")
    assert (seen.problem, seen.commits, seen.files, seen.tree) == ("", 1, ("crlf.txt",), dirty.tree)
    assert seen.tree == sh(repository, "git rev-parse HEAD^{tree}").strip()


def test_a_large_file_is_known_by_its_size_and_time(repository: Path) -> None:
    seen = change(repository, "head -c 9000000 /dev/zero > large")
    assert (seen.problem, seen.files, seen.meaningful) == ("", ("large",), ("large",))
    assert change(repository, "true").files == ()
    assert change(repository, "touch -d 2001-01-01 large").files == ("large",)


def test_before_the_first_commit(tmp_path: Path) -> None:
    """A repository without commits has files, and its first commit is one."""
    sh(tmp_path, INIT)
    assert change(tmp_path, "true") == TreeChange(tree=hashlib.sha1(b"tree 0\0").hexdigest())
    new = change(tmp_path, "echo x > file; git add file")
    assert (new.commits, new.files, new.meaningful) == (0, ("file",), ("file",))
    first = change(tmp_path, COMMIT)
    assert (first.commits, first.files, first.tree) == (1, ("file",), new.tree)


def test_many_files_are_counted_and_some_named(repository: Path) -> None:
    seen = change(repository, f"for n in $(seq {LISTED + 50}); do echo $n > file-$n; done")
    assert (len(seen.files), len(seen.meaningful), seen.count) == (LISTED, LISTED, LISTED + 50)


# -- several repositories, or none ------------------------------------------------------------------------


def test_repositories_beside_each_other_and_loose_files(tmp_path: Path) -> None:
    """A root that is no repository but holds some: each is compared, and so is what lies outside them."""
    for name in ("one", "deep/er/two"):
        write(tmp_path / name, FILES)
        sh(tmp_path / name, f"{INIT}; {COMMIT}")
    act = f"echo x >> one/README.md; echo y > loose; cd deep/er/two; echo z > new; {COMMIT}; echo w > a.ignored"
    seen = change(tmp_path, act)
    assert (seen.problem, seen.commits) == ("", 1)
    assert seen.files == ("deep/er/two/new", "loose", "one/README.md")
    assert seen.meaningful == seen.files
    assert seen.tree == naive(tmp_path)


@pytest.mark.parametrize("where", ["nested", "vendor/nested", "a/b/c/nested"])
def test_a_nested_repository_is_seen_even_where_the_outer_one_ignores(repository: Path, where: str) -> None:
    nested = repository / where
    write(nested, FILES)
    sh(nested, f"{INIT}; {COMMIT}")
    seen = change(repository, f"cd {where}; echo x >> README.md; git commit -qam x; echo y > new")
    assert (seen.problem, seen.commits, seen.files) == ("", 1, (f"{where}/README.md", f"{where}/new"))
    same = change(repository, f"cd {where}; {COMMIT}")
    assert (same.commits, same.files, same.tree) == (1, (f"{where}/new",), seen.tree)


def test_a_submodule_is_its_own_repository(repository: Path, tmp_path: Path) -> None:
    """Its commit counts once, and to record it in the outer repository does not change the content."""
    write(tmp_path / "library", FILES)
    sh(tmp_path / "library", f"{INIT}; {COMMIT}")
    sh(repository, f"git -c protocol.file.allow=always submodule -q add {tmp_path}/library sub; {COMMIT}")
    inner = change(repository, f"cd sub; echo x >> README.md; {COMMIT}")
    assert (inner.problem, inner.commits, inner.files) == ("", 1, ("sub/README.md",))
    outer = change(repository, COMMIT)
    assert (outer.problem, outer.commits, outer.tree) == ("", 1, inner.tree)
    assert change(repository, "true").files == ()


def test_a_commit_in_a_linked_worktree_counts_once(repository: Path) -> None:
    """Both worktrees see the branch; the files belong to the one where it is checked out."""
    sh(repository, "git worktree add -q wt -b topic; mkdir -p .git/info; echo wt > .git/info/exclude")
    seen = change(repository, f"cd wt; echo x > new; {COMMIT}")
    assert (seen.problem, seen.commits, seen.files) == ("", 1, ("wt/new",))


def test_worktrees_around_a_bare_repository(repository: Path) -> None:
    """The root has branches and no files; what happens in its worktrees counts, and once."""
    sh(repository, "rm -r .gitignore README.md src tests; git config core.bare true; git worktree add -q one -b one")
    assert change(repository, "true").problem == ""
    seen = change(repository, f"cd one; echo x > new; {COMMIT}; echo y >> README.md")
    assert (seen.problem, seen.commits, seen.files) == ("", 1, ("one/README.md", "one/new"))


def test_a_root_below_the_top_sees_only_its_own_part(repository: Path) -> None:
    """What happens elsewhere in the repository is not the project's; a commit there has no files here."""
    root = repository / "src"
    seen = change(root, "echo x >> app.py; echo y > new; echo z >> ../README.md; echo w > ../top")
    assert (seen.problem, seen.files, seen.meaningful) == ("", ("app.py", "new"), ("app.py", "new"))
    assert seen.tree == naive(root)
    committed = change(root, f"cd ..; {COMMIT}")
    assert (committed.commits, committed.files, committed.tree) == (1, ("app.py", "new"), seen.tree)
    assert change(root, f"cd ..; echo v > top; {COMMIT}").files == ()


def test_a_root_that_the_repository_above_ignores_is_a_plain_folder(repository: Path) -> None:
    """A home folder under version control that ignores all projects must not hide them."""
    (repository / "vendor").mkdir()
    seen = change(repository / "vendor", "echo x > file; mkdir node_modules; echo y > node_modules/z")
    assert (seen.problem, seen.files) == ("", ("file",))


def test_no_repository_at_all(tmp_path: Path) -> None:
    """The tree is walked: edits, white space, modes and links are seen, caches, sockets and fifos are not."""
    write(tmp_path, {**FILES, "node_modules/a.js": "1", "target/b": "1", "tests/test_old.py": PYTEST})
    assert change(tmp_path, "true").files == ()
    act = (
        "echo x >> README.md; echo >> src/app.py; chmod +x src/util.py; echo y > node_modules/a.js; echo z > target/b;"
        " ln -s /etc link; mkfifo pipe; rm tests/test_old.py; echo l > a.log; mkdir .fusewire; echo s > .fusewire/s"
    )
    with socket.socket(socket.AF_UNIX) as end:
        here = os.getcwd()
        os.chdir(tmp_path)
        end.bind("socket")
        os.chdir(here)
        seen = change(tmp_path, act)
    assert seen.problem == ""
    assert seen.files == ("README.md", "a.log", "link", "src/app.py", "src/util.py", "tests/test_old.py")
    assert (seen.meaningful, seen.weakened) == (("README.md", "link"), ("tests/test_old.py",))


def test_no_files(tmp_path: Path) -> None:
    seen = change(tmp_path, "mkdir folder")
    assert seen == TreeChange(tree=hashlib.sha1(b"tree 0\0").hexdigest())


def test_a_repository_that_comes_keeps_the_content(tmp_path: Path) -> None:
    """`git init` and a first commit of files that were there: a commit, and the same fingerprint."""
    write(tmp_path, {"a": "1\n", "b/c": "2\n"})
    before = take(str(tmp_path))
    seen = change(tmp_path, f"{INIT}; {COMMIT}")
    assert (seen.problem, seen.commits, seen.tree) == ("", 1, before.tree)
    gone = change(tmp_path, "rm -rf .git")
    assert (gone.problem, gone.files, gone.tree) == ("", (), before.tree)


def test_a_repository_that_is_none_any_more(repository: Path) -> None:
    """What it had cannot be known: that is said, and its files are not taken for new ones."""
    seen = change(repository, "rm -rf .git; echo x > new")
    assert seen.problem == "repository of the root is none any more: its files cannot be compared"
    assert seen.files == ()


def test_a_repository_that_goes_is_one_change(repository: Path) -> None:
    sh(repository, f"mkdir -p vendor/in; cd vendor/in; {INIT}; echo x > y; {COMMIT}")
    seen = change(repository, "rm -rf vendor/in")
    assert (seen.problem, seen.files, seen.meaningful) == ("", ("vendor/in",), ("vendor/in",))


@pytest.mark.parametrize(
    ("act", "same"), [(f"rm -rf .git; {INIT}; {COMMIT}", True), (f"rm -rf .git; echo x > y; {INIT}; {COMMIT}", False)]
)
def test_a_repository_that_was_made_anew(repository: Path, act: str, same: bool) -> None:
    """HEAD of before is gone: the fingerprint still compares, the files cannot be."""
    before = take(str(repository))
    seen = change(repository, f"{act}; git commit -q --amend -m again")
    assert (seen.tree == before.tree, "was replaced" in seen.problem) == (same, not same)
    assert seen.commits == 1


# -- the fingerprint of the content -----------------------------------------------------------------------


def naive(root: Path) -> str:
    """The id of the tree by the plainest means: every file is read and added up."""
    nested: dict[Any, Any] = {}
    for name, value in contents(root).items():
        *folders, last = os.fsencode(name).split(b"/")
        at = nested
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    return _tree_of(nested)


def contents(root: Path) -> dict[str, tuple[bytes, bytes]]:
    """Every file that counts with its mode and content; git lists the files of a repository."""
    found: dict[str, tuple[bytes, bytes]] = {}
    plain = False
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".fusewire", "node_modules", "target")]
        if (Path(folder) / ".git").exists() or folder == str(root):
            listed = _listed(Path(folder))
            plain = listed is None
            names = listed or names
        elif not plain:
            names = []
        for name in names:
            _read_into(found, Path(folder, name), root)
        if not plain:
            inside = [Path(folder) / name for name in folders]
            folders[:] = [path.name for path in inside if not path.is_symlink() and _has_repository(path)]
    return found


def _has_repository(folder: Path) -> bool:
    return any(".git" in (*folders, *names) for _, folders, names in os.walk(folder))


def _listed(folder: Path) -> list[str] | None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    shown = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return None if shown.returncode else [os.fsdecode(name) for name in set(shown.stdout.split(b"\0")) if name]


def _read_into(found: dict[str, tuple[bytes, bytes]], path: Path, root: Path) -> None:
    name = os.path.relpath(path, root)
    if ".fusewire" in path.parts:
        return
    if path.is_symlink():
        found[name] = (b"120000", os.fsencode(os.readlink(path)))
    elif path.is_file():
        found[name] = (b"100755" if path.stat().st_mode & 0o100 else b"100644", path.read_bytes())


def _tree_of(found: dict[Any, Any]) -> str:
    rows = []
    for name, value in found.items():
        if isinstance(value, dict):
            rows.append((name + b"/", b"40000 " + name, bytes.fromhex(_tree_of(value))))
        else:
            blob = hashlib.sha1(b"blob %d\0" % len(value[1]) + value[1]).digest()
            rows.append((name, value[0] + b" " + name, blob))
    content = b"".join(head + b"\0" + at for _, head, at in sorted(rows))
    return hashlib.sha1(b"tree %d\0" % len(content) + content).hexdigest()


EDIT, BACK = "echo x >> README.md; echo n > new", "git checkout -q {first} -- . ; git rm -q --cached -r new; rm -f new"
LATER = {"as it is": "true", "staged": "git add -A", "committed": COMMIT}


@pytest.mark.parametrize("there", LATER)
@pytest.mark.parametrize("back", LATER)
@pytest.mark.parametrize("again", [True, False])
def test_content_that_returns_has_its_old_fingerprint(repository: Path, there: str, back: str, again: bool) -> None:
    """Forth and back, each uncommitted, staged or committed, with a chain of snapshots and without."""
    first = sh(repository, "git rev-parse HEAD").strip()
    start = take(str(repository))
    sh(repository, f"{EDIT}; {LATER[there]}")
    edited = take(str(repository), start if again else None)
    sh(repository, "git add new; " + BACK.format(first=first) + f"; git add -A; {LATER[back]} || true")
    end = take(str(repository), edited if again else None)
    assert edited.tree != start.tree
    assert end.tree == start.tree
    assert difference(edited, end).files == ("README.md", "new")


def test_the_same_content_is_the_same_fingerprint_whatever_was_done(repository: Path) -> None:
    """A seeded walk of edits, moves, commits, stashes, resets and branches, held against reading every file."""
    dice = random.Random(20)
    sh(repository, "git branch other; mkdir -p vendor/in; cd vendor/in; git init -q; echo 1 > f")
    acts = [
        *(f"echo {n} > {name}" for n in (1, 2) for name in ("README.md", "src/app.py", "new", "vendor/in/f")),
        *(f"mkdir -p a/b; echo {n} > a/b/c" for n in (1, 2)),
        *("rm -rf a", "rm -f new", "rm -f src/app.py", "chmod +x README.md", "chmod -x README.md", "ln -sf src new"),
        *("git mv -f README.md src/", "git mv -f src/README.md .", "git rm -q --cached src/util.py", "git clean -fdq"),
        *("git add -A", "git commit -qm c", COMMIT, "git commit -q --amend -m o", "git stash -q", "git checkout -q ."),
        *("git stash pop -q || git checkout -q -f HEAD", "git checkout -q other", "git checkout -q main"),
        *("git reset -q --hard", "git reset -q HEAD~1", "git merge -q -m m other || git merge --abort"),
        f"cd vendor/in; {COMMIT}",
    ]
    last, before = take(str(repository)), contents(repository)
    for step in range(90):
        act = dice.choice(acts)
        sh(repository, f"({act}) || true")
        snapshot, now = take(str(repository), last), contents(repository)
        assert snapshot.tree == naive(repository), (step, act)
        assert (last.tree == snapshot.tree) == (before == now)
        if step % 5 == 0:
            assert take(str(repository)).tree == snapshot.tree
        seen = difference(last, snapshot)
        differing = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        if not act.startswith("git checkout -q "):
            assert seen.problem == ""
            assert differing == set(seen.files) if not seen.commits else differing <= set(seen.files), (step, act)
        last, before = snapshot, now


def test_a_repository_of_sha256(tmp_path: Path) -> None:
    sh(tmp_path, f"git init -q --object-format=sha256 .; mkdir a; echo x > a/f; echo y > g; {COMMIT}")
    edited = change(tmp_path, "echo z > a/f")
    committed = change(tmp_path, COMMIT)
    assert (edited.problem, edited.files, len(edited.tree)) == ("", ("a/f",), 64)
    assert (committed.commits, committed.tree) == (1, edited.tree)


# -- what counts ------------------------------------------------------------------------------------------

#: (files before, files after, meaningful)
MEANING: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "indentation": ({"a.js": "if (x)\n  y\n"}, {"a.js": "if (x)\n    y\n\n"}, ""),
    "indentation that means something": ({"a.yml": "a:\nb: 1\n"}, {"a.yml": "a:\n  b: 1\n"}, "a.yml"),
    "blank lines": ({"a.py": "if x:\n  y\n"}, {"a.py": "\nif x:\n\n  y\n\n"}, ""),
    "line ends": ({"a.txt": "a\nb\n"}, {"a.txt": "a\r\nb\r\n"}, ""),
    "a word": ({"a.py": "x\n"}, {"a.py": "y\n"}, "a.py"),
    "lock files": ({}, {"package-lock.json": "1", "sub/Cargo.lock": "1", "uv.lock": "1", "go.sum": "1"}, ""),
    "a lock file and its manifest": ({"Cargo.toml": "1"}, {"Cargo.lock": "2", "Cargo.toml": "2"}, "Cargo.toml"),
    "logs": ({"run.log": "1"}, {"run.log": "2", "logs/today.txt": "x"}, ""),
    "output": ({}, {"dist/app.js": "x", "build/lib/a.py": "x", "web/a.min.js": "x", "api_pb2.py": "x"}, ""),
    "caches": (
        {},
        {".pytest_cache/v/x": "1", "pkg/__pycache__/a.pyc": "1", ".coverage": "1", "htmlcov/i": "1"},
        "",
    ),
    "editors": ({}, {".a.py.swp": "1", "a.py~": "1", "b.orig": "1", "c.rej": "1", "d.bak": "1", ".DS_Store": "1"}, ""),
    "generated by its head": (
        {"a.go": "1"},
        {"a.go": "// Code generated by x. DO NOT EDIT.", "b.ts": "// @generated"},
        "",
    ),
    "spoken of further down": ({}, {"a.py": "x = 1\n" * 400 + "# @generated\n"}, "a.py"),
    "a module that is called logs": ({}, {"src/logs/handler.py": "x"}, "src/logs/handler.py"),
    "binary": ({"a.bin": "\0 1"}, {"a.bin": "\0  1"}, "a.bin"),
    "a long text": ({"a.txt": "x y\n" * 400_000}, {"a.txt": "x  y\n" * 400_000}, "a.txt"),
}


@pytest.mark.parametrize("kept", ["committed", "dirty", "no repository"])
@pytest.mark.parametrize("name", MEANING)
def test_what_is_work_and_what_is_not(tmp_path: Path, name: str, kept: str) -> None:
    """Also against what was committed, what was not, and without git."""
    before, after, meaningful = MEANING[name]
    if kept != "no repository":
        sh(tmp_path, INIT)
    write(tmp_path, {"other": "1", **before})
    if kept == "committed":
        sh(tmp_path, COMMIT)
    seen = change(tmp_path, lambda: write(tmp_path, after))
    walked = [path for path in after if not path.startswith((".pytest_cache", "htmlcov", "pkg/__pycache__"))]
    assert seen.files == tuple(sorted(after if kept != "no repository" else walked))
    assert " ".join(seen.meaningful) == meaningful
    assert seen.approach is None if not meaningful else seen.approach


PATHS = {
    "tests/a.py": "test",
    "pkg/test/Thing.java": "test",
    "src/__tests__/a.js": "test",
    "spec/models/user.rb": "test",
    "pkg/test_a.py": "test",
    "pkg/a_test.py": "test",
    "pkg/a_test.go": "test",
    "src/a.test.tsx": "test",
    "src/a.spec.js": "test",
    "src/LoginTest.java": "test",
    "user_spec.rb": "test",
    "conftest.py": "test",
    "specs/login.md": "",
    "specs/login.py": "",
    "tests/README.md": "",
    "src/contest.py": "",
    "src/latest.go": "",
    "src/attest.js": "",
    "src/testing.py": "",
    "yarn.lock": "by-product",
    "pnpm-lock.yaml": "by-product",
    "bun.lockb": "by-product",
    "app/build/outputs/a": "",
    "build/outputs/a": "by-product",
    "a/node_modules/b.js": "by-product",
    "a.css.map": "by-product",
    "coverage/index.html": "by-product",
    "logger.py": "",
    "src/build/config.py": "",
    "roadmap": "",
    "lock.py": "",
}


@pytest.mark.parametrize("path", PATHS)
def test_what_a_path_says(path: str) -> None:
    assert (is_test(path), is_by_product(path)) == (PATHS[path] == "test", PATHS[path] == "by-product")


# -- tests that test less ---------------------------------------------------------------------------------

MORE = PYTEST + "\n\ndef test_c():\n    assert i() == 4\n"
#: (files before, files after (None: deleted), weakened, meaningful, only tests, tests added)
WEAKER: dict[str, tuple[dict[str, str], dict[str, str | None], str, str, bool, int]] = {
    "an assertion is gone": (
        {"tests/test_a.py": PYTEST},
        {"tests/test_a.py": PYTEST.replace("    assert g() == 2\n", "")},
        "tests/test_a.py",
        "",
        True,
        0,
    ),
    "an assertion of nothing": (
        {"tests/test_a.py": PYTEST},
        {"tests/test_a.py": PYTEST.replace("g() == 2", "True")},
        "tests/test_a.py",
        "",
        True,
        0,
    ),
    "a test is gone": ({"test_a.py": MORE}, {"test_a.py": PYTEST}, "test_a.py", "", True, -1),
    "a test is commented out": (
        {"test_a.py": PYTEST},
        {"test_a.py": PYTEST.replace("def test_b", "# def test_b")},
        "test_a.py",
        "",
        True,
        -1,
    ),
    "a test is skipped": (
        {"test_a.py": PYTEST},
        {"test_a.py": "import pytest\n@pytest.mark.skip\n" + PYTEST},
        "test_a.py",
        "",
        True,
        0,
    ),
    "a test file is deleted": ({"tests/test_a.py": PYTEST}, {"tests/test_a.py": None}, "tests/test_a.py", "", True, -2),
    "one in another language": ({"tests/a.tcl": "check 1\n"}, {"tests/a.tcl": None}, "tests/a.tcl", "", True, -1),
    "data of tests is deleted": ({"tests/a.json": "1\n"}, {"tests/a.json": None}, "", "", False, 0),
    "with work beside it": (
        {"test_a.py": MORE, "a.py": "1\n"},
        {"test_a.py": PYTEST, "a.py": "2\n"},
        "test_a.py",
        "a.py",
        False,
        -1,
    ),
    "moved to another name": (
        {"test_a.py": PYTEST},
        {"test_a.py": None, "tests/test_a.py": PYTEST},
        "",
        "tests/test_a.py",
        False,
        0,
    ),
    "moved to another test": (
        {"test_a.py": MORE, "test_b.py": PYTEST},
        {"test_a.py": PYTEST, "test_b.py": MORE},
        "",
        "test_a.py test_b.py",
        True,
        0,
    ),
    "split, and some lost": (
        {"test_a.py": MORE},
        {"test_a.py": "def test_a():\n    assert f() == 1\n", "test_b.py": "def test_b():\n    assert h() == 3\n"},
        "test_a.py",
        "test_b.py",
        False,
        -1,
    ),
    "a test is changed": (
        {"test_a.py": PYTEST},
        {"test_a.py": PYTEST.replace("1", "7")},
        "",
        "test_a.py",
        True,
        0,
    ),
    "a test is added": ({"test_a.py": PYTEST}, {"test_a.py": MORE}, "", "test_a.py", True, 1),
    "a new test file": ({"a.py": "1"}, {"test_a.py": PYTEST}, "", "test_a.py", False, 2),
    "a source is deleted": ({"a.py": "1"}, {"a.py": None}, "", "a.py", False, 0),
    "only white space in a test": ({"test_a.py": PYTEST}, {"test_a.py": PYTEST + "\n\n"}, "", "", False, 0),
}


@pytest.mark.parametrize("committed", ["never", "before", "after"])
@pytest.mark.parametrize("name", WEAKER)
def test_tests_that_test_less_are_no_work(tmp_path: Path, name: str, committed: str) -> None:
    """Deleted, skipped or emptied tests are told apart from those that moved, whatever of it is committed."""
    before, after, weakened, meaningful, only_tests, added = WEAKER[name]
    sh(tmp_path, INIT)
    write(tmp_path, {"other": "1", **before})
    if committed != "never":
        sh(tmp_path, COMMIT)

    def act() -> None:
        write(tmp_path, {path: text for path, text in after.items() if text is not None})
        for path in (path for path, text in after.items() if text is None):
            (tmp_path / path).unlink()
        if committed == "after":
            sh(tmp_path, COMMIT)

    seen = change(tmp_path, act)
    assert (" ".join(seen.weakened), " ".join(seen.meaningful)) == (weakened, meaningful)
    assert (seen.only_tests, seen.tests_added, seen.commits) == (only_tests, added, committed == "after")


#: path, text -> tests, assertions, skips
SHAPES = [
    ("a.py", "async def test_x():\n  self.assertEqual(1, x)\n  with pytest.raises(E):\n    pass\n", (1, 2, 0)),
    ("a.py", "@unittest.skip('x')\ndef test_x(): ...\n@pytest.mark.xfail\ndef test_y(): assert 1\n", (2, 0, 2)),
    ("a.ts", "it('a', () => { expect(a).toBe(1); });\n// it('b')\ntest.each([1])('c', f)", (2, 1, 0)),
    ("a.js", "describe.only('x', () => { xit('a'); it.skip('b', () => { expect(true).toBe(true) }) })", (1, 0, 3)),
    ("a_test.go", 'func TestA(t *testing.T) {\n\tt.Skip()\n\tt.Errorf("x")\n\tassert.Equal(t, 1, 2)\n}', (1, 2, 1)),
    ("a.rs", "#[tokio::test]\n#[ignore]\nfn a() { assert_eq!(1, x); assert!(true); }\n", (1, 1, 1)),
    ("ATest.java", "@Test @Disabled\nvoid a() { assertEquals(1, x); assertThat(x).isNull(); }", (1, 2, 1)),
    ("a_spec.rb", "it 'works' do\n  expect(a).to eq 1\nend\nxit 'not' do\nend\n", (1, 1, 1)),
    ("ATest.php", "public function testA() { $this->assertSame(1, $x); $this->markTestSkipped(); }", (1, 1, 1)),
    ("a.cpp", "TEST_F(A, B) { EXPECT_EQ(1, x); ASSERT_TRUE(y); GTEST_SKIP(); }", (1, 2, 1)),
    ("a.exs", '  @tag :skip\n  test "a" do\n    assert x == 1\n    refute y\n  end\n', (1, 2, 1)),
    ("A.swift", "func testA() throws { XCTAssertEqual(1, x); throw XCTSkip() }", (1, 1, 1)),
    ("a.bats", '@test "a" {\n  skip\n  run x\n  [ "$status" -eq 0 ]\n}\n', (1, 1, 1)),
    ("a.unknown", "something\n", (1, 0, 0)),
    ("fixture.json", "{}", (0, 0, 0)),
]


@pytest.mark.parametrize(("path", "text", "expected"), SHAPES)
def test_the_shape_of_a_test_file(path: str, text: str, expected: tuple[int, int, int]) -> None:
    assert shape(path, text) == expected


# -- the approach -----------------------------------------------------------------------------------------


def test_the_same_edit_again_is_the_same_approach(repository: Path) -> None:
    """Whatever the file is by then, wherever the lines stand, and however they are indented where that says nothing."""
    first = change(repository, "printf 'try {\\n  x()\\n' >> src/app.js")
    second = change(repository, "printf '  try {\\n\\n    x()\\n' >> src/app.js; touch noise.log")
    third = change(repository, f"printf 'try {{\\nx()\\n' | cat - src/app.js > t; mv t src/app.js; {COMMIT}")
    assert first.approach == second.approach == third.approach is not None
    assert len({first.tree, second.tree, third.tree}) == 3


def test_other_edits_are_other_approaches(repository: Path) -> None:
    """Another line, another file, the way back, a binary file: each has its own; nothing has none."""
    acts = [
        "echo x >> src/app.py",
        "echo y >> src/app.py",
        "echo x >> src/util.py",
        "git checkout -q src/util.py",
        "printf '\\0001' > blob",
        "printf '\\0002' > blob",
        "rm blob",
    ]
    found = [change(repository, act).approach for act in acts]
    assert None not in found
    assert len(set(found)) == len(acts)
    assert change(repository, COMMIT).approach is None


# -- what the disk may hold -------------------------------------------------------------------------------

ODD = ["new\nline", "a b", 'quo"te', "tab\t", "ü", "-dash", "back\\slash", os.fsdecode(b"\xff\xfe"), ":(top)x", "*"]


@pytest.mark.parametrize("in_git", [True, False])
def test_odd_names(tmp_path: Path, in_git: bool) -> None:
    """Names that are no UTF-8, have line feeds or look like options are names like any other."""
    if in_git:
        sh(tmp_path, INIT)
    before = take(str(tmp_path))
    for name in ODD:
        (tmp_path / name).write_bytes(b"x\r\n")
    seen = change(tmp_path, lambda: [(tmp_path / name).write_text("y\n") for name in ODD])
    assert (seen.problem, seen.files, seen.meaningful) == ("", tuple(sorted(ODD)), tuple(sorted(ODD)))
    assert seen.tree == naive(tmp_path) != before.tree
    if in_git:
        committed = change(tmp_path, COMMIT)
        assert (committed.files, committed.tree) == (tuple(sorted(ODD)), seen.tree)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("echo nonsense > nested/.git/HEAD", "repository nested: git status: fatal: not a git repository"),
        ("echo nonsense > nested/.git/index", "repository nested: git status:"),
        ("rm -rf nested/.git/objects/*", "repository nested: git"),
        (
            "echo 'gitdir: /nowhere' > nested/file; rm -rf nested/.git; mv nested/file nested/.git",
            "repository nested: git",
        ),
    ],
)
def test_a_broken_repository_is_a_problem_and_the_rest_is_compared(repository: Path, damage: str, said: str) -> None:
    """Git does not take the outer repository for the broken one, and nothing is guessed about the content."""
    sh(repository, f"mkdir nested; cd nested; {INIT}; echo x > y; {COMMIT}")
    seen = change(repository, f"{damage}; echo x > new")
    assert seen.problem.startswith(said)
    assert "\n" not in seen.problem
    assert "new" in seen.files
    assert seen.tree == ""


@pytest.mark.parametrize("in_git", [True, False])
def test_a_folder_that_cannot_be_read_is_a_problem(tmp_path: Path, in_git: bool) -> None:
    """Here because its path is too long for the system, which holds for the superuser too."""
    if in_git:
        sh(tmp_path, INIT)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    seen = change(tmp_path, "echo x > new")
    assert seen.problem.startswith("warning: could not open directory 'ddd" if in_git else "cannot read ddd")
    assert in_git or seen.problem.endswith("name too long")
    assert len(seen.problem) < 300
    assert (seen.files, seen.tree) == (("new",), "")


def test_a_root_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    assert take(str(tmp_path / "none")).problems == ("cannot read the root: No such file or directory",)


@pytest.mark.parametrize(
    ("before", "where"), [("true", "outside repositories"), (INIT, "that are not committed"), (f"{INIT}; {COMMIT}", "")]
)
def test_too_many_files_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, where: str) -> None:
    """Unless git knows them already."""
    monkeypatch.setattr("fusewire.worktree.discover.FILES", 20)
    write(tmp_path, {f"file-{n}": "x" for n in range(21)})
    sh(tmp_path, before)
    seen = change(tmp_path, "true")
    assert seen.problem == (f"more than 20 files {where}: too large a tree to compare" if where else "")
    assert (seen.files, bool(seen.tree)) == ((), not where)


def test_without_git_a_repository_is_a_problem(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = take(str(repository))
    monkeypatch.setenv("PATH", "/nowhere")
    seen = difference(before, take(str(repository)))
    assert seen.problem.startswith("repository of the root: git cannot be run")
    assert (seen.files, seen.tree) == ((), "")


def test_two_roots_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert difference(take(str(tmp_path)), take(str(tmp_path / "a"))).problem.startswith("two roots")


def test_files_that_come_and_go_while_it_looks(repository: Path) -> None:
    """Snapshots beside a process that writes, renames and deletes: no exception, whatever they catch."""
    script = (
        "import os, itertools\n"
        "for n in itertools.count():\n"
        "    open(f'new-{n % 7}', 'w').write('x'); os.replace(f'new-{n % 7}', 'other')\n"
        "    os.makedirs('d/e', exist_ok=True); open('d/e/f', 'w').close(); os.remove('d/e/f'); os.removedirs('d/e')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=repository) as writer:
        last = take(str(repository))
        for _ in range(15):
            new = take(str(repository), last)
            difference(last, new)
            last = new
        writer.kill()


# -- snapshots --------------------------------------------------------------------------------------------


def test_nothing_is_written(repository: Path) -> None:
    """Neither the index nor anything else in the repository, although files were touched and git would refresh it."""
    sh(repository, "echo x >> README.md; echo y > new; touch -d 2001-01-01 src/app.py")

    def state() -> dict[str, tuple[int, bytes]]:
        files = [path for path in repository.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    untouched = state()
    before = take(str(repository))
    assert state() == untouched
    sh(repository, f"{COMMIT}; echo z >> README.md; touch -d 2002-01-01 src/app.py")
    untouched = state()
    assert difference(before, take(str(repository), before)).commits == 1
    assert state() == untouched


def test_variables_that_point_elsewhere_are_not_followed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of git has GIT_DIR set; the snapshot is of the root all the same."""
    plain = take(str(repository)).tree
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    assert take(str(repository)).tree == plain != ""


def test_a_snapshot_survives_as_data(repository: Path) -> None:
    sh(
        repository,
        "echo x >> README.md; echo '# x' >> tests/test_app.py; rm src/app.py; ln -s x y; head -c 300000 /dev/zero > z",
    )
    sh(repository, f"mkdir -p vendor/in; cd vendor/in; {INIT}; echo x > y; {COMMIT}; echo n > m")
    taken = take(str(repository))
    again = Snapshot.from_data(marshal.loads(marshal.dumps(taken.to_data())))
    assert again == taken
    assert difference(again, taken) == TreeChange(tree=taken.tree)


def test_a_snapshot_grows_with_the_work_and_not_with_the_files(tmp_path: Path) -> None:
    write(tmp_path, {f"folder-{n % 10}/file-{n}": f"{n}\n" * 50 for n in range(300)})
    sh(tmp_path, f"{INIT}; {COMMIT}")
    clean = len(marshal.dumps(take(str(tmp_path)).to_data()))
    sh(tmp_path, "for n in 1 2 3; do echo x >> folder-$n/file-$n; done")
    assert clean < 500
    assert len(marshal.dumps(take(str(tmp_path)).to_data())) < clean + 3 * 800


def _damaged(data: Any) -> list[Any]:
    format_, root, repositories, files, tree, problems = data
    (own,) = repositories.values()
    return [
        *(None, (), [], b"", data[:-1], [*data], ("another", *data[1:]), (format_, 1, *data[2:])),
        (format_, root, {"": own[:-1]}, files, tree, problems),
        (format_, root, {1: own}, files, tree, problems),
        (format_, root, repositories, {"x": (0o100644, "id", (), None, 0)}, tree, problems),
        (format_, root, repositories, {"x": (0o100644, "id", (), (b"", b"", (1, 2), True), 0, "")}, tree, problems),
        (format_, root, repositories, files, tree, (1,)),
    ]


def test_damaged_data_is_no_snapshot(repository: Path) -> None:
    for damaged in _damaged(take(str(repository)).to_data()):
        with pytest.raises(ValueError, match="snapshot"):
            Snapshot.from_data(damaged)


def test_what_was_read_before_is_not_read_again(repository: Path) -> None:
    """A file that was not touched since is known by its signature; one that was, even with its old time, is read."""
    (repository / "new").write_text("first\n")
    os.utime(repository / "new", (1, 1))
    first = take(str(repository))
    assert first.repositories[""].files["new"].signature == ()  # young: it may change again unseen
    old = first.repositories[""].files["new"]
    seen = os.lstat(repository / "new")
    signature = (seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev)
    own = first.repositories[""]
    made_up = type(own)(**{**vars(own), "files": {"new": old._replace(id="0" * 40, signature=signature)}, "basis": ""})
    trusting = Snapshot(first.root, {"": made_up}, {}, "", ())
    assert take(str(repository), trusting).repositories[""].files["new"].id == "0" * 40
    (repository / "new").write_text("other\n")
    os.utime(repository / "new", (1, 1))
    assert take(str(repository), trusting).tree == naive(repository)


# -- plans ------------------------------------------------------------------------------------------------

PLANS = [
    ("", (0, 0)),
    ("- [x] a\n- [ ] b\n", (1, 1)),
    ("* [X] a\n+ [ ] b\n1. [ ] c\n2) [x] d\n", (2, 2)),
    ("- [x] a\n  - [ ] b\n      - [x] c\n\t- [ ] d\n", (2, 2)),
    ("> - [x] quoted\n", (1, 0)),
    ("- [x]\n- [ ]", (1, 1)),
    ("- [x](link) a\n- [y] b\n-[ ] c\n[x] d\n- [] e\ntext - [x] f\n", (0, 0)),
    ("```\n- [x] a\n```\n- [ ] b\n", (0, 1)),
    ("~~~ markdown\n- [x] a\n```\n- [x] b\n~~~\n- [x] c\n", (1, 0)),
    ("````\n```\n- [x] a\n```\n````\n- [x] b\n", (1, 0)),
    ("- a\n  ```sh\n  - [x] a\n  ```\n- [ ] b\n", (0, 1)),
    ("```inline``` text\n- [x] a\n", (1, 0)),
    ("```\n- [x] never closed\n", (0, 0)),
    ("- [x] a\r\n- [ ] b\r\n", (1, 1)),
]


@pytest.mark.parametrize(("text", "expected"), PLANS)
def test_the_boxes_of_a_plan(text: str, expected: tuple[int, int]) -> None:
    """Ticked and open; not what is in a fence, not what only looks like a box."""
    ticked, still_open = boxes(text)
    assert (len(ticked), len(still_open)) == expected


def test_a_box_is_known_by_its_text() -> None:
    """White space at its ends and inside does not make another task of it."""
    assert boxes("- [x]  add  the shop \n* [ ] pay\n- [X]\n") == (["add the shop", ""], ["pay"])
