"""A project in a folder of its own, the real program run in it, and two measures of what the guard does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents import agent_named
from fusewire.gate import process as gate
from fusewire.guard.disk import Disk
from fusewire.guard.effects import Effects
from fusewire.guard.shell.walk import Walk
from tests.helpers import SOURCE
from tests.helpers.program import fusewire


@dataclass
class Project:
    """A folder with a git repository, and the real `fusewire` program run in it."""

    root: Path
    #: Whether a hook is a process, as an agent starts it, or its code is asked in this one: most of what a hook costs
    #: is its interpreter. Here no deadline ends it, and an error of the breaker's own is one of the test.
    starts_hooks: bool = True

    def constraint(self, name: str, front: str = "", body: str = "# A rule\n") -> Path:
        """Write a constraint; `front` is the rest of its front matter."""
        path = self.root / "docs" / "constraints" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nid: {name}\n{front}---\n{body}")
        return path

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        done = fusewire(*arguments, cwd=self.root, env={**os.environ, **(env or {})})
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints; it must print nothing else on standard output."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def hook(
        self, payload: object, *, env: dict[str, str] | None = None, raw: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """One hook call; the process of it is as an agent starts it: by absolute path, isolated, without site."""
        given = json.dumps(payload).encode() if raw is None else raw
        variables = {"CLAUDE_PROJECT_DIR": str(self.root), **(env or {})}
        command = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"]
        if self.starts_hooks:
            environment = {**os.environ, **variables}
            return subprocess.run(
                command, input=given, cwd=self.root, env=environment, capture_output=True, timeout=60, check=False
            )
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            *texts, code = gate.answer(agent_named("claude"), given, os.environ)
        printed = [f"{text}\n".encode() if text else b"" for text in texts]
        return subprocess.CompletedProcess(command, code, *printed)

    def bash(self, command: str, **fields: Any) -> dict[str, Any]:
        """Claude Code's PreToolUse payload of a Bash call."""
        return {
            "session_id": "479528ae-91f4-4945-992c-9db9f0bba192",
            "transcript_path": "/home/dev/.claude/projects/-home-dev-project/479528ae.jsonl",
            "cwd": str(self.root),
            "permission_mode": "bypassPermissions",
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "List"},
            "tool_use_id": "toolu_rig_main_0_0_250622",
            **fields,
        }


def lines_run(act: Any, file: str) -> int:
    """How many lines of a file (or folder) were executed: a measure of time that no clock and no process disturbs."""
    ran = 0

    def inside(frame: Any, event: str, _: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return inside

    def called(frame: Any, event: str, _: Any) -> Any:
        return inside if file in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        act()
    finally:
        sys.settrace(before)
    return ran


def effects_of(command: str, folder: Path) -> Effects:
    """What a command would do, as the guard reads it in a folder."""
    disk = Disk()
    effects = Effects(disk)
    walk = Walk(effects, dict(os.environ), disk)
    walk.line(command, str(folder))
    return effects
