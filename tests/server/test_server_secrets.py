"""Who is a person for `fusewire serve`: tokens, cookies, forms, and why an agent of the same user is none."""

from __future__ import annotations

import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.server.access import Access, kept_token
from fusewire.server.peer import require_person_at
from fusewire.util.errors import AgentRefused
from tests.helpers import SOURCE
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.wire import ask, connected, heard, quiet_server, rest_of
from tests.server.test_server_security import ALL, FORM

RULE = "git-safety-force-push"
RESET = "/p/project/act/reset"
OPEN_TO_ALL = ("/static/style.css", "/login", "/api/v1/openapi.json")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Its circuit stays open: whatever these tests send, nobody resets it."""
    with quiet_server(tmp_path_factory, trip) as server:
        server.log_in()
        yield server
        assert f"{RULE} is closed" not in server.get("/").text
        assert '"state":"OPEN"' in server.get("/api/v1/projects/project/circuits?state=OPEN", bearer=server.token).text


def trip(project: Project) -> None:
    """Five violations open the constraint's circuit."""
    project.constraint(RULE, "circuit_breaker: {dedup_seconds: 0}\n")
    with Breaker.open(project=project.root) as breaker:
        assert [breaker.record(RULE, f"push {number}").tripped for number in range(5)][-1]


def home_of(server: Served) -> Path:
    return Path(server.said["projects"][0]["root"]).parent


def token_of(server: Served, role: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home_of(server) / "state"))
        return kept_token(role)


def filled(server: Served, **changed: str) -> bytes:
    """The form of a reset, right in everything that is not said to be changed."""
    fields = {"form_secret": server.form_secret(), "circuit": RULE, "reason": "mine", **changed}
    return urlencode({name: value for name, value in fields.items() if value}).encode()


# -- tokens -----------------------------------------------------------------------------------------------------


def test_without_a_token_there_is_nothing_to_see(served: Served) -> None:
    """Every address sends a stranger away, whatever stands in its query, and says no name of anything."""
    queries = ("", f"?token={served.token}", f"?access_token={served.token}", f"?fusewire={served.token}")
    for method, path in ALL:
        if path in OPEN_TO_ALL and method != "POST":
            continue
        for query in queries:
            answer = ask(served, path + query, method, "Accept: text/html", FORM)
            assert answer.status in (303, 401, 403), (method, path)
            assert answer.header("location").startswith("/login") == (answer.status == 303)
            assert "set-cookie" not in answer.headers
            assert RULE not in answer.text


def test_a_stranger_is_not_told_which_projects_there_are(served: Served) -> None:
    for path in ("/login", "/nowhere", "/p/nowhere/", "/p/project/nowhere", "/api/v1/nowhere", "/static/nowhere"):
        answer = ask(served, path, "GET", "Accept: text/html")
        assert "/p/project" not in answer.text.replace(path, "")
        assert "Log out" not in answer.text


def test_a_wrong_token_is_none(served: Served) -> None:
    for scheme in ("Basic", "Token", "Bearer x", "Bearer\t", ""):
        assert ask(served, "/api/v1/projects", "GET", f"Authorization: {scheme} {served.token}").status == 401
    for wrong in (served.token[:-1], served.token + "x", served.token.swapcase(), "x" * 5000, "\xff\xfe", "null"):
        line = f"Authorization: Bearer {wrong}"
        assert ask(served, "/api/v1/projects", "GET", line).status == 401
        # A cookie does not make up for it.
        assert ask(served, "/api/v1/projects", "GET", line, f"Cookie: {served.cookie}").status == 401


@pytest.mark.parametrize("role", ["reader", "hooks"])
def test_tokens_that_lie_in_files_lift_nothing(served: Served, role: str) -> None:
    """An agent can read them: neither logs in, neither acts, neither opens a page."""
    token = token_of(served, role)
    body = json.dumps({"circuit": RULE, "reason": "mine"}).encode()
    kind = "Content-Type: application/json"
    assert ask(served, "/api/v1/projects/project/reset", "POST", kind, body=body, token=token).status == 403
    assert ask(served, "/login", "POST", FORM, body=urlencode({"token": token}).encode()).status == 403
    assert ask(served, RESET, "POST", FORM, body=filled(served), token=token).status == 401
    assert ask(served, "/", "GET", token=token).status == 303


def test_a_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every one that there is, by the function that was made for it."""
    seen = []
    right = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: seen.append(one) or right(one, other))
    access = Access("r" * 43)
    kept_token("hooks")
    assert access.role_of("p") is None
    assert access.role_of(access.person) == "person"
    assert len(seen) == 6
    assert access.log_in("\ud800") is None
    assert len(access.person) == 43  # 256 bits: nobody tries them out


# -- what has the token, and what has not ---------------------------------------------------------------------------


def test_the_token_is_nowhere_but_on_the_terminal(served: Served) -> None:
    """No answer to a GET, no address, no file, no command line and no environment has it."""
    for method, path in ALL:
        if method == "GET" and path != "/events":
            answer = served.get(path)
            assert served.token not in answer.text
            assert served.token not in str(answer.headers)
    assert served.token not in served.said["login"]
    for name in ("cmdline", "environ"):
        assert served.token.encode() not in Path(f"/proc/{served.pid}/{name}").read_bytes()
    files = [path for path in home_of(served).rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        assert served.token.encode() not in path.read_bytes(), path


def test_an_address_that_was_printed_logs_in_once(served: Served) -> None:
    """Browsers keep addresses in files that an agent can read; one that was used is worth nothing."""
    code = served.said["login"].partition("/login#token=")[2]
    body = urlencode({"token": code}).encode()
    assert ask(served, "/api/v1/projects", token=code).status == 401
    assert ask(served, "/login", "POST", FORM, body=body).status == 303
    again = ask(served, "/login", "POST", FORM, body=body)
    assert again.status == 403
    assert "set-cookie" not in again.headers
    # Who is logged in already is let in, without a new session.
    back = ask(served, "/login", "POST", FORM, f"Cookie: {served.cookie}", body=body)
    assert (back.status, back.header("location")) == (303, "/")
    assert "set-cookie" not in back.headers


def test_a_code_for_a_command_line_ends_by_itself() -> None:
    access = Access("r" * 43)
    assert access.log_in(access.code(60)) is not None
    assert access.log_in(access.code(0)) is None
    first = access.code()
    for _ in range(20):
        access.code()
    assert access.log_in(first) is None  # there are never many


# -- cookies --------------------------------------------------------------------------------------------------------


def test_the_cookie_is_for_this_server_only(served: Served) -> None:
    """No script reads it, no other site sends it, no other host gets it, and none that eavesdrops if there is TLS."""
    body = urlencode({"token": served.token}).encode()
    plain = ask(served, "/login", "POST", FORM, body=body).header("set-cookie")
    name, *rest = [part.strip().lower() for part in plain.split(";")]
    assert name.startswith(f"fusewire-{served.host.rpartition(':')[2]}=")
    assert sorted(rest) == ["httponly", "path=/", "samesite=strict"]
    behind = ask(served, "/login", "POST", FORM, f"Origin: https://{served.host}", body=body).header("set-cookie")
    assert "secure" in behind.lower()


def test_only_a_cookie_that_was_given_is_one(served: Served) -> None:
    name, _, value = served.cookie.partition("=")
    for wrong in (f"{name}={value[:-1]}", f"{name}=", f"{name}={served.token}", f"{name}-x={value}", f"x={value}"):
        assert ask(served, "/", "GET", f"Cookie: {wrong}").status == 303
    assert ask(served, "/", "GET", f"Cookie: a=b; {served.cookie}; c=d").status == 200


def test_logging_out_ends_the_session_and_what_its_pages_listen_to(served: Served) -> None:
    """The cookie is worth nothing afterwards; a stream that it had opened ends."""
    other = ask(served, "/login", "POST", FORM, body=urlencode({"token": served.token}).encode())
    cookie = "Cookie: " + other.header("set-cookie").partition(";")[0]
    secret = ask(served, "/", "GET", cookie).text.partition('name="form_secret" value="')[2].partition('"')[0]
    with connected(served) as stream:
        lines = ("GET /events HTTP/1.1", f"Host: {served.host}", cookie, "Connection: close", "", "")
        stream.sendall("\r\n".join(lines).encode())
        assert heard(stream.recv(65536)).status == 200
        assert ask(served, "/logout", "POST", FORM, cookie, body=b"form_secret=x").status == 403
        assert ask(served, "/", "GET", cookie).status == 200
        out = ask(served, "/logout", "POST", FORM, cookie, body=urlencode({"form_secret": secret}).encode())
        assert out.status == 303
        assert "expires" in out.header("set-cookie").lower() or "max-age=0" in out.header("set-cookie").lower()
        assert rest_of(stream).endswith(b"0\r\n\r\n")
    assert ask(served, "/", "GET", cookie).status == 303
    assert ask(served, "/events", "GET", cookie).status == 401


def test_two_servers_do_not_know_each_other(served: Served, project: Project) -> None:
    """Browsers keep one jar of cookies for all ports: each server finds its own in it, and takes no other's."""
    with Served(project.root) as other:
        other.log_in()
        jar = f"Cookie: {served.cookie}; {other.cookie}"
        for one in (served, other):
            assert ask(one, "/", "GET", jar).status == 200
        assert ask(other, "/", "GET", f"Cookie: {served.cookie}").status == 303
        mine = other.cookie.partition("=")[0] + "=" + served.cookie.partition("=")[2]
        assert ask(other, "/", "GET", f"Cookie: {mine}").status == 303
        assert ask(other, "/api/v1/projects", token=served.token).status == 401


# -- forms ------------------------------------------------------------------------------------------------------------


def test_a_forged_form_does_nothing(served: Served) -> None:
    """Each lacks one thing that only our own page has; the fixture sees that the circuit is still open."""
    cookie = f"Cookie: {served.cookie}"
    other = ask(served, "/login", "POST", FORM, body=urlencode({"token": served.token}).encode())
    others_cookie = "Cookie: " + other.header("set-cookie").partition(";")[0]
    right = filled(served)
    multipart = b'--x\r\nContent-Disposition: form-data; name="form_secret"\r\n\r\nx\r\n--x--\r\n'
    cases = [
        (401, (FORM,), right),
        (403, (FORM, cookie), filled(served, form_secret="")),
        (403, (FORM, cookie), filled(served, form_secret="x")),
        (403, (FORM, cookie), b"form_secret=x&" + right),
        (403, (FORM, others_cookie), right),
        (415, (cookie, "Content-Type: application/json"), b"{}"),
        (415, (cookie, "Content-Type: text/plain"), right),
        (415, (cookie, "Content-Type: multipart/form-data; boundary=x"), multipart),
        (415, (cookie,), right),
        (403, (FORM, cookie, "Origin: http://evil.example"), right),
        (403, (FORM, cookie, "Origin: null"), right),
    ]
    for status, lines, body in cases:
        assert ask(served, RESET, "POST", *lines, body=body).status == status, (lines, body)
    override = ("X-HTTP-Method-Override: POST", "X-Method-Override: POST", "X-HTTP-Method: POST")
    assert ask(served, f"{RESET}?{right.decode()}&_method=POST", "GET", cookie, *override).status == 405
    assert ask(served, f"{RESET}?{right.decode()}", "POST", cookie, FORM).status == 403  # the body counts
    assert ask(served, "/p/project/act/nothing", "POST", cookie, FORM, body=right).status == 404
    assert ask(served, "/p/nowhere/act/reset", "POST", cookie, FORM, body=right).status == 404


def test_a_cookie_alone_does_not_act_through_the_json_interface(served: Served) -> None:
    """A page elsewhere has no token, nor can it send JSON without asking first."""
    body = json.dumps({"circuit": RULE, "reason": "mine"}).encode()
    lines = (f"Cookie: {served.cookie}", "Content-Type: application/json")
    path = "/api/v1/projects/project/reset"
    assert ask(served, path, "POST", *lines, body=body).status == 403
    assert ask(served, path, "POST", f"Cookie: {served.cookie}", body=body).status in (403, 415)


# -- an agent of the same user ---------------------------------------------------------------------------------------

SENDS = """
import http.client, json, sys
host, path, headers, body = json.loads(sys.argv[1])
connection = http.client.HTTPConnection(host, timeout=45)
connection.request("POST", path, body, headers)
answer = connection.getresponse()
print(json.dumps([answer.status, answer.read().decode()]))
"""

HANGS_UP = """
import json, socket, struct, sys
host, path, headers, body = json.loads(sys.argv[1])
lines = [f"POST {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
name, _, port = host.rpartition(":")
for _ in range(20):
    connection = socket.create_connection((name, int(port)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(sys.argv[2]), 0))
    connection.sendall("\\r\\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode())
    connection.close()
"""


HIDES = """
import json, socket, sys, time
host, path, headers, body = json.loads(sys.argv[1])
lines = [f"POST {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
name, _, port = host.rpartition(":")
connection = socket.create_connection((name, int(port)))
text = "\\r\\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()
connection.sendall(text[:-1])
here, there = socket.socketpair()
copy = connection.dup()
socket.send_fds(here, [b"x"], [connection.fileno()])
connection.close()
copy.sendall(text[-1:])
copy.close()
time.sleep(float(sys.argv[2]))
connection = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
connection.settimeout(45)
print(connection.recv(65536).decode())
"""


def by_an_agent(script: str, *arguments: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def sent_by_an_agent(server: Served, path: str, headers: dict[str, str], body: bytes, **env: str) -> tuple[int, str]:
    given = json.dumps([server.host, path, headers, body.decode()])
    status, text = json.loads(by_an_agent(SENDS, given, **(env or {"CLAUDECODE": "1"})))
    return status, text


@pytest.mark.parametrize("sign", ["CLAUDECODE", "GEMINI_CLI", "FUSEWIRE_PROJECT"])
def test_an_agent_with_everything_that_a_person_has_is_still_none(served: Served, sign: str) -> None:
    """A token read from a terminal, a cookie that a browser sent to the agent's own web application: all refused."""
    env = {sign: served.said["projects"][0]["root"]}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, text = sent_by_an_agent(served, "/login", form, urlencode({"token": served.token}).encode(), **env)
    assert (status, "inside an agent" in text) == (403, True)
    status, text = sent_by_an_agent(served, RESET, {**form, "Cookie": served.cookie}, filled(served), **env)
    assert (status, "inside an agent" in text) == (403, True)
    given = {"Content-Type": "application/json", "Authorization": f"Bearer {served.token}"}
    body = json.dumps({"circuit": RULE, "reason": "mine"}).encode()
    status, text = sent_by_an_agent(served, "/api/v1/projects/project/reset", given, body, **env)
    assert (status, "inside an agent" in text) == (403, True)


@pytest.mark.parametrize("how", ["0", "1"])
def test_an_agent_that_hangs_up_at_once_has_done_nothing(served: Served, how: str) -> None:
    """Nobody can say who it was, so it was no person (the fixture sees that the circuit is still open)."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": served.cookie}
    given = json.dumps([served.host, RESET, headers, filled(served).decode()])
    by_an_agent(HANGS_UP, given, how, CLAUDECODE="1")


def test_an_agent_that_hides_its_connection_while_it_is_judged_has_done_nothing(served: Served) -> None:
    """It is on its way from one socket to another meanwhile, where no process has it open."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": served.cookie}
    given = json.dumps([served.host, RESET, headers, filled(served).decode()])
    answer = by_an_agent(HIDES, given, "3", CLAUDECODE="1")
    assert answer.startswith("HTTP/1.1 403 ")
    assert "inside an agent" in answer


#: A process that asks who sent what, what it is asked by, and who else is there.
JUDGES = """
import socket, subprocess, sys
from fusewire.util.errors import AgentRefused
from fusewire.server.peer import require_person_at
listening = socket.create_server(("127.0.0.1", 0))
peer, *others = [
    subprocess.Popen([sys.executable, "-c", *one], stdin=-1, stdout=-1, env={"CLAUDECODE": agent} if agent else {})
    for agent, *one in eval(sys.argv[1])
]
for one in (*others, peer):
    one.stdin.write(b"%d\\n" % listening.getsockname()[1])
    one.stdin.flush()
    one.stdout.readline()
connection, client = listening.accept()
try:
    require_person_at(client, listening.getsockname()[1], [])
    print("a person")
except AgentRefused as error:
    print(error)
for one in (*others, peer):
    one.kill()
"""
BEGINS = "import ctypes, socket, subprocess, sys, threading\nsystem, port = ctypes.CDLL(None), int(input())\n"
CONNECTS = "connection = socket.create_connection(('127.0.0.1', port))\n"
SHOWS_NOTHING = "system.prctl(4, 0, 0, 0, 0)\n"
WAITS = "print('ready', flush=True)\ninput()\n"
OPEN = BEGINS + CONNECTS + WAITS
UNSEEN = BEGINS + CONNECTS + SHOWS_NOTHING + WAITS
BYSTANDER = BEGINS + SHOWS_NOTHING + WAITS
STARTS_UNSEEN = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {UNSEEN!r}])"
IN_FLIGHT = f"""{BEGINS}{CONNECTS}
here, there = socket.socketpair()
socket.send_fds(here, [b"x"], [connection.fileno()])
connection.close()
{WAITS}"""
OF_A_THREAD = f"""{BEGINS}{CONNECTS}
apart = threading.Event()
def wait():
    system.unshare(0x400)
    apart.set()
    threading.Event().wait()
threading.Thread(target=wait, daemon=True).start()
apart.wait()
connection.close()
{WAITS}"""


#: Where no other process is, and without the rights of root.
ALONE = "unshare --map-root-user --pid --fork --mount-proc --kill-child setpriv --bounding-set -all".split()


def judged(*processes: tuple[str, str]) -> str:
    """What is said of the connection of the first of these."""
    done = subprocess.run(
        [*ALONE, sys.executable, "-c", JUDGES, repr(list(processes))],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0,
    reason="no namespaces for us here",
)
def test_a_connection_that_nobody_is_seen_to_hold_is_a_persons_only_if_it_can_be_one() -> None:
    """What is behind an `ssh -L` does not show what it holds; agents could be that, too, and hide otherwise."""
    inside, hides = "runs inside an agent", "no process is seen to hold the connection"
    assert judged(("", OPEN)) == "a person"
    assert inside in judged(("1", OPEN))
    assert judged(("", UNSEEN)) == "a person"
    assert inside in judged(("1", STARTS_UNSEEN))
    assert judged(("", OF_A_THREAD)) == "a person"
    assert inside in judged(("1", OF_A_THREAD))
    assert inside in judged(("1", IN_FLIGHT))
    assert inside in judged(("1", IN_FLIGHT), ("", BYSTANDER)), "though another process could be the one"
    assert hides in judged(("", IN_FLIGHT)), "and no agent is seen"


def test_the_same_from_a_person_is_done(project: Project) -> None:
    """What the tests above send is refused for no other reason."""
    trip(project)
    with Served(project.root) as server:
        server.log_in()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": server.cookie}
        assert sent_by_an_agent(server, RESET, form, filled(server), NOBODY="1")[0] == 303
    assert project.json("status", RULE)["circuits"][0]["state"] == "CLOSED"


def test_a_server_inside_an_agent_acts_for_nobody(project: Project) -> None:
    """Its own token, in the hands of whoever: it shows, and every way to act is refused."""
    trip(project)
    with Served(project.root, env={"CLAUDECODE": "1"}) as server:
        server.log_in()
        body = json.dumps({"circuit": RULE, "reason": "mine"}).encode()
        kind = "Content-Type: application/json"
        answer = ask(server, "/api/v1/projects/project/reset", "POST", kind, body=body, token=server.token)
        assert answer.status == 403
        assert "inside an agent" in answer.text
        assert ask(server, RESET, "POST", FORM, f"Cookie: {server.cookie}", body=filled(server)).status == 303
        assert "inside an agent" in server.get("/").text
        # There an agent may look: nothing can be changed.
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert sent_by_an_agent(server, "/login", form, urlencode({"token": server.token}).encode())[0] == 303
    assert project.json("status", RULE)["circuits"][0]["state"] == "OPEN"


def test_who_sits_at_another_machine_is_judged_by_the_token_alone() -> None:
    """Nothing here can tell what sends from there; but at an address of this machine somebody must be."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        require_person_at(("192.0.2.1", 40000), port, [])
        for client in (("127.0.0.1", 1), ("::1", 1), ("", 0)):
            with pytest.raises(AgentRefused, match="did not wait for the answer"):
                require_person_at(client, port, [])
