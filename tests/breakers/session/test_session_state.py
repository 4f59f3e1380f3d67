"""The breakers of a session when things go wrong: locks, damage, full disks, clocks, dead processes, long sessions."""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.claude.hooks import AGENT
from fusewire.breakers.session.tool_calls import ToolCallBreakers
from fusewire.core.decision import Decision
from fusewire.engine.breaker import default_rules
from fusewire.stores.sqlite import SqliteStore
from tests.breakers.session.test_session_seed import move_clock
from tests.helpers import SOURCE
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project, lines_run
from tests.helpers.session_hook import Said, Session


@pytest.fixture
def session(project: Project) -> Session:
    return Session(project)


@pytest.fixture
def tripped(session: Session) -> Session:
    """A session whose `./deploy.sh` is refused."""
    for _ in range(3):
        session.fails("./deploy.sh", batch=False)
    assert not session.before("Bash", {"command": "./deploy.sh"})[0].allowed
    return session


def state(project: Project) -> Path:
    return project.root / ".fusewire/state.db"


def hook(session: Session, wrapper: list[str], limit: Callable[[], None] | None = None) -> Said:
    """One question in a process that has less than others: fewer rights, less room."""
    payload = session.project.bash("./deploy.sh", session_id=session.id, tool_use_id="toolu_limited")
    return Said(
        subprocess.run(
            [*wrapper, sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"],
            input=json.dumps(payload).encode(),
            cwd=session.project.root,
            env={**os.environ, "CLAUDE_PROJECT_DIR": str(session.project.root)},
            capture_output=True,
            timeout=60,
            check=False,
            preexec_fn=limit,
        )
    )


def passes_and_people_are_told(said: Said, why: str) -> None:
    assert said.code == 0, said
    assert said.stderr == ""
    assert "out of order" in said.json["systemMessage"]
    assert why in said.json["systemMessage"]
    assert "hookSpecificOutput" not in said.json, "the agent has nothing to decide"


# -- the store ------------------------------------------------------------------------------------------


def test_a_locked_database_lets_the_call_pass_and_says_so(tripped: Session) -> None:
    """Within the time that a hook has; what is refused stays so, and when the lock is gone, everything is as it was."""
    with closing(sqlite3.connect(state(tripped.project), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        passes_and_people_are_told(tripped.before("Bash", {"command": "ls"})[0], "locked by another process")
        assert time.monotonic() - began < 8
        assert not tripped.before("Bash", {"command": "./deploy.sh"})[0].allowed
        other.execute("ROLLBACK")
    (circuit,) = tripped.project.json("status", "--all")["circuits"]
    assert circuit["state"] != "CLOSED"


def break_header(project: Project) -> None:
    data = bytearray(state(project).read_bytes())
    data[:100] = b"no database, only text " * 4 + b"........"
    remove(project)
    state(project).write_bytes(bytes(data))


def remove(project: Project) -> None:
    for path in state(project).parent.glob("state.db*"):
        path.unlink()


@pytest.mark.parametrize("damage", [break_header, remove])
def test_after_damage_an_open_circuit_is_open_and_people_are_told(
    tripped: Session, damage: Callable[[Project], None]
) -> None:
    project = tripped.project
    damage(project)
    assert tripped.before("Bash", {"command": "ls docs"})[0].silent
    (circuit,) = project.json("status", "--all")["circuits"]
    assert (circuit["state"], circuit["id"].split("/")[1]) == ("OPEN", "tool_failure")
    assert "rebuilt from the audit trail" in project.run("status").stderr


@pytest.mark.parametrize("data", ["{", "[]", "null", "7", '"text"', b"\xff\x00"])
@pytest.mark.parametrize("lane", ["", "/"])
def test_a_damaged_memory_is_told_and_starts_anew(session: Session, data: str | bytes, lane: str) -> None:
    """Not a crash, not a lock-out; and it counts from there."""
    session.fails("./deploy.sh", batch=False)
    with closing(sqlite3.connect(state(session.project))) as connection, connection:
        name = f"session/{session.id}{lane}"
        assert connection.execute("UPDATE memories SET data = ? WHERE name = ?", (data, name)).rowcount == 1
    asked, after = session.fails("./deploy.sh", batch=False)
    assert (asked.allowed, asked.told) == (True, "")
    assert (after.allowed, after.told) == (True, "")
    store = SqliteStore(str(state(session.project)))
    assert any(f"session/{session.id}{lane} could not be read" in notice for notice in store.notices())
    assert store.recall(f"session/{session.id}{lane}")
    store.close()


# -- the disk -------------------------------------------------------------------------------------------


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_full_disk_lifts_no_circuit_and_says_so(tripped: Session) -> None:
    """Nothing is lost, and when there is room again, the circuit is open as it was."""
    said = hook(tripped, [], no_room)
    assert not said.allowed
    assert "out of order" in said.reason
    assert not tripped.before("Bash", {"command": "./deploy.sh"})[0].allowed
    assert tripped.project.run("doctor").returncode == 0


def test_a_full_disk_from_the_start(session: Session) -> None:
    """The very first call of a project: no state yet, and none can be made."""
    passes_and_people_are_told(hook(session, [], no_room), "state")
    assert session.before("Bash", {"command": "./deploy.sh"})[0].silent


@contextmanager
def read_only(*folders: Path) -> Iterator[list[str]]:
    """Folders that may not be written, and the words before a command for whom that holds, root too."""
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield UNPRIVILEGED
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_read_only_project_lets_the_call_pass_and_says_so(session: Session) -> None:
    """With and without a state that can be read."""
    root = session.project.root
    with read_only(root) as wrapper:
        passes_and_people_are_told(hook(session, wrapper), "state")
    session.fails("./deploy.sh", batch=False)
    with read_only(root, root / ".fusewire") as wrapper:
        said = hook(session, wrapper)
        assert said.code == 0, said
        assert said.stderr == ""
    assert session.before("Bash", {"command": "ls"})[0].silent


@pytest.mark.parametrize("place", ["folder", "link"])
def test_a_log_that_cannot_be_written_stops_nobody(project: Project, session: Session, place: str) -> None:
    """And nothing is written through a link that somebody has put there."""
    log = project.root / ".claude/memory/circuit_breaker_incidents.jsonl"
    elsewhere = project.root / "elsewhere"
    log.parent.mkdir(parents=True)
    if place == "folder":
        log.mkdir()
    else:
        elsewhere.touch()
        log.symlink_to(elsewhere)
    for _ in range(3):
        _, after = session.fails("./deploy.sh", batch=False)
    assert "Circuit breaker tripped" in after.told
    assert not session.before("Bash", {"command": "./deploy.sh"})[0].allowed
    assert not elsewhere.exists() or elsewhere.read_text() == ""


# -- the clock ------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_never_shortens_a_cooldown(tripped: Session) -> None:
    """An hour back: still refused, with the time that is left now. A day forward: one call is allowed."""
    project = tripped.project
    move_clock(project, -3600)
    said, _ = tripped.before("Bash", {"command": "./deploy.sh"})
    assert not said.allowed
    assert 3600 <= int(said.reason.partition("Cooldown: ")[2].partition("s")[0]) <= 3610
    move_clock(project, 3600 + 86400)
    assert tripped.before("Bash", {"command": "./deploy.sh"})[0].allowed
    assert not tripped.before("Bash", {"command": "./deploy.sh --again"})[0].allowed, "one, not two"


# -- processes that die ---------------------------------------------------------------------------------


def test_processes_killed_at_any_moment_leave_nothing_half_done(project: Project, session: Session) -> None:
    """Eight at a time, every other one killed: what was answered is counted, and nothing that was not sent."""
    (project.root / "fusewire.toml").write_text("[tool.tool_failure]\nliteral = true\n")
    session.before("Bash", {"command": "./flaky.sh"})
    chance = random.Random(7)
    sent = answered = 0
    for _ in range(4):
        processes = []
        for _ in range(8):
            call = session._call("Bash", {"command": "./flaky.sh"})
            payload: dict[str, Any] = {
                "session_id": session.id,
                "cwd": str(project.root),
                "hook_event_name": "PostToolUseFailure",
            }
            payload |= {**call, "error": "Exit code 1\nx", "is_interrupt": False}
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"],
                cwd=project.root,
                env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            assert process.stdin is not None
            process.stdin.write(json.dumps(payload).encode())
            process.stdin.close()
            processes.append(process)
        sent += 8
        for process in chance.sample(processes, 4):
            time.sleep(chance.uniform(0, 0.06))
            process.kill()
        answered += sum(process.wait(45) == 0 for process in processes)
    doctor = project.run("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    with closing(SqliteStore(str(state(project)))) as store:
        assert store.verify() == []
        (circuit,) = (row for row in store.circuits() if row.id.startswith("tool/tool_failure/"))
        assert circuit.state is not None
        assert circuit.phase == "open"
        assert answered <= circuit.state["total"] <= sent
        lane = store.recall(f"session/{session.id}/")
        assert lane is not None
        assert answered <= len(lane["history"]) <= sent
        assert answered <= len(lane["settled"]) == len(set(lane["settled"])) <= sent
    assert not session.before("Bash", {"command": "./flaky.sh"})[0].allowed


# -- odd input ------------------------------------------------------------------------------------------


def test_results_of_any_shape_and_size(session: Session) -> None:
    """Five megabytes, a picture, a number, a list, nothing; input that is empty. It is counted like any other."""
    huge = {"stdout": "line 17 of the log\n" * 260_000, "stderr": "", "interrupted": False}
    shapes: list[Any] = [7, True, None, ["a", {"b": [1, None]}], {"stdout": 5}, {"file": {"content": None}}, "", huge]
    for number, response in enumerate(shapes):
        asked, call = session.before("mcp__any__thing", {"number": number})
        assert asked.silent
        sent = {"tool_response": response} if response is not None else {}
        assert session.send("PostToolUse", **call, **sent).silent
    for number in range(4):
        asked, call = session.before("mcp__any__status", {})
        assert asked.silent
        after = session.send("PostToolUse", **call, tool_response=huge)
        assert bool(after.told) == (number == 3)
    assert session.send("PostToolBatch", tool_calls=[7, None, {}, {"tool_input": {}, "tool_use_id": 5}]).allowed
    assert session.send("PostToolBatch", tool_calls="none").silent
    store = SqliteStore(str(state(session.project)))
    assert len(json.dumps(store.recall(f"session/{session.id}/"))) < 10_000
    store.close()


# -- long sessions --------------------------------------------------------------------------------------


class Inside:
    """A session without processes, on a real store, with a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(str(folder / "state.db"))
        self.now = 1_700_000_000.0
        self.watch = ToolCallBreakers(self.store, default_rules(), lambda: self.now)
        self.calls = 0

    def send(self, hook: str, session: str = "long", **fields: Any) -> Decision:
        payload = {"session_id": session, "hook_event_name": hook, "cwd": "/home/dev/project", **fields}
        event = AGENT.parse(payload, "/home/dev/project")
        assert event is not None
        return self.watch.handle(event)

    def ask(self, tool: str = "Read", agent: str | None = None, **given: Any) -> dict[str, Any]:
        self.calls += 1
        self.now += 1
        call: dict[str, Any] = {
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": f"toolu_{self.calls}",
            "agent_id": agent,
        }
        self.answer = self.send("PreToolUse", **call)
        return call

    def call(self, tool: str = "Read", agent: str | None = None, result: str = "same", **given: Any) -> Decision:
        call = self.ask(tool, agent, **given)
        return self.send("PostToolUse", **call, tool_response=result)

    def memories(self, session: str = "long") -> dict[str, int]:
        """How many characters are remembered, by name."""
        names = [name for name, _ in self.store.remembered(f"session/{session}")]
        return {name: len(json.dumps(self.store.recall(name))) for name in names}


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Inside]:
    made = Inside(tmp_path)
    yield made
    made.store.close()


#: What may be remembered of one session, in characters.
MOST = 64 * 1024


def test_two_thousand_calls_are_remembered_in_little_room_and_cost_the_same(inside: Inside) -> None:
    """Reads, edits and failures, in replies of ten; the last call runs as many lines as the two-hundredth."""

    def some_calls(first: int, count: int) -> None:
        batch = []
        for number in range(first, first + count):
            path = f"/home/dev/project/src/package/module_{number}.py"
            if number % 10 == 9:
                call = inside.ask("Bash", command=f"./check.sh {number}")
                failed: dict[str, Any] = {"error": f"Exit code 1\nmodule {number} is bad", "is_interrupt": False}
                inside.send("PostToolUseFailure", **call, **failed)
                batch.append({**call, "tool_response": failed["error"]})
                inside.send("PostToolBatch", tool_calls=batch)
                batch = []
            else:
                given = {"file_path": path, "old_string": "a", "new_string": "b"} if number % 3 else {"file_path": path}
                call = inside.ask("Edit" if number % 3 else "Read", **given)
                inside.send("PostToolUse", **call, tool_response=f"result {number}")
                batch.append({**call, "tool_response": f"result {number}"})

    def measured(first: int) -> tuple[int, int]:
        ran = lines_run(lambda: some_calls(first, 10), str(SOURCE))
        return ran, sum(inside.memories().values())

    some_calls(0, 200)
    early = measured(200)
    some_calls(210, 1780)
    late = measured(1990)
    assert inside.calls == 2000
    assert late[0] <= early[0] * 1.05
    assert late[1] <= early[1] * 1.05 < MOST


def test_a_hundred_and_fifty_loops_are_remembered_in_little_room(inside: Inside) -> None:
    """Each of them opens a circuit; the last fifty take no room."""
    room = []
    for number in range(150):
        for _ in range(5):
            answer = inside.call(file_path=f"/{number}.py")
        assert answer.verdict == "tell"
        room.append(sum(inside.memories().values()))
    assert room[149] <= room[99] * 1.05 < MOST


def test_two_hundred_helpers_are_remembered_in_little_room(inside: Inside) -> None:
    """Those that were not heard of for longest are forgotten, the main agent's own calls and the newest are not."""
    for _ in range(3):
        inside.call(file_path="/main.py")
    for number in range(200):
        agent = f"helper{number:04d}"
        inside.send("SubagentStart", agent_id=agent, agent_type="general-purpose")
        for part in range(5):
            inside.call(agent=agent, file_path=f"/home/dev/project/{number}/{part}.py", result=f"text {part}")
        inside.send("SubagentStop", agent_id=agent, agent_type="general-purpose")
    memories = inside.memories()
    assert len(memories) <= 40
    assert sum(memories.values()) < 2 * MOST
    assert "session/long/helper0199" in memories
    assert "session/long/helper0000" not in memories


def test_what_is_not_heard_of_for_thirty_days_is_forgotten(inside: Inside) -> None:
    """At the start of another session; a day less, and it is still there."""
    inside.call(file_path="/a.py")
    inside.call(agent="helper", file_path="/a.py")
    began = inside.now
    for days, kept in ((29, 3), (31, 0)):
        inside.now = began + days * 86400
        inside.send("SessionStart", session=f"new {days}", source="startup")
        assert len(inside.memories()) == kept
    assert inside.memories("new 29")
