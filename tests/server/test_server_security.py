"""The door of `fusewire serve`: who may ask, in which words, and what is never answered."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from starlette.routing import Route

from fusewire.engine.breaker import Breaker
from fusewire.server.app import ROUTES
from fusewire.stores.rows import AuditRow
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.wire import ask, connected, heard, quiet_server, rest_of, said_to

FILLED = {"project": "project", "agent": "claude", "act": "reset"}
ALL = [
    *((method, "/static/style.css") for method in ("GET", "HEAD")),
    *(
        (method, re.sub(r"{(\w+)}", lambda found: FILLED[found[1]], route.path))
        for route in ROUTES
        if isinstance(route, Route)
        for method in sorted(route.methods or ())
    ),
]
SECRET = "only-for-a-person"
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with quiet_server(tmp_path_factory, trip) as server:
        yield server


@pytest.fixture(scope="module")
def person(served: Served) -> Served:
    """The same, logged in."""
    served.log_in()
    return served


def trip(project: Project) -> None:
    """Something that strangers must not see."""
    with Breaker.open(project=project.root) as breaker:
        for _ in range(3):
            breaker.record(f"tool/tool_failure/{SECRET}", SECRET)


# -- names and origins -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.:{port}",
        "127.0.0.1:{port}:{port}",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.1.nip.io:{port}",
        "localhost.:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "0.0.0.0:{port}",
        "2130706433:{port}",
        "127.0.0.1:{port}, evil.example",
        " ",
    ],
)
def test_a_name_that_is_not_ours_is_refused_everywhere(served: Served, name: str) -> None:
    """A name bent to point here (DNS rebinding) gets nothing from any route, with or without the token."""
    host = name.format(port=served.host.rpartition(":")[2])
    for method, path in ALL:
        assert ask(served, path, method, host=host, token=served.token).status == 421, (method, path)


def test_our_own_names_are_known_in_any_case(served: Served) -> None:
    port = served.host.rpartition(":")[2]
    for name in ("127.0.0.1", "localhost", "LocalHost", "[::1]"):
        assert ask(served, "/login", host=f"{name}:{port}").status == 200


def test_a_request_without_a_name_or_with_two_is_refused(served: Served) -> None:
    own = f"Host: {served.host}"
    assert ask(served, host="").status == 400
    assert ask(served, "/", "GET", own, host="evil.example").status == 400
    assert ask(served, "/", "GET", own).status == 400
    assert heard(said_to(served, b"GET / HTTP/1.0\r\n\r\n")).status == 421


def test_the_target_of_a_request_does_not_replace_its_name(served: Served) -> None:
    """`GET http://elsewhere/` is a request to a proxy, and this is none."""
    for target in ("http://evil.example/login", f"http://{served.host}/login", "evil.example:80", "*"):
        for method in ("GET", "CONNECT", "OPTIONS"):
            assert ask(served, target, method).status in (400, 404, 405)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "http://{host}.evil.example", "file://", "ftp://{host}", ""],
)
def test_another_origin_is_refused_everywhere(person: Served, origin: str) -> None:
    """Also another port of this machine, to which browsers send our cookie as well."""
    lines = (f"Origin: {origin.format(host=person.host)}", f"Cookie: {person.cookie}")
    for method, path in ALL:
        answer = ask(person, path, method, *lines)
        assert answer.status == 403, (method, path)
        assert SECRET not in answer.text


def test_two_origins_are_none_of_ours(served: Served) -> None:
    own = f"Origin: {served.address.rstrip('/')}"
    assert ask(served, "/login", "GET", own).status == 200
    assert ask(served, "/login", "GET", own, own).status == 403
    assert ask(served, "/login", "GET", own, "Origin: http://evil.example").status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_elsewhere_may_lead_here_and_nothing_else(person: Served, site: str) -> None:
    """A link works; a picture, a script, a frame, a prefetch, a form or a fetch in its page does not."""
    cookie, line = f"Cookie: {person.cookie}", f"Sec-Fetch-Site: {site}"
    link = ("Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
    assert ask(person, "/", "GET", cookie, line, *link).status == 200
    others = [("no-cors", "image"), ("no-cors", "script"), ("navigate", "iframe"), ("cors", "empty"), ("", "")]
    for mode, becomes in others:
        lines = (cookie, line, f"Sec-Fetch-Mode: {mode}", f"Sec-Fetch-Dest: {becomes}")
        for path in ("/", "/events", "/static/live.js", "/api/v1/projects"):
            assert ask(person, path, "GET", *lines).status == 403
    for path in ("/login", "/logout", "/p/project/act/reset"):
        assert ask(person, path, "POST", cookie, line, *link, FORM, body=b"token=x").status == 403


# -- methods, paths, web sockets ----------------------------------------------------------------------------


def test_only_the_methods_of_a_route_are_answered(person: Served) -> None:
    """What is not allowed says what is; nothing of the request comes back, and no other origin is invited."""
    for path in sorted({path for _, path in ALL}):
        own = {method for method, other in ALL if other == path}
        for method in {"OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "FOO", "POST", "GET"} - own:
            answer = ask(
                person, path, method, f"Cookie: {person.cookie}", "X-Mark: mark-73", "X-HTTP-Method-Override: GET"
            )
            assert answer.status == 405, (method, path)
            assert {one.strip() for one in answer.header("allow").split(",")} <= own
            assert "mark-73" not in answer.text


def test_a_head_says_what_a_get_would_say_and_ends(person: Served) -> None:
    for method, path in ALL:
        if method == "HEAD":
            answer = ask(person, path, "HEAD", f"Cookie: {person.cookie}")
            assert answer.status in (200, 400, 404), path
            assert answer.body == b""


@pytest.mark.parametrize(
    "path",
    [
        "/static/../access.py",
        "/static/%2e%2e/access.py",
        "/static/%2e%2e%2faccess.py",
        "/static/..%5caccess.py",
        "/static/....//access.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/style.css%00.html",
        "/static/%00",
        "/static/",
        "/static/__init__.py",
        "/static/..;/access.py",
        "//evil.example/%2e%2e",
        "/\\evil.example",
        "/p/../static/style.css",
        "/p/%2e%2e/",
        "/p/project%2f..%2f/",
        "/p//",
        "/p/%ff/",
        "/api/v1/projects/../../static/style.css",
        "/" + "a" * 12000,
        "/p/" + "%2e" * 4000 + "/",
        "/.git/config",
        "/p/project/.fusewire/state.db",
    ],
)
def test_no_path_leads_to_a_file_or_another_machine(person: Served, path: str) -> None:
    """Whatever is written there, it is no page of ours; and no redirect leaves this server."""
    for cookie in ((), (f"Cookie: {person.cookie}",)):
        answer = ask(person, path, "GET", *cookie, "Accept: text/html")
        assert answer.status in (303, 307, 400, 404), path
        location = answer.header("location")
        assert location == "" or location.startswith(("/login", person.address))
        assert "import annotations" not in answer.text
        assert "root:" not in answer.text
        assert SECRET not in answer.text


def test_a_web_socket_is_not_opened(person: Served) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 24,
    )
    for path in ("/", "/events", "/ws"):
        lines = [f"GET {path} HTTP/1.1", f"Host: {person.host}", *upgrade, "", ""]
        with connected(person) as connection:
            connection.sendall("\r\n".join(lines).encode())
            answer = heard(connection.recv(65536))
        assert answer.status in (303, 401, 404)
        assert "upgrade" not in answer.headers


# -- bodies -------------------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    """Whether it says so, or only turns out to be; what may be long is an agent's event, for whoever has its token."""
    large = b"token=" + b"a" * (70 << 10)
    for path in ("/login", "/logout", "/p/project/act/reset", "/api/v1/projects/project/reset", "/nowhere"):
        assert ask(served, path, "POST", FORM, body=large).status == 413
    lines = f"POST /login HTTP/1.1\r\nHost: {served.host}\r\n{FORM}\r\nConnection: close\r\n"
    assert heard(said_to(served, f"{lines}Content-Length: 99999999999999999999\r\n\r\n".encode())).status in (400, 413)
    chunked = f"{lines}Transfer-Encoding: chunked\r\n\r\n{len(large):x}\r\n".encode() + large + b"\r\n0\r\n\r\n"
    assert heard(said_to(served, chunked)).status == 413
    assert ask(served, "/hooks/claude", "POST", "Content-Type: application/json", body=large).status == 401


def test_a_form_has_few_fields_and_a_request_few_headers(served: Served) -> None:
    assert ask(served, "/login", "POST", FORM, body=b"&".join(b"a=1" for _ in range(60))).status == 400
    assert ask(served, "/login", "GET", *(f"X-{number}: 1" for number in range(120))).status == 431
    assert heard(said_to(served, b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 200_000)).status == 400


def test_a_request_says_in_one_way_how_long_it_is(served: Served) -> None:
    """What a proxy in front could read in another way than we do is not read at all, and ends the connection."""
    begin = f"POST /login HTTP/1.1\r\nHost: {served.host}\r\n{FORM}\r\n"
    hidden = f"GET /static/style.css HTTP/1.1\r\nHost: {served.host}\r\n\r\n"
    for lengths in (
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\nContent-Length: 7\r\n",
        "Content-Length: +7\r\n",
        "Content-Length: 0x7\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
    ):
        raw = said_to(served, f"{begin}{lengths}\r\n0\r\n\r\n{hidden}".encode())
        assert heard(raw).status in (400, 501), lengths
        assert raw.count(b"HTTP/1.1 ") == 1, lengths
    for body in ("Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
        raw = said_to(served, f"GET /login HTTP/1.1\r\nHost: {served.host}\r\n{body}{hidden}".encode())
        assert heard(raw).status == 400
        assert raw.count(b"HTTP/1.1 ") == 1


def test_what_is_no_http_is_said_to_be_none(served: Served) -> None:
    for data in (b"hello", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP", b"GET /\xff HTTP/1.1", b"GET /"):
        assert heard(said_to(served, data + b"\r\n\r\n")).status == 400


def test_what_is_no_http_in_the_middle_of_an_answer_ends_it(served: Served) -> None:
    """The answer has begun, or is complete: there is no room for another, and nothing to complain about."""
    with connected(served) as connection:
        lines = ("POST /login HTTP/1.1", f"Host: {served.host}", "Transfer-Encoding: chunked", "", "")
        connection.sendall("\r\n".join(lines).encode())
        assert heard(connection.recv(65536)).status == 415
        connection.sendall(b"no length\r\n\r\n")
        assert b"HTTP/1.1" not in rest_of(connection)
    with connected(served) as connection:
        connection.sendall(
            f"GET /events HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {served.token}\r\n\r\n".encode()
        )
        assert heard(connection.recv(65536)).status == 200
        connection.sendall(b"GET / HTTP/1.1\r\nno header\r\n\r\n\r\n")  # the next request, which nobody can read


def test_whoever_hangs_up_is_not_talked_about(served: Served) -> None:
    """In the middle of a body, of a head, or of an answer; the fixture sees that nothing is printed."""
    begin = f"POST /login HTTP/1.1\r\nHost: {served.host}\r\n{FORM}\r\nContent-Length: 9\r\n\r\n"
    for data in (begin[:30], begin, begin + "tok", f"GET /static/style.css HTTP/1.1\r\nHost: {served.host}\r\n\r\n"):
        with connected(served) as connection:
            connection.sendall(data.encode())
    assert ask(served, "/login").status == 200


CROWDED = """
from fusewire.server import connections
connections.CONNECTIONS = 8
from fusewire.__main__ import main
main()
"""


def test_connections_that_say_nothing_make_room_for_one_that_does(project: Project) -> None:
    """Also those that have begun to say something; a page that listens stays."""
    with Served(project.root, program=("-c", CROWDED)) as server, ExitStack() as opened:
        listens, speaks = (opened.enter_context(connected(server)) for _ in range(2))
        token = f"Authorization: Bearer {server.token}"
        listens.sendall(f"GET /events HTTP/1.1\r\nHost: {server.host}\r\n{token}\r\n\r\n".encode())
        assert heard(listens.recv(65536)).status == 200
        speaks.sendall(f"POST /login HTTP/1.1\r\nHost: {server.host}\r\n{FORM}\r\nContent-Length: 9\r\n\r\n".encode())
        for _ in range(30):
            opened.enter_context(connected(server))
            assert ask(server, "/login").status == 200
        listens.setblocking(False)
        with suppress(BlockingIOError):
            assert listens.recv(65536) != b"", "the page was cut off"


IMPATIENT = """
from fusewire.server import connections, security
security.BODY_TIME = connections.HEAD_TIME = 0.5
connections.CONNECTIONS = 8
from fusewire.__main__ import main
main()
"""


def test_whoever_is_slow_or_many_does_not_keep_others_out(project: Project) -> None:
    """A head or a body that does not come is not waited for, and neither are connections that say nothing."""
    with Served(project.root, program=("-c", IMPATIENT)) as server:
        begin = f"POST /login HTTP/1.1\r\nHost: {server.host}\r\n{FORM}\r\nContent-Length: 9\r\n\r\n"
        assert said_to(server, begin[:40].encode()) == b""
        assert heard(said_to(server, begin.encode())).status == 408
        with connected(server) as connection:  # a byte now and then does not buy more time
            connection.sendall(begin[:40].encode())
            ended = time.monotonic() + 20
            while time.monotonic() < ended:
                try:
                    connection.sendall(b"a")
                except ConnectionError:
                    break
                time.sleep(0.05)
            else:
                pytest.fail("it was listened to for 20 seconds")
        silent = [connected(server) for _ in range(12)]
        for connection in silent:
            assert rest_of(connection) == b""
            connection.close()
        assert ask(server, "/login").status == 200
        assert server.stop()[1].split() == ["Interrupted."]


UNREAD = """
from fusewire.server import connections
connections.UNREAD_TIME = {}
connections.CONNECTIONS = 8
from fusewire.__main__ import main
main()
"""


def unreading(server: Served, *lines: str, path: str = "/api/v1/openapi.json", times: int = 30) -> socket.socket:
    """A connection that asks for much, and reads nothing of it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    host, _, port = server.host.rpartition(":")
    connection.connect((host, int(port)))
    request = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {server.host}", *lines, "", ""])
    connection.sendall(request.encode() * times)
    return connection


def test_connections_that_read_no_answers_make_room_for_one_that_does(project: Project) -> None:
    """Nobody needs a token for that: they have said all that they want, and wait for ever."""
    with Served(project.root, program=("-c", UNREAD.format(600))) as server, ExitStack() as opened:
        for _ in range(12):
            opened.enter_context(unreading(server))
            assert ask(server, "/login").status == 200
        time.sleep(1)  # until all of them are stuck
        assert ask(server, "/login").status == 200


def test_an_answer_that_nobody_reads_is_not_kept(project: Project) -> None:
    """Nor its end, when all of it is written; whoever goes on reading, however slowly, gets all of it."""
    with Served(project.root, program=("-c", UNREAD.format(2))) as server, ExitStack() as opened:
        size = len(ask(server, "/api/v1/openapi.json").body)
        before = sockets_of(server)
        for times in (30, *range((300 << 10) // size, (420 << 10) // size)):
            opened.enter_context(unreading(server, times=times))
        with unreading(server) as reads:
            got = 0
            while got < size * 30:
                part = reads.recv(size)
                assert part, "it was cut off"
                got += len(part)
                time.sleep(0.01)
        ended = time.monotonic() + 30
        while sockets_of(server) > before and time.monotonic() < ended:
            time.sleep(0.1)
        assert sockets_of(server) <= before, "they are kept"
        assert server.stop()[1].split() == ["Interrupted."]


def sockets_of(server: Served) -> int:
    folder = f"/proc/{server.pid}/fd"
    targets = []
    for name in os.listdir(folder):
        with suppress(OSError):
            targets.append(os.readlink(f"{folder}/{name}"))
    return sum(target.startswith("socket:") for target in targets)


def test_a_page_that_listens_may_sleep(project: Project) -> None:
    """Those are counted already, and belong to somebody; when it wakes, it hears of everything."""
    moves = 1400
    with (
        Served(project.root, program=("-c", UNREAD.format(0.2))) as server,
        Breaker.open(project=project.root) as breaker,
    ):
        token = f"Authorization: Bearer {server.token}"
        page = unreading(server, token, path="/events", times=1)
        with breaker.store.transact() as transaction:
            for number in range(moves):
                row = AuditRow("a", time.time(), "closed", "open", "trip", f"{number:0400}", "")
                transaction.audit(row)
        time.sleep(4)
        got = b""
        while f"{moves - 1:0400}".encode() not in got:
            part = page.recv(65536)
            assert part, "the page was cut off"
            got = got[-1000:] + part
        page.close()
