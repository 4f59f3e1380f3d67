"""A circuit ends with its session: nobody who looks sees it as open any more, and a resumed session has it back."""

from __future__ import annotations

import json
import re
import time

import pytest

from fusewire.breakers.session.ended import over_since
from fusewire.breakers.session.state import SessionMemory
from fusewire.engine.breaker import Breaker
from fusewire.gate.statusline import glance
from fusewire.notify.news import openings
from fusewire.views.panel import panel
from tests.helpers.project import Project
from tests.helpers.session_hook import Session, move_clock

TOOL = "tool/tool_failure/Bash(make deploy)"
DAY = 86400.0


@pytest.fixture
def session(project: Project) -> Session:
    """A session with an open circuit."""
    project.starts_hooks = False
    made = Session(project, id="s-one")
    made.send("SessionStart", source="startup")
    for _ in range(3):
        made.fails("make deploy")
    assert f"  {TOOL}/s-one  " in project.run("status", "--all").stdout
    return made


def ends(session: Session) -> None:
    session.send("SessionEnd", reason="prompt_input_exit")


def looks(project: Project, days: float = 0.0) -> list[str]:
    """The circuits that are not closed, for everybody who looks."""
    with Breaker.open(project=project.root, clock=lambda: time.time() + days * DAY) as breaker:
        found = [one.id for one in breaker.statuses() if one.phase != "closed"]
        shown = panel(breaker)
        assert [one.id for one in shown.circuits if one.phase != "closed"] == found
        assert [one.move.circuit for one in openings(breaker, 0.0, 1) if one.move] in ([], found)
        return found


def test_after_its_end_nothing_is_open_anywhere(session: Session, project: Project) -> None:
    ends(session)
    assert looks(project) == []
    assert "OPEN (0)\nHALF_OPEN (0)" in project.run("status", "--all").stdout
    assert project.json("status")["circuits"] == []
    assert "All: CLOSED (normal operation)" in project.run("status", "--session", "s-one").stdout
    assert project.json("status", "--session", "s-one")["active"] == []
    assert "OPEN" not in project.run("doctor").stdout
    other = Session(project, id="s-two")
    assert TOOL not in json.dumps(other.send("SessionStart", source="startup").json)
    assert other.bash("make deploy", "done")[0].silent
    assert glance({"session_id": "s-two"}, {}, str(project.root)).circuits == []


def test_who_asks_for_it_by_name_is_told_that_the_session_has_ended(session: Session, project: Project) -> None:
    ends(session)
    for circuit in (TOOL, f"{TOOL}/s-one"):
        assert "its session ended 20" in project.run("status", circuit).stdout
        allowed = project.run("check", circuit)
        assert (allowed.returncode, allowed.stdout.startswith(f"ALLOWED {TOOL}/s-one: its session ended")) == (0, True)
        assert project.json("check", circuit)["decision"] == "ALLOWED"
        assert project.json("status", circuit)["circuits"][0]["session_ended"] is not None
        assert "OPEN (tripped)" in project.run("history", circuit).stdout
    reset = project.run("reset", TOOL, "--reason", "x")
    assert (reset.returncode, f"{TOOL}/s-one: OPEN -> CLOSED" in reset.stdout) == (0, True)
    assert "Note: its session ended" in reset.stdout


def test_a_resumed_session_has_it_back(session: Session, project: Project) -> None:
    ends(session)
    assert looks(project) == []
    session.send("SessionStart", source="resume")
    assert looks(project) == [f"{TOOL}/s-one"]
    assert not session.before("Bash", {"command": "make deploy"})[0].allowed
    assert project.run("check", TOOL).returncode == 3


def test_a_session_that_runs_keeps_its_own(session: Session, project: Project) -> None:
    other = Session(project, id="s-two")
    for _ in range(3):
        other.fails("make deploy")
    ends(session)
    assert looks(project) == [f"{TOOL}/s-two"]
    status = project.json("status", TOOL)["circuits"]
    assert [one["id"] for one in status] == [f"{TOOL}/s-two"]
    assert project.run("check", TOOL).returncode == 3


def test_silence_of_a_day_is_an_end(session: Session, project: Project) -> None:
    assert looks(project, days=0.99) == [f"{TOOL}/s-one"]
    assert looks(project, days=1.01) == []


def test_what_was_still_under_way_at_the_end_begins_nothing() -> None:
    state = SessionMemory()
    state.at = state.ended = 1000.0
    assert over_since(state, 1001.0) == 1000.0
    state.at = 1030.0  # a helper reports late
    assert over_since(state, 1031.0) == 1000.0
    state.at = 1100.0  # it is at work again, though nobody said that it was resumed
    assert over_since(state, 1101.0) is None


def test_circuits_of_the_project_have_no_end(project: Project) -> None:
    """Must not be taken for a session's: constraints, the loop, limits on what all sessions spend."""
    project.constraint("git-safety")
    with Breaker.open(project=project.root) as breaker:
        for number in range(5):
            breaker.record("git-safety", f"push {number}", session="s-one")
    with Breaker.open(project=project.root, clock=lambda: time.time() + 20 * DAY) as breaker:
        assert [one.id for one in breaker.statuses()] == ["git-safety"]


def test_a_circuit_that_was_recorded_by_hand_is_shown_for_a_day(project: Project) -> None:
    """No session of that name is remembered; its last move is what is known of it."""
    with Breaker.open(project=project.root) as breaker:
        for number in range(3):
            breaker.record(TOOL, f"failure {number}")
    assert looks(project) == [TOOL]
    assert looks(project, days=1.01) == []


# -- circuits that a person should look at ----------------------------------------------------------------------


def opens_again(project: Project, session: Session, times: int) -> None:
    """So many trips in a row after the first: each trial after the cooldown fails."""
    for _ in range(times):
        move_clock(project, 601)
        # Another error each time: the same again and again would be a loop as well.
        assert session.fails("make deploy", f"Exit code 3\n{'boom' * (session.calls + 1)}")[0].allowed


def told_to_look(project: Project) -> list[str]:
    return [
        line for line in project.run("status").stderr.splitlines() if TOOL in line and "a person should look" in line
    ]


def test_a_circuit_that_opens_again_and_again_is_one_dated_line(session: Session, project: Project) -> None:
    """However often it opens; it goes when the circuit closes."""
    opens_again(project, session, 3)
    assert told_to_look(project) == []
    opens_again(project, session, 4)
    (line,) = told_to_look(project)
    text = (
        rf"\d{{4}}-\d\d-\d\d \d\d:\d\d UTC: {re.escape(TOOL)}/s-one has opened 8 times in a row; a person should look"
    )
    assert re.search(text, line)
    assert "a person should look" in project.run("doctor").stdout
    move_clock(project, 3601)
    assert session.bash("make deploy", "done")[0].allowed
    assert told_to_look(project) == []


def test_its_line_ends_with_the_session(session: Session, project: Project) -> None:
    opens_again(project, session, 4)
    ends(session)
    assert told_to_look(project) == []
    with Breaker.open(project=project.root) as breaker:
        assert breaker.store.notices() == []


def test_its_line_can_be_acknowledged_until_it_opens_once_more(session: Session, project: Project) -> None:
    opens_again(project, session, 4)
    assert len(told_to_look(project)) == 1
    said = project.run("doctor", "--acknowledge")
    assert " acknowledged by " in said.stderr
    assert told_to_look(project) == []
    opens_again(project, session, 1)
    assert len(told_to_look(project)) == 1
