"""The files that git commands change beyond moving between commits, told before and held against what really happens.

Every case is a state of a small repository, a command, and the files that it changes; after the guard was asked, the
command is run, and the files must have changed exactly so. What such a command may do to protected files is held by
`test_guard_git_truth`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fusewire.guard.disk import Disk
from fusewire.guard.effects import DELETE, MOVE, READ, WRITE, Effect
from fusewire.guard.shell.values import UNKNOWN
from tests.helpers.project import effects_of

FILES = {
    ".gitignore": "*.log\nbuild/\n",
    "README.md": "one\n",
    "src/app.py": "app\n",
    "src/util.py": "util\n",
    "specs/a.md": "a\n",
    "specs/deep/b.md": "b\n",
}
SECOND = {"README.md": "one\ntwo\n", "specs/a.md": "a\naa\n"}
UNTRACKED = {"new.txt": "new\n", "specs/draft.md": "draft\n", "debug.log": "log\n", "build/out.o": "out\n"}

EDIT = "echo more >> specs/a.md"
STAGED = "echo more >> specs/a.md; git add specs/a.md"
OTHER = (
    "git checkout -q -b other; echo x >> src/util.py; git rm -q specs/deep/b.md; git commit -qam other;"
    " git checkout -q main"
)
WITH_NEW = "git checkout -q -b other; git add new.txt; git commit -qm x; git checkout -q main; echo mine > new.txt"
NESTED = "mkdir nested; git init -q nested; echo x > nested/file"
PATCH = f"{EDIT}; git diff > fix.patch; git checkout -q specs"
STASHED = f"{EDIT}; git stash -q"
UP = (
    'git clone -q . "$TMPDIR/up"; (cd "$TMPDIR/up"; echo up >> specs/a.md; git commit -qam up);'
    ' git remote add origin "$TMPDIR/up"; git fetch -q; git branch -q -u origin/main'
)

#: (state, command, what is written, what vanishes)
CASES: list[tuple[str, str, str, str]] = [
    # clean
    ("", "git clean -n", "", ""),
    ("", "git clean -fdn", "", ""),
    ("", "git clean", "", ""),
    ("", "git clean -d", "", ""),
    ("", "git clean -f", "", "new.txt specs/draft.md"),
    ("", "git clean --forc -d", "", "new.txt specs/draft.md"),
    ("", "git clean -fdq", "", "new.txt specs/draft.md"),
    ("", "git clean -fdx", "", "new.txt specs/draft.md debug.log build/out.o"),
    ("", "git clean -fdX", "", "debug.log build/out.o"),
    ("", "git clean -fd -e specs", "", "new.txt"),
    ("", "git clean -fdx -e '*.log' -e build --exclude=draft.md", "", "new.txt"),
    ("", "git clean -fd src", "", ""),
    ("", "git clean -fd -e --help", "", "new.txt specs/draft.md"),
    ("", "git clean -fd -- 'specs/*.md'", "", "specs/draft.md"),
    ("", "git -C specs clean -fd", "", "specs/draft.md"),
    ("", "git -C src -C ../specs clean -fd .", "", "specs/draft.md"),
    ("", "cd specs && git clean -fdx", "", "specs/draft.md"),
    ("", "git -c clean.requireForce=false clean", "", "new.txt specs/draft.md"),
    ("git config clean.requireForce false", "git clean", "", "new.txt specs/draft.md"),
    ("", "git clean -i -d", "", ""),
    ("mkdir 'a b'; echo x > 'a b/ü\tx'", "git clean -fd 'a b'", "", "a b/ü\tx"),
    (NESTED, "git clean -fd", "", "new.txt specs/draft.md"),
    (NESTED, "git clean -ffd", "", "new.txt specs/draft.md nested/file"),
    ("", "git rm -q --cached src/app.py && git clean -fdq src", "", "src/app.py"),
    # checkout of paths
    ("", "git checkout .", "", ""),
    ("touch specs/a.md", "git checkout .", "", ""),
    (EDIT, "git checkout .", "specs/a.md", ""),
    (EDIT, "git checkout src", "", ""),
    (EDIT, "git checkout specs/a.md", "specs/a.md", ""),
    (EDIT, "git checkout -- '*.md'", "specs/a.md", ""),
    (EDIT, "git checkout -p", "", ""),
    (STAGED, "git checkout .", "", ""),
    (STAGED, "git checkout HEAD -- specs", "specs/a.md", ""),
    ("", "git checkout HEAD~1 -- specs", "specs/a.md", ""),
    ("", "git checkout HEAD~1 -- .", "README.md specs/a.md", ""),
    ("", "cd specs && git checkout HEAD~1 .", "specs/a.md", ""),
    ("", "git checkout nowhere -- specs", "", ""),
    ("", "git checkout nowhere", "", ""),
    (OTHER, "git checkout other -- specs src", "src/util.py", ""),
    (OTHER, "git checkout --no-overlay other -- specs", "", "specs/deep/b.md"),
    ("printf 'specs/a.md\\n' > list", "git checkout HEAD~1 --pathspec-from-file=list", "specs/a.md", ""),
    ("", "git --work-tree=src checkout HEAD -- README.md", "src/README.md", ""),
    ("", "GIT_DIR=.git GIT_WORK_TREE=src git checkout HEAD -- README.md", "src/README.md", ""),
    (EDIT, "git --git-dir=.git --work-tree=. checkout -- .", "specs/a.md", ""),
    # branches
    ("", "git checkout -q -b new", "", ""),
    (EDIT, "git switch -q -c new", "", ""),
    (EDIT, "git checkout -q HEAD~1", "", ""),
    (EDIT, "git checkout -f", "specs/a.md", ""),
    (EDIT, "git checkout -q main", "", ""),
    (f"{OTHER}; echo more >> src/util.py", "git switch -q other", "", ""),
    (f"{OTHER}; git rm -q --cached README.md; git checkout -q -f main", "git checkout -q main", "", ""),
    ("", "git switch -q --orphan empty", "", "*"),
    ("", "git checkout -q --orphan empty", "", ""),
    (WITH_NEW, "git switch -q other", "", ""),
    (WITH_NEW, "git merge -q other", "", ""),
    (WITH_NEW, "git checkout -q -f other", "new.txt", ""),
    (
        "git checkout -q -b other; git add -f debug.log; git commit -qm x; git checkout -q main; echo x > debug.log",
        "git checkout -q other",
        "debug.log",
        "",
    ),
    ("ln -s specs/a.md link; git add link; git commit -qm link; ln -sf README.md link", "git checkout link", "*", ""),
    # restore
    (EDIT, "git restore .", "specs/a.md", ""),
    (STAGED, "git restore --staged .", "", ""),
    (STAGED, "git restore --staged --worktree specs", "specs/a.md", ""),
    (STAGED, "git restore -SW specs", "specs/a.md", ""),
    ("", "git restore -s HEAD~1 specs", "specs/a.md", ""),
    (OTHER, "git restore --source=other .", "src/util.py", "specs/deep/b.md"),
    # reset
    (EDIT, "git reset -q", "", ""),
    (EDIT, "git reset -q --soft HEAD~1", "", ""),
    (EDIT, "git reset -q --hard", "specs/a.md", ""),
    ("", "git reset -q --hard", "", ""),
    ("git add new.txt", "git reset -q --hard", "", "new.txt"),
    ("", "git add new.txt && git reset -q --hard", "", "new.txt"),
    (EDIT, "git reset -q --keep HEAD~1", "", ""),
    (STAGED, "git reset -q --merge", "specs/a.md", ""),
    (EDIT, "git reset -q --merge", "", ""),
    (EDIT, "git commit -qam x && git reset -q --hard", "", ""),
    (EDIT, "git commit -qam x && git stash -q", "", ""),
    # rm and mv
    ("", "git rm -q specs/a.md", "", "specs/a.md"),
    ("", "git rm -q specs", "", ""),
    ("", "git rm -rq specs", "", "specs/a.md specs/deep/b.md"),
    ("", "git rm -rqn specs", "", ""),
    ("", "git rm -rq --cached specs", "", ""),
    (EDIT, "git rm -qf specs/a.md", "", "specs/a.md"),
    ("", "git rm -q '*.md'", "", "README.md specs/a.md specs/deep/b.md"),
    ("", "git -C src rm -q ../specs/a.md", "", "specs/a.md"),
    ("", "git mv README.md GUIDE.md", "GUIDE.md", "README.md"),
    ("", "git mv -n README.md GUIDE.md", "", ""),
    ("", "git mv src/app.py specs", "specs/app.py", "src/app.py"),
    ("", "git mv new.txt specs", "", ""),
    # stash
    ("", "git stash", "", ""),
    (EDIT, "git stash", "specs/a.md", ""),
    (EDIT, "git stash push -q src", "", ""),
    (EDIT, "git stash push -q -m msg -- specs", "specs/a.md", ""),
    (STAGED, "git stash -k", "", ""),
    ("", "git stash -u", "", "new.txt specs/draft.md"),
    ("", "git stash -q --all", "", "new.txt specs/draft.md debug.log build/out.o"),
    ("", "git stash push -q -u -- specs", "", "specs/draft.md"),
    ("", "git add -A && git stash -q", "", "new.txt specs/draft.md"),
    (EDIT, "git stash list; git stash show", "", ""),
    (f"{STASHED}; echo other >> specs/a.md", "git stash pop -q", "", ""),
    (f"{STASHED}; {EDIT}; git add .", "git stash apply -q", "", ""),
    # what others have done
    (f"{OTHER}; echo more >> src/util.py", "git merge -q other", "", ""),
    (OTHER, "git merge -q -s ours --no-edit other", "", ""),
    ("", "git merge -q HEAD~1", "", ""),
    ("", "git rebase -q HEAD~1", "", ""),
    (f"{OTHER}; {EDIT}", "git rebase -q other", "", ""),
    ("", "git bisect start -q HEAD HEAD~1", "", ""),
    (EDIT, "git revert --no-edit HEAD", "", ""),
    ("", "git fetch -q . main", "", ""),
    # patches
    (PATCH, "git apply fix.patch", "specs/a.md", ""),
    (PATCH, "git apply --check fix.patch", "", ""),
    (PATCH, "git apply --stat fix.patch", "", ""),
    (PATCH, "git apply --cached fix.patch", "", ""),
    (f"{PATCH}; {EDIT}", "git apply -R fix.patch", "specs/a.md", ""),
    (PATCH, "cat fix.patch | git apply", "specs/a.md", ""),
    (PATCH, "git apply < fix.patch", "specs/a.md", ""),
    ("", "git diff HEAD HEAD~1 | git apply", "README.md specs/a.md", ""),
    (
        f"{OTHER}; git diff -M main other > d; git mv src/app.py src/c.py; git diff -M HEAD > r; git reset -q --hard",
        "git apply r",
        "src/c.py",
        "src/app.py",
    ),
    # further ways
    (EDIT, "git checkout-index -a", "", ""),
    (EDIT, "git checkout-index -f -a", "specs/a.md", ""),
    ("", "git read-tree -u --reset HEAD~1", "README.md specs/a.md", ""),
    ("", "git read-tree -um HEAD HEAD~1", "README.md specs/a.md", ""),
    ("", "git sparse-checkout set src", "", "specs/a.md specs/deep/b.md"),
    ("", "git sparse-checkout set specs/deep", "", "src/app.py src/util.py"),
    ("", "git worktree list", "", ""),
    ("git worktree add -q wt", "git worktree remove wt", "", "wt/*"),
    ("", "git archive -o out.tar HEAD", "out.tar", ""),
    ("", "git diff HEAD~1 --output=out.diff", "out.diff", ""),
    ("", "git log --output out.log", "out.log", ""),
    ("", "git config -f conf.ini a.b c", "conf.ini", ""),
    ("git config -f conf.ini a.b c", "git config -f conf.ini --get a.b", "", ""),
    # other names and other commands
    ("", "git -c alias.zap='clean -fdq' zap", "", "new.txt specs/draft.md"),
    ("", "git -c alias.zap='!rm specs/a.md' zap", "", "specs/a.md"),
    ("git config alias.zap 'clean -fdq'", "git zap specs", "", "specs/draft.md"),
    ("git config alias.zap '!rm'", "git zap specs/a.md", "", "specs/a.md"),
    ("git config alias.undo 'reset --hard'; " + EDIT, "git -C src undo -q", "specs/a.md", ""),
    ("", "git config alias.x '!rm new.txt' && git x", "", "new.txt"),
    ("", "git -c alias.status='!rm new.txt' status", "", ""),
    ("", "git rebase -q --exec 'rm -f new.txt' HEAD~1", "", "new.txt"),
    ("", "git -c core.editor='rm new.txt; true' commit -q --allow-empty -m x", "", ""),
    ("", "git ls-files -z specs | xargs -0 rm", "", "specs/a.md specs/deep/b.md"),
    ("", "rm $(git diff --name-only HEAD~1)", "", "README.md specs/a.md"),
    ("", "rm $(git ls-files -o --exclude-standard specs)", "", "specs/draft.md"),
    ("", 'rm "$(git rev-parse --show-toplevel)/README.md"', "", "README.md"),
    # what the line itself does before
    ("", "git rm -rq --cached . && git clean -fdq src", "", "src/app.py src/util.py"),
    ("rm -rf .git; git init -q; git add src", "git reset -q --hard", "", "src/app.py src/util.py"),
    ("rm -rf .git", "git init -q && git add -A && git clean -fdq", "", ""),
    (
        "",
        "git config clean.requireForce false; git clean -q specs",
        "",
        "specs/draft.md",
    ),
    # in folders and elsewhere
    (EDIT, "cd src && git stash -q", "specs/a.md", ""),
    ("", "cd src && git stash -q -u", "", "new.txt specs/draft.md"),
    ("", "cd src && git clean -fdq :/", "", "new.txt specs/draft.md"),
    ("", "cd src && git checkout HEAD~1 -- ..", "README.md specs/a.md", ""),
    ("", "git checkout HEAD~1 -- . ':!specs'", "README.md", ""),
    ("", "git --literal-pathspecs checkout HEAD~1 -- '*.md'", "", ""),
    ("", "git -C specs mv a.md ../src", "src/a.md", "specs/a.md"),
    ("git worktree add -q wt; echo x >> wt/README.md", "git -C wt checkout .", "wt/README.md", ""),
    ("git worktree add -q wt; echo x >> wt/README.md", "git reset -q --hard; git checkout .", "", ""),
    (EDIT, "git stash save -q message", "specs/a.md", ""),
    (PATCH, "cd specs && git apply ../fix.patch", "specs/a.md", ""),
    (PATCH, "cd src && git apply ../fix.patch", "", ""),
    ("git add new.txt; git diff --cached > p; git rm -qf new.txt", "git apply p", "new.txt", ""),
    ("git add new.txt; git diff --cached > p", "git apply --directory=src p", "src/new.txt", ""),
    ("git add new.txt; git diff --cached --no-prefix > p; git rm -qf new.txt", "git apply -p0 p", "new.txt", ""),
    # nothing at all
    ("", "git status; git log -3; git show HEAD:specs/a.md; git branch x; git tag v; git gc -q", "", ""),
    (EDIT, "git add -A; git commit -qm x; git update-index -q --refresh; git hash-object README.md", "", ""),
    (EDIT, "git checkout --help; git clean -h; git reset -h", "", ""),
    ("rm -rf .git", "git clean -fd; git reset --hard; git checkout .", "", ""),
]


def environment(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
        "GIT_PAGER": "cat",
    }


CONFIGURATION = (
    "[user]\nname = Dev\nemail = dev@example.com\n[init]\ndefaultBranch = main\n[advice]\ndetachedHead = false\n"
    "[pull]\nrebase = false\n[gc]\nauto = 0\n"
    "[core]\ncheckStat = minimal\ntrustCtime = false\n"  # a copy of a repository is as fresh as the repository
)


def bash(script: str, folder: Path) -> None:
    subprocess.run(
        ["bash", "-c", script],
        cwd=folder / "repo",
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=45,
        check=False,
    )


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / "repo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("git") / "template"
    (folder / "repo").mkdir(parents=True)
    (folder / "tmp").mkdir()
    (folder / "gitconfig").write_text(CONFIGURATION)
    bash("git init -q --template=; mkdir .git/hooks", folder)
    write(folder, FILES)
    bash("git add . && git commit -qm first", folder)
    write(folder, SECOND)
    bash("git commit -qam second", folder)
    write(folder, UNTRACKED)
    return folder


@pytest.fixture
def place(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "box"
    shutil.copytree(template, folder, symlinks=True)
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    for name, value in environment(folder).items():
        if name != "GIT_PAGER":
            monkeypatch.setenv(name, value)
    return folder


def found(command: str, cwd: Path) -> list[Effect]:
    return [effect for effect in effects_of(command, cwd).found if effect.kind != READ]


def told(command: str, repo: Path) -> tuple[set[str], set[str]]:
    """The files that would be written and those that would vanish."""
    written: set[str] = set()
    gone: set[str] = set()
    for effect in found(command, repo):
        path = os.path.normpath(effect.path)
        names = list(Disk().tree(path)) if effect.recursive else [path]
        for name in names:
            if "/.git/" not in name and not name.endswith("/.git"):
                (gone if effect.kind in (DELETE, MOVE) else written).add(os.path.relpath(name, repo))
    return written - gone if "git mv" not in command else written, gone


def contents(repo: Path) -> dict[str, bytes]:
    files = {}
    for path in repo.rglob("*"):
        name = str(path.relative_to(repo))
        if path.is_file() and ".git" not in name.split("/"):
            files[name] = path.read_bytes()
    return files


@pytest.mark.parametrize(
    ("state", "command", "written", "gone"), CASES, ids=[f"{n}: {c[1]}" for n, c in enumerate(CASES)]
)
def test_the_files_that_a_command_changes_are_told_before(
    place: Path, state: str, command: str, written: str, gone: str
) -> None:
    repo = place / "repo"
    if state:
        bash(state, place)
    before = contents(repo)
    index = (repo / ".git/index").read_bytes() if (repo / ".git").exists() else b""
    says = told(command, repo)
    assert contents(repo) == before
    assert ((repo / ".git/index").read_bytes() if index else b"") == index
    bash(command, place)
    after = contents(repo)
    really = (
        {name for name, content in after.items() if before.get(name) != content},
        {name for name in before if name not in after},
    )
    assert says == really
    if "*" not in gone + written and "\t" not in gone:
        assert really == (set(written.split()), set(gone.split()))


def test_what_is_unknown_is_told_as_it_is(place: Path) -> None:
    """A path that nobody knows may be any; a command that destroys says so."""
    effects = found('git checkout -- "$somewhere"', place / "repo")
    assert [(effect.kind, effect.recursive) for effect in effects] == [(WRITE, True)]
    assert UNKNOWN in effects[0].path
    effects = found('cd "$(somewhere)" && git clean -fd', place / "repo")
    assert [(effect.kind, effect.recursive) for effect in effects] == [(DELETE, True)]


def test_a_repository_that_git_cannot_read_is_taken_to_be_changed(place: Path) -> None:
    repo = place / "repo"
    (repo / ".git/HEAD").write_text("broken")
    for command, kind in (("git clean -fd", DELETE), ("git reset --hard", WRITE), ("git checkout .", WRITE)):
        effects = found(command, repo)
        assert [(effect.kind, os.path.normpath(effect.path), effect.recursive) for effect in effects] == [
            (kind, str(repo), True)
        ]


def test_rules_name_the_command(place: Path) -> None:
    rules = {effect.rule for effect in found("git clean -f; git stash -u; git rm README.md", place / "repo")}
    assert rules == {"guard.git.clean", "guard.git.stash", "guard.git.rm"}


def test_what_git_runs_for_asking_writes_nothing(place: Path) -> None:
    """Not even a trace, and no hook, pager or monitor of the repository is run."""
    repo = place / "repo"
    bash("git config core.fsmonitor 'touch ran; false'; git config diff.external 'touch ran; true'", place)
    bash("git config core.pager 'touch ran; cat'; touch specs/a.md", place)
    git = sorted(str(path) for path in (repo / ".git").rglob("*"))
    found("git clean -fd; git diff HEAD~1 | git apply; git stash; git checkout HEAD~1 .; git log | cat", repo)
    assert not (repo / "ran").exists()
    assert sorted(str(path) for path in (repo / ".git").rglob("*")) == git


@pytest.mark.parametrize(
    "command",
    [
        "git branch -a -D other",
        "git branch --list -D other",
        "git config --add x.y list",
        "git config --get a.b --unset x.y",
        "git remote -v update",
        "git tag -l -d v",
        "git tag v2 -n",
        "git symbolic-ref HEAD refs/heads/other",
        "git stash show --output=out",
        "git grep -lO'touch ran' one",
        "git grep --op='touch ran' one",
        "git diff --ext HEAD~1",
        "git format-patch -1",
        "git format-patch -o out --stdout -1",
        "git describe --dirty --always",
        "git update-ref refs/heads/x HEAD",
        "git log --out=out",
    ],
)
def test_only_what_prints_is_run_to_see_what_it_prints(place: Path, command: str) -> None:
    repo = place / "repo"
    bash(
        "git branch other; git tag v; git config x.y z; git config diff.external 'touch ran; true'; touch specs/a.md",
        place,
    )
    before = {str(path): path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    found(f"X=$({command}); echo $X", repo)
    assert {str(path): path.read_bytes() for path in repo.rglob("*") if path.is_file()} == before
