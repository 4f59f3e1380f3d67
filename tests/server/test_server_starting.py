"""Starting and ending `fusewire serve`: addresses, what is missing or in the way, the files of tokens, signals."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import AuditRow
from tests.helpers.project import Project
from tests.helpers.serving import Served
from tests.helpers.wire import ask, connected, heard


def refused(project: Project, *arguments: str, code: int) -> str:
    """The one line in which a start is refused; a wrong use also says where to read more."""
    done = project.run("serve", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    lines = done.stderr.splitlines()
    assert len(lines) == (1 if code == 1 else 4), done.stderr
    return lines[-1]


# -- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.1"])
def test_other_machines_reach_it_only_if_that_is_said(project: Project, host: str) -> None:
    """And what it means is said before."""
    said = refused(project, "--host", host, code=2)
    assert said.startswith(f"Error: {host} can be reached from other machines")
    assert "not encrypted" in said
    assert "--expose" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--name", "example.org"), "--name is for --expose"),
        (("--expose", "--name", "evil, example"), "allowed: such as example.org or example.org:443"),
        (("--host", ""), "--host is empty"),
        (("--port", "70000"), "70000 is not in the range"),
        ((".", "--project", "."), "--project names one project, and PROJECT... all of them"),
    ],
)
def test_wrong_use_is_said(project: Project, arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(project, *arguments, code=2)


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "ä" * 80], ids=["other", "unknown", "none"])
def test_an_address_that_is_not_ours_is_said(project: Project, host: str) -> None:
    assert host in refused(project, "--host", host, "--expose", "--port", "0", code=1)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_the_address_that_is_printed_is_one_that_is_answered(project: Project, host: str) -> None:
    """Whichever of this machine's own it listens on."""
    with Served(project.root, arguments=("--host", host)) as server:
        assert server.get("/login").status == 200


def test_an_exposed_server_is_known_by_the_names_that_were_given(project: Project) -> None:
    """Those of a proxy in front too, on its own port; and by no other."""
    names = ("--name", "fuse.example.org", "--name", "proxy.example.org:443")
    with Served(project.root, arguments=("--host", "0.0.0.0", "--expose", *names)) as server:
        port = server.host.rpartition(":")[2]
        assert server.address == f"http://127.0.0.1:{port}/"
        ours = ("127.0.0.1:{}", "fuse.example.org:{}", "proxy.example.org", "proxy.example.org:443")
        for name in ours:
            assert ask(server, "/login", host=name.format(port)).status == 200, name
        for name in ("fuse.example.org", "proxy.example.org:{}", "other.example.org:{}", "0.0.0.0:{}"):
            assert ask(server, "/login", host=name.format(port)).status == 421, name
        assert ask(server, "/login", "GET", "Origin: https://proxy.example.org", host="proxy.example.org").status == 200
        assert ask(server, "/login", "GET", "Origin: https://other.example.org", host="proxy.example.org").status == 403


def test_what_is_said_at_the_start_names_the_risk(project: Project) -> None:
    """The key and an address that works once; where the key went if that is a file; who can reach it."""
    path = project.root / "said"
    with path.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "fusewire", "serve", "--port", "0", "--expose", str(project.root)],
            stdout=said,
            stderr=subprocess.PIPE,
        )
    try:
        ended = time.monotonic() + 60
        while "It shows" not in path.read_text() and process.poll() is None and time.monotonic() < ended:
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=45)
    assert b"The key is in a file now" in errors
    assert b"Other machines can reach it, and what is sent is not encrypted." in errors
    address, key = (line.strip() for line in path.read_text().splitlines() if line.startswith("  "))
    assert "/login#token=" in address
    assert key not in address
    assert f"It shows {project.root}\n" in path.read_text()


# -- what is missing or in the way ----------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1:{port} cannot be listened on" in refused(project, "--port", port, code=1)


def test_a_folder_that_is_not_there_is_said(project: Project) -> None:
    for folder in ("nowhere", str(project.constraint("rule"))):
        assert refused(project, folder, code=1) == f"Error: no such folder: {folder}"


@pytest.mark.parametrize("module", ["starlette", "uvicorn", "jinja2", "h11"])
def test_without_the_extra_one_line_says_what_to_install(project: Project, module: str) -> None:
    script = f"import sys; sys.modules[{module!r}] = None; from fusewire.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "serve", str(project.root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: {module} is not installed: pip install 'fusewire[server]'\n"


def unread(server: Served, page: socket.socket) -> int:
    """Bytes that the system keeps for a page that does not read them."""
    ports = [int(server.host.rpartition(":")[2]), page.getsockname()[1]]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, own, other, _, queues, *_ = line.split()
        if [int(address.rpartition(":")[2], 16) for address in (own, other)] == ports:
            return int(queues.partition(":")[0], 16)
    return 0


# -- ending -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_fifty_open_pages_do_not_keep_it_from_ending(project: Project, how: signal.Signals) -> None:
    """Nor one that reads nothing, nor a request that never came to its end; and nothing is said about them."""
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        for _ in range(1000):
            transaction.audit(AuditRow("loop/score", time.time(), "closed", "open", "tripped", "r" * 300, ""))
    with Served(project.root) as server:
        lines = ("GET /events HTTP/1.1", f"Host: {server.host}", f"Authorization: Bearer {server.token}")
        pages = [connected(server) for _ in range(50)]
        for page in pages:
            page.sendall("\r\n".join([*lines, "", ""]).encode())
        for page in pages:
            assert heard(page.recv(65536)).status == 200
        pages.append(connected(server))
        pages[-1].sendall("\r\n".join([*lines, "Last-Event-ID: project:0", "", ""]).encode())
        late = time.monotonic() + 45
        while unread(server, pages[-1]) < 100_000:
            assert time.monotonic() < late
            time.sleep(0.05)
        halfway = connected(server)
        halfway.sendall(b"POST /login HTTP/1.1\r\nHost: ")
        waiting = connected(server)
        form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\n\r\n"
        waiting.sendall(f"POST /login HTTP/1.1\r\nHost: {server.host}\r\n{form}".encode())
        began = time.monotonic()
        server.process.send_signal(how)
        server.process.wait(45)
        assert time.monotonic() - began < 10  # a head that never comes is waited for longer
        code, errors = server.stop()
        assert code == (130 if how == signal.SIGINT else -signal.SIGTERM)
        assert errors.split() == (["Interrupted."] if how == signal.SIGINT else [])
        for page in [*pages, halfway, waiting]:
            page.close()


# -- files of tokens ------------------------------------------------------------------------------------------------


def token_file(role: str = "reader") -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "fusewire" / f"{role}.token"


def test_a_folder_inside_of_a_project_means_the_project(project: Project) -> None:
    """As it does for every command that is run there."""
    (project.root / "src").mkdir()
    with Served(project.root / "src") as server:
        assert [one["root"] for one in server.said["projects"]] == [str(project.root.resolve())]


def test_the_files_are_for_their_owner_and_stay(project: Project) -> None:
    """Programs keep using them; whoever starts the server again, or twice at the same time, finds the same ones."""
    servers: list[Served] = []
    starting = [threading.Thread(target=lambda: servers.append(Served(project.root))) for _ in range(2)]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    try:
        token = token_file().read_text().strip()
        for server in servers:
            assert server.get("/api/v1/projects", bearer=token).status == 200
        facts = token_file().stat()
        assert (stat.S_IMODE(facts.st_mode), facts.st_nlink) == (0o600, 1)
        # That of the hooks is made by whoever installs some: nobody can report with a token that nobody needs.
        assert sorted(path.name for path in token_file().parent.iterdir()) == ["reader.token"]
        assert stat.S_IMODE(token_file().parent.stat().st_mode) == 0o700
    finally:
        for server in servers:
            server.stop()
    assert len(servers) == 2


def _open_to_others(path: Path) -> None:
    path.write_text("r" * 43)
    path.chmod(0o644)


def _elsewhere(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("r" * 43)
    other.chmod(0o600)
    path.symlink_to(other)


def _a_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _cut_off(path: Path) -> None:
    path.touch(0o600)


def _a_folder(path: Path) -> None:
    path.mkdir(0o700)


@pytest.mark.parametrize("prepare", [_open_to_others, _elsewhere, _a_pipe, _cut_off, _a_folder])
def test_a_file_that_may_be_known_to_others_is_refused(project: Project, prepare: Callable[[Path], None]) -> None:
    """In one line that names it; the server does not start, and does not wait."""
    token_file().parent.mkdir(parents=True)
    prepare(token_file())
    assert str(token_file()) in refused(project, "--port", "0", code=1)


def test_a_server_that_is_killed_leaves_nothing_that_stops_the_next(project: Project) -> None:
    """It gets the same port and the same files at once; the old cookies and keys are worth nothing."""
    first = Served(project.root)
    first.log_in()
    port = first.host.rpartition(":")[2]
    with connected(first) as page:
        page.sendall(f"GET /events HTTP/1.1\r\nHost: {first.host}\r\nCookie: {first.cookie}\r\n\r\n".encode())
        assert heard(page.recv(65536)).status == 200
        os.kill(first.pid, signal.SIGKILL)
        first.process.wait(45)
        with Served(project.root, arguments=("--port", port)) as second:
            assert second.host == first.host
            assert ask(second, "/", "GET", f"Cookie: {first.cookie}").status == 303
            assert ask(second, "/api/v1/projects", token=first.token).status == 401
            assert ask(second, "/api/v1/projects", token=token_file().read_text().strip()).status == 200
    first.stop()
