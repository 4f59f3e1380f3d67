"""One session of an agent as a process: `python agent_session.py HOOK ROOT SESSION CALLS`.

It says `ready`, waits for a line, and asks the hook before and after so many calls; then it asks on, one plain call
after the other, until one is refused. Its last line is JSON: refused calls among the first, and when (seconds since
1970) the last allowed call had begun and the first refused one was answered.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

#: Calls after which nobody can have refused one.
_MOST = 400


class Session:
    """Asks the hook as Claude Code does."""

    def __init__(self, hook: str, root: str, session: str) -> None:
        self.hook, self.root, self.session, self.calls = hook, root, session, 0

    def ask(self, event: str, command: str = "", **more: object) -> int:
        call = {
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "A step"},
            "tool_use_id": f"toolu_{self.session}_{self.calls}",
        }
        payload = {
            "session_id": self.session,
            "transcript_path": f"{self.root}/{self.session}.jsonl",
            "cwd": self.root,
            "permission_mode": "default",
            "hook_event_name": event,
            **(call if command else {}),
            **more,
        }
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": self.root}
        words = [sys.executable, "-I", "-S", self.hook, "claude"]
        done = subprocess.run(
            words, input=json.dumps(payload).encode(), env=environment, capture_output=True, check=False
        )
        return done.returncode

    def call(self, command: str) -> bool:
        """One whole call; whether it was allowed."""
        self.calls += 1
        if self.ask("PreToolUse", command):
            return False
        response = {"stdout": f"done {self.calls}", "stderr": "", "interrupted": False, "isImage": False}
        self.ask("PostToolUse", command, tool_response=response)
        return True


def main(hook: str, root: str, name: str, calls: str) -> None:
    session = Session(hook, root, name)
    print("ready", flush=True)
    sys.stdin.readline()
    session.ask("UserPromptSubmit", prompt=f"work on {name}")
    refused = sum(not session.call(f"git push --force origin branch-{number}") for number in range(int(calls)))
    print("counted", flush=True)
    sys.stdin.readline()
    allowed_at = 0.0
    for number in range(_MOST):
        began = time.time()
        if not session.call(f"ls part-{number}"):
            break
        allowed_at = began
    print(json.dumps({"refused": refused, "allowed_at": allowed_at, "refused_at": time.time()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
