"""The guard's verdict on git commands, held against what git really does to protected files.

Every state of a protected file meets every command. The guard is asked; then the command is run in the same place. What
was allowed has lost nothing: each content that was there before is still in the working tree or in a commit that a ref
or a reflog leads to. What was refused has lost something, removed a protected file, or left one in a version that is
not that of HEAD: else the refusal was a false stop.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.core.decision import Decision
from fusewire.guard.check import check_command

FIRST = {
    ".gitignore": "*.log\nbuild/\n.fusewire/\n",
    "README.md": "one\n",
    "CLAUDE.md": "guide\n",
    "src/app.py": "app\n",
    "src/util.py": "util\n",
    "specs/a.md": "a\n",
    "specs/deep/b.md": "b\n",
    ".claude/settings.json": "{}\n",
}
SECOND = {"README.md": "one\ntwo\n", "specs/a.md": "a\naa\n", "specs/c.md": "c\n"}
OTHER = {
    "src/util.py": "util\nother\n",
    "CLAUDE.md": "guide\nother\n",
    "specs/new.md": "new\n",
    "specs/trace.log": "x\n",
}
UPSTREAM = {"specs/a.md": "a\naa\nup\n", "src/app.py": "app\nup\n"}

#: What is made of the protected files before the command is run.
STATES = {
    "clean": "true",
    "modified": "echo mine >> specs/a.md; echo mine >> CLAUDE.md",
    "staged": "echo mine >> specs/a.md; git add specs/a.md",
    "staged and modified": "echo mine >> specs/a.md; git add specs/a.md; echo more >> specs/a.md",
    "added": "echo fresh > specs/fresh.md; git add specs/fresh.md",
    "untracked": "echo draft > specs/draft.md",
    "untracked in the way": "echo mine > specs/new.md",
    "ignored": "echo mine > specs/hidden.log",
    "ignored in the way": "echo mine > specs/trace.log",
    "deleted": "rm specs/a.md",
    "stashed": "echo mine >> specs/a.md; git stash -q",
    "stashed untracked": "echo draft > specs/draft.md; git stash -q -u",
    "elsewhere modified": "echo mine >> src/app.py; echo x > junk.txt; echo y > junk.log",
    "elsewhere stashed": "echo mine >> src/app.py; git stash -q",
    "in conflict": "git checkout -q -b third; echo third >> specs/a.md; git commit -qam third; git merge -q upstream",
    "in a merge": "git checkout -q -b third; echo third >> src/app.py; git commit -qam third; git merge -q upstream",
    "in a rebase": "git checkout -q -b third; echo third >> src/app.py; git commit -qam third; git rebase -q upstream;"
    " echo mine >> CLAUDE.md",
}

COMMANDS = """
git status; git log -3; git add -A; git commit -qm x; git diff HEAD~1; git branch x; git fetch -q; git tag v
git switch -q other
git checkout -q other
git checkout -q HEAD~1
git checkout -q -b new
git checkout -q -b new HEAD~1
git checkout -q -B main HEAD~1
git checkout -q -m other
git checkout -q -f other
git checkout -q -f
git switch -q --discard-changes other
git switch -q --orphan empty
git checkout -q --orphan empty
git checkout -q --no-overwrite-ignore other
git checkout .
git checkout -- specs/a.md
git checkout specs
git checkout HEAD -- specs
git checkout HEAD~1 -- specs
git checkout other -- specs/new.md
git checkout other -- src
git checkout src
git checkout --theirs specs/a.md
git restore .
git restore specs/a.md
git restore --staged .
git restore --staged --worktree specs
git restore --source=HEAD~1 specs
git restore --source=other src
git reset -q
git reset -q HEAD~1
git reset -q --soft HEAD~1
git reset -q --hard
git reset -q --hard HEAD~1
git reset -q --hard other
git reset -q --hard nowhere
git reset -q --keep HEAD~1
git reset -q --merge
git reset -q --merge HEAD~1
git clean -fdq
git clean -fdxq
git clean -fdXq
git clean -fdxq -e specs
git clean -fdq src
git clean -fdn
git stash -q
git stash -q -u
git stash -q --all
git stash -q -k
git stash push -q -- src
git stash push -q -- specs
git stash pop -q
git stash apply -q
git stash branch -q fix
git stash drop -q
git stash clear
git stash list; git stash show
git merge -q --no-edit other
git merge -q --squash other && git commit -qm squashed
git merge --abort
git merge -q -s ours --no-edit other
git branch --format='%(refname:short)' | xargs git merge -q --no-edit
git branch | xargs git merge -q --no-edit
git pull -q
git pull -q --rebase
git pull -q --rebase --autostash
git rebase -q other
git rebase -q --autostash other
git rebase -q --onto HEAD~1 HEAD
git rebase --abort
git rebase --skip
git cherry-pick other
git cherry-pick main..other
git cherry-pick --abort
git revert --no-edit HEAD
git bisect start -q HEAD HEAD~1; git bisect reset -q
git format-patch -q --stdout main..other | git am -q
git diff HEAD HEAD~1 | git apply
git diff HEAD HEAD~1 -- README.md | git apply
git diff HEAD HEAD~1 | git apply --check
git rm -q specs/a.md
git rm -rqf specs
git rm -q --cached specs/a.md
git rm -q src/util.py
git mv specs/a.md elsewhere.md
git mv specs requirements
git mv src/util.py src/helpers.py
git mv src/util.py specs/util.py
git checkout-index -q -f -a
git checkout-index -q -a
git read-tree -u --reset HEAD~1
git read-tree -um HEAD HEAD
git read-tree HEAD
git update-index -q --refresh
git sparse-checkout set src
git sparse-checkout set specs .claude
git sparse-checkout set --no-cone /src/
git sparse-checkout set --no-cone '/*' '!/src/'
git sparse-checkout set --no-cone '*.md' '*.json' '*.log'
git worktree add -q ../tree
git worktree add -q specs/tree
git worktree add -q ../tree && git worktree remove --force ../tree
git submodule update --init --recursive
git submodule foreach 'rm -rf specs'
git filter-branch -f --index-filter 'git rm -rq --cached --ignore-unmatch specs' HEAD
git filter-branch -f --index-filter 'git rm -q --cached --ignore-unmatch src/util.py' HEAD
git filter-branch -f --tree-filter 'rm -rf specs' HEAD
git filter-branch -f --env-filter 'GIT_AUTHOR_NAME=x' HEAD
git filter-branch -f --subdirectory-filter src HEAD
git -c alias.zap='reset -q --hard' zap
git -c alias.zap='!rm -rf specs' zap
git config alias.zap 'clean -fdxq' && git zap
git -C specs checkout .
git -C src checkout .
git -C src reset -q --hard
git --git-dir=.git --work-tree=. checkout -- .
git --git-dir=.git --work-tree=src checkout -q HEAD -- README.md
git --git-dir=.git --work-tree=specs checkout -q HEAD -- README.md
GIT_DIR=.git GIT_WORK_TREE=. git reset -q --hard
cd src && git checkout ..
cd specs && git clean -fdxq
git rebase -q --exec 'rm -rf specs' HEAD~1
git add -A && git commit -qm wip && git reset -q --hard HEAD~1
git add -A && git commit -qm wip && git checkout -q -f other
git add -A && git reset -q --hard
git add -A && git clean -fdq
git add -A && git clean -fdxq
git commit -qam wip; git stash -q -u
git stash -q && git switch -q other && git stash pop -q
git rm -q --cached specs/a.md && git clean -fdq specs
git reset -q && git checkout -q . && git clean -fdq
git fetch -q && git rebase -q origin/main && git log -1
git checkout -q --orphan empty && git reset -q --hard
""".strip().split("\n")

CONFIGURATION = (
    "[user]\nname = Dev\nemail = dev@example.com\n[init]\ndefaultBranch = main\n[advice]\ndetachedHead = false\n"
    "[pull]\nrebase = false\n[gc]\nauto = 0\n[core]\ncheckStat = minimal\ntrustCtime = false\neditor = true\n"
)


def bash(script: str, folder: Path) -> None:
    environment = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
        "GIT_PAGER": "cat",
        "FILTER_BRANCH_SQUELCH_WARNING": "1",
    }
    subprocess.run(
        ["bash", "-c", script],
        cwd=folder / "repo",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=45,
        check=False,
    )


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def templates() -> Iterator[dict[str, Path]]:
    """A repository in each of the states; `other` and `upstream` have moved on from it."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None  # thousands of copies come and go
    with tempfile.TemporaryDirectory(prefix="fusewire-truth-", dir=memory, ignore_cleanup_errors=True) as place:
        yield prepared(Path(os.path.realpath(place)))


def prepared(base: Path) -> dict[str, Path]:
    folder = base / "template"
    (folder / "repo").mkdir(parents=True)
    (folder / "gitconfig").write_text(CONFIGURATION)
    bash("git init -q --template=", folder)
    write(folder / "repo", FIRST)
    bash("git add . && git commit -qm first", folder)
    write(folder / "repo", SECOND)
    bash("git add . && git commit -qm second && git checkout -q -b upstream", folder)
    write(folder / "repo", UPSTREAM)
    bash("git commit -qam up && git clone -q . ../up.git && git checkout -q -b other main", folder)
    write(folder / "repo", OTHER)
    bash("git rm -q specs/deep/b.md && git add -f . && git commit -qm other && git checkout -q main", folder)
    bash("git remote add origin ../up.git && git fetch -q && git branch -q -u origin/upstream && git gc -q", folder)
    found = {}
    for number, (name, setup) in enumerate(STATES.items()):
        found[name] = base / str(number)
        shutil.copytree(folder, found[name], symlinks=True)
        bash(setup, found[name])
    return found


def git(folder: Path, *words: str) -> str:
    answer = subprocess.run(["git", *words], cwd=folder / "repo", capture_output=True, text=True, check=False)
    return answer.stdout


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def protected_files(repo: Path) -> dict[str, str]:
    """Name -> blob of every protected file in the working tree."""
    found = {}
    for place in ("specs", ".claude", "CLAUDE.md"):
        for path in [repo / place, *sorted((repo / place).rglob("*"))]:
            if path.is_file() and ".git" not in path.parts[len(repo.parts) :]:
                found[str(path.relative_to(repo))] = blob(path.read_bytes())
    return found


def judge(folder: Path, command: str) -> Decision:
    repo = str(folder / "repo")
    return check_command(command, cwd=repo, root=repo, lists=False)


def stashed(folder: Path) -> set[str]:
    """The blobs of protected files in stashes."""
    found: set[str] = set()
    for commit in git(folder, "stash", "list", "--format=%H").split():
        for source in (commit, f"{commit}^3"):
            rows = git(folder, "ls-tree", "-r", source, "--", "specs", ".claude", "CLAUDE.md").splitlines()
            found |= {row.split()[2] for row in rows}
    return found


def marks(folder: Path) -> list[bytes]:
    """What tells that git has changed its index or its stashes."""
    places = (folder / "repo/.git" / name for name in ("index", "logs/refs/stash"))
    return [place.read_bytes() if place.exists() else b"" for place in places]


def damage(folder: Path, command: str) -> tuple[set[str], set[str]]:
    """(contents that are lost, protected files that are gone or not in the version of HEAD) by really running it."""
    repo = folder / "repo"
    before, marked = protected_files(repo), marks(folder)
    stashes = stashed(folder) if marked[1] else set()
    bash(command, folder)
    after = protected_files(repo)
    if before == after and marks(folder)[1] == marked[1]:
        return set(), set()
    there = {*after.values(), *git(folder, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects").split()}
    lost = {content for content in {*before.values(), *stashes} - there if content not in CONFLICTED}
    head = {row.partition("\t")[2]: row.split()[2] for row in git(folder, "ls-tree", "-r", "HEAD").splitlines()}
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return lost, {name for name in changed if name not in after or after[name] != head.get(name)}


#: The text that git makes of two sides is no content of its own.
CONFLICTED = {blob(b"a\naa\n<<<<<<< HEAD\nthird\n=======\nup\n>>>>>>> upstream\n")}

#: They carry uncommitted content away without losing it, or remove by name what a commit has, or run a command that
#: removes: refused also where git itself would refuse.
POLICY = (
    *("git stash", "git rm", "git mv", "git commit -qam wip; git stash", "git rebase -q --exec"),
    *("git -c alias.zap='!",),
)

#: Commands that end what git is in the middle of, or go back behind it.
INTERRUPTING = ("abort", "skip", "reset", "restore", "checkout", "switch", "clean")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_verdict_on_a_git_command_is_what_git_really_does(
    templates: dict[str, Path], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    wrong = []
    for number, (state, template) in enumerate(templates.items()):
        if state.startswith("in ") and (" && " in command or not any(word in command for word in INTERRUPTING)):
            continue
        folder = template.parent / f"copy-{number}"
        shutil.copytree(template, folder, symlinks=True)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "gitconfig"))
        verdict = judge(folder, command)
        lost, harmed = damage(folder, command)
        if verdict.allowed and lost:
            wrong.append(f"{state}: allowed, but content is lost")
        elif not verdict.allowed and not lost and not harmed and not command.startswith(POLICY):
            wrong.append(f"{state}: refused ({verdict.reason}), but nothing is lost")
        shutil.rmtree(folder, ignore_errors=True)
    assert not wrong, "\n".join([command, *wrong])


# -- what is asked, and what is said ----------------------------------------------------------------------------


@pytest.fixture
def repo(templates: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean repository of its own."""
    folder = Path(os.path.realpath(tmp_path)) / "box"
    shutil.copytree(templates["clean"], folder, symlinks=True)
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "gitconfig"))
    return folder / "repo"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that are started while a line is judged."""
    from fusewire.util import git as starting

    found: list[str] = []
    real = starting._Process

    class Counted(real):  # type: ignore[misc, valid-type]
        def __init__(self, repository: object, words: tuple[str, ...], *rest: object, **options: object) -> None:
            found.append(words[0])
            super().__init__(repository, words, *rest, **options)

    monkeypatch.setattr(starting, "_Process", Counted)
    return found


@pytest.mark.parametrize(
    "line",
    [
        "git status && git add -A && git commit -m 'wip' && git push origin HEAD",
        "git fetch origin; git log --oneline -5 | cat; git diff HEAD~1 | head; git branch",
        "git remote -v; git tag v1; git config user.name Dev; git show HEAD:specs/a.md; git blame specs/a.md",
        "git reset --soft HEAD~1; git stash list; git worktree add ../x; git merge-base main other",
        "git rebase --continue; git am fix.mbox; git stash pop; git merge --abort; git lfs pull",
    ],
)
def test_no_git_is_started_for_what_can_lose_nothing(repo: Path, asked: list[str], line: str) -> None:
    assert check_command(line, cwd=str(repo), root=str(repo), lists=False).allowed
    assert asked == []


@pytest.mark.parametrize("line", ["git switch other", "git merge other", "git pull", "git reset --hard", "git stash"])
def test_a_move_costs_one_question_about_the_protected_paths(repo: Path, asked: list[str], line: str) -> None:
    """With a `reset --hard` to a commit, one more: which commit that is."""
    assert check_command(line, cwd=str(repo), root=str(repo), lists=False).allowed
    assert len([name for name in asked if name != "rev-parse"]) == 1
    assert len(asked) <= 2


def test_a_document_may_be_renamed_in_its_folder(repo: Path) -> None:
    """`git mv` inside of specs/ loses nothing; out of it, over another file, or of configuration is refused."""

    def allowed(line: str) -> bool:
        return check_command(line, cwd=str(repo), root=str(repo)).allowed

    assert allowed("git mv specs/a.md specs/z.md")
    assert allowed("git mv specs/a.md specs/deep")
    assert allowed("cd specs && git mv a.md z.md")
    assert not allowed("git mv -f specs/a.md specs/c.md")
    assert not allowed("git mv specs/a.md z.md")
    assert not allowed("git mv specs requirements")
    assert not allowed("git mv CLAUDE.md GUIDE.md")
    assert not allowed("git mv .claude/settings.json .claude/x.json")
    bash("git mv specs/a.md specs/z.md", repo.parent)
    assert (repo / "specs/z.md").read_text() == SECOND["specs/a.md"]


def test_a_refused_clean_says_how_to_clean_the_rest(repo: Path) -> None:
    """`git clean -fdx` would remove Fusewire's own state; the command that is shown as the way on is allowed."""
    (repo / ".fusewire").mkdir()
    (repo / ".fusewire/state.db").write_text("state")
    verdict = check_command("git clean -fdx", cwd=str(repo), root=str(repo))
    assert not verdict.allowed
    assert verdict.next[0] == "git clean -fdx -e .fusewire"
    assert check_command(verdict.next[0], cwd=str(repo), root=str(repo)).allowed


def test_a_refused_stash_and_checkout_say_what_else_could_be_done(repo: Path) -> None:
    with (repo / "specs/a.md").open("a") as file:
        file.write("mine\n")
    verdict = check_command("git stash", cwd=str(repo), root=str(repo))
    assert "git stash push -- src/" in verdict.next[0]
    listed = check_command("git checkout .", cwd=str(repo), root=str(repo))
    assert listed.affected == ("specs/a.md",)
    assert check_command("git stash push -- src/", cwd=str(repo), root=str(repo)).allowed
