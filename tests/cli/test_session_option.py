"""Commands take the beginning of a session's id, and show sessions by their names."""

from __future__ import annotations

import json
import time

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.views.session_list import sessions_view
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

ONE, TWO, OVER = "479528ae-91f4-4945", "47a528ae-91f4-4945", "0d9c1b3e-91f4-4945"
NAME = 'claude "fix the login test" (479528ae)'


@pytest.fixture
def heard(project: Project) -> Project:
    """Two sessions that run, and one that has ended, of which was heard last."""
    project.starts_hooks = False
    for name in (TWO, ONE, OVER):
        session = Session(project, name)
        session.says("fix the login test")
        session.bash("ls")
    session.send("SessionEnd", reason="exit")
    return project


def test_status_names_the_session_whose_id_begins_so(heard: Project) -> None:
    assert heard.json("status", "--session", "479")["session"] == ONE
    assert heard.json("status", "--session", "479")["name"] == NAME
    assert f"Session: {NAME}, since " in heard.run("status", "--session", "479").stdout


def test_a_grant_is_for_the_session_whose_id_begins_so(heard: Project) -> None:
    done = heard.run("grant", "5", "--session", "479", "--reason", "worth it")
    assert done.stdout.startswith(f"Session {NAME}, tokens at list price: ")
    assert heard.json("grant", "5", "--session", "479", "--reason", "worth it")["key"] == ONE


def test_a_cost_is_added_to_the_session_whose_id_begins_so(heard: Project) -> None:
    added = heard.json("spend", "add", "0.12", "--source", "oracle", "--session", "479")
    assert added["session"] == ONE


def test_an_export_is_of_the_session_whose_id_begins_so(heard: Project) -> None:
    rows = [json.loads(line) for line in heard.run("export", "--session", "479").stdout.splitlines()]
    assert {row["session"] for row in rows if row["row"] == "doing"} == {ONE}


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("log",),
        ("export",),
        ("grant", "5", "--reason", "x"),
        ("spend", "add", "0.12", "--source", "oracle"),
    ],
)
def test_no_session_is_one_line_and_two_are_named(heard: Project, command: tuple[str, ...]) -> None:
    unknown = heard.run(*command, "--session", "zzz")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == "Error: no session 'zzz' has been heard of in this project\n"
    several = heard.run(*command, "--session", "47")
    assert (several.returncode, several.stdout) == (1, "")
    assert several.stderr.startswith("Error: 2 sessions begin with '47': claude ")
    assert several.stderr.count("\n") == 1


def test_ended_sessions_come_last_in_every_list(heard: Project) -> None:
    with Breaker.open(project=heard.root) as breaker:
        listed = sessions_view(breaker)
        assert [one.id for one in listed.sessions] == [ONE, TWO, OVER]
        assert listed.sessions[0].name == NAME
        assert [one.id for one in sessions_view(breaker, limit=1, offset=2).sessions] == [OVER]
    panel = json.loads(heard.run("watch", "--once", "--json").stdout.splitlines()[0])
    assert [one["id"] for one in panel["sessions"]] == [ONE, TWO, OVER]


def test_a_name_costs_one_look_at_the_persons_store_each(heard: Project) -> None:
    """Of a thousand sessions only those on the page are looked up there."""
    with Breaker.open(project=heard.root) as breaker:
        with breaker.store.transact() as transaction:
            for number in range(600):
                memory = {"since": time.time(), "at": time.time() - 10_000}
                transaction.remember(f"session/s{number}", memory, time.time() - 10_000)
                transaction.remember(f"session/s{number}/", {}, time.time() - 10_000)
        began = time.process_time()
        assert len(sessions_view(breaker).sessions) == 20
        assert time.process_time() - began < 2
