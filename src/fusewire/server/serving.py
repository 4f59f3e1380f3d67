"""Start the server: address, names, tokens; and shut it down without leaving anything behind."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import socket
from typing import TYPE_CHECKING

import uvicorn

from fusewire.server.access import Access, kept_token
from fusewire.server.app import make_app
from fusewire.server.connections import Connection, say_in_a_line
from fusewire.server.projects import KnownProjects, Projects
from fusewire.util.errors import FusewireError
from fusewire.views.overview_all import Everything

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Bytes that the system keeps for a page that does not read them; of itself it would keep megabytes for each.
_UNREAD = 128 << 10

#: Seconds that open pages get to end.
_GOODBYE = 1


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _with_port(name: str, port: int) -> list[str]:
    """A name as browsers send it: with its port, which may be a proxy's, unless that is the usual one."""
    given = re.search(r":(\d+)$", name)
    port = int(given[1]) if given else port
    bare = name.removesuffix(given[0]) if given else name
    return [f"{bare}:{port}", *([bare] if port in (80, 443) else [])]


class Serving:
    """A server that listens: its address, its tokens, and `run`. It shows these projects, or all of the person's."""

    def __init__(
        self, roots: Sequence[str], host: str, port: int, names: Sequence[str] = (), *, shows_all: bool = False
    ) -> None:
        self.socket = _listening(host, port)
        self.host, self.port = host, self.socket.getsockname()[1]
        self.access = Access(kept_token("reader"))
        everything = Everything(roots, only_these=not shows_all)
        if shows_all:
            everything.refresh()
        self.projects = KnownProjects(everything) if shows_all else Projects(roots)
        self.app = make_app(self.projects, everything, self.access, self._hosts(names), f"fusewire-{self.port}")

    def _hosts(self, names: Sequence[str]) -> list[str]:
        """What a browser may call it: addresses of this machine, and names that a person has given."""
        known = ["127.0.0.1", "localhost", "[::1]", *names]
        if self.host not in ("0.0.0.0", "::"):
            known.append(f"[{self.host}]" if ":" in self.host else self.host)
        return [host for name in known for host in _with_port(name, self.port)]

    @property
    def address(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "localhost") else "::1" if self.host == "::" else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def login(self, seconds: float = math.inf) -> str:
        """An address that logs in one browser, once; the code is behind `#`, which browsers send to nobody."""
        return f"{self.address}login#token={self.access.code(seconds)}"

    def run(self, ready: Callable[[], None]) -> None:
        """Serve until interrupted."""
        config = uvicorn.Config(
            self.app,
            http=Connection,
            ws="none",
            lifespan="on",
            # Nobody who sends something may write on our terminal; our own failures are said by ourselves.
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            # Who is at the other end is asked of the system, not of the sender.
            proxy_headers=False,
            timeout_graceful_shutdown=_GOODBYE,
        )
        server = _Server(config, ready)
        try:
            server.run(sockets=[self.socket])
        finally:
            self.socket.close()
            self.projects.close()


class _Server(uvicorn.Server):
    """Says when it is ready, and tells open pages to end before it waits for them."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(say_in_a_line)
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.live.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, because asyncio sends small answers at once only where it knows that it is TCP; else they wait 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
        made.bind((host, port))
        made.listen(128)
    except (UnicodeError, TypeError) as error:
        made.close()
        raise FusewireError(f"{host} is no name of a machine") from error
    except OSError as error:
        made.close()
        hint = "; another port can be given with --port, 0 takes a free one" if error.errno in (98, 48, 13) else ""
        raise FusewireError(f"{host}:{port} cannot be listened on: {error.strerror or error}{hint}") from error
    return made
