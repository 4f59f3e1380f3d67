"""Too few descriptors, too little memory: a call that cannot be judged is denied, in every agent's own protocol."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from fusewire.breakers.session.state import SessionHalt, amend, session_name
from fusewire.stores.sqlite import SqliteStore
from tests.helpers import SOURCE
from tests.helpers.project import Project

SHELL = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "copilot": "Bash"}
BEFORE = {"gemini": "BeforeTool"}
STOP = {"gemini": "AfterAgent"}

DESCRIPTORS = (4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 64)
MEGABYTES = (20, 24, 28, 32, 36, 40, 48, 64, 96, 128, 512)


def payload(project: Project, agent: str, command: str, **more: Any) -> dict[str, Any]:
    return {
        "session_id": "halted",
        "transcript_path": "",
        "cwd": str(project.root),
        "hook_event_name": BEFORE.get(agent, "PreToolUse"),
        "timestamp": "2026-01-01T00:00:00Z",
        "tool_name": SHELL[agent],
        "tool_input": {"command": command},
        "tool_use_id": "call-1",
        "turn_id": "turn",
        **more,
    }


def ask(project: Project, agent: str, given: Any, limit: Callable[[], None]) -> subprocess.CompletedProcess[bytes]:
    variable = {"claude": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR", "copilot": "COPILOT_PROJECT_DIR"}
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), agent],
        input=json.dumps(given).encode(),
        cwd=project.root,
        env={**os.environ, variable.get(agent, "NONE"): str(project.root)},
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=limit,
    )


def descriptors(number: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def memory(megabytes: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


LIMITS = [pytest.param(descriptors(number), id=f"{number}-descriptors") for number in DESCRIPTORS]
LIMITS += [pytest.param(memory(size), id=f"{size}-MB") for size in MEGABYTES]


@pytest.fixture
def halted(project: Project) -> Project:
    """A session that is halted, and a constraint whose circuit is open."""
    rule = "circuit_breaker: {violation_threshold: 1, dedup_seconds: 0}\n"
    project.constraint("no-force", f"{rule}match:\n  - command: git push --force\n")
    project.hook(project.bash("git push --force", session_id="first"))
    with closing(SqliteStore(str(project.root / ".fusewire/state.db"))) as store:
        halted = SessionHalt("tool.repetition", "HALTED tool.repetition: enough", at=time.time())
        amend(store, session_name("halted"), time.time(), halted=halted, since=time.time())
    return project


def could_not_start(done: subprocess.CompletedProcess[bytes]) -> bool:
    """Python itself did not come as far as our first line: what its agent makes of that is in docs/failures.md."""
    said = done.stderr
    if done.returncode < 0 or b"Fatal Python error" in said or b"error while loading shared libraries" in said:
        return True
    return b"can't open file" in said or (b"fusewire" not in said and b"MemoryError" in said)


def refused(agent: str, done: subprocess.CompletedProcess[bytes]) -> bool:
    """In Copilot whatever does not end with 0, or what its answer says; in the others the code 2."""
    if agent == "copilot" and done.returncode == 0:
        return b'"deny"' in done.stdout or b"the agent is halted" in done.stdout  # in place of the command
    return done.returncode == 2


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("agent", sorted(SHELL))
def test_no_halted_agent_goes_on_because_something_runs_short(
    halted: Project, agent: str, limit: Callable[[], None]
) -> None:
    """The right answer or a denial, in a line, whatever the limit; and the same for what a constraint forbids."""
    for given in (
        payload(halted, agent, "ls docs"),
        payload(halted, agent, "git push --force origin main", session_id="another"),
    ):
        done = ask(halted, agent, given, limit)
        if could_not_start(done):
            return
        assert refused(agent, done), done
        assert b"Traceback" not in done.stderr
        assert b"not installed properly" not in done.stderr


@pytest.mark.parametrize("agent", sorted(SHELL))
@pytest.mark.parametrize("limit", [descriptors(8), memory(40)], ids=["descriptors", "memory"])
def test_an_agent_that_wants_to_stop_is_not_kept_going(halted: Project, agent: str, limit: Callable[[], None]) -> None:
    """A denied stop would mean: go on."""
    given = payload(halted, agent, "", hook_event_name=STOP.get(agent, "Stop"), session_id="another")
    done = ask(halted, agent, given, limit)
    if not could_not_start(done):
        assert done.returncode != 2, done
        assert b"Traceback" not in done.stderr
        assert b"block" not in done.stdout


@pytest.mark.parametrize("agent", sorted(SHELL))
def test_enough_is_enough(halted: Project, agent: str) -> None:
    """With what every shell has, a harmless call of another session passes as ever."""
    given = payload(halted, agent, "ls docs", session_id="another")
    for limit in (descriptors(64), memory(512)):
        done = ask(halted, agent, given, limit)
        assert (done.returncode, done.stderr) == (0, b""), done


def test_an_installation_that_is_really_broken_lets_the_call_pass(halted: Project, tmp_path: Any) -> None:
    """With the loud line, as ever: nobody is locked out of their agent."""
    package = tmp_path / "fusewire"
    package.mkdir()
    (package / "hook.py").write_bytes((SOURCE / "hook.py").read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(package / "hook.py"), "claude"],
        input=json.dumps(payload(halted, "claude", "ls")).encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert b"not installed properly, nothing is guarded" in done.stderr
    assert b"Traceback" not in done.stderr
