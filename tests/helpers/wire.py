"""HTTP as an adversary writes it: byte by byte, and every answer held against what all of them must carry."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.helpers.project import Project
from tests.helpers.serving import Served


@contextmanager
def own_home(folders: pytest.TempPathFactory) -> Iterator[Project]:
    """A project, and a home that several tests share, for as long as the block lasts."""
    home = folders.mktemp("home")
    root = home / "project"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        yield Project(root)


@contextmanager
def quiet_server(folders: pytest.TempPathFactory, live_in: Callable[[Project], None]) -> Iterator[Served]:
    """A server that several tests share; at its end it has had nothing to say but that it was interrupted."""
    with own_home(folders) as project:
        live_in(project)
        server = Served(project.root)
    with server:
        yield server
        code, errors = server.stop()
    assert (code, errors.split()) == (130, ["Interrupted."]), f"{code}: {errors}"


@dataclass
class Heard:
    """One answer; headers by their names, each with all values that it came with."""

    status: int
    headers: dict[str, list[str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def header(self, name: str) -> str:
        return ", ".join(self.headers.get(name, []))


def connected(served: Served, patience: float = 30) -> socket.socket:
    host, _, port = served.host.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=patience)


def said_to(served: Served, data: bytes, patience: float = 30) -> bytes:
    """What comes back until the server closes the connection."""
    with connected(served, patience) as connection:
        connection.sendall(data)
        return rest_of(connection)


def rest_of(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass  # it was closed while we were still sending
    return b"".join(parts)


def heard(raw: bytes) -> Heard:
    """The first answer in what came back."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    assert first.startswith("HTTP/1.1 "), raw[:200]
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), []).append(value.strip())
    answer = Heard(int(first.split()[1]), headers, body)
    carries_what_all_carry(answer)
    return answer


def ask(
    served: Served,
    path: str = "/",
    method: str = "GET",
    *headers: str,
    host: str | None = None,
    body: bytes = b"",
    token: str = "",
) -> Heard:
    """One request with exactly these header lines (and a Host, unless it is empty)."""
    lines = [f"{method} {path} HTTP/1.1", *headers, "Connection: close"]
    name = served.host if host is None else host
    if name:
        lines.append(f"Host: {name}")
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return heard(said_to(served, "\r\n".join([*lines, "", ""]).encode("latin-1") + body))


def carries_what_all_carry(answer: Heard) -> None:
    """Every answer, also a refusal, forbids what a page does not need, and none speaks to other origins."""
    policy = answer.header("content-security-policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("x-frame-options") == "DENY"
    assert answer.header("referrer-policy") == "same-origin"
    assert answer.header("cross-origin-resource-policy") == "same-origin"
    assert answer.header("cross-origin-opener-policy") == "same-origin"
    assert answer.header("cache-control") in ("no-store", "private, max-age=60")
    assert not any(name.startswith("access-control-") for name in answer.headers)
    assert "server" not in answer.headers
