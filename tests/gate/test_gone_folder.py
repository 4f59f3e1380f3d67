"""A hook or a command whose folder is gone answers, and does not make the folder again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project

CALLS: dict[str, dict[str, Any]] = {
    "claude": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1"},
    "codex": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1", "turn_id": "1"},
    "copilot": {"hook_event_name": "PreToolUse", "tool_name": "bash"},
    "gemini": {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"},
}


def ask(agent: str, folder: Path, removed: Path, command: str = "ls", **more: Any) -> subprocess.CompletedProcess[str]:
    """A hook that is started in a folder which is then removed, as `git worktree remove` does."""
    payload = {"session_id": "s", "cwd": str(folder), "tool_input": {"command": command}, **CALLS[agent], **more}
    hook = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), agent]
    line = 'cd "$1" && rm -rf "$2" && shift 2 && exec "$@"'
    words = ["sh", "-c", line, "sh", str(folder), str(removed), *hook]
    return subprocess.run(words, input=json.dumps(payload), capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("agent", CALLS)
@pytest.mark.parametrize("what", ["folder", "parent"])
def test_a_folder_that_is_gone_stays_gone(tmp_path: Path, agent: str, what: str) -> None:
    """The call passes, with a remark for the person: an honest agent has just removed its worktree."""
    folder = tmp_path / "trees" / "feature"
    folder.mkdir(parents=True)
    done = ask(agent, folder, folder if what == "folder" else folder.parent)
    assert done.returncode == 0, done
    assert "deny" not in done.stdout
    assert f"{folder} is gone" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not folder.exists()
    assert folder.parent.exists() == (what == "folder")


@pytest.mark.parametrize("agent", CALLS)
def test_what_is_said_afterwards_makes_no_folder_either(tmp_path: Path, agent: str) -> None:
    """The hooks behind a call, at its end and at the end of a session."""
    folder = tmp_path / "feature"
    after = {"claude": "PostToolUse", "codex": "PostToolUse", "copilot": "PostToolUse", "gemini": "AfterTool"}[agent]
    for hook in (after, "Stop", "SessionStart", "SessionEnd"):
        folder.mkdir()
        done = ask(agent, folder, folder, "touch a", hook_event_name=hook, tool_response={"stdout": ""})
        assert "Traceback" not in done.stderr
        assert not folder.exists(), hook


def test_a_worktree_inside_a_repository_is_judged_by_that_one(project: Project) -> None:
    """The rules, the counts and the halts of the repository around it go on."""
    project.constraint("no-echo", "match:\n  - command: 'echo *'\ncircuit_breaker:\n  violation_threshold: 1\n")
    folder = project.root / ".worktrees" / "feature"
    for command in ("echo a", "echo b"):
        folder.mkdir(parents=True, exist_ok=True)
        done = ask("claude", folder, folder, command)
    assert done.returncode == 2
    assert "BLOCKED constraint:no-echo" in done.stderr
    assert not folder.exists()


@pytest.mark.parametrize("more", [{}, {"PYTHONPATH": "/nonexistent"}], ids=["", "PYTHONPATH"])
@pytest.mark.parametrize("words", [("status",), ("record", "a"), ("loop", "begin"), ("doctor",), ("phase", "start")])
def test_a_command_in_a_folder_that_is_gone_is_one_line(
    tmp_path: Path, words: tuple[str, ...], more: dict[str, str]
) -> None:
    """It names what helps, and makes nothing."""
    folder = tmp_path / "gone"
    folder.mkdir()
    line = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    command = ["sh", "-c", line, "sh", str(folder), sys.executable, "-m", "fusewire", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **more})
    assert done.returncode != 0
    assert done.stderr == "Error: the current folder is gone; name the project with --project\n"
    assert not folder.exists()


def test_a_project_that_is_gone_is_not_made_by_its_store(tmp_path: Path) -> None:
    """The library says it, too."""
    from fusewire import Breaker, StoreError

    breaker = Breaker.open(project=tmp_path / "gone")
    with pytest.raises(StoreError, match="No such file or directory"):
        breaker.record("loop/no_progress", "x")
    assert not (tmp_path / "gone").exists()
