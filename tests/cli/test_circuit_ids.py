"""Ids without the session in them mean the circuits of all sessions, in every command that takes an id."""

from __future__ import annotations

import pytest

from fusewire.engine.breaker import Breaker
from tests.helpers.project import Project
from tests.helpers.session_hook import move_clock

TOOL = "tool/tool_failure/Bash(pytest)"


def fail(project: Project, session: str, times: int, tool: str = TOOL, base: int = 10) -> str:
    """A circuit of a session, with so many failures."""
    (project.root / "fusewire.toml").write_text(f"[tool.tool_failure]\ncooldown_base_seconds = {base}\n")
    circuit = f"{tool}/{session}"
    with Breaker.open(project=project.root) as breaker:
        for number in range(times):
            breaker.record(circuit, f"failure {number} in {session}", session=session)
    return circuit


def test_status_shows_all_of_them_or_the_only_one(project: Project) -> None:
    one = fail(project, "s1", 3)
    shown = project.run("status", TOOL).stdout
    assert shown.startswith(f"{one}  OPEN\n")
    other = fail(project, "s2", 1)
    fail(project, "s3", 1, "tool/tool_failure/Bash(pytest-watch)")
    lines = project.run("status", TOOL).stdout.splitlines()
    assert lines[0] == "OPEN (1)"
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [one, other]
    data = project.json("status", TOOL)
    assert [(circuit["id"], circuit["state"]) for circuit in data["circuits"]] == [(one, "OPEN"), (other, "CLOSED")]
    assert all(circuit["config"]["tool_failure.threshold"]["value"] == 3 for circuit in data["circuits"])
    assert len(project.json("status", "tool/tool_failure")["circuits"]) == 3


def test_one_that_has_a_state_of_its_own_is_itself(project: Project) -> None:
    fail(project, "s1", 3)
    with Breaker.open(project=project.root) as breaker:
        breaker.record(TOOL, "without any session")
    (circuit,) = project.json("status", TOOL)["circuits"]
    assert (circuit["id"], circuit["state"], circuit["total"]) == (TOOL, "CLOSED", 1)
    assert project.run("check", TOOL).returncode == 0
    assert project.run("reset", TOOL).returncode == 1


def test_reset_closes_those_that_are_open(project: Project) -> None:
    one, other, third = fail(project, "s1", 3), fail(project, "s2", 3), fail(project, "s3", 1)
    result = project.run("reset", TOOL, "--reason", "the tests are mended")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{one}: OPEN -> CLOSED\n{other}: OPEN -> CLOSED\n"
    again = project.run("reset", TOOL)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"Error: Invalid transition from CLOSED: no circuit of {TOOL} is open\n"
    with Breaker.open(project=project.root) as breaker:
        assert [row.cause for row in breaker.audit(one)] == ["tripped", "reset"]
        assert breaker.status(third).total == 1
    fail(project, "s3", 2)
    (done,) = project.json("reset", TOOL)["reset"]
    assert (done["id"], done["state"]) == (third, "CLOSED")


def test_reset_of_the_only_one(project: Project) -> None:
    one = fail(project, "s1", 3)
    assert project.run("reset", TOOL).stdout.startswith(f"{one}: OPEN -> CLOSED\n")
    assert project.run("reset", TOOL).stderr == "Error: Invalid transition from CLOSED\n"


def test_history_joins_them(project: Project) -> None:
    fail(project, "s1", 3)
    fail(project, "s2", 2)
    data = project.json("history", TOOL)
    assert {entry["session"] for entry in data["entries"]} == {"s1", "s2"}
    times = [entry["timestamp"] for entry in data["entries"]]
    assert (len(times), times) == (5, sorted(times, reverse=True))
    assert [move["cause"] for move in data["transitions"]] == ["tripped"]
    assert "failure 1 in s2" in project.run("history", TOOL).stdout


def test_check_answers_with_the_strictest_and_takes_no_probe(project: Project) -> None:
    one, other = fail(project, "s1", 3), fail(project, "s2", 1)
    refused = project.run("check", TOOL)
    assert (refused.returncode, refused.stdout.startswith("BLOCKED")) == (3, True)
    data = project.json("check", TOOL)
    assert (data["decision"], data["id"], data["ids"]) == ("BLOCKED", one, [one, other])


def test_of_several_after_a_cooldown_nobodys_probe_is_taken(project: Project) -> None:
    """Of the only one it is, as its own id would do it."""
    one = fail(project, "s1", 3, base=1)
    fail(project, "s2", 1, base=1)
    move_clock(project, 2)
    for _ in range(2):
        result = project.run("check", TOOL)
        assert (result.returncode, result.stdout.splitlines()[0]) == (
            0,
            f"ALLOWED {TOOL}: HALF_OPEN, the strictest of 2 sessions",
        )
        assert project.json("check", TOOL)["lease"] is None
    with Breaker.open(project=project.root) as breaker:
        assert breaker.probe_of(one) is None
    alone = fail(project, "s1", 3, "tool/tool_failure/Bash(make)", base=1)
    move_clock(project, 2)
    data = project.json("check", "tool/tool_failure/Bash(make)")
    assert (data["id"], data["state"]) == (alone, "HALF_OPEN")
    assert data["lease"]
    assert project.run("check", "tool/tool_failure/Bash(make)").returncode == 3


def test_config_needs_no_session(project: Project) -> None:
    fail(project, "s1", 1)
    expected = project.json("config", TOOL)["config"]
    assert expected["tool_failure.threshold"]["value"] == 3
    assert project.json("config", "tool/tool_failure")["config"] == expected


@pytest.mark.parametrize("circuit", ["attempt/S-1", "loop/no_progress", "phase/GREEN", "git-safety"])
def test_other_kinds_mean_what_they_say(project: Project, circuit: str) -> None:
    """A slice is no short name for its tests."""
    project.constraint("git-safety")
    with Breaker.open(project=project.root) as breaker:
        breaker.record("attempt/S-1/test_login", "failed", signal="test_failed")
    (shown,) = project.json("status", circuit)["circuits"]
    assert (shown["id"], shown["total"]) == (circuit, 0)


@pytest.mark.parametrize("circuit", ["tool/tool_failure", "tool/nosuch/x", "tool", "tool/"])
def test_what_nobody_knows_is_not_found(project: Project, circuit: str) -> None:
    for command in ("status", "check", "history", "reset", "config"):
        result = project.run(command, circuit)
        assert (result.returncode, result.stdout) == (1, ""), command
        assert "not found" in result.stderr
