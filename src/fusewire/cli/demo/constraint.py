"""The second demonstration: a scripted agent breaks a rule again and again, and its hook asks Fusewire each time."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from pathlib import Path

import fusewire
from fusewire.agents.caller import AGENT_VARIABLES
from fusewire.cli.streams import tell, tell_text
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.util.errors import FusewireError

CONSTRAINT = """\
---
id: git-safety-force-push
severity: CRITICAL
circuit_breaker:
  dedup_seconds: 0   # the demonstration does not wait 5 minutes between two violations
match:
  - tool: Bash
    command: [git push --force*, git push -f]
---
# Never force-push to a shared branch
"""

#: What the scripted agent wants to run, one tool call after the other.
CALLS = (
    "pytest -q",
    "git push --force origin main",
    'git commit -m "never git push --force again"',
    "cd . && git push -f",
    "sudo git push --force",
    "bash -c 'git push --force'",
    "git push origin main --force",
    "git push --force-with-lease",
    "git status",
    "fusewire reset git-safety-force-push --reason 'I need to go on'",
)


def title(text: str) -> None:
    tell("", f"== {text}", bold=True)


def play(folder: Path, *, verbose: bool) -> None:
    (folder / ".git").mkdir()
    constraints = folder / "docs" / "constraints"
    constraints.mkdir(parents=True)
    (constraints / "git-safety.md").write_text(CONSTRAINT)
    title("A project with one rule: docs/constraints/git-safety.md")
    tell_text(CONSTRAINT)
    title("An agent works. Before each tool call its hook asks Fusewire (real processes, nothing is executed)")
    for command in CALLS:
        _hook_call(folder, command)
    title("A person looks: fusewire status git-safety-force-push")
    fusewire_command(folder, "status", "git-safety-force-push")
    title('A person has found the cause: fusewire reset git-safety-force-push --reason "branch protection is on"')
    _reset(folder, "git-safety-force-push", "branch protection is on")
    fusewire_command(folder, "history", "git-safety-force-push")
    title("The next call passes again")
    _hook_call(folder, "git push origin main")


def _hook_call(folder: Path, command: str) -> None:
    payload = {
        "session_id": "demo",
        "cwd": str(folder),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "toolu_demo",
    }
    hook = Path(fusewire.__file__).with_name("hook.py")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(hook), "claude"],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env={**_person_environment(), "CLAUDE_PROJECT_DIR": str(folder)},
        check=False,
    )
    if answer.returncode not in (0, 2):
        raise FusewireError(f"the hook ended with {answer.returncode}: {answer.stderr.decode().strip()}")
    denied = answer.returncode == 2
    tell(f"agent> {command}")
    if denied:
        tell("       DENIED", fg="red", bold=True)
    else:
        tell("       passes", fg="green")
    said = answer.stderr.decode() if denied else _context(answer.stdout)
    tell(*(f"       {line}" for line in said.splitlines()))


def _context(stdout: bytes) -> str:
    if not stdout:
        return ""
    context: str = json.loads(stdout)["hookSpecificOutput"]["additionalContext"]
    return context


def _reset(folder: Path, circuit: str, reason: str) -> None:
    """What the command does for a person. An agent that runs this demonstration could not call it, even here."""
    with Breaker.open(project=folder) as breaker:
        signal = Signal("reset", circuit, "reset", text=reason)
        (decision,), written = breaker.engine.apply([signal], getpass.getuser())
        breaker.mirror(written)
    tell(f"{circuit}: OPEN -> {decision.state}")


def fusewire_command(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-P", "-m", "fusewire", *arguments, "--project", str(folder)]
    sys.stdout.flush()
    if subprocess.run(command, env=_person_environment(), check=False).returncode:
        raise FusewireError(f"fusewire {arguments[0]} failed")


def _person_environment() -> dict[str, str]:
    """The demonstration plays both parts, even when an agent started it; it touches only its own folder."""
    return {name: value for name, value in os.environ.items() if name not in AGENT_VARIABLES}
