"""`POST /api/v1/halt` and `/resume`: a gateway's kill switch, with a token that can do nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire.server.access import kept_token, token_file
from tests.helpers.clients import Client
from tests.helpers.project import Project
from tests.helpers.serving import Answer, Served

JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def _made() -> None:
    """As `fusewire serve --halt-token` does."""
    kept_token("halt")


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    with Served(project.root) as server:
        yield server


def post(server: Served, name: str, body: Any, role: str = "halt") -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    token = server.token if role == "person" else kept_token(role)
    return server.request("POST", f"/api/v1/{name}", text, JSON, bearer=token)


def test_a_gateway_halts_and_lets_go_on(served: Served, project: Project) -> None:
    halted = post(served, "halt", {"scope": "all", "reason": "the gateway has seen a leak"})
    assert halted.status == 200, halted.text
    assert halted.json()["done"] == "halted: all agents"
    assert halted.json()["halts"][0]["by"] == "the halt token"
    refused = Client("claude", project.root).shell("ls")
    assert not refused.allowed
    assert "by the halt token" in refused.text
    assert "the gateway has seen a leak" in refused.text
    panel = served.get("/api/v1/projects/project/panel", bearer=served.token).json()
    assert panel["orders"]["halts"][0]["reason"] == "the gateway has seen a leak"
    served.log_in()
    page = served.get("/").text
    assert "the gateway has seen a leak" in page
    assert "All agents are halted by a person" in page
    assert post(served, "resume", {"scope": "all"}).json() == {"done": "1 halt lifted", "halts": []}
    assert Client("claude", project.root).shell("ls", "call_2").allowed


def test_a_project_and_a_session_are_scopes_too(served: Served, project: Project) -> None:
    assert post(served, "halt", {"scope": "project", "reason": "x"}).status == 200
    assert post(served, "resume", {"scope": "project", "project": "project", "reason": "y"}).status == 200
    Client("claude", project.root).shell("make")
    assert post(served, "halt", {"scope": "session", "session": "4795", "reason": "x"}).status == 200
    assert not Client("claude", project.root).shell("ls").allowed
    assert Client("claude", project.root, "another").shell("ls").allowed


def test_of_several_projects_one_has_to_be_named(project: Project, tmp_path: Path) -> None:
    other = shutil.copytree(project.root, tmp_path / "other")
    with Served(project.root, other) as server:
        unnamed = post(server, "halt", {"scope": "project", "reason": "x"})
        assert (unnamed.status, unnamed.json()["error"]) == (400, "project is needed: project, other")
        assert post(server, "halt", {"scope": "project", "project": "other", "reason": "x"}).status == 200
    assert Client("claude", project.root).shell("ls").allowed
    assert not Client("claude", other).shell("ls").allowed


def test_what_a_person_has_halted_at_a_terminal_the_token_does_not_lift(served: Served, project: Project) -> None:
    assert project.run("halt", "--all", "--reason", "x").returncode == 0
    refused = post(served, "resume", {"scope": "all"})
    assert refused.status == 409
    assert "at a terminal" in refused.json()["error"]
    assert not Client("claude", project.root).shell("ls").allowed
    assert post(served, "resume", {"scope": "all"}, role="person").status == 200


def test_the_halt_token_can_do_nothing_else(served: Served) -> None:
    token = kept_token("halt")
    for path in ("/api/v1/projects", "/api/v1/projects/project/panel", "/metrics", "/events"):
        assert served.get(path, bearer=token).status == 403, path
    for name in ("reset", "grant", "resolve"):
        assert post(served, f"projects/project/{name}", {}).status == 403
    hook = served.request("POST", "/hooks/claude", "{}", JSON, bearer=token)
    assert hook.status == 403


def test_another_token_halts_nothing(served: Served, project: Project) -> None:
    body = {"scope": "all", "reason": "x"}
    assert post(served, "halt", body, role="reader").status == 403
    assert served.request("POST", "/api/v1/halt", json.dumps(body), JSON, bearer="x" * 43).status == 401
    assert served.request("POST", "/api/v1/halt", json.dumps(body), JSON).status == 401
    assert served.get("/api/v1/halt", bearer=kept_token("halt")).status == 405
    assert Client("claude", project.root).shell("ls").allowed


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("{", 400, "no JSON object"),
        ([], 400, "no JSON object"),
        ({}, 400, "scope is needed: all, project, session"),
        ({"scope": "world", "reason": "x"}, 400, "allowed: all, project, session"),
        ({"scope": "all"}, 400, "reason is needed"),
        ({"scope": "all", "reason": " "}, 400, "reason = ' ' is refused"),
        ({"scope": "all", "reason": "x" * 301}, 400, "reason = "),
        ({"scope": "all", "reason": "x", "session": "s"}, 400, "'session' is not known here"),
        ({"scope": "session", "reason": "x"}, 400, "session is needed"),
        ({"scope": "session", "session": "nobody", "reason": "x"}, 404, "no session 'nobody' has been heard of"),
        ({"scope": "project", "project": "nowhere", "reason": "x"}, 404, "no project 'nowhere'"),
    ],
)
def test_a_body_that_makes_no_sense_is_one_clear_line(served: Served, body: Any, status: int, words: str) -> None:
    answer = post(served, "halt", body)
    assert answer.status == status, answer.text
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_an_agent_that_has_read_the_token_lifts_nothing(served: Served, project: Project) -> None:
    """Whatever runs inside an agent is refused by its process, whichever token it sends."""
    assert post(served, "halt", {"scope": "all", "reason": "x"}).status == 200
    script = (
        "import http.client, sys\n"
        f"c = http.client.HTTPConnection('{served.host}')\n"
        "c.request('POST', '/api/v1/resume', '{\"scope\": \"all\"}', {'Content-Type': 'application/json',"
        f" 'Authorization': 'Bearer ' + open({token_file('halt')!r}).read().strip()}})\n"
        "print(c.getresponse().status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "CLAUDECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "403"
    assert not Client("claude", project.root).shell("ls").allowed


def test_the_token_is_its_owner_s_alone(served: Served) -> None:
    assert os.stat(token_file("halt")).st_mode & 0o077 == 0
    assert kept_token("halt") != kept_token("reader")


def test_without_being_asked_for_there_is_no_such_token(project: Project) -> None:
    """It may be made later, while the server runs."""
    os.unlink(token_file("halt"))
    with Served(project.root) as server:
        assert not os.path.exists(token_file("halt"))
        assert server.request("POST", "/api/v1/halt", "{}", JSON, bearer="x" * 43).status == 401
        assert post(server, "halt", {"scope": "all", "reason": "x"}).status == 200
    os.unlink(token_file("halt"))
    with Served(project.root, arguments=("--halt-token",)):
        assert os.path.exists(token_file("halt"))
