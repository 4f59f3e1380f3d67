"""One session of an agent as a process: `python agent_session.py HOOK ROOT SESSION CALLS READ WRITE`.

Hundreds of them are alive at once, but agents think most of the time: a hook is asked while a byte is held that was
read from READ and is written back to WRITE, the ends of a pipe with as many bytes as hooks may run at once.

It says `ready`, waits for a line, and asks the hook before and after so many calls. It says `counted`, waits for a
line, and asks on, one plain call after the other, until one is refused. Its last line is JSON: how many of the first
were refused, and when (seconds since 1970) the last allowed call had begun and the first refused one was answered.
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

    def __init__(self, hook: str, root: str, session: str, turns: tuple[int, int]) -> None:
        self.hook, self.root, self.session, self.turns, self.calls = hook, root, session, turns, 0

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
        os.read(self.turns[0], 1)
        self.began = time.time()
        done = subprocess.run(
            words, input=json.dumps(payload).encode(), env=environment, capture_output=True, check=False
        )
        os.write(self.turns[1], b".")
        return done.returncode

    def call(self, command: str) -> bool:
        """One whole call; whether it was allowed."""
        self.calls += 1
        if self.ask("PreToolUse", command):
            return False
        response = {"stdout": f"done {self.calls}", "stderr": "", "interrupted": False, "isImage": False}
        self.ask("PostToolUse", command, tool_response=response)
        return True


def main(hook: str, root: str, name: str, calls: str, reads: str, writes: str) -> None:
    session = Session(hook, root, name, (int(reads), int(writes)))
    print("ready", flush=True)
    sys.stdin.readline()
    session.ask("UserPromptSubmit", prompt=f"work on {name}")
    refused = sum(not session.call(f"git push --force origin branch-{number}") for number in range(int(calls)))
    print("counted", flush=True)
    sys.stdin.readline()
    allowed_at = 0.0
    for number in range(_MOST):
        code = session.ask("PreToolUse", f"ls part-{number}")
        if code:
            break
        allowed_at = session.began
    print(json.dumps({"refused": refused, "allowed_at": allowed_at, "refused_at": time.time()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
