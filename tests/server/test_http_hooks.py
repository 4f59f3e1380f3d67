"""Events over HTTP: answered as the hook process does, counted with its calls, and lifting nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.server.access import kept_token
from fusewire.server.hooks import DEADLINE
from tests.helpers.project import Project
from tests.helpers.serving import Answer, Served
from tests.helpers.session_hook import Said, Session

#: What Claude Code sends over HTTP once it was installed with --http; everything else starts a process.
REPORTS = ("PostToolBatch", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "SessionEnd")


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    with Served(project.root) as server:
        yield server


def post(served: Served, payload: Any, *, agent: str = "claude", bearer: str | None = None, **more: Any) -> Answer:
    """One event, as an agent with the token of hooks sends it."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    token = kept_token("hooks") if bearer is None else bearer
    return served.request(
        "POST", f"/hooks/{agent}", body, {"Content-Type": "application/json"}, bearer=token or None, **more
    )


def said(answer: Answer) -> Said:
    assert answer.status == 200, answer.text
    code = int(answer.headers["fusewire-exit-code"])
    return Said(SimpleNamespace(returncode=code, stdout=answer.body, stderr=b""))


@dataclass
class Reporting(Session):
    """A session whose gate is a process, and whose reports go to a server."""

    served: Served | None = None

    def send(self, hook: str, **fields: Any) -> Said:
        if self.served is None or hook not in REPORTS:
            return super().send(hook, **fields)
        return said(post(self.served, self.payload(hook, **fields)))

    def payload(self, hook: str, **fields: Any) -> dict[str, Any]:
        return {
            "session_id": self.id,
            "transcript_path": self.transcript,
            "cwd": str(self.project.root),
            "hook_event_name": hook,
            **{name: value for name, value in fields.items() if value is not None},
        }


@pytest.fixture
def session(project: Project, served: Served) -> Reporting:
    return Reporting(project, served=served)


def batch(number: int, error: str = "Exit code 3\nboom") -> dict[str, Any]:
    """The result of one call, as the batch reports it."""
    call = {"tool_name": "Bash", "tool_input": {"command": f"./step-{number}.sh"}, "tool_use_id": f"toolu_{number}"}
    return {"tool_calls": [{**call, "tool_response": error}]}


# -- the same answers ---------------------------------------------------------------------------------------


def test_a_stuck_agent_is_told_refused_and_halted_as_with_processes(
    session: Reporting, project: Project, tmp_path: Path
) -> None:
    """The same calls in two projects: one reports to processes, one to the server."""
    other = Project(tmp_path / "other")
    subprocess.run(["git", "init", "-q", str(other.root)], check=True)
    stories = []
    for one in (session, Session(other)):
        story = []
        for _ in range(7):
            asked, after = one.fails("./deploy.sh")
            story.append((asked.code, asked.halted, after.told.partition("\n")[0], asked.reason.partition(":")[0]))
        stories.append(story)
    assert stories[0] == stories[1]
    assert stories[0][-1][1], "halted in the end"
    with Breaker.open(project=project.root) as breaker:
        kinds = [one.kind for one in breaker.store.doings(session.id)]
    assert kinds.count("failed") == 3
    assert "halted" in kinds


def payloads(project: Project) -> dict[str, bytes]:
    """Inputs whose answer does not depend on what went before."""
    (project.root / "specs").mkdir(exist_ok=True)
    (project.root / "specs/a.md").write_text("x\n")
    made = {
        "forbidden": project.bash("rm -rf specs"),
        "harmless": project.bash("ls"),
        "no command": project.bash("", tool_input={}),
        "an unknown event": project.bash("ls", hook_event_name="Notification"),
        "a session begins": project.bash("ls", hook_event_name="SessionStart", source="startup"),
        "a list": [],
        "a text": "PreToolUse",
    }
    raw = {
        "nothing": b"",
        "no JSON before a call": b'{"hook_event_name": "PreToolUse", ',
        "no JSON after one": b'{"hook_event_name": "PostToolBatch", ',
        "not UTF-8": b'{"hook_event_name": "PreToolUse", "cwd": "\xff"}',
    }
    return {name: json.dumps(value).encode() for name, value in made.items()} | raw


def test_every_answer_is_the_processes_own(served: Served, project: Project) -> None:
    """Its standard output is the body and its exit code a header; also for input that makes no sense."""
    for name, raw in payloads(project).items():
        process, answer = project.hook(None, raw=raw), post(served, raw)
        assert answer.status == 200, (name, answer.text)
        assert answer.headers["content-type"] == "application/json", name
        assert int(answer.headers["fusewire-exit-code"]) == process.returncode, name
        code = rb"why [2-9A-Z]{5}"  # each is written down by itself
        assert re.sub(code, b"", answer.body) == re.sub(code, b"", process.stdout.removesuffix(b"\n")), name


def test_other_agents_are_answered_in_their_own_words(served: Served, project: Project) -> None:
    payloads(project)
    given = {"session_id": "s", "cwd": str(project.root), "timestamp": "2026-11-16T12:00:00.000Z"}
    shell = {"tool_name": "Bash", "tool_input": {"command": "rm -rf specs"}, "hook_event_name": "PreToolUse"}
    for agent in ("codex", "copilot"):
        answer = post(served, {**given, **shell, "tool_use_id": "1", "turn_id": "2"}, agent=agent)
        assert answer.headers["fusewire-exit-code"] == "2", agent
        assert "BLOCKED guard.rm" in answer.text, agent
    gemini = {**given, **shell, "hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}
    assert post(served, gemini, agent="gemini").json()["decision"] == "deny"


# -- who may ------------------------------------------------------------------------------------------------


def test_a_token_is_needed_and_a_readers_is_none(served: Served, project: Project) -> None:
    payload = project.bash("ls")
    assert post(served, payload, bearer="").status == 401
    assert post(served, payload, bearer="x" * 43).status == 401
    assert post(served, payload, bearer=kept_token("reader")).status == 403
    assert post(served, payload, bearer=served.token).status == 200
    served.log_in()
    assert post(served, payload, bearer="").status == 401, "a browser's cookie reports nothing"


def test_unknown_agents_and_other_methods(served: Served, project: Project) -> None:
    answer = post(served, project.bash("ls"), agent="cursor")
    assert (answer.status, answer.text) == (
        404,
        "no agent named 'cursor'; allowed: claude, codex, gemini, copilot\n",
    )
    for method in ("GET", "PUT", "DELETE"):
        assert served.request(method, "/hooks/claude", bearer=kept_token("hooks")).status == 405


def test_projects_that_are_not_shown_are_left_alone(served: Served, tmp_path: Path) -> None:
    """In one line, and nothing is written there."""
    other = Project(tmp_path / "other")
    subprocess.run(["git", "init", "-q", str(other.root)], check=True)
    answer = post(served, other.bash("rm -rf /", hook_event_name="PostToolBatch", **batch(1)))
    assert answer.status == 403
    assert answer.text.count("\n") == 1
    assert str(other.root) in answer.text
    assert not (other.root / ".fusewire").exists()
    for wrong in (None, 7, "", "relative", "/\0", "/\ud800", "/nowhere/at/all"):
        assert post(served, other.bash("ls", cwd=wrong)).status == 403, ascii(wrong)


def test_an_agent_that_has_gone_elsewhere_is_still_known(session: Reporting, served: Served) -> None:
    """Its `cd` changes what it reports, not where it was started: the gate has heard of its session."""
    lost = session.payload("PostToolBatch", cwd="/", **batch(1))
    assert post(served, lost).status == 403
    session.before("Bash", {"command": "cd /"})
    assert post(served, lost).status == 200
    with Breaker.open(project=session.project.root) as breaker:
        assert [one.text for one in breaker.store.doings(session.id) if one.kind == "failed"] == ["./step-1.sh"]


# -- nothing is lifted, nobody is ended ---------------------------------------------------------------------


def test_a_prompt_lifts_nothing(session: Reporting, served: Served) -> None:
    """Anything that can read the token could send one; what a person types goes to a process."""
    for _ in range(7):
        session.fails("./deploy.sh")
    assert session.bash("ls")[0].halted
    post(served, session.payload("UserPromptSubmit", prompt="Go on. Grant another $5."))
    assert session.bash("ls")[0].halted
    session.says("use the other script")
    assert session.bash("ls")[0].silent


ASK = """
import sys
from fusewire.agents import agent_named
from fusewire.gate.process import answer
for number in range(12):
    asked = sys.argv[1].replace("NUMBER", str(number)).encode()
    print(answer(agent_named("codex"), asked, {}, sys.argv[2])[2], flush=True)
"""


def test_nobodys_process_is_ended(session: Reporting) -> None:
    """A server may run below an agent by chance: halts that are not heeded end a hook's own agent, and no other."""
    for _ in range(7):
        session.fails("./deploy.sh")
    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "call_NUMBER"}
    payload = json.dumps(session.payload("PreToolUse", **call))
    run = subprocess.run(
        ["/opt/codex", "-c", '"$@"; echo went on', "exec", sys.executable, "-c", ASK, payload, session.project.root],
        executable="/bin/sh",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout.split("\n") == ["2"] * 12 + ["went on", ""], run


# -- many at once, and too late -----------------------------------------------------------------------------


def test_32_at_once_lose_no_count(session: Reporting, served: Served, project: Project) -> None:
    """Reports of one session, and violations of a constraint in many: each is counted once."""
    front = "circuit_breaker: {violation_threshold: 100, dedup_seconds: 0}\nmatch:\n  - command: git tag\n"
    project.constraint("no-tagging", front)
    reports = [session.payload("PostToolBatch", **batch(number)) for number in range(32)]
    broken = [project.bash(f"git tag v{number}", session_id=f"s{number}") for number in range(32)]
    with ThreadPoolExecutor(32) as pool:
        assert {answer.status for answer in pool.map(lambda one: post(served, one), reports)} == {200}
        told = [said(answer) for answer in pool.map(lambda one: post(served, one), broken)]
    assert all("no-tagging" in one.told for one in told)
    with Breaker.open(project=project.root) as breaker:
        failed = {one.text for one in breaker.store.doings(session.id) if one.kind == "failed"}
        counted = [row for row in breaker.history("no-tagging") if row.effect == "counted"]
    assert failed == {f"./step-{number}.sh" for number in range(32)}
    assert len(counted) == 32


def test_many_events_leave_nothing_open(session: Reporting, served: Served, project: Project) -> None:
    """Descriptors and threads do not grow with what was reported, nor with violations."""
    front = "circuit_breaker: {violation_threshold: 1000, dedup_seconds: 0}\nmatch:\n  - command: git tag\n"
    project.constraint("no-tagging", front)

    def held(numbers: range) -> int:
        for number in numbers:
            session.send("PostToolBatch", **batch(number, "ok"))
            said(post(served, project.bash(f"git tag v{number}", session_id=f"s{number}")))
        return len(os.listdir(f"/proc/{served.pid}/fd")) + len(os.listdir(f"/proc/{served.pid}/task"))

    before = held(range(20))
    assert held(range(20, 60)) <= before + 5


def test_how_long_an_answer_took_is_counted(session: Reporting, served: Served) -> None:
    for number in range(3):
        session.send("PostToolBatch", **batch(number, "ok"))
    shown = served.get("/metrics", bearer=kept_token("reader")).text
    assert 'fusewire_http_hook_seconds_count{agent="claude"} 3.0' in shown


#: The server, but that its rules cannot be loaded while a file of this name is in the project.
HANGS = """
import os, time
from fusewire.gate import context
from fusewire.__main__ import main

load_rules = context.load_rules

def slow(root, **more):
    while os.path.exists(os.path.join(root, "hang")):
        time.sleep(0.02)
    return load_rules(root, **more)

context.load_rules = slow
main()
"""


@pytest.fixture
def hanging(project: Project) -> Iterator[Served]:
    with Served(project.root, program=("-c", HANGS)) as server:
        yield server


def test_what_takes_too_long_is_counted_all_the_same(hanging: Served, project: Project) -> None:
    """Also what had to wait for a thread, and was answered before it had one; what there is no room for says so."""
    session = Reporting(project, served=hanging)
    session.bash("ls")
    hang = project.root / "hang"
    hang.touch()
    events = [session.payload("PostToolBatch", **batch(number, f"Exit code 3\n{'x' * 10_000}")) for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        for answer in pool.map(lambda one: post(hanging, one), events):
            assert "no answer within 4 seconds" in said(answer).json["systemMessage"]
    large = session.payload("PostToolBatch", **batch(20, "x" * ((64 << 20) - 100_000)))
    told = said(post(hanging, large)).json["systemMessage"]
    assert told.endswith("too many reports wait, and this one is not counted")
    hang.unlink()
    until = time.monotonic() + 45
    with Breaker.open(project=project.root) as breaker:
        while len([one for one in breaker.store.doings(session.id) if one.kind == "failed"]) < 20:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_what_takes_too_long_is_no_denial_of_a_report(hanging: Served, project: Project) -> None:
    """A report passes and people are told, a call is denied, also where more hang than there are threads; and the
    server still ends at once."""
    session = Reporting(project, served=hanging)
    session.bash("ls")
    (project.root / "hang").touch()
    began = time.monotonic()
    events = [session.payload("PostToolBatch", **batch(number)) for number in range(10)]
    events += [session.payload("Stop"), project.bash("ls")]
    with ThreadPoolExecutor(12) as pool:
        *reported, stopped, asked = (said(answer) for answer in pool.map(lambda one: post(hanging, one), events))
    assert time.monotonic() - began < 5 * DEADLINE
    for one, hook in (*((one, "PostToolBatch") for one in reported), (stopped, "Stop")):
        assert one.json == {
            "systemMessage": f"fusewire: the breaker failed at {hook}: TimeoutError: no answer within 4 seconds"
        }
    assert asked.code == 2
    assert asked.json["hookSpecificOutput"]["permissionDecision"] == "deny"
    began = time.monotonic()
    assert hanging.stop()[0] in (0, 130)
    assert time.monotonic() - began < 10


def test_an_oversized_event_is_refused_before_it_is_read(served: Served) -> None:
    declared = {"Content-Length": str((64 << 20) + 1), "Content-Type": "application/json"}
    answer = served.request("POST", "/hooks/claude", b"", declared, bearer=kept_token("hooks"))
    assert answer.status == 413
