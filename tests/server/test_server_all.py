"""`fusewire serve --all`: every project of a person on one server, live, with the rules of every other page."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from fusewire.server.api.openapi import document
from fusewire.server.live import EVERYTHING, write_place
from tests.helpers.many_projects import damage, end, halt, make_repository, many_projects, remove, violate_once, work
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.server.test_server_api import token
from tests.server.test_server_openapi import strict
from tests.server.test_server_pages import Shown
from tests.views.test_overview_all import listing

ALL = ("--all",)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the projects lie; the server is started in a folder that is none."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "code"


@pytest.fixture
def served(code: Path) -> Iterator[Served]:
    (quiet,), trees, (halted,) = (
        make_repository(code / "quiet"),
        make_repository(code / "shop", "login"),
        make_repository(code / "halted"),
    )
    end(work(quiet, "s-quiet"))
    halt(halted, "s-halted", "make the <b>tests</b> pass")
    for tree in trees:
        work(tree, f"s-{tree.root.name}")
    with Served(arguments=ALL) as server:
        server.log_in()
        yield server


def overview(server: Served) -> Any:
    answer = server.get("/api/v1/overview", bearer=token("reader"))
    assert answer.status == 200, answer.text
    return answer.json()


def names(server: Served) -> list[str]:
    return [one["name"] for one in overview(server)["projects"]]


def shown(server: Served, path: str = "/") -> Shown:
    answer = server.get(path, headers={"Accept": "text/html", "Cookie": server.cookie})
    assert answer.status == 200, answer.text
    return Shown(answer.text)


def wait_for(fact: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_first_page_says_what_needs_a_person_and_leads_there(served: Served) -> None:
    page = shown(served)
    assert page.all("title") == [{}]
    words = page.words
    assert "(1) Everything · Fusewire" in words
    assert "1 thing needs you, in 1 project; 2 sessions run" in words
    assert words.index("Needs you (1)") < words.index("Running (1)") < words.index("Quiet (1)")
    assert 'claude "make the <b>tests</b> pass" (s-halted) halted: tool.repetition' in words
    links = [one["href"] for one in page.all("a")]
    assert "/p/halted/session?id=s-halted" in links
    assert {"/p/shop/", "/p/shop-login/", "/p/quiet/"} <= set(links)
    assert "s-halted" in shown(served, "/p/halted/session?id=s-halted").words


def test_the_overview_is_as_the_document_says(served: Served) -> None:
    found = overview(served)
    schema = {"$ref": "#/components/schemas/Overview", "components": strict(document("cookie")["components"])}
    errors = jsonschema_rs.Draft202012Validator(schema, validate_formats=True).iter_errors(found)
    assert [(list(one.instance_path), one.message[:200]) for one in errors] == []
    assert [(one["name"], one["rank"]) for one in found["projects"]] == [
        ("halted", "answer"),
        ("shop", "running"),
        ("quiet", "quiet"),
    ]


def test_a_server_of_named_projects_has_the_overview_of_these(code: Path) -> None:
    (first,), (second,) = make_repository(code / "first"), make_repository(code / "second")
    work(first, "s-1")
    work(second, "s-2")
    with Served(first.root) as server:
        assert names(server) == ["first"]


def test_without_a_key_there_is_nothing_to_see(served: Served) -> None:
    served.cookie = ""
    assert served.get("/").status == 303
    assert served.get("/api/v1/overview").status == 401
    assert served.get("/api/v1/overview", headers={"Host": "example.org"}).status == 421
    assert served.get("/api/v1/overview?x=1", bearer=token("reader")).status == 400


def test_a_new_project_appears_and_a_deleted_one_leaves(served: Served, code: Path) -> None:
    (new,) = make_repository(code / "new")
    work(new, "s-new")
    wait_for(lambda: "new" in names(served))
    wait_for(lambda: served.get("/p/new/").status == 200)
    remove(Project(code / "quiet"))
    wait_for(lambda: "quiet" not in names(served))
    assert overview(served)["gone"] == [str(code / "quiet")]
    assert "1 folder no longer there" in shown(served).words
    wait_for(lambda: served.get("/p/quiet/").status == 404)
    listed = served.get("/api/v1/projects", bearer=token("reader")).json()["projects"]
    assert [one["name"] for one in listed] == ["halted", "shop", "shop-login", "new"]  # each keeps its name
    assert 'project="new"' in served.get("/metrics", bearer=token("reader")).text
    (again,) = make_repository(code / "quiet")
    work(again, "s-again")
    wait_for(lambda: served.get("/p/quiet/").status == 200)


def test_a_page_is_told_when_something_needs_a_person(served: Served, code: Path) -> None:
    """The event names the feed of everything, which the page listens to."""
    import http.client

    assert [one for one in shown(served).all("main") if one["data-live"] == "~"]
    connection = http.client.HTTPConnection(served.host, timeout=30)
    connection.request("GET", "/events", headers={"Cookie": served.cookie})
    stream = connection.getresponse()
    told = b""
    while b'"~"' not in told:  # at first everything is new
        told += stream.readline()
    halt(Project(code / "quiet", starts_hooks=False), "s-other")
    told = b""
    while not ((b"event: changed" in told) and b'"~"' in told):
        told += stream.readline()
    connection.close()
    wait_for(lambda: overview(served)["needs"] == 2)


def test_the_place_of_a_page_among_many_projects_is_short_enough_to_be_sent() -> None:
    """A browser repeats it in a header; what does not fit is left out as a whole."""
    place = write_place({f"service-{number:04}": 10**6 + number for number in range(1000)} | {EVERYTHING: 0})
    assert len(place) <= 4096
    assert re.fullmatch(r"(service-\d{4}:1000\d{3},)+service-\d{4}:1000\d{3}", place)


def test_a_damaged_project_says_so_and_the_others_are_shown(served: Served, code: Path) -> None:
    damage(Project(code / "shop"))
    wait_for(lambda: "NEEDS" if overview(served)["needs"] == 2 else "")
    words = shown(served).words
    assert "State the state database cannot be read" in words
    assert "fusewire doctor" in words
    assert "The state cannot be read" in shown(served, "/p/shop/").words


@pytest.mark.skipif(not UNPRIVILEGED and os.geteuid() == 0, reason="file modes do not count here")
def test_a_project_of_another_user_says_so(code: Path) -> None:
    (project,), (other,) = make_repository(code / "closed"), make_repository(code / "open")
    work(project, "s-1")
    work(other, "s-2")
    project.root.chmod(0)
    try:
        import sys

        program = (
            "-c",
            f"import os, sys; os.execvp({[*UNPRIVILEGED, sys.executable][0]!r}, "
            f"{[*UNPRIVILEGED, sys.executable, '-m', 'fusewire']!r} + sys.argv[1:])",
        )
        with Served(arguments=ALL, program=program) as server:
            found = {one["name"]: one["folders"][0]["problem"] for one in overview(server)["projects"]}
            assert found["open"] is None
            assert "Permission denied" in found["closed"]
    finally:
        project.root.chmod(0o755)


def test_looking_writes_nothing_in_any_project(code: Path) -> None:
    many_projects(code, 6)
    before = listing(code)
    with Served(arguments=ALL) as server:
        server.log_in()
        shown(server)
        overview(server)
        shown(server, "/p/service-03/")
        assert server.get("/metrics", bearer=token("reader")).status == 200
        assert listing(code) == before


def test_numbers_are_of_each_project(served: Served) -> None:
    text = served.get("/metrics", bearer=token("reader")).text
    assert 'fusewire_store_readable{project="shop-login"} 1.0' in text
    assert 'fusewire_sessions{project="halted",state="halted"} 1.0' in text


def test_a_project_of_version_one_is_shown_where_the_server_is_started_in_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    violate_once(project)
    monkeypatch.chdir(project.root)
    with Served(arguments=ALL) as server:
        assert names(server) == ["project"]


def test_a_folder_without_a_state_is_no_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    with Served(arguments=ALL) as server:
        server.log_in()
        assert names(server) == []
        assert "No agent has been heard of yet" in shown(server).words
        assert not (project.root / ".fusewire").exists()


def test_all_and_named_projects_exclude_each_other(project: Project) -> None:
    done = project.run("serve", "--all", str(project.root))
    assert done.returncode == 2
    assert "--all is every project, and PROJECT... some" in done.stderr


def test_a_person_acts_on_the_page_of_a_project(served: Served, code: Path) -> None:
    project = Project(code / "quiet")
    violate_once(project)
    wait_for(lambda: [one for one in overview(served)["projects"] if one["rank"] == "waiting"])
    fields = {"circuit": "no-force-push", "reason": "looked at it", "form_secret": served.form_secret("/p/quiet/")}
    assert served.post("/p/quiet/act/reset", fields).status == 303
    wait_for(lambda: not [one for one in overview(served)["projects"] if one["rank"] == "waiting"])
