"""Ids without the session in them mean the circuits of all sessions, in every command that takes an id."""

from __future__ import annotations

import re

import pytest

from fusewire.config.settings import read_policy_file
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
    for command in ("status", "check", "history", "reset"):
        result = project.run(command, circuit)
        assert (result.returncode, result.stdout) == (1, ""), command
        assert "not found" in result.stderr


def test_a_breaker_without_circuits_says_so(project: Project) -> None:
    result = project.run("status", "tool/tool_failure")
    assert "it has one circuit for each tool, and none has begun" in result.stderr


@pytest.mark.parametrize(
    ("name", "key", "change"),
    [
        ("tool/tool_failure", "tool_failure.threshold", "[tool.tool_failure]"),
        ("tool/tool_failure/{tool}", "tool_failure.literal", "[tool.tool_failure]"),
        ("agents", "resource_limits.max_concurrent_agents", "[tool.resource_limits]"),
        ("agent_spawn", "agent_spawn.threshold", "[tool.agent_spawn]"),
        ("tool.cycle", "cycle.block", "[tool.cycle]"),
        ("tool_failure.threshold", "tool_failure.threshold", "threshold = 3"),
        ("resource_limits", "resource_limits.api_session_max", "[tool.resource_limits]"),
        ("profile", "profile", 'profile = "auto"'),
        ("loop", "same_error", "[loop]"),
        ("loop/same_error", "same_error", "[loop]"),
        ("GREEN", "GREEN.no_progress_threshold", "[phase.GREEN]"),
        ("constraint", "violation_threshold", "[constraint]"),
        ("guard", "documents", "[guard]"),
        ("tool/", "incidents", 'profile = "auto"'),
        ("attempt", "test_failures", "These are locked: no file can change them."),
        ("attempt/S-1/test_login", "slice_failures", "These are locked: no file can change them."),
    ],
)
def test_config_knows_every_name_in_a_fresh_project(project: Project, name: str, key: str, change: str) -> None:
    result = project.run("config", name)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    (row,) = [line for line in lines if line.startswith(f"  {key} ")]
    assert row.endswith(("  default", "  locked"))
    assert change in lines
    data = project.json("config", name)
    assert key in data["config"]
    assert (key in data["allowed"]) is ("locked" not in row)


@pytest.mark.parametrize("kind", ["loop", "phase", "tool", "attempt", "constraint"])
def test_config_knows_every_breaker(project: Project, kind: str) -> None:
    for table in read_policy_file(kind).table["circuit"]:
        for name in {table["id"].partition("{")[0].rstrip("/") or kind, table["name"]}:
            result = project.run("config", name)
            assert (result.returncode, result.stderr) == (0, ""), name


def test_what_config_says_to_write_works(project: Project) -> None:
    """The lines below "To change one" are a configuration file that is taken as it stands."""
    for name in ("agents", "guard", "sandbox", "loop", "GREEN", "profile", "incidents"):
        lines = project.run("config", name).stdout.splitlines()
        at = next(index for index, line in enumerate(lines) if line.startswith("To change one"))
        (project.root / "fusewire.toml").write_text("\n".join(lines[at + 1 :]) + "\n")
        again = project.run("config", name)
        assert again.stderr == ""
        assert re.search(r"  fusewire\.toml$", again.stdout, re.MULTILINE), name
        (project.root / "fusewire.toml").unlink()


def test_where_the_settings_are_in_pyproject_the_lines_are_for_it(project: Project) -> None:
    (project.root / "pyproject.toml").write_text("[tool.fusewire]\n")
    assert project.run("config", "cycle").stdout.splitlines()[-3:] == [
        "To change one, in pyproject.toml:",
        "[tool.fusewire.tool.cycle]",
        "enabled = true",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tool/tool_failur", "tool/tool_failure"), ("phase/green", "phase/GREEN"), ("agent_spwan", "agent_spawn")],
)
def test_a_slip_gets_the_nearest_names(project: Project, name: str, meant: str) -> None:
    for command in ("config", "status", "check"):
        result = project.run(command, name)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.count("\n") == 1
        assert f"did you mean {meant}" in result.stderr


def test_a_name_of_two_breakers_is_not_guessed(project: Project) -> None:
    result = project.run("config", "same_error")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Error: same_error is the name of several breakers: loop/same_error, tool/same_error\n"


def test_a_breaker_that_is_off_still_has_settings(project: Project) -> None:
    (project.root / "fusewire.toml").write_text("[tool.cycle]\nenabled = false\n")
    result = project.run("config", "tool/cycle")
    assert re.search(r"cycle.enabled +false  fusewire.toml", result.stdout)
