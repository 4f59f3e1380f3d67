"""The tool seed's scenarios and numbers, each through real hook processes with the payload shapes of Claude Code."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.project import Project
from tests.helpers.session_hook import Session, move_clock

INCIDENTS = ".claude/memory/circuit_breaker_incidents.jsonl"


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    return Session(project)


def circuits(project: Project) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in project.json("status", "--all")["circuits"]}


def incidents(project: Project) -> list[dict[str, Any]]:
    path = project.root / INCIDENTS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- the six scenarios ----------------------------------------------------------------------------------


def test_fail_the_same_tool_four_times_in_five_turns(project: Project, session: Session) -> None:
    """Scenario 2: the third failure opens, the fourth call waits; a failed probe waits longer, a good one closes."""
    project.starts_hooks = True
    for _ in range(2):
        asked, after = session.fails("pytest -q", "Exit code 1\n1 failed in 0.31s")
        assert asked.silent
        assert after.silent
    asked, after = session.fails("pytest -q", "Exit code 1\n1 failed in 0.42s")
    assert asked.silent
    assert "Circuit breaker tripped: this tool failed 3 times in 5 turns (limit 3). Cooldown: 10s" in after.told
    assert "scratch script or agent delegation" not in after.told, "a test fails: that does not help"
    asked, _ = session.fails("pytest -q")
    assert asked.code == 2
    assert "Circuit breaker tripped: this tool failed 3 times in 5 turns (limit 3). Cooldown: 10s" in asked.reason
    assert "pytest -q" in asked.reason

    for cooldown in (20, 60, 120, 600):
        move_clock(project, 601)
        asked, after = session.fails("pytest -q")
        assert asked.allowed
        assert f"Cooldown: {cooldown}s" in after.told
        assert ("a person should look" in after.told) == (cooldown == 600)
    move_clock(project, 601)
    asked, after = session.bash("pytest -q", "1 passed in 0.10s")
    assert asked.allowed
    asked, _ = session.bash("pytest -q tests", "1 passed in 0.10s")
    assert asked.silent

    logged = [one for one in incidents(project) if one["type"] == "circuit_trip"]
    assert [one["cooldown_seconds"] for one in logged] == [10, 20, 60, 120, 600]
    assert {one["breaker"] for one in logged} == {"tool_failure"}
    assert logged[0]["turn"] == 3
    assert logged[0]["reason"] == "this tool failed 3 times in 5 turns (limit 3)"


def test_a_failure_is_what_the_agent_reports_as_one(project: Project, session: Session) -> None:
    """Six failures are six failures, whichever of the two hooks tells of them, and none is counted twice."""
    for _ in range(2):
        session.fails("make deploy", batch=True)
    (only,) = (one for name, one in circuits(project).items() if "tool_failure" in name)
    assert only["level"] == 2


def test_failures_that_only_the_batch_shows_count(session: Session) -> None:
    """Wrong arguments and unknown tools never reach PreToolUse: the agent is told, and in the end it is stopped."""
    said = []
    for number in range(9):
        error = (
            "<tool_use_error>InputValidationError: Bash failed due to the following issues:\n"
            "The required parameter `command` is missing\n"
            "An unexpected parameter `cmd` was provided</tool_use_error>"
        )
        call = session._call("Bash", {"cmd": f"ls {number}"})
        said.append(session.send("PostToolBatch", tool_calls=[{**call, "tool_response": error}]))
    assert [one.silent for one in said[:2]] == [True, True]
    assert "tool_failure" in said[2].told  # the third failure of one tool
    assert any("same_error" in one.told for one in said)
    assert said[-1].halted


def test_spawn_six_agents_simultaneously(project: Project, session: Session) -> None:
    """Scenario 3: five start together, the sixth is refused, and told which are running."""
    project.starts_hooks = True
    answers = [session.spawn(f"part {number}")[0] for number in range(6)]
    assert [one.allowed for one in answers] == [True] * 5 + [False]
    reason = answers[5].reason
    assert "Resource limit reached. Pausing to prevent exhaustion. 5 agents are running (limit 5)." in reason
    for number in range(5):
        assert f"general-purpose: part {number}" in reason
    assert "SUDO PARALLEL" in reason
    assert [one["type"] for one in incidents(project)] == ["resource_limit"]


def test_call_the_oracle_eleven_times_in_thirty_seconds(project: Project, session: Session) -> None:
    """Scenario 4: ten pass, the eleventh is refused with the time to wait, and waiting helps."""
    project.starts_hooks = True
    for number in range(10):
        asked, _ = session.bash(f"python scripts/oracle.py 'question {number}'", f"answer {number}")
        assert asked.silent
    asked, _ = session.bash("python3 ./scripts/swarm.py --deep 'another question'")
    assert asked.code == 2
    assert "Circuit breaker tripped: 10 API calls within 1m (limit 10). Cooldown: 30s" in asked.reason
    move_clock(project, 61)
    asked, _ = session.bash("python3 ./scripts/swarm.py --deep 'another question'", "answer")
    assert asked.allowed


def test_fifty_calls_of_an_api_are_all_that_a_session_has(project: Project, session: Session) -> None:
    """However slowly they come, and across restarts: nothing of it is in a process."""
    for number in range(50):
        if number % 9 == 0:
            move_clock_if_there(project)
        session.before("Bash", {"command": f"python oracle.py {number}"})
    move_clock(project, 3600)
    asked, _ = session.before("Bash", {"command": "python oracle.py again"})
    assert asked.code == 2
    assert "50 API calls in this session (limit 50)" in asked.reason
    assert "Resource limit reached. Pausing to prevent exhaustion." in asked.reason
    other, _ = Session(project, id="another-session").before("Bash", {"command": "python oracle.py again"})
    assert other.silent


def move_clock_if_there(project: Project) -> None:
    if (project.root / ".fusewire/state.db").exists():
        move_clock(project, 61)


def test_a_stop_hook_that_keeps_the_agent_going_is_ended(session: Session) -> None:
    """Scenario 1, as Claude Code has it: the sixth stop in a row that some hook prevents is the last. Inside of
    `fusewire run`, because elsewhere the loop breaker measures such stretches, and three without progress end it."""
    session.project.starts_hooks = True
    session.env["FUSEWIRE_PROJECT"] = "/home/dev/another"
    said = [session.send("Stop", stop_hook_active=number > 0, last_assistant_message="Done.") for number in range(6)]
    assert [one.silent for one in said[:5]] == [True] * 5
    assert said[5].halted
    assert "this hook ran 5 times in 10 turns (limit 5).\nThe agent is stopped" in said[5].json["stopReason"]
    assert "hookSpecificOutput" not in said[5].json


def test_must_not_fire_a_stop_after_each_message(session: Session) -> None:
    """An agent that is spoken to ten times stops ten times."""
    for _ in range(10):
        assert session.says("and now the next thing").silent
        assert session.send("Stop", stop_hook_active=False, last_assistant_message="Done.").silent


def test_eleven_identical_calls_in_one_reply(project: Project, session: Session) -> None:
    """Ten pass, the eleventh is refused, and so is the tool for five seconds."""
    said = [session.before("Read", {"file_path": "/home/dev/project/a.py"})[0] for _ in range(11)]
    assert [one.allowed for one in said] == [True] * 10 + [False]
    assert "this tool was called 10 times in a row (limit 10). Cooldown: 5s" in said[10].reason
    assert not session.before("Read", {"file_path": "/home/dev/project/a.py"})[0].allowed
    move_clock(project, 6)
    assert session.before("Read", {"file_path": "/home/dev/project/b.py"})[0].allowed


def _over_turns(session: Session, replies: list[int], window: int) -> list[bool]:
    """The same call, so often in each reply, with a window of so many turns and room for five calls in it."""
    settings = f"threshold = 5\nwindow_turns = {window}\n[tool.repetition]\nenabled = false\n"
    (session.project.root / "fusewire.toml").write_text(f"[tool.sequential_tools]\n{settings}")
    allowed = []
    for number in replies:
        said = [session.before("Read", {"file_path": "/home/dev/project/a.py"}) for _ in range(number)]
        allowed += [asked.allowed for asked, _ in said]
        results = [{**call, "tool_response": "1\tprint(1)"} for _, call in said]
        session.send("PostToolBatch", tool_calls=results)
    return allowed


def test_identical_calls_in_a_window_of_three_turns(session: Session) -> None:
    """Two, two and two of them: the sixth is refused, though no reply has more than two."""
    assert _over_turns(session, [2, 2, 2], window=3) == [True] * 5 + [False]


def test_must_not_fire_what_has_left_the_window_of_three_turns(session: Session) -> None:
    """The first reply with three no longer counts in the fourth."""
    assert all(_over_turns(session, [3, 1, 1, 2], window=3))


def test_must_not_fire_across_turns_by_default(session: Session) -> None:
    assert all(_over_turns(session, [2, 2, 1], window=1))


def test_must_not_fire_across_turns_with_another_tool_in_between(session: Session) -> None:
    _over_turns(session, [2, 2], window=3)
    session.bash("ls docs", "a.md")
    assert all(_over_turns(session, [2], window=3))


# -- the messages and the log ---------------------------------------------------------------------------


def test_a_trip_says_why_how_long_and_how_to_go_on(project: Project, session: Session) -> None:
    """The seed's sentence, the workaround, when it ends by itself, and what a person can do; the same in the log."""
    for _ in range(3):
        session.fails("./deploy.sh", "Exit code 4\nno such host")
    asked, _ = session.fails("./deploy.sh")
    first, *rest = asked.reason.splitlines()
    assert first.startswith("BLOCKED tool.tool_failure:Bash(deploy.sh): Circuit breaker tripped: ")
    assert first.endswith("Cooldown: 10s")
    assert "Next: read the error, and change what causes it before the next try." in rest
    assert any(line.startswith("It resets by itself: one call is allowed at ") for line in rest)
    assert any("fusewire reset 'tool/tool_failure/Bash(deploy.sh)/" in line for line in rest)
    (incident,) = incidents(project)
    assert incident["type"] == "circuit_trip"
    assert incident["session"] == session.id
    assert incident["timestamp"].endswith("Z")


def test_refused_again_and_again_the_agent_is_halted(session: Session) -> None:
    """Refusing alone does not stop a model; the third time it is stopped, also with calls in between: no work."""
    session.bash("ls docs", "a.md")
    for _ in range(3):
        session.fails("./deploy.sh")
    said = []
    for _ in range(3):
        said.append(session.fails("./deploy.sh")[0])
        assert session.bash("ls docs", "a.md")[0].halted == said[-1].halted
    assert [one.halted for one in said] == [False, False, True]
    assert said[2].code == 2
    assert said[2].reason.startswith("HALTED tool.tool_failure:Bash(deploy.sh)")


def test_must_not_halt_what_one_reply_asked_for_at_once(session: Session) -> None:
    """Twelve agents in one reply: five start, seven are refused, and nobody could have known better yet."""
    said = [session.spawn(f"part {number}")[0] for number in range(12)]
    assert [one.allowed for one in said] == [True] * 5 + [False] * 7
    assert not any(one.halted for one in said)


def test_the_log_goes_where_the_configuration_says(project: Project, session: Session) -> None:
    """And a place that cannot be written stops nobody."""
    (project.root / "fusewire.toml").write_text('[tool]\nincidents = "logs/trips.jsonl"\n')
    for _ in range(3):
        session.fails("./deploy.sh")
    assert len((project.root / "logs/trips.jsonl").read_text().splitlines()) == 1
    (project.root / "fusewire.toml").write_text('[tool]\nincidents = "fusewire.toml/trips.jsonl"\n')
    for _ in range(3):
        _, after = session.fails("./other.sh")
    assert "Circuit breaker tripped" in after.told


# -- configuration --------------------------------------------------------------------------------------

SEED_CONFIG = {
    "circuit_breakers": {
        "hook_recursion": {"enabled": True, "threshold": 5, "window_turns": 10, "cooldown_base_seconds": 5},
        "tool_failure": {"enabled": True, "threshold": 3, "window_turns": 5, "cooldown_base_seconds": 10},
        "sequential_tools": {"enabled": True, "threshold": 10, "window_turns": 1, "cooldown_base_seconds": 5},
        "agent_spawn": {"enabled": True, "threshold": 5, "window_turns": 10, "cooldown_base_seconds": 10},
        "external_api": {
            "enabled": True,
            "threshold": 10,
            "window_seconds": 60,
            "session_max": 50,
            "cooldown_base_seconds": 30,
        },
    },
    "memory_limits": {
        "telemetry_max_lines": 1000,
        "telemetry_max_kb": 50,
        "telemetry_max_age_days": 7,
        "telemetry_keep_rotations": 5,
        "session_max_active": 10,
        "session_max_age_days": 7,
        "evidence_ledger_max": 100,
        "tool_history_max": 50,
    },
    "resource_limits": {
        "max_concurrent_agents": 5,
        "max_agents_per_session": 10,
        "agent_spawn_cooldown_seconds": 10,
        "api_rate_limit_per_minute": 10,
        "api_session_max": 50,
        "api_cost_warn_usd": 1.0,
        "api_cost_block_usd": 5.0,
    },
}


def configure(project: Project, config: object) -> Path:
    path = project.root / ".claude/memory/circuit_breaker_config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return path


def test_the_seeds_configuration_is_read_as_it_stands(project: Project) -> None:
    """Every key of it is known, and its values are the defaults."""
    from fusewire.config.rulebook import read_rulebook
    from fusewire.config.rules import compile_rules

    configure(project, SEED_CONFIG)
    book = read_rulebook(project.root)
    assert book.warnings == []
    assert compile_rules(str(project.root)).tool == compile_rules(None).tool
    from_file = [key for key, source in book.values["tool"].source.items() if "circuit_breaker_config" in source]
    assert len(from_file) == 21 + 8 + 7


def test_every_breaker_of_the_configuration_can_be_switched_off_and_tuned(project: Project, session: Session) -> None:
    """Through the hook: another threshold, another cooldown, off; fusewire.toml wins over it."""
    config = json.loads(json.dumps(SEED_CONFIG))
    config["circuit_breakers"]["tool_failure"] |= {"threshold": 2, "cooldown_base_seconds": 20}
    config["circuit_breakers"]["sequential_tools"]["enabled"] = False
    configure(project, config)
    session.fails("./a.sh")
    assert "failed 2 times in 5 turns (limit 2). Cooldown: 20s" in session.fails("./a.sh")[1].told
    for _ in range(12):
        assert session.before("Read", {"file_path": "/home/dev/project/a.py"})[0].allowed
    (project.root / "fusewire.toml").write_text("[tool.tool_failure]\nthreshold = 1\n")
    assert "(limit 1)" in session.fails("./b.sh")[1].told


def test_unknown_and_wrong_keys_of_the_configuration_are_named(project: Project) -> None:
    """What, where, what is allowed; the rest of the file still works."""
    config = json.loads(json.dumps(SEED_CONFIG))
    config["circuit_breakers"]["tool_failure"]["treshold"] = 4
    config["circuit_breakers"]["agent_spawn"]["threshold"] = "five"
    config["colours"] = {}
    configure(project, config)
    said = project.run("status").stderr
    assert "circuit_breaker_config.json" in said
    assert "tool_failure.treshold" in said
    assert "did you mean tool_failure.threshold?" in said
    assert "agent_spawn.threshold = 'five'" in said
    assert "colours" in said
    (project.root / ".claude/memory/circuit_breaker_config.json").write_text("{")
    assert "nothing in it is used" in project.run("status").stderr


# -- many at once ---------------------------------------------------------------------------------------


def test_eight_parallel_hook_processes_count_exactly(project: Project, session: Session) -> None:
    """Sixteen identical calls of one reply from eight processes at a time: ten pass, not one more or less."""
    project.starts_hooks = True
    session.before("Read", {"file_path": "/warm/up"})
    calls = [session._call("Read", {"file_path": "/home/dev/project/a.py"}) for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda call: session.send("PreToolUse", **call), calls))
    assert sum(one.allowed for one in said) == 10


def test_eight_parallel_results_count_exactly(project: Project, session: Session) -> None:
    """Eight failures, taken literally: all are counted, and the circuit opens once."""
    project.starts_hooks = True
    (project.root / "fusewire.toml").write_text("[tool.tool_failure]\nliteral = true\n")
    calls = [session._call("Bash", {"command": "./flaky.sh"}) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert all(said.allowed for said in pool.map(lambda call: session.send("PreToolUse", **call), calls))
        list(
            pool.map(
                lambda call: session.send("PostToolUseFailure", **call, error="Exit code 1\nx", is_interrupt=False),
                calls,
            )
        )
    (failures,) = (one for name, one in circuits(project).items() if "tool_failure" in name)
    assert failures["state"] == "OPEN"
    assert failures["trips"] == 1
    connection = sqlite3.connect(project.root / ".fusewire/state.db")
    (text,) = connection.execute("SELECT state FROM circuits WHERE id = ?", (failures["id"],)).fetchone()
    connection.close()
    assert json.loads(text)["total"] == 8
    assert len([one for one in incidents(project) if one["breaker"] == "tool_failure"]) == 1
