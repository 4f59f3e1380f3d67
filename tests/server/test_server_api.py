"""The JSON interface of `fusewire serve`: who may ask what, what comes back, and how everything wrong is said."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.server.access import kept_token
from fusewire.server.api.endpoints import ENDPOINTS
from fusewire.stores.rows import Doing
from tests.helpers.project import Project
from tests.helpers.serving import Answer, Served
from tests.helpers.session_hook import Session

RULE = "git-safety-force-push"
AT = "/api/v1/projects/project"
JSON = {"Content-Type": "application/json"}
SESSION = "s-1"

#: What each endpoint is asked for in a project that has been lived in; acts get a body that is refused.
ASKED = {
    "circuit": f"?id={RULE}",
    "history": f"?id={RULE}",
    "settings": f"?id={RULE}",
    "session": f"?id={SESSION}",
    "slice": "?id=S-1",
}
READS = [endpoint.name for endpoint in ENDPOINTS if not endpoint.body]
ACTS = [endpoint.name for endpoint in ENDPOINTS if endpoint.body]


def trip(project: Project) -> None:
    """Five violations in five sessions open the constraint's circuit."""
    project.constraint(RULE, "circuit_breaker: {dedup_seconds: 0}\n")
    with Breaker.open(project=project.root) as breaker:
        for number in range(5):
            breaker.record(RULE, f"git push --force origin main~{number}", session=f"s{number}")


@pytest.fixture
def served(project: Project) -> Iterator[Served]:
    """A circuit that is open, a session that was heard of, and a slice."""
    trip(project)
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.happened(Doing(SESSION, "", time.time(), "ok", "Bash", "ls"))
    assert project.run("attempt", "start", "S-1", "test_login").returncode == 0
    with Served(project.root) as server:
        yield server


def token(role: str) -> str:
    return kept_token(role)


def act(server: Served, name: str, body: Any, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    """What a person sends; with the person's token, unless something else is said."""
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    more = more if headers and "Cookie" in headers else {"bearer": server.token, **more}
    return server.request("POST", f"{AT}/{name}", text, {**JSON, **(headers or {})}, **more)


def read(server: Served, name: str, **query: Any) -> Any:
    answer = server.get(f"{AT}/{name}?{urlencode(query)}" if query else f"{AT}/{name}", bearer=server.token)
    assert answer.status == 200, answer.text
    return answer.json()


def error_in(answer: Answer) -> str:
    """The one line of an error, which is all that its answer has."""
    assert answer.headers["content-type"] == "application/json"
    said = answer.json()
    assert list(said) == ["error"]
    assert said["error"]
    assert "\n" not in said["error"]
    return str(said["error"])


# -- who may ask what -------------------------------------------------------------------------------------


def test_reading_is_for_a_person_a_reader_and_a_browser_that_is_logged_in(served: Served) -> None:
    """Every endpoint: without a token or with a wrong one 401, with that of the hooks 403."""
    paths = ["/api/v1/projects", *(f"{AT}/{name}{ASKED.get(name, '')}" for name in READS)]
    bearers = {None: 401, "wrong": 401, "é": 401, token("hooks"): 403, token("reader"): 200, served.token: 200}
    for path in paths:
        for bearer, status in bearers.items():
            answer = served.get(path, bearer=bearer)
            assert answer.status == status, (path, bearer, answer.text)
            assert status == 200 or error_in(answer)
        assert served.get(f"{path}{'&' if '?' in path else '?'}token={served.token}").status == 401
    served.log_in()
    assert [served.get(path).status for path in paths] == [200] * len(paths)
    assert [served.get(path, bearer="wrong").status for path in paths] == [401] * len(paths)
    assert error_in(served.get(paths[0], bearer="wrong")).startswith("this token is not known here")


def test_acting_is_for_a_person_alone(served: Served) -> None:
    """By the token; whoever is let in gets as far as an empty body does: 400."""
    for name in ACTS:
        bearers = {"wrong": 401, token("hooks"): 403, token("reader"): 403, served.token: 400}
        assert {bearer: act(served, name, {}, bearer=bearer).status for bearer in bearers} == bearers
        assert served.request("POST", f"{AT}/{name}", "{}", JSON).status == 401
    served.log_in()
    for name in ACTS:
        assert act(served, name, {}, {"Cookie": served.cookie}).status == 403


def test_who_may_not_ask_does_not_learn_which_projects_there_are(served: Served) -> None:
    known, unknown = (served.get(f"/api/v1/projects/{name}/panel") for name in ("project", "nowhere"))
    assert (known.status, known.body) == (unknown.status, unknown.body)


def test_a_server_inside_an_agent_shows_and_does_nothing(project: Project) -> None:
    """Not even with the person's token."""
    trip(project)
    with Served(project.root, env={"CLAUDECODE": "1"}) as server:
        refused = act(server, "reset", {"circuit": RULE, "reason": "let me"})
        assert (refused.status, "inside an agent" in error_in(refused)) == (403, True)
        assert read(server, "circuits", state="OPEN")["circuits"][0]["id"] == RULE


SENDS = """
import http.client, sys
host, token, path, body = sys.argv[1:]
connection = http.client.HTTPConnection(host, timeout=45)
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
connection.request("POST", path, body, headers)
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""


def test_an_agent_that_has_got_hold_of_the_token_resets_nothing(served: Served) -> None:
    """What counts is who sends: the same request from a person's terminal is done."""
    body = json.dumps({"circuit": RULE, "reason": "let me"})
    sender = [sys.executable, "-c", SENDS, served.host, served.token, f"{AT}/reset", body]
    for inside, status in (({"CLAUDECODE": "1"}, "403"), ({}, "200")):
        said = subprocess.run(sender, env={**os.environ, **inside}, capture_output=True, text=True, check=True).stdout
        assert said.startswith(status), said
        assert ("inside an agent" in said) == (status == "403")


# -- what comes back --------------------------------------------------------------------------------------


def test_circuits_are_those_of_status_and_can_be_filtered(served: Served, project: Project) -> None:
    told = read(served, "circuits")
    expected = project.json("status")["circuits"]
    moving = ("retry_after",)
    assert [{**one, **dict.fromkeys(moving)} for one in told["circuits"]] == [
        {**one, **dict.fromkeys(moving)} for one in expected
    ]
    assert [one["id"] for one in read(served, "circuits", state="OPEN")["circuits"]] == [RULE]
    assert {one["kind"] for one in read(served, "circuits", kind="constraint")["circuits"]} == {"constraint"}
    assert read(served, "circuits", kind="constraint", state="HALF_OPEN")["circuits"] == []


def test_a_circuit_has_its_history_and_its_settings(served: Served) -> None:
    """The same, whether it is asked for as a whole or in parts."""
    whole = read(served, "circuit", id=RULE)
    history, settings = read(served, "history", id=RULE, days=30), read(served, "settings", id=RULE)
    assert [one["action"] for one in history["entries"]][:1] == ["git push --force origin main~4"]
    assert history["entries"] == whole["history"]["entries"]
    assert history["transitions"] == whole["history"]["transitions"]
    assert settings == {"id": RULE, "settings": whole["settings"]}
    assert {"key": "dedup_seconds", "value": 0, "source": f"docs/constraints/{RULE}.md"} in settings["settings"]


def test_moves_come_in_pages_without_gap_or_double(served: Served) -> None:
    """Whoever remembers the last number misses nothing; and is told when the trail was begun anew."""
    with Breaker.open(project=served.said["projects"][0]["root"]) as breaker:
        for number in range(30):
            breaker.record(f"tool/tool_failure/Bash({number})/{SESSION}")
            breaker.record(f"tool/tool_failure/Bash({number})/{SESSION}")
            breaker.record(f"tool/tool_failure/Bash({number})/{SESSION}")
    whole = read(served, "moves", limit=1000)
    assert (whole["more"], whole["last"]) == (False, whole["moves"][-1]["number"])
    assert len(whole["moves"]) > 30
    seen: list[dict[str, Any]] = []
    while True:
        page = read(served, "moves", limit=7, after=seen[-1]["number"] if seen else 0)
        seen += page["moves"]
        assert len(page["moves"]) <= 7
        if not page["more"]:
            break
    assert seen == whole["moves"]
    ahead = read(served, "moves", after=whole["last"] + 1000)
    assert (ahead["moves"], ahead["last"], ahead["more"]) == ([], whole["last"], False)


def test_sessions_and_slices_come_in_pages(served: Served, project: Project) -> None:
    """By how many at most and how many to leave out; both bounded, and what is halted is always told."""
    project.starts_hooks = False
    before = read(served, "sessions")["counts"]["all"]
    for number in range(25):
        Session(project, id=f"s/{number:02}").bash("ls", "x")
    assert len(read(served, "sessions")["sessions"]) == 20
    assert len(read(served, "panel")["sessions"]) == 20
    listed = [one["id"] for at in (0, 10, 20) for one in read(served, "sessions", limit=10, offset=at)["sessions"]]
    assert listed[:25] == [f"s/{number:02}" for number in range(24, -1, -1)]
    whole = read(served, "sessions", limit=200)
    assert (len(whole["sessions"]), whole["counts"]["all"]) == (before + 25, before + 25)
    assert read(served, "sessions", offset=2**53 - 1)["sessions"] == []
    for name, most in (("sessions", 200), ("attempts", 100)):
        for query in ("limit=0", f"limit={most + 1}", "offset=-1", "offset=x", f"offset={2**53}", "after=1"):
            assert served.get(f"{AT}/{name}?{query}", bearer=served.token).status == 400, query
    few = read(served, "attempts", limit=1, offset=0)
    assert few["left_out"] == max(0, few["counts"]["all"] - 1)


def test_several_projects_each_show_their_own(project: Project, tmp_path: Path) -> None:
    trip(project)
    other = Project(tmp_path / "other" / "project")
    other.root.mkdir(parents=True)
    with Served(project.root, other.root) as server:
        listed = server.get("/api/v1/projects", bearer=server.token).json()["projects"]
        assert [(one["name"], one["open"], one["headline"]) for one in listed] == [
            ("project", 1, "1 circuit is open"),
            ("project-2", 0, "Nothing is tripped"),
        ]
        assert server.get("/api/v1/projects/project-2/circuits", bearer=server.token).json()["circuits"] == []


def test_head_answers_without_a_body_and_a_slash_too_many_leads_there(served: Served) -> None:
    whole, head = (served.request(method, f"{AT}/panel", bearer=served.token) for method in ("GET", "HEAD"))
    assert (head.status, head.body, head.headers["content-type"]) == (200, b"", "application/json")
    assert abs(int(head.headers["content-length"]) - len(whole.body)) < 50  # a time may be shorter
    slash = served.get(f"{AT}/panel/", bearer=served.token)
    assert (slash.status, slash.headers["location"]) == (307, f"{served.address.rstrip('/')}{AT}/panel")


def test_a_folder_whose_name_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    """The answer is UTF-8, as JSON must be."""
    folder = os.path.join(str(tmp_path), os.fsdecode(b"caf\xe9"))
    os.mkdir(folder)
    with Served(folder) as server:
        answer = server.get("/api/v1/projects", bearer=server.token)
        assert json.loads(answer.body.decode("utf-8"))["projects"][0]["name"] == "caf-"


def test_an_answer_on_a_connection_that_is_kept_does_not_wait(served: Served) -> None:
    """Small packets are sent at once: else each answer would wait 40 ms for the client to say that it got the head."""
    connection = http.client.HTTPConnection(served.host, timeout=45)
    times = []
    for _ in range(60):
        began = time.perf_counter()
        connection.request("GET", "/api/v1/projects", headers={"Authorization": f"Bearer {served.token}"})
        connection.getresponse().read()
        times.append(time.perf_counter() - began)
    connection.close()
    assert min(times[30:]) < 0.035


# -- what a person does -----------------------------------------------------------------------------------


def test_a_reset_is_in_the_audit_trail_and_cannot_be_done_twice(served: Served, project: Project) -> None:
    done = act(served, "reset", {"circuit": RULE, "reason": "  the branch   was mine "})
    assert (done.status, done.json()) == (200, {"done": f"{RULE} is closed"})
    newest = read(served, "moves")["moves"][-1]
    assert (newest["circuit"], newest["to"], newest["reason"]) == (RULE, "CLOSED", "the branch was mine")
    assert newest["actor"]
    again = act(served, "reset", {"circuit": RULE, "reason": "again"})
    assert (again.status, error_in(again)) == (409, "Invalid transition from CLOSED")


def test_the_loop_is_reset_as_a_whole_as_the_command_does(served: Served, project: Project) -> None:
    """One trip may open several circuits; a page that shows one of them does the same for all."""

    def states() -> list[str]:
        return [one["state"] for one in read(served, "circuits", kind="loop")["circuits"] if one["trips"]]

    with Breaker.open(project=project.root) as breaker:
        breaker.engine.apply([Signal("bad", "loop/no_progress", "no_progress", text="nothing changed")] * 3)
        breaker.engine.apply([Signal("bad", "loop/permission_denied", "permission_denied", text="denied")] * 3)
    assert states() == ["OPEN", "OPEN"]
    served.log_in()
    fields = {"form_secret": served.form_secret(), "circuit": "loop/no_progress", "reason": "looked at it"}
    assert served.post("/p/project/act/reset", fields).status == 303
    assert states() == ["HALF_OPEN", "HALF_OPEN"]
    nothing = act(served, "reset", {"circuit": "loop", "reason": "again"})
    assert (nothing.status, error_in(nothing)) == (409, "Invalid transition from CLOSED: no circuit of loop is open")


def test_a_grant_goes_where_it_is_meant_for(served: Served, project: Project) -> None:
    """For today, the project, or a session that was heard of; what names a session is not for the day."""
    for whom in ("day", "project"):
        done = act(served, "grant", {"whom": whom, "amount": 2.5, "reason": "a demo"})
        assert (done.status, "$2.50 granted" in done.json()["done"]) == (200, True)
        assert (
            f"There is no limit for that, so nothing changes: resource_limits.api_cost_block_usd_per_{whom} is 0"
            in (done.json()["done"])
        )
    assert [one["circuit"] for one in read(served, "moves")["moves"][-2:]] == ["tool/spend_day", "tool/spend_project"]
    wrong = act(served, "grant", {"whom": "day", "amount": 1, "session": SESSION, "reason": "x"})
    assert (wrong.status, "'session' is not known here" in error_in(wrong)) == (400, True)
    nobody = act(served, "grant", {"whom": "session", "amount": 1, "session": "nobody", "reason": "x"})
    assert (nobody.status, "nobody" in error_in(nobody)) == (404, True)
    assert act(served, "grant", {"whom": "session", "amount": 1, "reason": "x"}).status == 404


def test_a_phase_is_resolved_with_guidance(served: Served, project: Project) -> None:
    """An open phase goes on with what a person says; without an open one there is nothing to resolve."""
    choice = {"choice": "modify", "guidance": "start with the test", "reason": "it was stuck"}
    assert act(served, "resolve", choice).status == 409
    for _ in range(3):
        project.run("phase", "begin", "GREEN")
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=2", "--metric", "tests_total=6")
    assert read(served, "circuits", kind="phase")["circuits"][0]["state"] == "OPEN"
    without = act(served, "resolve", {"choice": "modify", "reason": "it was stuck"})
    assert (without.status, "guidance is needed" in error_in(without)) == (400, True)
    done = act(served, "resolve", choice).json()["done"]
    assert done == "GREEN is closed; the agent gets the guidance when it begins again"
    assert project.json("phase", "begin", "GREEN")["guidance"] == "start with the test"


# -- everything wrong -------------------------------------------------------------------------------------

WRONG_QUERIES = {
    "circuits?state=open": "allowed: CLOSED, HALF_OPEN, OPEN",
    "circuits?kind=": "allowed: constraint, loop",
    "circuits?stat=OPEN": "'stat' is not known here; allowed: state, kind",
    "panel?x=1": "'x' is not known here; nothing can be said here",
    "circuit": "id is needed: a text of 1 to 4000 characters",
    "circuit?id=": "id = '' is refused",
    "circuit?id=a&id=b": "'id' is said twice",
    f"circuit?id={'x' * 4001}": "is refused; allowed: a text of 1 to 4000 characters",
    "history?id=a&days=0": "days = 0 is refused; allowed: a whole number from 1 to 36500",
    "history?id=a&days=1.5": "days = '1.5' is refused",
    "history?id=a&days=-1": "days = '-1' is refused",
    "history?id=a&days=%D9%A3": "is refused; allowed: a whole number",
    "history?id=a&days=99999999999999999999": "is refused; allowed: a whole number",
    "moves?limit=1001": "limit = 1001 is refused; allowed: a whole number from 1 to 1000",
    "moves?after=x": "after = 'x' is refused",
    "slice?id=a/b": "letters, digits, dots, dashes and underscores",
}


def test_what_is_asked_wrongly_is_said_with_what_is_allowed(served: Served) -> None:
    for path, words in WRONG_QUERIES.items():
        answer = served.get(f"{AT}/{path}", bearer=served.token)
        assert (answer.status, words in error_in(answer)) == (400, True), (path[:80], answer.text)


REASON = {"circuit": RULE, "reason": "x"}
WRONG_BODIES: list[tuple[str, Any, str]] = [
    ("reset", b"", "no JSON object"),
    ("reset", b"[]", "no JSON object"),
    ("reset", b"{", "no JSON object"),
    ("reset", b"\xff", "no JSON object"),
    ("reset", b"[" * 5000, "no JSON object"),
    ("reset", b'{"circuit": "a", "circuit": "b", "reason": "x"}', "said twice"),
    ("reset", {"reason": "x"}, "circuit is needed"),
    ("reset", {**REASON, "force": True}, "'force' is not known here; allowed: circuit, reason"),
    ("reset", {**REASON, "reason": " \n\t"}, "allowed: a text of 1 to 300 characters, not only blanks"),
    ("reset", {**REASON, "reason": "x" * 301}, "allowed: a text of 1 to 300 characters"),
    ("reset", {**REASON, "reason": 5}, "reason = 5 is refused"),
    ("reset", {**REASON, "reason": None}, "reason = None is refused"),
    ("reset", {**REASON, "circuit": "\ud800"}, "is refused"),
    ("grant", {"amount": 1, "reason": "x"}, "whom is needed: session, day, project"),
    ("grant", {"whom": ["day"], "amount": 1, "reason": "x"}, "allowed: session, day, project"),
    ("grant", {"whom": "day", "amount": "5", "reason": "x"}, "amount = '5' is refused; allowed: a number"),
    ("grant", {"whom": "day", "amount": True, "reason": "x"}, "amount = True is refused"),
    ("grant", {"whom": "day", "amount": 0, "reason": "x"}, "amount = 0 is refused"),
    ("grant", {"whom": "day", "amount": 1001, "reason": "x"}, "amount = 1001 is refused"),
    ("grant", b'{"whom": "day", "amount": NaN, "reason": "x"}', "NaN is no number"),
    ("grant", b'{"whom": "day", "amount": 1e999, "reason": "x"}', "amount = inf is refused"),
    ("resolve", {"choice": "forget", "reason": "x"}, "allowed: reset, skip, abort, modify"),
    ("resolve", {"choice": "skip", "guidance": "x", "reason": "x"}, "'guidance' is not known here"),
]


def test_what_is_sent_wrongly_changes_nothing(served: Served) -> None:
    """Nothing is guessed: a body fits as a whole, or is refused as a whole."""
    before = read(served, "moves")
    for name, body, words in WRONG_BODIES:
        answer = act(served, name, body)
        assert (answer.status, words in error_in(answer)) == (400, True), (name, body, answer.text)
    assert "belongs in the body" in error_in(act(served, f"reset?circuit={RULE}", REASON))
    assert read(served, "moves") == before


def test_a_body_that_is_no_json_is_not_read(served: Served) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""):
        answer = act(served, "reset", REASON, {"Content-Type": kind})
        assert (answer.status, "application/json" in error_in(answer)) == (415, True)
    assert act(served, "reset", {}, {"Content-Type": "Application/JSON; charset=utf-8"}).status == 400


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    """Whether it says how large it is, or not."""
    large = json.dumps({**REASON, "reason": "x" * 70_000})
    answer = act(served, "reset", large)
    assert (answer.status, "allowed: up to 65536 bytes" in error_in(answer)) == (413, True)
    connection = http.client.HTTPConnection(served.host, timeout=45)
    headers = {**JSON, "Authorization": f"Bearer {served.token}"}
    parts = (large[at : at + 1000].encode() for at in range(0, len(large), 1000))
    connection.request("POST", f"{AT}/reset", parts, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


MISSING = {
    "/api/": "there is nothing at /api/",
    "/api/v1": "see /api/v1/openapi.json",
    "/api/v2/projects": "there is nothing",
    f"{AT}/nothing": "there is nothing",
    "/api/v1/projects//panel": "there is nothing",
    "/api/v1/projects/nowhere/panel": "no project 'nowhere' is shown here; allowed: project",
    "/api/v1/projects/..%2f..%2fetc/panel": "there is nothing",
    f"{AT}/circuit?id=nothing": "Constraint not found: nothing",
    f"{AT}/history?id=loop/nothing": "Circuit not found",
    f"{AT}/settings?id=tool/tool_failure/never": "Circuit not found",
    f"{AT}/session?id=nobody": "has been heard of",
    f"{AT}/slice?id=S-9": "nothing is known of slice S-9",
}


def test_what_is_not_there_is_said(served: Served) -> None:
    for path, words in MISSING.items():
        answer = served.get(path, bearer=served.token)
        assert (answer.status, words in error_in(answer)) == (404, True), (path, answer.text)


def test_another_method_is_refused_with_the_one_that_is_allowed(served: Served) -> None:
    for name in (*READS, *ACTS):
        allowed = "POST" if name in ACTS else "GET, HEAD"
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - set(allowed.split(", ")):
            answer = served.request(method, f"{AT}/{name}", bearer=served.token)
            assert (answer.status, answer.headers["allow"]) == (405, allowed)
            assert error_in(answer) == f"{method} is not for {AT}/{name}; allowed: {allowed}"


def test_other_names_and_other_origins_are_refused_as_json(served: Served) -> None:
    other = served.get(f"{AT}/panel", headers={"Host": "evil.example"}, bearer=served.token)
    assert (other.status, "another name" in error_in(other)) == (421, True)
    origin = act(served, "reset", REASON, {"Origin": "http://evil.example"})
    assert (origin.status, "other origins" in error_in(origin)) == (403, True)


def test_a_state_that_cannot_be_read_is_said_and_nothing_is_shown_as_closed(project: Project) -> None:
    """503 with the reason; the list of projects says which."""
    trip(project)
    database = project.root / ".fusewire" / "state.db"
    with Served(project.root) as server:
        for end in ("-wal", "-shm"):
            Path(f"{database}{end}").unlink(missing_ok=True)
        database.write_bytes(b"this is no database" * 1000)
        for name in ("panel", "circuits", f"circuit?id={RULE}", "sessions", "moves", "loop", "attempts"):
            answer = server.get(f"{AT}/{name}", bearer=server.token)
            assert (answer.status, "cannot be read" in error_in(answer)) == (503, True), (name, answer.text)
        (listed,) = server.get("/api/v1/projects", bearer=server.token).json()["projects"]
        assert "cannot be read" in listed["problem"]
        assert [listed[name] for name in ("headline", "open", "half_open", "closed")] == [None] * 4


HOSTILE = [
    "../../etc/passwd",
    "/",
    "//",
    "a/b/c/d/e/f",
    "tool/tool_failure/",
    "attempt//x",
    "{constraint}",
    "tool/tool_failure/{tool}",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "\x00",
    "a\nb\r\nSet-Cookie: x=y",
    "\u202eevil\u2066",
    "😀" * 900,
    "%2e%2e%2f",
    "%",
    "session/../spend",
    "x" * 4000,
]


def test_hostile_ids_are_only_ids_that_are_not_there(served: Served) -> None:
    """Read or acted on, wherever an id is taken: 400 or 404, one line, and the server says nothing of a failure."""
    for hostile in HOSTILE:
        for name in ("circuit", "history", "settings", "session", "slice"):
            answer = served.get(f"{AT}/{name}?{urlencode({'id': hostile})}", bearer=served.token)
            assert answer.status in (400, 404), (name, hostile, answer.text)
            error_in(answer)
            assert "set-cookie" not in answer.headers
        assert act(served, "reset", {"circuit": hostile, "reason": "x"}).status in (404, 409)
        grant = {"whom": "session", "amount": 1, "session": hostile, "reason": "x"}
        assert act(served, "grant", grant).status == 404
    _, errors = served.stop()
    assert "failed" not in errors
    assert "Traceback" not in errors


def test_a_circuit_with_a_hostile_name_is_found_by_it(served: Served) -> None:
    """What an agent called its tool comes back as it was, and nothing in the answer is taken for anything else."""
    circuit = 'tool/tool_failure/mcp("<b>é😀\u202e\\ \t")/../&id=x/' + SESSION
    with Breaker.open(project=served.said["projects"][0]["root"]) as breaker:
        for _ in range(3):
            breaker.record(circuit, "</script>\n\x07")
    assert read(served, "circuit", id=circuit)["id"] == circuit
    assert read(served, "history", id=circuit)["entries"][0]["action"] == "</script>\n\x07"
    assert circuit in [one["id"] for one in read(served, "circuits", kind="tool")["circuits"]]
