"""What is remembered of a session: damage is said and lets nothing through; it stays small; nobody is mixed up."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.claude.hooks import AGENT as claude
from fusewire.breakers.session.state import LaneMemory, SessionMemory
from fusewire.breakers.session.tool_calls import ToolCallBreakers
from fusewire.engine.breaker import default_rules
from fusewire.stores.memory import MemoryStore
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

HOOKS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "go on"},
    "PostToolUse": {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t", "tool_response": "a"},
    "PostToolUseFailure": {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t", "error": "x"},
    "PostToolBatch": {"tool_calls": []},
    "SubagentStart": {"agent_id": "a1"},
    "SubagentStop": {"agent_id": "a1"},
    "Stop": {"stop_hook_active": False},
    "SessionEnd": {"reason": "other"},
}


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    return Session(project)


def overwrite(project: Project, name: str, text: str) -> None:
    connection = sqlite3.connect(project.root / ".fusewire/state.db")
    connection.execute("INSERT OR REPLACE INTO memories VALUES (?, ?, 1)", (name, text))
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "damage",
    ["{", '{"alarms": [1], "spend": 5, "agents": 3, "lanes": "x", "refusals": 1}'],
    ids=["no JSON", "other shapes"],
)
def test_a_damaged_memory_stops_nobody_and_is_said(project: Project, session: Session, damage: str) -> None:
    """On every hook: exit 0, and nothing that would keep the agent from stopping."""
    transcript = project.root / "t.jsonl"
    transcript.write_text("{}\n")
    session.transcript = str(transcript)
    session.bash("ls", "a")
    for hook, fields in HOOKS.items():
        overwrite(project, f"session/{session.id}", damage)
        overwrite(project, f"session/{session.id}/", damage)
        overwrite(project, "spend", damage)
        said = session.send(hook, **fields)
        assert said.code == 0, (hook, said)
        assert "decision" not in said.json, (hook, said)
    overwrite(project, f"session/{session.id}", damage)
    asked, _ = session.before("Bash", {"command": "ls docs"})
    assert asked.code == 0
    assert "damaged" in asked.json["systemMessage"]
    assert "could not be read, and starts anew" in project.run("status").stderr
    for command in (("spend",), ("status", "--session")):
        overwrite(project, "spend", damage)
        result = project.run(*command)
        assert result.returncode == 0
        assert "Traceback" not in result.stderr


def test_an_open_circuit_refuses_also_when_the_memory_of_the_session_is_lost(
    project: Project, session: Session
) -> None:
    """It is stored by itself, and found again; so is the call that was repeated too often."""
    project.starts_hooks = True
    for _ in range(3):
        session.fails("./deploy.sh")
    for _ in range(6):
        session.bash("ls src", "a.py")
    overwrite(project, f"session/{session.id}", "{")
    assert not session.fails("./deploy.sh")[0].allowed
    assert not session.bash("ls src", "a.py")[0].allowed
    assert session.bash("ls docs", "a.md")[0].allowed


def test_odd_amounts_are_no_grant_and_no_error(session: Session) -> None:
    """Digits of other scripts, nothing, too many points."""
    for text in ("grant another $²", "grant another", "grant another $", "grant more $1.2.3", "grant another $٣"):
        assert session.says(text).silent, text


# -- in this process: many agents, and who is who ---------------------------------------------------------


class Stage:
    """Sessions in memory, with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.store = MemoryStore()
        self.watch = ToolCallBreakers(self.store, default_rules(), lambda: self.now)
        self.calls = 0

    def send(self, hook: str, *, session: str = "s", agent: str | None = None, **fields: Any) -> Any:
        payload = {"session_id": session, "cwd": "/p", "hook_event_name": hook, **fields}
        if agent:
            payload["agent_id"] = agent
        event = claude.parse(payload, "/p")
        assert event is not None
        return self.watch.handle(event)

    def call(self, command: str, *, error: str | None = None, output: str = "", **who: Any) -> Any:
        """One call and its result; the last answer that was not a plain yes."""
        self.calls += 1
        self.now += 3
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{self.calls}"}
        asked = self.send("PreToolUse", **call, **who)
        if not asked.allowed:
            return asked
        if error is not None:
            after = self.send("PostToolUseFailure", **call, error=error, **who)
        else:
            after = self.send("PostToolUse", **call, tool_response={"stdout": output, "stderr": ""}, **who)
        return after if after.verdict != "allow" else asked


def test_forty_helpers_leave_the_memory_of_the_main_agent_alone() -> None:
    """The oldest helpers are forgotten one by one; names that begin alike are not one."""
    stage = Stage()
    stage.call("ls main", output="x")
    for number in range(40):
        stage.call(f"ls {number}", output="x", agent=f"ag{number}")
    lanes = [name for name, _ in stage.store.remembered("session/s/")]
    assert "session/s/" in lanes
    assert {f"session/s/ag{number}" for number in range(9, 40)} <= set(lanes)
    assert len(lanes) <= 34
    history = (stage.store.recall("session/s/") or {})["history"]
    assert len(history) == 1


def test_a_call_that_a_person_denied_does_not_stop_the_turns() -> None:
    """It has no result. Without PostToolBatch, three failures in twenty turns are still three in twenty turns."""
    stage = Stage()
    stage.send("PreToolUse", tool_name="Bash", tool_input={"command": "rm -r x"}, tool_use_id="denied")
    for number in range(3):
        assert stage.call("./deploy.sh", error="Exit code 1\nboom").verdict == "allow"
        for other in range(6):
            stage.call(f"ls {number} {other}", output=f"{number} {other}")


def test_circuits_of_sessions_go_before_those_of_attempts() -> None:
    """What a test has failed already is not forgotten because agents were busy."""
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.testing import Clock

    clock = Clock()
    breaker = Breaker(MemoryStore(), default_rules(), clock)
    breaker.record("attempt/S-1/test_login", "x")
    for number in range(1100):
        breaker.record(f"tool/tool_failure/Bash(a)/{number}", "x")
    assert breaker.status("attempt/S-1/test_login").level == 1


def test_circuits_of_sessions_go_before_those_of_attempts_on_disk(tmp_path: Path) -> None:
    """The same in a database."""
    from fusewire.engine.breaker import Breaker

    with Breaker.open(f"sqlite:{tmp_path}/state.db") as breaker:
        breaker.record("attempt/S-1/test_login", "x")
        with breaker.store.transact() as transaction:
            for number in range(1100):
                transaction.save(f"tool/tool_failure/Bash(a)/{number}", "tool", "closed", {"since": 1.0}, 9e9 + number)
        assert breaker.status("attempt/S-1/test_login").level == 1


def test_prices_that_are_missing_are_said_also_beside_a_refusal(project: Project, session: Session) -> None:
    """And a warning that came with the last message of a turn is not lost."""
    (project.root / "fusewire.toml").write_text("[tool.resource_limits]\nagent_cost_block_usd = 1.6\n")
    transcript = project.root / "t.jsonl"
    session.transcript = str(transcript)

    def pays(model: str, tokens: int, number: int) -> None:
        usage = {"input_tokens": 0, "output_tokens": tokens}
        message = {"id": f"msg_{number}", "model": model, "role": "assistant", "usage": usage, "content": []}
        with transcript.open("a") as file:
            file.write(json.dumps({"type": "assistant", "message": message}) + "\n")

    pays("model-of-tomorrow", 1000, 1)
    assert "model-of-tomorrow" in session.says("hello").json["systemMessage"]
    assert session.bash("ls", "a")[0].silent
    pays("claude-sonnet-4-5", 100_000, 2)  # $1.50
    assert session.says("and now?").silent
    asked, _ = session.bash("ls docs", "a")
    assert "$1.50 spent in this session at list price (limit $1.60)" in asked.told
    assert session.bash("ls src", "a")[0].silent


def test_what_a_helper_spends_is_seen_while_it_works(project: Project, session: Session) -> None:
    """Its transcript grows, that of its session does not."""
    (project.root / "fusewire.toml").write_text("[tool.resource_limits]\nagent_cost_block_usd = 5\n")
    main = project.root / "t.jsonl"
    main.write_text("{}\n")
    session.transcript = str(main)
    assert session.bash("ls", "a")[0].silent
    helper = project.root / "t/subagents/agent-a1.jsonl"
    helper.parent.mkdir(parents=True)
    usage = {"input_tokens": 0, "output_tokens": 1_000_000}
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "role": "assistant", "usage": usage, "content": []}
    helper.write_text(json.dumps({"type": "assistant", "message": message}) + "\n")
    asked, _ = session.bash("ls docs", "a", agent="a1")
    assert asked.halted
    assert "$15.00 spent in this session at list price (limit $5.00)" in asked.reason


def test_our_own_words_in_a_message_lift_nothing(session: Session) -> None:
    """A person who asks what a refusal means has not said it."""
    for number in range(5):
        session.spawn(f"part {number}")
    refused, _ = session.spawn("one more")
    session.says(f"what does this mean? {refused.reason}")
    assert not session.spawn("one more")[0].allowed
    session.says("SUDO PARALLEL please")
    assert session.spawn("one more")[0].allowed


def test_a_configured_tool_counts_also_with_a_command_in_its_input(project: Project, session: Session) -> None:
    """`external_api.tools` is about the tool, whatever it is given."""
    (project.root / "fusewire.toml").write_text('[tool.external_api]\ntools = ["mcp__oracle__*"]\n')
    said = [session.before("mcp__oracle__ask", {"command": f"question {number}"})[0] for number in range(11)]
    assert [one.allowed for one in said] == [True] * 10 + [False]


#: What a version that stored dictionaries and lists has left, with a field that this one does not know.
STORED: dict[str, Any] = {
    "at": 1_800_000_000.5,
    "since": 1_700_000_000,
    "lanes": ["", "a1"],
    "batched": True,
    "alarms": {"tool/tool_failure/Bash(make)/s": ["", "Bash(make)", []]},
    "watched": {"tool/cycle/s/x-y": ["", 3, ["x", "y"]], "tool/repetition/s/x": ["", 4, None]},
    "refusals": {"guard.shell  m": [2, 7, {"m": "toolu_1"}]},
    "agents": {"call toolu_1": [1.0, "writer", 2.0], "a1": [1.0, "reader", 2.0, "toolu_2"]},
    "halted": {"rule": "tool.cycle", "text": "HALTED tool.cycle: enough", "circuit": "tool/cycle/s/x-y", "at": 3.0},
    "spend": {"usd": 1.5},
    "granted": 5,
    "of_a_later_version": [1],
}
LANE: dict[str, Any] = {
    "turn": 7,
    "replies": 7,
    "calls": {"toolu_1": ["Bash(ls)", "m", "look", "ls", [], 5.0]},
    "history": [["Bash(ls)", "m", "r", "look", False, 0, 7, False, "ls", 5.0]],
    "row": ["Bash(ls)", 7, {"m": 1}],
    "halts": [1, 7, {"m": None}],
    "settled_any": False,
    "batch": None,
}


def test_what_was_stored_before_there_were_classes_is_read_and_written_as_it_was() -> None:
    """Unknown fields stay and empty ones are left out; the call behind a helper is stored also where there is none."""
    state, lane = SessionMemory.from_data(STORED), LaneMemory.from_data(LANE)
    assert not state.damaged
    assert not lane.damaged
    assert state.alarms["tool/tool_failure/Bash(make)/s"].tool == "Bash(make)"
    assert [call.shown for call in lane.past] == ["ls"]
    helpers = {"a1": [*STORED["agents"]["a1"], False], "call toolu_1": [1.0, "writer", 2.0, None, False]}
    assert state.to_data() == {**STORED, "agents": helpers}
    row, history = [*LANE["row"], {"m": 7}], [[*LANE["history"][0], ""]]
    assert lane.to_data() == {name: value for name, value in {**LANE, "row": row, "history": history}.items() if value}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alarms", [1]),
        ("alarms", {"tool/cycle/s/x": 5}),
        ("agents", {"a": [1.0]}),
        ("halted", "yes"),
        ("at", "now"),
        ("stops", 1.5),
        ("last_halt", 7),
    ],
)
def test_a_damaged_field_is_empty_and_the_others_stay(field: str, value: object) -> None:
    """Also where the damage is inside of it."""
    state = SessionMemory.from_data({**STORED, field: value})
    assert state.damaged
    assert getattr(state, field) == getattr(SessionMemory(), field)
    assert state.usd == 1.5


def test_a_halt_of_which_nothing_is_known_still_holds() -> None:
    state = SessionMemory.from_data({**STORED, "halted": {}})
    assert state.halted is not None
    assert "halted" in state.to_data()


def test_a_field_of_a_later_version_cannot_take_the_place_of_a_method() -> None:
    stored = {**STORED, "to_data": 1, "usd": 3}
    state = SessionMemory.from_data(stored)
    assert state.usd == 1.5
    assert {name: state.to_data()[name] for name in ("to_data", "usd")} == {"to_data": 1, "usd": 3}
