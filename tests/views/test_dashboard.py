"""`fusewire status --session`: the tool seed's dashboard, from what the hook has counted in a real session."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.session.incidents import recent, summary
from fusewire.breakers.session.report import dashboard
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import show_time
from tests.helpers.project import Project

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"
LOG = ".claude/memory/circuit_breaker_incidents.jsonl"

#: The seed's own example, in its own words.
SEED = """\
🔒 CIRCUIT BREAKER STATUS

Active Breakers:
  • tool_failure: OPEN (cooldown: 23s remaining)
    - Last trip: Turn 45 (pytest failed 3x in 5 turns)
    - Next attempt allowed: Turn 48

  • All others: CLOSED (normal operation)

Memory Health:
  • Total: 487KB / 5MB limit (9.7% used)
  • Telemetry: 308 lines (30% of 1000 limit)
  • Sessions: 10 active (at limit)
  • Next auto-cleanup: SessionStart

Resource Usage:
  • Agents: 2/5 concurrent (40% capacity)
  • API calls: 7/10 this minute (70% rate)
  • API cost: $0.34 / $1.00 warn threshold

Incidents Last 24h:
  • 2 circuit trips (tool_failure x2)
  • 0 memory cleanups
  • 0 resource exhaustions"""


def example() -> dict[str, Any]:
    """The seed's numbers."""
    breaker = {
        "breaker": "tool_failure",
        "key": "Bash(pytest)",
        "agent": None,
        "state": "OPEN",
        "phase": "open",
        "reason": "this tool failed 3 times in 5 turns (limit 3)",
        "cooldown_seconds": 22.4,
        "last_trip": {"turn": 45, "at": None, "reason": "this tool failed 3 times in 5 turns (limit 3)"},
        "next_attempt": {"turn": 48, "at": "2026-11-16T10:31:05Z"},
    }
    other: dict[str, Any] = {"usd": 0.0, "limit_usd": 0, "granted_usd": 0}
    external = {"usd": 0.34, "warn_usd": 1.0, "limit_usd": 5.0, "granted_usd": 0}
    cost = {**other, "limit_usd": 25.0, "external": external, "unknown_models": []}
    return {
        "session": SESSION,
        "halted": None,
        "active": [breaker],
        "memory": {
            "report": [
                "Total: 487KB / 5MB limit (9.7% used)",
                "Telemetry: 308 lines (30% of 1000 limit)",
                "Sessions: 10 active (at limit)",
                "Next auto-cleanup: SessionStart",
            ]
        },
        "resources": {
            "agents": {"running": 2, "limit": 5},
            "api_calls": {"this_minute": 7, "limit_per_minute": 10, "this_session": 7, "session_limit": 50},
            "cost": {**cost, "day": dict(other), "project": dict(other)},
        },
        "incidents": {
            "circuit_trips": 2,
            "by_breaker": {"tool_failure": 2},
            "memory_cleanups": 0,
            "resource_exhaustions": 0,
        },
    }


# -- the seed's words -------------------------------------------------------------------------------------


def test_the_seeds_numbers_give_the_seeds_block() -> None:
    """Word for word; what is added is which tool it is, and the time behind the turn."""
    shown = "\n".join(dashboard(example()))
    assert "  • tool_failure Bash(pytest): OPEN (cooldown: 23s remaining)" in shown
    assert "    - Next attempt allowed: Turn 48 (10:31:05 UTC)" in shown
    assert shown.replace(" Bash(pytest)", "").replace(" (10:31:05 UTC)", "") == SEED


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"usd": 0.999}, "$1.00 / $1.00 warn threshold"),
        ({"usd": 1.0}, "$1.00 / $5.00 limit"),
        ({"usd": 7.5, "granted_usd": 5}, "$7.50 / $10.00 limit ($5.00 of it granted)"),
        ({"usd": 5.5, "granted_usd": 5}, "$5.50 / $6.00 warn threshold ($5.00 of it granted)"),
        ({"usd": 0.0, "warn_usd": 9.0}, "$0.00 / $5.00 limit"),
        ({"usd": 5.5}, "$5.50 / $5.00 limit: reached, calls of external APIs are refused"),
    ],
)
def test_the_cost_is_shown_against_what_comes_next(changes: dict[str, Any], words: str) -> None:
    data = example()
    data["resources"]["cost"]["external"] |= changes
    assert f"  • API cost: {words}\n" in "\n".join(dashboard(data))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"usd": 7.5}, "$7.50 at list price / $25.00 limit"),
        ({"usd": 26.0, "granted_usd": 5}, "$26.00 at list price / $30.00 limit ($5.00 of it granted)"),
        ({"usd": 25.5}, "$25.50 at list price / $25.00 limit: reached, every call is refused"),
        ({"usd": 99.0, "limit_usd": 0}, "$99.00 at list price, no limit"),
        (
            {"unknown_models": ["m-1"]},
            "$0.00 at list price / $25.00 limit, and what m-1 cost: no price is known",
        ),
    ],
)
def test_what_the_agent_itself_costs_has_a_line_of_its_own(changes: dict[str, Any], words: str) -> None:
    data = example()
    data["resources"]["cost"] |= changes
    assert f"  • Tokens of the agent: {words}\n" in "\n".join(dashboard(data))


def test_the_calls_of_a_session_are_shown_near_their_limit() -> None:
    data = example()
    assert "this session" not in "\n".join(dashboard(data))
    data["resources"]["api_calls"] |= {"this_session": 45}
    assert "  • API calls: 45/50 this session\n" in "\n".join(dashboard(data))


def test_limits_of_the_day_and_the_project_are_shown_where_there_are_any() -> None:
    data = example()
    data["resources"]["cost"]["day"] |= {"usd": 3.0, "limit_usd": 10.0, "granted_usd": 2}
    data["resources"]["cost"]["project"] |= {"usd": 30.0, "limit_usd": 100.0}
    shown = "\n".join(dashboard(data))
    assert "  • Cost today: $3.00 / $12.00 limit ($2.00 of it granted)\n" in shown
    assert "  • Cost of the project: $30.00 / $100.00 limit\n" in shown


def test_every_phase_of_a_breaker_has_its_words() -> None:
    data = example()
    (one,) = data["active"]
    watched = {
        **one,
        "breaker": "repetition",
        "agent": "a1",
        "state": "HALF_OPEN",
        "phase": "watch",
        "reason": "the same call brought the same result 4 times (limit 6)",
        "cooldown_seconds": None,
        "last_trip": None,
        "next_attempt": None,
    }
    ready = {**one, "state": "HALF_OPEN", "phase": "probe", "cooldown_seconds": None, "last_trip": None}
    ready["next_attempt"] = {"turn": 5, "at": None}
    stuck = {**one, "cooldown_seconds": None, "next_attempt": None}
    data["active"] = [watched, ready, {**ready, "cooldown_seconds": 599.5}, stuck]
    shown = "\n".join(dashboard(data))
    assert "  • repetition Bash(pytest) of agent a1: HALF_OPEN\n" in shown
    assert "    - Warning: the same call brought the same result 4x\n" in shown
    assert "  • tool_failure Bash(pytest): HALF_OPEN (ready to probe)\n" in shown
    assert "    - Next attempt allowed: Turn 5 (now, one call as a probe)\n" in shown
    assert "HALF_OPEN (a probe is under way, for up to 10m)\n" in shown
    assert "OPEN (a person must act)\n" in shown


# -- a real session ---------------------------------------------------------------------------------------


def fail(project: Project, number: int, command: str = "pytest -q", **fields: Any) -> None:
    """One turn with one failing call, through the hook."""
    call = {"tool_use_id": f"toolu_{number}", "tool_input": {"command": command}, **fields}
    project.hook(project.bash("", **call))
    error = f"Exit code 1\n{number} failed"
    project.hook(project.bash("", **call, hook_event_name="PostToolUseFailure", error=error, is_interrupt=False))


def tripped(project: Project, **fields: Any) -> None:
    for number in range(3):
        fail(project, number, **fields)


def test_a_session_with_a_tripped_breaker(project: Project) -> None:
    """Three failures of one tool: who, until when, which turn, and what else there is."""
    tripped(project)
    shown = project.run("status", "--session").stdout
    lines = shown.splitlines()
    assert lines[:3] == ["🔒 CIRCUIT BREAKER STATUS", "", "Active Breakers:"]
    assert lines[3].startswith("  • tool_failure Bash(pytest): OPEN (cooldown: ")
    assert lines[3].endswith("s remaining)")
    assert lines[4] == "    - Last trip: Turn 3 (pytest failed 3x in 5 turns)"
    assert lines[5].startswith("    - Next attempt allowed: Turn 4 (")
    assert lines[5].endswith(" UTC)")
    assert lines[6:8] == ["", "  • All others: CLOSED (normal operation)"]
    assert "  • 1 circuit trip (tool_failure x1)" in lines
    assert "  • Agents: 0/5 concurrent (0% capacity)" in lines
    data = project.json("status", "--session", SESSION)
    (one,) = data["active"]
    assert (one["id"], one["state"]) == (f"tool/tool_failure/Bash(pytest)/{SESSION}", "OPEN")
    assert 0 < one["cooldown_seconds"] <= 10
    assert one["last_trip"]["turn"] == 3
    assert (one["next_attempt"]["turn"], data["turn"], data["session"]) == (4, 2, SESSION)
    assert data["incidents"]["by_breaker"] == {"tool_failure": 1}
    assert data["memory"]["next_cleanup"] == "SessionStart"


def test_breakers_of_other_sessions_are_not_shown_and_those_of_helpers_are(project: Project) -> None:
    tripped(project, agent_id="a1", agent_type="general-purpose")
    fail(project, 9, session_id="another")
    assert project.json("status", "--session", "another")["active"] == []
    (one,) = project.json("status", "--session", SESSION)["active"]
    assert (one["agent"], one["key"]) == ("a1", "Bash(pytest)")


def test_a_warning_about_a_helper_and_a_tool_with_a_very_long_name_are_shown(project: Project) -> None:
    """The first has no alarm yet; of the second the name is cut, and the session is not."""
    tool = "mcp__server__" + "x" * 200
    tripped(project, tool_name=tool)
    warned = f"tool/repetition/{SESSION}:a1/0123"
    with Breaker.open(project=project.root) as breaker:
        breaker.engine.apply([Signal("note", warned, "repeated", value=4)])
    active = {one["breaker"]: one for one in project.json("status", "--session")["active"]}
    assert (active["repetition"]["id"], active["repetition"]["phase"]) == (warned, "watch")
    assert active["repetition"]["agent"] == "a1"
    assert (active["tool_failure"]["state"], active["tool_failure"]["last_trip"]["turn"]) == ("OPEN", 3)
    assert active["tool_failure"]["id"].endswith(f"/{SESSION}")
    assert len(active["tool_failure"]["id"]) < 200


def test_which_session_is_shown(project: Project) -> None:
    """The one that is named, else the one that it runs in, else the one heard of last."""
    fail(project, 1, session_id="first")
    fail(project, 2, session_id="second")

    def shown(*arguments: str, **env: str) -> Any:
        return json.loads(project.run("status", "--session", *arguments, "--json", env=env).stdout)["session"]

    assert shown() == "second"
    assert shown(CLAUDE_CODE_SESSION_ID="first") == "first"
    assert shown("first") == shown("first", CLAUDE_CODE_SESSION_ID="second") == "first"
    unknown = project.run("status", "--session", "third")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == "Error: no session 'third' has been heard of in this project\n"
    for arguments in (("--all",), ("--", "loop")):
        assert project.run("status", "--session", "first", *arguments).returncode == 2


def test_without_any_session_the_rest_is_shown(project: Project) -> None:
    result = project.run("status", "--session")
    assert (result.returncode, result.stderr) == (0, "")
    assert "No session has been heard of yet in this project." in result.stdout
    assert "  • All: CLOSED (normal operation)" in result.stdout
    assert "  • Total: 0KB / 5MB limit (0.0% used)" in result.stdout
    assert not (project.root / ".fusewire").exists()


def test_what_the_session_uses_is_counted_as_the_limits_count_it(project: Project) -> None:
    """Agents that run, calls within the minute, dollars with what was granted."""
    for number in range(3):
        call = {"tool_use_id": f"toolu_{number}", "tool_input": {"command": f"python oracle.py {number}"}}
        assert project.hook(project.bash("", **call)).returncode == 0
    agent = {"tool_name": "Agent", "tool_input": {"description": "look", "subagent_type": "Explore", "prompt": "x"}}
    for number in range(2):
        assert project.hook(project.bash("", tool_use_id=f"toolu_a{number}", **agent)).returncode == 0
    now = time.time()
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        record = transaction.recall(f"session/{SESSION}") or {}
        record |= {"spend": {"usd": 2.5, "unknown": {}}, "granted": 1, "api_usd": 1.25}
        record["agents"]["gone"] = [now - 9000, "not heard of for an hour", now - 3700]
        transaction.remember(f"session/{SESSION}", record, now)
    resources = project.json("status", "--session")["resources"]
    assert resources["agents"] | {"names": 0} == {"running": 2, "limit": 5, "session_limit": 10, "names": 0}
    assert resources["agents"]["names"] == ["Explore: look"] * 2
    assert (resources["api_calls"]["this_minute"], resources["api_calls"]["this_session"]) == (3, 3)
    assert (resources["cost"]["usd"], resources["cost"]["granted_usd"]) == (2.5, 1)
    lines = project.run("status", "--session").stdout.splitlines()
    assert "  • API calls: 3/10 this minute (30% rate)" in lines
    assert "  • Agents: 2/5 concurrent (40% capacity)" in lines
    assert "  • API cost: $1.25 / $5.00 limit" in lines
    assert "  • Tokens of the agent: $2.50 at list price / $26.00 limit ($1.00 of it granted)" in lines


def test_a_memory_folder_that_cannot_be_used_is_said(project: Project, tmp_path: Path) -> None:
    (project.root / ".claude").symlink_to(tmp_path)
    result = project.run("status", "--session")
    assert result.returncode == 0
    assert "  • It cannot be read: .claude is a symbolic link" in result.stdout


def test_a_circuit_whose_state_is_damaged_does_not_vanish(project: Project) -> None:
    tripped(project)
    with Breaker.open(project=project.root) as breaker:
        breaker.store._connect().execute("UPDATE circuits SET state = '[]'")  # type: ignore[attr-defined]
    result = project.run("status", "--session")
    assert "  • tool_failure Bash(pytest): OPEN (" in result.stdout
    assert "could not be read and was rebuilt" in result.stderr


def test_what_is_remembered_and_damaged_is_nothing(project: Project) -> None:
    fail(project, 1)
    with Breaker.open(project=project.root) as breaker:
        breaker.store._connect().execute("UPDATE memories SET data = '[' WHERE name LIKE 'session/%'")  # type: ignore[attr-defined]
    for named in ((), (SESSION,)):
        result = project.run("status", "--session", *named)
        assert (result.returncode, "Traceback" in result.stderr) == (0, False)
        assert "CLOSED (normal operation)" in result.stdout


# -- incidents --------------------------------------------------------------------------------------------


def incident(at: float, kind: str = "circuit_trip", breaker: str = "tool_failure", **more: Any) -> bytes:
    return json.dumps({"timestamp": show_time(at), "type": kind, "breaker": breaker, **more}).encode() + b"\n"


def test_incidents_of_a_day_also_from_what_was_rotated(tmp_path: Path) -> None:
    """The log, its rotations of the last 24 hours, packed or about to be; older ones and odd lines are left out."""
    now = 1_794_778_762.0  # 2026-11-15T21:39:22Z
    folder = tmp_path / ".claude/memory"
    folder.mkdir(parents=True)
    stem = "circuit_breaker_incidents"
    live = incident(now - 86400) + incident(now - 10) + incident(now - 9, "resource_limit", "agents")
    (tmp_path / LOG).write_bytes(live + b'{"timestamp": "soon"}\n[1]\n\xff\n{"timesta')
    with gzip.open(folder / f"{stem}.20261115T190000-000001Z.jsonl.gz", "wb") as file:
        file.write(incident(now - 11000, breaker="external_api") + incident(now - 90000))
    (folder / f"{stem}.20261115T200000-000000Z.jsonl.rotating").write_bytes(incident(now - 7000, "memory_cleanup"))
    with gzip.open(folder / f"{stem}.20261113T190000-000000Z.jsonl.gz", "wb") as file:
        file.write(incident(now - 60))  # its name says that it is older
    (folder / f"{stem}.20261115T193000-000000Z.jsonl.gz").write_bytes(b"not packed at all")
    (folder / "other_telemetry.20261115T193000-000000Z.jsonl.gz").write_bytes(gzip.compress(incident(now - 60)))
    found = recent(str(tmp_path), LOG, now - 86400)
    assert [one["timestamp"] for one in found] == sorted(one["timestamp"] for one in found)
    assert summary(found) == {
        "circuit_trips": 2,
        "by_breaker": {"external_api": 1, "tool_failure": 1},
        "memory_cleanups": 1,
        "resource_exhaustions": 1,
    }


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path) -> None:
    """1 MB of it, whole lines; and nothing that unpacks to more than it may."""
    now = time.time()
    place = tmp_path / "log.jsonl"
    line = incident(now - 5)
    place.write_bytes(line * (5 * (1 << 20) // len(line)))
    found = recent(str(tmp_path), "log.jsonl", now - 60)
    assert len(line) * len(found) <= 1 << 20
    assert len(found) >= (1 << 20) // len(line) - 1
    place.write_bytes(line)
    name = time.strftime("log.%Y%m%dT%H%M%S-000000Z.jsonl.gz", time.gmtime(now))
    (tmp_path / name).write_bytes(gzip.compress(b"\n" * (100 << 20)))
    assert len(recent(str(tmp_path), "log.jsonl", now - 60)) == 1


def test_a_log_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "pipe.jsonl")
    for name in ("pipe.jsonl", "link.jsonl", "nosuch.jsonl", "nosuch/nosuch.jsonl", "."):
        assert recent(str(tmp_path), name, 0) == []
