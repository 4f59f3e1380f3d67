"""A project in which everything has happened once, by the real commands: for whoever looks at pages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.helpers.project import Project
from tests.helpers.session_hook import Session

#: A constraint that is open, and one that is not.
RULE, QUIET_RULE = "git-safety-force-push", "no-secrets-in-logs"

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"

_AGENT = "echo working; echo 'Error: cannot connect to the database on port 5432' >&2; exit 1"
_MIND = (
    *("--test-expectation", "login answers 409 when the email is taken"),
    *("--best-hypothesis", "the contract and the test name different keys"),
    *("--specific-question", "Which key is canonical?"),
)


def live_in(project: Project) -> None:
    """Constraints, a loop, a session with spend, attempts and a phase: each with something tripped."""
    (project.root / "app.py").write_text("def answer():\n    return 1\n")
    identity = ("-c", "user.name=dev", "-c", "user.email=dev@localhost")
    subprocess.run(["git", "add", "-A"], cwd=project.root, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "first"], cwd=project.root, check=True)
    trip(project)
    project.constraint(QUIET_RULE, body="# Nothing secret is logged\n")
    project.run("run", "--max-iterations", "5", "--no-wait", "--", "sh", "-c", _AGENT)
    work_in_a_session(project)
    grind(project)
    for _ in range(3):
        project.run("phase", "begin", "GREEN")
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=2", "--metric", "tests_total=6")


def trip(project: Project) -> None:
    """Five violations in five sessions open the constraint's circuit."""
    project.constraint(RULE, "circuit_breaker: {dedup_seconds: 0}\n", "# Never force-push\n")
    for number in range(5):
        violate(project, number)


def violate(project: Project, number: int, rule: str = RULE) -> None:
    done = project.run("record", rule, "--action", f"git push --force origin main~{number}", "--session", f"s{number}")
    assert done.returncode == 0, done.stderr


def work_in_a_session(project: Project) -> None:
    """A message, calls that work, one that fails until it is refused, dollars beyond the limit, two helpers."""
    transcript = project.root.parent / "transcript.jsonl"
    transcript.write_text("")
    with (project.root / "fusewire.toml").open("a") as file:
        file.write("[tool.resource_limits]\nagent_cost_block_usd = 3\n")
    project.starts_hooks = False
    session = Session(project, id=SESSION, transcript=str(transcript))
    session.says("make the tests pass")
    for number in range(6):
        _spend(transcript, number)
        session.bash(f"sed -n '{number * 40},{number * 40 + 40}p' app.py", f"line {number}")
    session.spawn("read the documentation")
    for number in range(5):
        session.fails("pytest -q", f"Exit code 1\nFAILED tests/test_login.py::test_conflict - assert 409 == {number}")


def _spend(transcript: Path, number: int) -> None:
    usage = {"input_tokens": 0, "output_tokens": 20_000}
    told = {"id": f"msg_{number}", "role": "assistant", "model": "claude-opus-5-5", "content": [], "usage": usage}
    with transcript.open("a") as file:
        file.write(json.dumps({"type": "assistant", "message": told, "sessionId": SESSION}) + "\n")


def grind(project: Project) -> None:
    """A slice with one test that stops at its third failure, and one that passes."""
    project.run("attempt", "start", "S-1", "test_taken_email")
    for strategy in ("rename the key", "catch the exception", "answer by hand"):
        record = ("attempt", "record", "S-1", "test_taken_email", "--fail", "--strategy", strategy, "--file", "app.py")
        project.run(*record)
    project.run("attempt", "report", "S-1", *_MIND)
    project.run("attempt", "start", "S-1", "test_registers")
    project.run("attempt", "record", "S-1", "test_registers", "--pass")
