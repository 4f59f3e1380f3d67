"""How much of ring one a command line gets, and which command the agent has given."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire.guard.sandbox.lines import DOCUMENTS, INSIDE, OUTSIDE, share
from fusewire.guard.sandbox.shell import command_in

#: What Claude Code 2.1.325 puts in front of a command.
PRELUDE = (
    "source /home/dev/.claude/shell-snapshots/snapshot-bash-1.sh 2>/dev/null || true && { \\builtin shopt -u extglob ||"
    " \\builtin setopt NO_EXTENDED_GLOB; } >/dev/null 2>&1 || true && { \\builtin unalias -- 'which'; \\builtin unset"
    " -f -- 'which'; } >/dev/null 2>&1 || true && "
)

#: line -> what it gets
LINES = {
    "git switch main": DOCUMENTS,
    "git checkout main && git pull 2>&1 | tail -5": DOCUMENTS,
    "cd sub && git stash && git pull --rebase && git stash pop": DOCUMENTS,
    "git fetch -q 2>/dev/null; git merge origin/main": DOCUMENTS,
    "git commit -m 'a b' && git switch x": DOCUMENTS,
    "git switch x; rm -rf specs": DOCUMENTS,
    "git checkout main && make test": DOCUMENTS,
    "git checkout -q HEAD~1": DOCUMENTS,
    "git checkout $(git rev-list -n 1 v0)": DOCUMENTS,
    "git cherry-pick -x other": DOCUMENTS,
    "GIT_EDITOR=true timeout 60 git -C sub rebase --continue": DOCUMENTS,
    "git co main": DOCUMENTS,
    "git commit -am 'hooks may format specs'": DOCUMENTS,
    "gh pr checkout 7": DOCUMENTS,
    "git clean -fdx": INSIDE,
    "git ls-tree HEAD | wc -l; git count-objects": INSIDE,
    "git rm -r specs": INSIDE,
    "git -c user.name=x log --oneline | head": INSIDE,
    "echo git switch": INSIDE,
    "git status": INSIDE,
    "make clean": INSIDE,
    "echo switch git": INSIDE,
    "sudo apt-get install -y jq": OUTSIDE,
    "LC_ALL=C timeout 60 sudo -E make": OUTSIDE,
    "(cd x && sudo y)": OUTSIDE,
    "x=$(sudo cat /etc/shadow)": OUTSIDE,
    "/usr/bin/podman run alpine true | cat": OUTSIDE,
    "echo sudo": INSIDE,
    "echo 'first; sudo rm'": INSIDE,
    "grep -rn 'sudo' . | head": INSIDE,
    "cat > install.sh <<EOF\nsudo apt install x\nEOF": INSIDE,
    "git log --author=su": INSIDE,
    'fusewire attempt record S-1 test_a --fail --error "$(cat err.txt)"': OUTSIDE,
    "cd sub && python3 -m fusewire status": OUTSIDE,
    "fusewire status; rm -rf build": INSIDE,
    "fusewire status > specs/a.md": INSIDE,
    "cd infra && make deploy PROD=1": OUTSIDE,
    "make deployment": INSIDE,
    "npm run publish:beta": OUTSIDE,
    "": INSIDE,
    "'": INSIDE,
    "echo \\": INSIDE,
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_gets_as_much_of_ring_one_as_it_can_work_with(line: str) -> None:
    """Only what is plainly a move of git, a set-uid program, or let out by a person gets less."""
    assert share(line, ("make deploy", "npm run publish:*")) == LINES[line]


@given(st.text())
def test_no_text_makes_it_fail(line: str) -> None:
    assert share(line, ("make deploy",)) in (INSIDE, DOCUMENTS, OUTSIDE)
    assert isinstance(command_in(line), str)


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_the_agents_command_is_found_in_what_its_client_passes(command: str) -> None:
    """However it is quoted, and whatever stands in it: `eval`, `pwd -P`, other quotes."""
    quoted = "'" + command.replace("'", "'\"'\"'") + "'"
    for behind in (" < /dev/null", ""):
        assert command_in(f"{PRELUDE}eval {quoted}{behind} && pwd -P >| /tmp/claude-1-cwd") == command
    assert command_in(f"eval {shlex.quote(command)} < /dev/null && pwd -P >| '/tmp/a b'") == command


def test_a_command_that_is_not_found_is_the_whole_text() -> None:
    """Then nothing in it is taken for a move of git."""
    text = f"{PRELUDE}run 'git switch x' && pwd -P >| /tmp/x"
    assert command_in(text) == text
    assert share(command_in(text)) == INSIDE
