"""What every request must satisfy before anybody looks at it, and what every answer carries.

A page of another site can make the user's browser send requests here. It cannot choose the Host that the browser
sends, nor hide its own Origin: both are compared with the names that this server has. A name that was bent to point
here (DNS rebinding) is thereby refused, too. Nothing is answered to another origin.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from fusewire.errors import in_a_line

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping
    from typing import Any

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of a body: a form or a small JSON object; and what an agent's hook may send.
SMALL = 64 << 10

_SAFE = frozenset(("GET", "HEAD"))

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Not "no-referrer": with it browsers hide the origin of the forms that we send ourselves.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class Doorkeeper:
    """ASGI middleware: Host, Origin, size of the body, headers of the answer."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], largest: dict[str, int]) -> None:
        self.app = app
        #: names with their port, as browsers send them
        self.hosts = frozenset(host.lower() for host in hosts)
        #: bytes of a body by the beginning of the path
        self.largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # a web socket: there are none
        headers = _single(scope["headers"])
        refusal = self._refusal(scope["method"], headers)
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, _with_headers(send))
            return
        limit = next((size for start, size in self.largest.items() if scope["path"].startswith(start)), SMALL)
        if _declared(headers) > limit:
            await too_large(limit)(scope, receive, _with_headers(send))
            return
        try:
            await self.app(scope, _counted(receive, limit), _with_headers(send))
        except Exception as error:  # ours: one line for whoever asked, one on the server's own terminal
            print(
                f"fusewire: {scope['method']} {scope['path']!r} failed: {in_a_line(error)}", file=sys.stderr, flush=True
            )
            # If the answer has begun already, the server ends the connection.
            await PlainTextResponse("the server failed; its terminal says how\n", 500)(
                scope, receive, _with_headers(send)
            )

    def _refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            return 421, "this server has another name; see the address that it printed when it started\n"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            return 403, "requests from other origins are not answered\n"
        site = headers.get("sec-fetch-site", "none")
        if method not in _SAFE and site not in ("same-origin", "none"):
            return 403, "requests from other sites are not answered\n"
        return None


def too_large(limit: int) -> PlainTextResponse:
    return PlainTextResponse(f"the body is too large; allowed: up to {limit} bytes\n", 413)


class BodyTooLarge(Exception):
    """A body that did not say how large it is, and is larger than allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"larger than {limit} bytes")
        self.limit = limit


def _single(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name. Of a name that comes twice nobody knows which one counts: it is none that we know."""
    found: dict[str, str] = {}
    for name, value in pairs:
        key = name.decode("latin-1").lower()
        found[key] = f"{found[key]}, {value.decode('latin-1')}" if key in found else value.decode("latin-1")
    return found


def _declared(headers: dict[str, str]) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() else 0


def _counted(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counting() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise BodyTooLarge(limit)
        return message

    return counting


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message.setdefault("headers", [])}
            more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in known)]
        await send(message)

    return sending
