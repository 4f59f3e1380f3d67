"""Every page of `fusewire serve` on a project in which everything has happened, on one in which nothing has, and on one
whose agents mean harm; asked of the real server, without a browser."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from fusewire.breakers.attempt.tracker import Attempts
from fusewire.breakers.attempt.types import Attempt
from fusewire.engine.breaker import Breaker
from fusewire.server.filters import step
from tests.helpers.lived_in import QUIET_RULE, RULE, SESSION, live_in, trip
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.session_hook import Session
from tests.helpers.wire import quiet_server

DAY = 86400.0
FAILING = f"tool/tool_failure/Bash(pytest)/{SESSION}"

PAGES = {
    "panel": "/p/project/",
    "circuit": f"/p/project/circuit?id={RULE}",
    "sessions": "/p/project/sessions",
    "session": f"/p/project/session?id={SESSION}",
    "loop": "/p/project/loop",
    "attempts": "/p/project/attempts",
    "memory": "/p/project/memory",
}


class Shown(HTMLParser):
    """A page as somebody gets it: its words, its elements, and what the pictures in it say."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._words: list[str] = []
        self._within: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._within:
            while self._within.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._within[-1:] not in (["script"], ["style"]):
            self._words.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self._words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [given for name, given in self.elements if name == tag]


def shown(served: Served, path: str, status: int = 200) -> Shown:
    answer = served.get(path, headers={"Accept": "text/html", "Cookie": served.cookie})
    assert answer.status == status, answer.text
    return Shown(answer.text)


def remembers(project: Project) -> None:
    """A memory folder with something to do for the next cleanup, and an earlier one."""
    folder = project.root / ".claude" / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    telemetry = folder / "tool_telemetry.jsonl"
    telemetry.write_text('{"n": 1}\n' * 1001)
    assert project.run("janitor").returncode == 0
    telemetry.write_text('{"n": 1}\n' * 1002)


def everything(project: Project) -> None:
    live_in(project)
    remembers(project)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quiet_server(tmp_path_factory, everything) as server:
        server.log_in()
        yield server


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quiet_server(tmp_path_factory, lambda project: None) as server:
        server.log_in()
        yield server


# -- what each page says ----------------------------------------------------------------------------------

FACTS = {
    "panel": [f"{RULE} OPEN 5 of 5 within 30d", "Never force-push", "fusewire reset", "Closed ("],
    "circuit": [
        "Never force-push",
        "5 violations within 30d (limit 5)",
        "git push --force origin main~4",
        "left of 1d: a probe is allowed at",
        "1d after every trip",
        "CLOSED → OPEN",
        "not over yet",
        "violation_threshold 5 default",
        "dedup_seconds 0 docs/constraints/git-safety-force-push.md",
        "1 trip, 5 counted, 0 not counted, 0 by people; OPEN now",
    ],
    "sessions": [f"({SESSION[:8]})", "$2.40"],
    "session": [
        "6 calls that worked, 3 failed",
        "this tool failed 3 times in 5 turns (limit 3)",
        "$2.40 of $3.00",
        "general-purpose: read the documentation",
        "9 calls, 3 of them failed",
        "refused tool.tool_failure:Bash(pytest): pytest -q",
        "10 left of 10",
        "1 of 5",
        "Grant this session more",
    ],
    "loop": [
        "The loop is stopped",
        "loop/no_progress",
        "97 of 100",
        "Escalate to user",
        "iteration 1: -3 (no file was changed -3)",
        "ALERT: 0 for 3+ iterations",
        "cannot connect to the database",
    ],
    "attempts": [
        "1 slice is stopped",
        "test_taken_email stopped ●●● 3 of 3",
        "test_registers passed",
        "catch the exception",
        "Which key is canonical?",
        'fusewire attempt retry S-1 --guidance "..."',
        "the contract and the test name different keys",
        "None is defined: the agent may change any file",
    ],
    "memory": [
        "The next cleanup has 1 thing to do",
        "1002 lines, 8.8 KB 1000 lines, 50 KB",
        "would rotate tool_telemetry.jsonl (over 1000 lines)",
        "Rotations so far (1)",
        "9.2 KB 5 MB",
    ],
}


@pytest.mark.parametrize("name", FACTS)
def test_a_page_says_its_facts(lived: Served, name: str) -> None:
    words = shown(lived, PAGES[name]).words
    missing = [fact for fact in FACTS[name] if fact not in words]
    assert missing == [], words


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_built_as_a_reader_of_screens_needs_it(lived: Served, name: str) -> None:
    """One h1, headings in order, columns and pictures with names, boxes that scroll by keyboard; ids that are one."""
    page = shown(lived, PAGES[name])
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False)), levels
    assert all(given.get("scope") in ("col", "row") for given in page.all("th"))
    pictures = page.all("svg")
    assert all("aria-hidden" in given or given.get("role") == "img" or "viewbox" in given for given in pictures)
    assert all(
        given.get("tabindex") == "0" and given.get("aria-label")
        for tag, given in page.elements
        if given.get("class") == "scroll"
    )
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert len(ids) == len(set(ids)), sorted(ids)
    assert not [given for _, given in page.elements if "style" in given or any(key.startswith("on") for key in given)]
    assert all("data-keep" in given and given.get("id") for given in page.all("details"))
    (main,) = page.all("main")
    assert main["data-live"] == "project"


@pytest.mark.parametrize("name", PAGES)
def test_what_is_listed_is_known_again(lived: Served, name: str) -> None:
    """Rows have ids, so that an update leaves those on the page that are still there."""
    page = shown(lived, PAGES[name])
    rows = [given for tag, given in page.elements if tag == "li" and given.get("class", "").startswith(("is-", "fuse"))]
    assert all(given.get("id") for given in rows)
    again = {given["id"] for _, given in shown(lived, PAGES[name]).elements if "id" in given}
    assert {given["id"] for given in rows} <= again


def test_circuits_of_every_kind_have_a_page(lived: Served) -> None:
    """Those that are listed on the panel, whatever is in their ids."""
    links = [given["href"] for given in shown(lived, PAGES["panel"]).all("a") if "/circuit?" in given.get("href", "")]
    assert len(links) > 8
    for link in links:
        page = shown(lived, link)
        assert "Configuration" in page.words
        assert "How close it is" in page.words


def test_a_circuit_says_where_its_settings_are_changed(lived: Served) -> None:
    """In files, below the name of its breaker; no command changes them, and some are locked."""
    words = shown(lived, PAGES["circuit"]).words
    assert "fusewire.toml below [constraint] , or in the constraint's own file below circuit_breaker" in words
    assert "fusewire config" not in words
    assert "fusewire.toml below [phase]" in shown(lived, "/p/project/circuit?id=phase/GREEN").words
    locked = shown(lived, "/p/project/circuit?id=attempt/S-1/test_taken_email").words
    assert "Nothing changes what is locked." in locked
    assert "fusewire.toml" not in locked


def test_dollars_are_said_as_dollars(lived: Served) -> None:
    words = shown(lived, f"/p/project/circuit?id=tool/spend/{SESSION}").words
    assert "$2.40 of $3.00" in words


def test_a_circuit_that_waits_for_a_person_says_so(lived: Served) -> None:
    words = shown(lived, "/p/project/circuit?id=phase/GREEN").words
    assert "OPEN a person must act" in words
    assert "Resolve…" in words
    assert "None: it stays open until a person acts." in words


def test_the_days_of_a_history_can_be_chosen(lived: Served) -> None:
    """Out of three; anything else is the usual."""
    for given, told in (("7", "7 days"), ("365", "365 days"), ("-1", "60 days"), ("1e9", "60 days"), ("x" * 99, "60")):
        page = shown(lived, f"{PAGES['circuit']}&days={given}")
        assert f"in the last {told}" in page.words


def test_a_session_whose_id_has_slashes_has_a_page(project: Project) -> None:
    """Found by its link, with its circuits, and more can be granted to it from there."""
    project.starts_hooks = False
    session = Session(project, id="team/alpha 1/2")
    session.says("go")
    for _ in range(4):
        session.fails("make", "Exit code 2")
    with Served(project.root) as served:
        served.log_in()
        (path,) = links(shown(served, "/p/project/sessions"), "/session?")
        assert path == "/p/project/session?id=team%2Falpha+1%2F2"
        page = shown(served, path)
        assert "0 calls that worked, 3 failed" in page.words
        assert "Circuits of this session that are not closed" in page.words
        (circuit,) = links(page, "/circuit?")
        assert links(shown(served, circuit), "/session?") == [path]
        fields = {"form_secret": served.form_secret(path), "back": "session", "whom": "session"}
        given = {"session": session.id, "amount": "2", "reason": "worth it"}
        answer = served.post("/p/project/act/grant", {**fields, **given})
        assert (answer.status, answer.headers["location"]) == (303, path)
        assert "$0.00 of $27.00 ($2.00 of it granted)" in shown(served, path).words
        told = served.get("/api/v1/projects/project/session?id=team/alpha%201/2", bearer=served.token)
        assert (told.status, told.json()["session"]) == (200, session.id)


def test_a_circuit_leads_to_what_it_is_about(lived: Served) -> None:
    """Its session, the loop, or the attempts at its slice; and a constraint to nothing."""
    about = {
        FAILING: f"/p/project/session?id={SESSION}",
        f"tool/spend/{SESSION}": f"/p/project/session?id={SESSION}",
        "loop/no_progress": "/p/project/loop",
        "attempt/S-1/test_taken_email": "/p/project/attempts#slice-S-1",
    }
    for circuit, place in about.items():
        page = shown(lived, f"/p/project/circuit?id={quote(circuit)}")
        assert [given["href"] for given in page.all("a")].count(place) >= 1, circuit
        assert "More about it:" in page.words
    assert "More about it:" not in shown(lived, PAGES["circuit"]).words


def test_a_command_among_the_steps_can_be_copied_as_it_is(lived: Served) -> None:
    html = lived.get(PAGES["circuit"]).text
    assert "a person can run: <code>fusewire reset git-safety-force-push --reason &#34;...&#34;</code>" in html
    assert step("nothing <b> to run") == "nothing &lt;b&gt; to run"
    assert step('run: fusewire reset x/\u202ey --reason "..." (z)') == (
        "run: <code>fusewire reset x/[U+202E]y --reason &#34;...&#34;</code> (z)"
    )


def test_a_form_about_a_phase_does_nothing_to_another_one(project: Project) -> None:
    """The page was old: meanwhile somebody has decided, and another phase is open."""
    for _ in range(3):
        project.run("phase", "begin", "RED")
        project.run("phase", "end", "RED", "--metric", "tests_generated=0")
    with Served(project.root) as served:
        served.log_in()
        secret = served.form_secret("/p/project/")
        fields = {"form_secret": secret, "choice": "reset", "reason": "I looked at it"}
        assert served.post("/p/project/act/resolve", {**fields, "circuit": "phase/GREEN"}).status == 303
        assert "GREEN is not open any more, and RED is" in shown(served, "/p/project/").words
        with Breaker.open(project=project.root) as breaker:
            assert breaker.status("phase/RED").state == "OPEN"
        assert served.post("/p/project/act/resolve", {**fields, "circuit": "phase/RED"}).status == 303
        assert "RED is closed" in shown(served, "/p/project/").words
    with Breaker.open(project=project.root) as breaker:
        assert [row.reason for row in breaker.audit("phase/RED") if row.cause == "resolved"] == [
            "reset: I looked at it"
        ]


def test_what_has_only_begun_has_its_page(project: Project) -> None:
    """The first iteration, session, phase and attempt, before anything came of them; on every page and in JSON."""
    begun: list[Callable[[], object]] = [
        lambda: project.run("loop", "begin"),
        lambda: Session(project, id="just-begun").send("SessionStart", source="startup"),
        lambda: Session(project, id="asked").before("Bash", {"command": "ls"}),
        lambda: project.run("phase", "begin", "GREEN"),
        lambda: project.run("attempt", "start", "S-1", "test_login"),
    ]
    with Served(project.root) as served:
        served.log_in()
        for act in begun:
            act()
            for path in ("", "sessions", "loop", "attempts", "memory", "session?id=just-begun", "session?id=asked"):
                answer = served.get(f"/p/project/{path}")
                assert answer.status in ((200, 404) if "?" in path else (200,)), (path, answer.text)
            for name in ("panel", "sessions", "loop", "attempts", "memory"):
                assert served.get(f"/api/v1/projects/project/{name}").status == 200, name
        assert "The loop runs" in shown(served, "/p/project/loop").words
        assert "Tasks done 0" in shown(served, "/p/project/loop").words
        assert served.get("/p/project/session?id=asked").status == 200


# -- lists in pages ---------------------------------------------------------------------------------------


def links(page: Shown, part: str) -> list[str]:
    """Where the links of a page lead that have this in their addresses; each once."""
    return list(dict.fromkeys(given["href"] for given in page.all("a") if part in given.get("href", "")))


def test_older_sessions_are_behind_plain_links(project: Project) -> None:
    """Each session once, and back again; the one that is halted is at the top of every page."""
    project.starts_hooks = False
    stuck = Session(project, id="stuck")
    while not any(said.halted for said in stuck.fails("make", "Exit code 2\nthe same")):
        pass
    for number in range(44):
        Session(project, id=f"s{number:02}").bash("ls", "x")
    with Served(project.root) as served:
        served.log_in()
        place, seen, counts = "/p/project/sessions", [], []
        while place:
            page = shown(served, place)
            assert "1 session is halted" in page.words
            assert re.search(r"Session claude since [^(]*\(stuck\) is halted: tool.tool_failure", page.words)
            seen += [given["id"].removeprefix("session-") for given in page.all("tr") if "id" in given]
            counts.append(re.findall(r"\d+ to \d+ of 45", page.words))
            ways = {given["rel"]: given["href"] for given in page.all("a") if "rel" in given}
            place = ways.get("next", "")
        assert seen == [*(f"s{number:02}" for number in range(43, -1, -1)), "stuck"]
        assert counts == [["1 to 20 of 45"], ["21 to 40 of 45"], ["41 to 45 of 45"]]
        assert ways == {"prev": "/p/project/sessions?offset=20"}
        panel = shown(served, "/p/project/").words
        assert "1 session is halted" in panel
        assert "44 running, 1 halted" in panel
        assert 'class="head bad"' in served.get("/p/project/").text
        counted = served.get("/metrics", bearer=served.token).text
        assert 'fusewire_sessions{project="project",state="halted"} 1.0' in counted
        assert 'fusewire_sessions{project="project",state="running"} 44.0' in counted
        for odd in ("-1", "x", "1e9", "9" * 30, "٣", ""):
            assert "1 to 20 of 45" in shown(served, f"/p/project/sessions?offset={quote(odd)}").words
        assert "None here, 45 in all" in shown(served, "/p/project/sessions?offset=900").words


def test_older_slices_are_behind_plain_links(project: Project) -> None:
    """The stopped one first, on the first page; the head counts all of them."""
    with Breaker.open(project=project.root) as breaker:
        for number in range(25):
            Attempts(breaker).record_attempt(f"S-{number}", "test_a", Attempt("pass", files=[]))
        for _ in range(3):
            Attempts(breaker).record_attempt("S-0", "test_b", Attempt("fail", files=[]))
    with Served(project.root) as served:
        served.log_in()
        first, rest = (shown(served, f"/p/project/attempts{query}") for query in ("", "?offset=20"))
        one, other = ([given["id"] for given in page.all("section") if "id" in given] for page in (first, rest))
        assert (one[0], len(one), len(other), len({*one, *other})) == ("slice-S-0", 20, 5, 25)
        assert "1 to 20 of 25" in first.words
        assert "21 to 25 of 25" in rest.words
        for page in (first, rest):
            assert "1 slice is stopped" in page.words
        assert links(first, "offset=") == ["/p/project/attempts?offset=20"]
        assert "/p/project/attempts" in links(rest, "/attempts")


# -- several projects, and one that cannot be read --------------------------------------------------------


def test_all_projects_are_told_in_one_look(project: Project, tmp_path: Path) -> None:
    """Under the names of their folders, whatever letters those have; one that cannot be read is told at the top."""
    trip(project)
    other, lost = Project(tmp_path / "Проект №1"), Project(tmp_path / "lost")
    for one in (other, lost):
        one.root.mkdir()
        trip(one)
    with Served(project.root, other.root, lost.root) as served:
        served.log_in()
        database = lost.root / ".fusewire" / "state.db"
        database.rename(database.with_suffix(".gone"))
        page = shown(served, "/")
        assert "3 projects: 2 circuits open, 1 cannot be read; $0.00 today" in page.words
        assert "Проект №1 1 circuit is open" in page.words
        assert "lost The state cannot be read" in page.words
        assert "(!) Panel" in page.words
        for place in ("loop", "attempts", "memory", f"circuit?id={RULE}"):
            broken = shown(served, f"/p/lost/{place}", 503)
            assert "The state cannot be read" in broken.words
            assert "the state database" in broken.words
            assert "/p/lost/sessions" in [given.get("href") for given in broken.all("a")]
        assert served.get("/p/lost/loop", headers={"Accept": "text/html", "Cookie": ""}).status == 303


# -- nothing there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("panel", "Nothing is tripped"),
        ("sessions", "fusewire install claude"),
        ("loop", "fusewire run --prompt PROMPT.md"),
        ("attempts", "fusewire attempt run S-1"),
        ("memory", "No memory folder yet"),
    ],
)
def test_an_empty_page_says_what_would_be_here(empty: Served, name: str, text: str) -> None:
    assert text in shown(empty, PAGES[name]).words


def test_a_circuit_to_which_nothing_happened_has_a_page(empty: Served) -> None:
    words = shown(empty, "/p/project/circuit?id=loop/no_progress").words
    assert "CLOSED" in words
    assert "Nothing happened in the last 60 days" in words
    assert "It has not opened" in words


@pytest.mark.parametrize(
    "path",
    [
        "/p/project/circuit",
        "/p/project/circuit?id=",
        "/p/project/circuit?id=nothing",
        f"/p/project/circuit?id={quote('tool/tool_failure/x/y')}",
        f"/p/project/circuit?id={'x' * 10_000}",
        "/p/project/circuit?id=%00",
        "/p/project/circuit?id=%ff%fe",
        "/p/project/session",
        "/p/project/session?id=nobody",
        f"/p/project/session?id={quote('../x')}",
        "/p/nothing/",
        "/p/nothing/loop",
    ],
)
def test_what_is_not_there_is_not_found(empty: Served, path: str) -> None:
    assert "Not found" in shown(empty, path, 404).words


# -- a circuit over time ----------------------------------------------------------------------------------


def test_history_is_parted_where_the_window_begins(project: Project) -> None:
    """In the list and in the chart; what is older is there and not counted."""
    project.constraint(RULE, "circuit_breaker: {dedup_seconds: 0, violation_threshold: 2}\n")
    now = time.time()
    moments = [now - days * DAY for days in (40, 20, 19, 3)]
    with Breaker.open(project=project.root, clock=lambda: moments[0]) as breaker:
        breaker.record(RULE, "the old one")
    with Breaker.open(project=project.root, clock=lambda: moments[1]) as breaker:
        breaker.record(RULE, "one within")
    with Breaker.open(project=project.root, clock=lambda: moments[2]) as breaker:
        breaker.record(RULE, "another within")
        breaker.reset(RULE, "it was a mistake")
    with Breaker.open(project=project.root, clock=lambda: moments[3]) as breaker:
        breaker.record(RULE, "the newest")
    with Served(project.root) as served:
        served.log_in()
        html = served.get(PAGES["circuit"]).text
        words = shown(served, PAGES["circuit"]).words
    listed = words[words.index("violation the newest") :]
    order = ["the newest", "it was a mistake", "another within", "one within", "The window begins", "the old one"]
    assert [listed.index(text) for text in order] == sorted(listed.index(text) for text in order)
    rows = re.findall(r'<li class="(is-\w+(?: outside)?|boundary)"', html)
    assert rows[-2:] == ["boundary", "is-failed outside"]
    assert not [row for row in rows[:-2] if "outside" in row]
    assert "line window" in html
    assert "1 of 2 within 30d" in words
    assert "reset by " in words


def test_after_a_reset_nothing_is_said_to_be_counted(project: Project) -> None:
    """All of the history is within the window, and none of it counts any more."""
    trip(project)
    project.run("reset", RULE, "--reason", "it was a mistake")
    with Served(project.root) as served:
        served.log_in()
        words = shown(served, PAGES["circuit"]).words
    assert "0 of 5 within 30d" in words
    assert "nothing here is older" in words
    assert "is counted" not in words


# -- what others have written -----------------------------------------------------------------------------

HOSTILE = "<img src=x onerror=alert(1)></script>\u202edrawkcab\x1b[31m 👩\u200d👧"


def test_hostile_text_is_shown_as_what_it_is(project: Project) -> None:
    """As text, with what hides made visible; a long id does not fill the page."""
    session = Session(project, id=f"<i>s\u202e{'z' * 10_000}")
    session.bash(HOSTILE, "x")
    with Breaker.open(project=project.root) as breaker:
        for number in range(3):
            breaker.record(f"tool/tool_failure/{HOSTILE}", f"{HOSTILE} {number}")
            breaker.record(f"tool/tool_failure/{'x' * 10_000}", "long")
    (project.root / ".claude" / "memory").mkdir(parents=True, exist_ok=True)
    (project.root / ".claude" / "memory" / "<b>note\u202e").write_text("x")
    with Served(project.root) as served:
        served.log_in()
        paths = ["/", "/p/project/sessions", "/p/project/memory"]
        paths += [
            given["href"]
            for page in ("/", "/p/project/sessions")
            for given in shown(served, page).all("a")
            if re.search(r"/(circuit|session)\?", given.get("href", ""))
        ]
        assert len(paths) == 6
        for path in paths:
            page = shown(served, path)
            assert not page.all("img")
            assert not page.all("i") or path == "/"  # our own switches
            assert not page.all("b") or all(not given or "class" in given for given in page.all("b"))
            seen = page.words + "".join(given.get("title", "") + given.get("id", "") for _, given in page.elements)
            assert "\u202e" not in seen
            assert "\x1b" not in seen
        assert "[U+202E]drawkcab[U+001B][31m 👩\u200d👧" in shown(served, "/").words
        assert "<b>note[U+202E]" in shown(served, "/p/project/memory").words
        assert len(shown(served, "/p/project/sessions").words) < 2000


# -- what a person does -----------------------------------------------------------------------------------


def test_a_person_grants_a_session_more_from_its_page(project: Project) -> None:
    """Also while no circuit of its spend is open; the page says what came of it, once, and not to itself."""
    Session(project).bash("ls", "x")
    with Served(project.root) as served:
        served.log_in()
        path = f"/p/project/session?id={SESSION}"
        fields = {
            "form_secret": served.form_secret(path),
            "back": "session",
            "session": SESSION,
            "whom": "session",
            "amount": "2.50",
            "reason": "worth it",
        }
        answer = served.post("/p/project/act/grant", fields)
        assert (answer.status, answer.headers["location"]) == (303, path)
        refreshed = served.get(path, headers={"Fusewire-Refresh": "1", "Cookie": served.cookie})
        assert "granted for" not in refreshed.text
        words = shown(served, path).words
        assert f"$2.50 granted for {SESSION}: $27.50 allowed now" in words
        assert "$0.00 of $27.50 ($2.50 of it granted)" in words
        assert "worth it" in words
        assert "granted for" not in shown(served, path).words


@pytest.mark.parametrize(
    ("back", "place"), [("circuit", f"circuit?id={RULE}"), ("loop", "loop"), ("", ""), ("https://evil.example", "")]
)
def test_after_an_act_the_page_comes_back_from_which_it_was_done(empty: Served, back: str, place: str) -> None:
    fields = {"form_secret": empty.form_secret(), "circuit": RULE, "reason": "x", "back": back}
    answer = empty.post("/p/project/act/reset", fields)
    assert (answer.status, answer.headers["location"]) == (303, f"/p/project/{place}")


def test_inside_an_agent_no_page_has_a_form_that_acts(project: Project) -> None:
    everything(project)
    with Served(project.root, env={"CLAUDECODE": "1"}) as served:
        served.log_in()
        for path in (*PAGES.values(), "/", f"/p/project/circuit?id={quote(FAILING)}"):
            actions = [given["action"] for given in shown(served, path).all("form")]
            assert actions == ["/logout"], path


def test_a_state_that_cannot_be_read_is_said(project: Project) -> None:
    """No page shows a circuit as closed, and none fails with a trace."""
    project.constraint(RULE)
    project.constraint(QUIET_RULE)
    project.run("record", RULE, "--action", "x")
    with Served(project.root) as served:
        served.log_in()
        assert "CLOSED" in shown(served, PAGES["circuit"]).words
        state = project.root / ".fusewire"
        for file in state.glob("state.db*"):
            file.unlink()
        (state / "state.db").write_bytes(b"not a database" * 1000)
        for name, path in PAGES.items():
            answer = served.get(path, headers={"Accept": "text/html", "Cookie": served.cookie})
            page = Shown(answer.text)
            assert answer.status == 503 or "The state cannot be read" in page.words, name
            assert "CLOSED" not in page.words, name
        _, errors = served.stop()
        assert "Traceback" not in errors


def test_memory_of_which_nothing_is_known_is_left_alone(project: Project, tmp_path: Path) -> None:
    """A folder that is refused is one line, not a page that fails."""
    (project.root / ".claude").mkdir()
    os.symlink(tmp_path, project.root / ".claude" / "memory")
    with Served(project.root) as served:
        served.log_in()
        words = shown(served, PAGES["memory"]).words
        assert "The memory cannot be looked at" in words
