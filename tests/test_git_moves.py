"""Lines that only move between committed versions, told apart from lines that do anything else."""

from __future__ import annotations

import pytest

from fusewire.guard.programs.git_moves import line_only_moves, only_moves

MOVES = [
    "git switch main",
    "git checkout main",
    "git checkout -b fix origin/main",
    "git checkout -",
    "git checkout main -- specs/a.md",
    "git -C sub switch main",
    "git --no-pager pull --rebase",
    "git -c user.name=Dev -c user.email=d@example.com merge --no-edit other",
    "git fetch && git rebase origin/main",
    "GIT_EDITOR=true git rebase --continue",
    "GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~3",
    "cd sub && git status && git pull 2>&1 | tail -3",
    "git stash && git switch main && git stash pop",
    "git stash -u",
    "git reset --hard origin/main",
    "git revert --no-edit HEAD && git push",
    "git cherry-pick abc123",
    "git bisect start && git bisect bad && git bisect good v1",
    "git restore --source=HEAD~1 specs",
    "git am < fix.mbox",
    "git lfs pull",
    "gh pr checkout 12",
    "git add -A && git commit -m 'wip' && git checkout main",
    "/usr/bin/git switch main; echo done",
    'git switch "$BRANCH" > /dev/null 2>&1',
    'git pull origin "$(git branch --show-current)"',
    "(cd sub; git pull)",
]

OTHERS = [
    "",
    "ls",
    "git status",
    "git add -A && git commit -m x",
    "git reset HEAD~1",
    "make && git switch main",
    "git switch main && rm -rf specs",
    "git switch main; python3 build.py",
    "git checkout .",
    "git checkout -- specs/a.md",
    "git checkout -f -- .",
    "git checkout specs/",
    "git restore specs/a.md",
    "git clean -fd && git switch main",
    "git rm specs/a.md && git switch main",
    "git mv specs/a.md b.md",
    "git apply fix.patch && git switch main",
    "git stash drop && git switch main",
    "git rebase --exec 'rm -rf specs' main",
    "git rebase -x 'rm -rf specs' main",
    "git rebase --exe 'rm -rf specs' main",
    "git bisect run ./test.sh",
    "git pull --upload-pack 'rm -rf specs' ../other",
    "git -c core.editor='rm -rf specs' rebase -i main",
    "git -c alias.x='!rm -rf specs' x",
    "git -c core.sshCommand='rm -rf specs' pull",
    "git --exec-path=/tmp/x switch main",
    "git --work-tree=specs checkout main",
    "GIT_EDITOR='rm -rf specs' git rebase -i main",
    "GIT_WORK_TREE=specs git checkout main",
    "git switch main && git log --output=specs/a.md",
    "git switch main && git grep -O'rm' x",
    "git undo",
    "git filter-branch --tree-filter 'rm -rf specs' && git switch main",
    "git submodule foreach 'git switch main'",
    "git",
    "xargs git merge",
    "git switch main > specs/a.md",
    "git switch main 2>> specs/a.md",
    'git switch "$(rm -rf specs)"',
    "git switch ${X:-$(rm -rf specs)}",
    "X=$(rm -rf specs) git switch main",
    "git switch main & rm -rf specs",
    "git $X main",
    "$X switch main",
    "git switch main && f() { rm -rf specs; }; f",
    "for b in a b; do git switch $b; rm specs/a.md; done",
    "git switch 'main",
    "cat <(rm -rf specs); git switch main",
    "X=(rm) git switch main",
]


@pytest.mark.parametrize("line", MOVES)
def test_a_line_that_only_moves_is_one(line: str) -> None:
    assert line_only_moves(line)


@pytest.mark.parametrize("line", OTHERS)
def test_a_line_that_does_anything_else_is_none(line: str) -> None:
    assert not line_only_moves(line)


def test_an_assignment_in_front_of_a_command_is_seen() -> None:
    """A caller that keeps assignments in the words gets them judged."""
    assert not only_moves([["GIT_EDITOR=rm -rf specs", "git", "rebase", "-i", "main"]])
    assert only_moves([["GIT_EDITOR=true", "git", "rebase", "-i", "main"]])
