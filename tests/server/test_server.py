"""`fusewire serve`: logging in, the panel, what a person does there, and an end that leaves nothing behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.helpers.project import Project
from tests.helpers.serving import Served

RULE = "git-safety-force-push"


def trip(project: Project) -> None:
    """Five violations in five sessions open the constraint's circuit."""
    project.constraint(RULE, "circuit_breaker: {dedup_seconds: 0}\n")
    for number in range(5):
        done = project.run("record", RULE, "--action", f"git push --force {number}", "--session", f"s{number}")
        assert done.returncode == 0, done.stderr


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    trip(project)
    with Served(project.root) as server:
        yield server


def test_a_browser_logs_in_once_and_sees_what_is_tripped(served: Served) -> None:
    """Without the token there is nothing to see; with it, the circuit, why, and what to do."""
    away = served.get("/")
    assert (away.status, away.headers["location"]) == (303, "/login")
    assert RULE not in served.get("/login").text
    assert served.post("/login", {"token": "wrong"}).status == 403
    assert (
        served.post("/login", {"token": f" {served.address}login#token={served.token} "}).status == 303
    )  # pasted whole
    served.log_in()
    text = served.get("/").text
    assert "1 circuit is open" in text
    assert RULE in text
    assert "5 of 5" in text
    assert "git push --force 4" in text
    assert served.token not in text


def test_a_person_resets_with_a_reason(served: Served, project: Project) -> None:
    """The reason and the person are in the audit trail, and the page says what came of it."""
    served.log_in()
    fields = {"form_secret": served.form_secret(), "circuit": RULE, "reason": "the branch was mine"}
    answer = served.post("/p/project/act/reset", fields)
    assert (answer.status, answer.headers["location"]) == (303, "/p/project/")
    assert f"{RULE} is closed" in served.get("/p/project/").text
    assert f"{RULE} is closed" not in served.get("/p/project/").text  # said once
    moves = project.json("history", RULE)["transitions"]
    assert moves[0]["reason"] == "the branch was mine"
    assert moves[0]["actor"]


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_without_a_reason_nothing_is_reset(served: Served, project: Project, reason: str) -> None:
    served.log_in()
    served.post("/p/project/act/reset", {"form_secret": served.form_secret(), "circuit": RULE, "reason": reason})
    assert "a reason is needed" in served.get("/").text
    assert project.json("status", RULE)["circuits"][0]["state"] == "OPEN"


def test_a_state_that_is_only_in_its_mirror_is_rebuilt_before_anybody_looks(project: Project) -> None:
    """A clone has the constraints' state file and no database: what is open there is open on the page."""
    trip(project)
    shutil.rmtree(project.root / ".fusewire")
    with Served(project.root) as server:
        server.log_in()
        assert "1 circuit is open" in server.get("/").text


def test_an_end_is_clean(served: Served) -> None:
    """Ctrl-C ends it at once, with nothing on standard error but what it said."""
    code, errors = served.stop()
    assert code in (0, 130)
    assert "Traceback" not in errors


def test_a_server_started_inside_an_agent_changes_nothing(project: Project) -> None:
    """It shows everything, says why it acts on nothing, and refuses a form all the same."""
    trip(project)
    with Served(project.root, env={"CLAUDECODE": "1"}) as server:
        assert "inside an agent" in server.said["read_only"]
        server.log_in()
        text = server.get("/").text
        assert "changes nothing" in text
        assert "Reset…" not in text
        server.post("/p/project/act/reset", {"form_secret": server.form_secret(), "circuit": RULE, "reason": "mine"})
        assert project.json("status", RULE)["circuits"][0]["state"] == "OPEN"
