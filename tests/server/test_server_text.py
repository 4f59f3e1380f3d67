"""What others have written is text, on every page of `fusewire serve` and in every answer for programs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote, urlencode

import pytest

from fusewire.engine.breaker import Breaker
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.session_hook import Session
from tests.helpers.wire import ask, connected, heard, quiet_server
from tests.server.test_server_security import ALL, FORM

#: What would run, or leave its place, if one page did not escape it.
HOSTILE = "\"'><xss-probe onload=alert(1)></script><script>alert(1)</script>"
CIRCUIT = f"tool/tool_failure/{HOSTILE}"
SESSION = HOSTILE.replace("/", "|")


def live_in(project: Project) -> None:
    """Everything that a page shows, said by somebody who means harm."""
    with Breaker.open(project=project.root) as breaker:
        for number in range(5):
            breaker.record(CIRCUIT, f"{HOSTILE} {number}", session=f"{HOSTILE}{number}")
        with breaker.store.transact() as transaction:
            transaction.notice(HOSTILE, time.time())
    session = Session(project, id=SESSION)
    session.tool("Bash", {"command": HOSTILE}, error=HOSTILE)
    session.tool(HOSTILE, {"path": HOSTILE}, error=HOSTILE)
    project.run("attempt", "start", HOSTILE, HOSTILE)
    project.run("attempt", "record", HOSTILE, HOSTILE, "--fail", "--strategy", HOSTILE)


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quiet_server(tmp_path_factory, live_in) as server:
        server.log_in()
        yield server


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "/\\evil.example",
        "http://evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "evil.example",
        "/\t/evil.example",
        "\t//evil.example",
        "/\r\nSet-Cookie: injected=1",
        "/%0d%0aSet-Cookie: injected=1",
        "/" + "a" * 5000,
    ],
)
def test_logging_in_leads_to_a_page_of_this_server(person: Served, to: str) -> None:
    """Wherever somebody's link says that one should go afterwards."""
    fields = urlencode({"token": person.token, "to": to}).encode()
    answer = ask(person, "/login", "POST", FORM, body=fields)
    assert answer.status == 303
    assert re.match(r"/($|[^/\\])", answer.header("location"))
    assert "injected" not in " ".join(answer.headers)
    assert len(answer.headers["set-cookie"]) == 1
    shown = _Tags.of(ask(person, f"/login?{urlencode({'to': to})}").text)
    (value,) = (given["value"] for tag, given in shown.found if tag == "input" and given.get("name") == "to")
    assert re.match(r"/($|[^/\\])", value)


def test_fields_of_a_form_cannot_add_headers(person: Served) -> None:
    """The page to return to names the circuit that was sent, whatever that is."""
    for back in ("circuit", "session", "\r\nX-Injected: 1"):
        text = "x\r\nX-Injected: 1\r\n\r\n<script>"
        fields = {"form_secret": person.form_secret(), "circuit": text, "session": text, "back": back, "reason": text}
        answer = ask(
            person, "/p/project/act/reset", "POST", FORM, f"Cookie: {person.cookie}", body=urlencode(fields).encode()
        )
        assert answer.status == 303
        assert answer.header("location").startswith("/p/project/")
        assert "x-injected" not in answer.headers
        assert answer.body == b""


class _Tags(HTMLParser):
    """The elements of a page as a browser builds them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    @classmethod
    def of(cls, text: str) -> _Tags:
        tags = cls()
        tags.feed(text)
        return tags

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def holds_only_our_own(text: str) -> None:
    """No element of theirs, nothing that runs but our own files, no address that is not ours."""
    for tag, given in _Tags.of(text).found:
        assert "xss" not in tag
        assert not [name for name in given if name.startswith("on") or name == "style"]
        assert tag not in ("style", "base", "iframe", "object", "embed")
        if tag == "script":
            assert given["src"].startswith("/static/")
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            assert given.get(name, "/").startswith(("/", "#")), given
            assert not given.get(name, "/").startswith(("//", "/\\")), given


def test_hostile_text_is_text_on_every_page(person: Served) -> None:
    """Ids, actions, sessions, tools, errors and notices; on pages about them and on pages that know none such."""
    pages = [
        path
        for method, path in ALL
        if method == "GET" and not path.startswith(("/api", "/events", "/static", "/metrics"))
    ]
    asked = [f"{path}?id={quote(text)}" for path in pages for text in (HOSTILE, CIRCUIT, SESSION)]
    wanted = [*pages, *asked, f"/p/{quote(HOSTILE, safe='')}/", f"/{quote(HOSTILE)}", f"/login?to=/{quote(HOSTILE)}"]
    shown = {}
    for path in wanted:
        answer = ask(person, path, "GET", f"Cookie: {person.cookie}", "Accept: text/html")
        assert answer.header("content-type").startswith("text/html"), path
        assert answer.status in (200, 400, 404), path
        holds_only_our_own(answer.text)
        shown[path] = "xss-probe" in answer.text
    assert shown["/"]
    assert shown["/p/project/sessions"]
    assert shown[f"/p/project/circuit?id={quote(CIRCUIT)}"]
    assert shown[f"/p/project/session?id={quote(SESSION)}"]


def test_hostile_text_is_data_for_programs(person: Served) -> None:
    """JSON, metrics and events are never taken for a page, and a line of theirs is one line."""
    for path in (path for method, path in ALL if method == "GET" and path.startswith(("/api", "/metrics"))):
        answer = ask(person, f"{path}?id={quote(HOSTILE)}", "GET", f"Cookie: {person.cookie}", "Accept: text/html")
        assert answer.header("content-type").startswith(("application/json", "text/plain")), path
    with connected(person) as connection:
        lines = f"GET /events?after=project:0 HTTP/1.1\r\nHost: {person.host}\r\nCookie: {person.cookie}\r\n\r\n"
        connection.sendall(lines.encode())
        raw = b""
        while b"event: changed" not in raw:
            raw += connection.recv(65536)
    answer = heard(raw)
    assert answer.header("content-type").startswith("text/event-stream")
    assert "xss-probe" in answer.text
    sent = [line for line in re.sub(r"\r\n[0-9a-f]+\r\n", "", answer.text).split("\n") if line.strip()]
    assert all(line.startswith(("retry: ", "id: project:", "event: ", "data: [", "data: {", ":")) for line in sent[1:])


def test_a_refusal_is_in_the_words_of_whoever_asks(person: Served) -> None:
    """A page for a browser, JSON for a program, a line for anybody else; each with all headers (`heard` looks)."""
    for accept, kind in (("text/html", "text/html"), ("*/*", "text/plain")):
        assert ask(person, "/nowhere", "GET", f"Accept: {accept}").header("content-type").startswith(kind)
    assert ask(person, "/api/v1/nowhere").header("content-type") == "application/json"
    assert ask(person, "/api/v1/projects", host="evil.example").header("content-type") == "application/json"
