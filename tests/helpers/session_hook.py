"""A session of Claude Code as its hooks see it: payloads in the recorded shapes, sent to real hook processes."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.project import Project

Answer = Any


@dataclass
class Session:
    """One session in a project; every call gets an id of its own."""

    project: Project
    id: str = "479528ae-91f4-4945-992c-9db9f0bba192"
    transcript: str = "/home/dev/.claude/projects/-home-dev-project/479528ae.jsonl"
    env: dict[str, str] = field(default_factory=dict)
    calls: int = 0

    def send(self, hook: str, **fields: Any) -> Said:
        payload = {
            "session_id": self.id,
            "transcript_path": self.transcript,
            "cwd": str(self.project.root),
            "prompt_id": "d1e3d91c-2503-4497-a02f-a658144f077b",
            "permission_mode": "bypassPermissions",
            "hook_event_name": hook,
            **{name: value for name, value in fields.items() if value is not None},
        }
        return Said(self.project.hook(payload, env=self.env))

    def _call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        name = f"toolu_rig_main_{self.calls}_0_{os.getpid()}"
        return {"tool_name": tool, "tool_input": given, "tool_use_id": name}

    def before(self, tool: str, given: dict[str, Any], *, agent: str | None = None) -> tuple[Said, dict[str, Any]]:
        call = self._call(tool, given)
        return self.send("PreToolUse", **call, agent_id=agent), call

    def tool(
        self,
        tool: str,
        given: dict[str, Any],
        *,
        error: str | None = None,
        response: Any = None,
        agent: str | None = None,
        batch: bool = True,
    ) -> tuple[Said, Said]:
        """One call in a reply of its own: what was said before it, and after it (or of the batch, if not refused)."""
        asked, call = self.before(tool, given, agent=agent)
        if not asked.allowed:
            text = f"PreToolUse:{tool} hook error: {asked.reason}"
            after = asked
        elif error is not None:
            text = error
            after = self.send(
                "PostToolUseFailure", **call, error=error, is_interrupt=False, duration_ms=12, agent_id=agent
            )
        else:
            text = response if isinstance(response, str) else json.dumps(response)
            after = self.send("PostToolUse", **call, tool_response=response, duration_ms=39, agent_id=agent)
        if batch:
            self.send("PostToolBatch", tool_calls=[{**call, "tool_response": text}], agent_id=agent)
        return asked, after

    def bash(self, command: str, output: str = "", **more: Any) -> tuple[Said, Said]:
        response = {
            "stdout": output,
            "stderr": "",
            "interrupted": False,
            "isImage": False,
            "noOutputExpected": False,
        }
        return self.tool("Bash", {"command": command, "description": "Run"}, response=response, **more)

    def fails(self, command: str, error: str = "Exit code 3\nboom", **more: Any) -> tuple[Said, Said]:
        return self.bash(command, error=error, **more)

    def says(self, prompt: str) -> Said:
        """A message of the person."""
        return self.send("UserPromptSubmit", prompt=prompt)

    def spawn(self, what: str = "look") -> tuple[Said, dict[str, Any]]:
        given = {"description": what, "prompt": "SUBTASK please", "subagent_type": "general-purpose"}
        return self.before("Agent", given)


class Said:
    """What a hook process answered."""

    def __init__(self, answer: Any) -> None:
        self.code = answer.returncode
        self.stderr = answer.stderr.decode()
        self.json: dict[str, Any] = json.loads(answer.stdout) if answer.stdout.strip() else {}

    @property
    def allowed(self) -> bool:
        return self.code == 0

    @property
    def halted(self) -> bool:
        return self.json.get("continue") is False

    @property
    def silent(self) -> bool:
        return (self.code, self.stderr, self.json) == (0, "", {})

    @property
    def reason(self) -> str:
        """Without the code under which it has been written down, which is another one each time."""
        return self.stderr.strip().partition("\nWhy: fusewire why ")[0]

    @property
    def why(self) -> str:
        """That code."""
        return self.stderr.strip().partition("\nWhy: fusewire why ")[2]

    @property
    def told(self) -> str:
        """What the agent is told beside a call that passes."""
        text: str = self.json.get("hookSpecificOutput", {}).get("additionalContext", "")
        return text

    def __repr__(self) -> str:
        return f"Said({self.code}, {self.json}, {self.stderr!r})"


def move_clock(project: Project, seconds: float) -> None:
    """As if the time had passed: every time in the stored circuits lies that much further back."""
    connection = sqlite3.connect(project.root / ".fusewire/state.db")
    for name, text in connection.execute("SELECT id, state FROM circuits WHERE kind = 'tool'").fetchall():
        state = json.loads(text)
        for key in ("since", "opened_at", "until", "probe_at", "lease_until", "last_trip", "last_counted"):
            if state.get(key) is not None:
                state[key] -= seconds
        for meter, memory in state.get("meters", {}).items():
            if meter in ("calls", "per_minute", "pause"):
                state["meters"][meter] = [at - seconds if at > 1e6 else at for at in memory]
        connection.execute("UPDATE circuits SET state = ? WHERE id = ?", (json.dumps(state), name))
    connection.commit()
    connection.close()
