"""The hooks of the four clients as processes: the same call in each client's words, and what each is answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import SOURCE

CLIENTS = ("claude", "codex", "gemini", "copilot")

_SHELL = {"gemini": "run_shell_command"}


@dataclass
class HookAnswer:
    """What a hook process said before a call."""

    code: int
    output: str
    error: str

    @property
    def allowed(self) -> bool:
        return self.code == 0 and not any(
            word in self.output for word in ('"deny"', '"block"', '"ask"', "modifiedArgs")
        )

    @property
    def text(self) -> str:
        """What the agent and the person read."""
        said = {} if self.error or not self.output else json.loads(self.output)
        return self.error or str(said.get("additionalContext") or self.output)


@dataclass
class Client:
    """One session of a client in a project. It names no process of its own, so that none is ended."""

    name: str
    root: Path
    session: str = "479528ae-91f4-4945-992c-9db9f0bba192"

    def start(self, tool: str, given: dict[str, Any], call: str = "call_1", **fields: Any) -> subprocess.Popen[bytes]:
        payload = {
            "session_id": self.session,
            "cwd": str(self.root),
            "hook_event_name": "BeforeTool" if self.name == "gemini" else "PreToolUse",
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": call,
            **fields,
        }
        hook = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), self.name],
            cwd=self.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "CLAUDE_PROJECT_DIR": str(self.root)} if self.name == "claude" else None,
        )
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(payload).encode())
        hook.stdin.close()
        hook.stdin = None
        return hook

    def before(self, tool: str, given: dict[str, Any], call: str = "call_1", **fields: Any) -> HookAnswer:
        return answered(self.start(tool, given, call, **fields))

    def shell(self, command: str, call: str = "call_1") -> HookAnswer:
        return self.before(*self.in_shell(command), call)

    def in_shell(self, command: str) -> tuple[str, dict[str, Any]]:
        return _SHELL.get(self.name, "Bash"), {"command": command}

    def writes(self, path: Path | str, content: str = "{}") -> HookAnswer:
        """The client's own tool that writes a file."""
        if self.name == "codex":
            patch = f"*** Begin Patch\n*** Add File: {path}\n+{content}\n*** End Patch\n"
            return self.before("apply_patch", {"command": patch})
        if self.name == "copilot":
            return self.before("Write", {"path": str(path), "file_text": content})
        tool = "write_file" if self.name == "gemini" else "Write"
        return self.before(tool, {"file_path": str(path), "content": content})


def answered(hook: subprocess.Popen[bytes]) -> HookAnswer:
    output, error = hook.communicate(timeout=60)
    return HookAnswer(hook.returncode, output.decode(), error.decode())
