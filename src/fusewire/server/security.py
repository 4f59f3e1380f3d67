"""Check every request before it is routed, and add the security headers to every answer.

A page of another site can make the user's browser send requests here. It cannot choose the Host that the browser
sends, nor hide its own Origin: both are compared with the names that this server has. A name that was bent to point
here (DNS rebinding) is thereby refused, too. Nothing is answered to another origin, and another port of this machine
is one; such a page may lead here, which is what a link does, but it puts nothing of ours into itself.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse

from fusewire.util.errors import in_a_line
from fusewire.util.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of a body: a form or a small JSON object; and what an agent's hook may send.
SMALL = 64 << 10

#: Seconds in which a body must have come, and headers that a request may have.
BODY_TIME = 15.0
_MOST_HEADERS = 100

_SAFE = frozenset(("GET", "HEAD"))
_OWN_SITE = ("same-origin", "none")

#: After it nothing more is read. Not for a body that is too large: who is still sending it would not see the answer.
_CLOSE = {"Connection": "close"}

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
        answer = SecuredResponse(send)
        limit = next((size for start, size in self.largest.items() if scope["path"].startswith(start)), SMALL)
        refusal = self._refusal(scope, limit)
        if refusal is not None:
            said = in_a_line_for(scope["path"], *refusal, _CLOSE if refusal[0] == 400 else None)
            await said(scope, receive, answer)
            return
        try:
            await self.app(scope, _counted(receive, limit), answer)
        except ClientDisconnect:
            return
        except Exception as error:  # ours: one line for whoever asked, one on the server's own terminal
            failed = f"fusewire: {scope['method']} {scope['path']!r} failed: {visible(in_a_line(error))}"
            print(failed, file=sys.stderr, flush=True)
            if not answer.begun:  # else the server ends the connection
                said = in_a_line_for(scope["path"], 500, "the server failed; its terminal says how")
                await said(scope, receive, answer)

    def _refusal(self, scope: Scope, limit: int) -> tuple[int, str] | None:
        headers = _single(scope["headers"])
        return (
            self._other_name(headers)
            or _other_site(scope["method"], headers)
            or _unfit(scope["method"], len(scope["headers"]), headers, limit)
        )

    def _other_name(self, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            return 421, "this server has another name; see the address that it printed when it started"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            return 403, "requests from other origins are not answered"
        return None


def _other_site(method: str, headers: dict[str, str]) -> tuple[int, str] | None:
    """Browsers say where a request comes from and what becomes of the answer; of those of others, links remain."""
    if headers.get("sec-fetch-site", "none") in _OWN_SITE:
        return None
    becomes = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    if method in _SAFE and becomes == ("navigate", "document"):
        return None
    return 403, "requests from other sites are not answered"


def _unfit(method: str, count: int, headers: dict[str, str], limit: int) -> tuple[int, str] | None:
    """What no client of ours sends, and a body that says that it is too large."""
    length, chunked = headers.get("content-length"), "transfer-encoding" in headers
    if count > _MOST_HEADERS:
        return 431, f"the request has too many headers; allowed: up to {_MOST_HEADERS}"
    if length is not None and chunked:
        return 400, "the request says in two ways how long it is"
    if method in _SAFE and (chunked or length not in (None, "0")):
        return 400, f"{method} has no body"
    if length is not None and not (length.isascii() and length.isdigit() and int(length[:16]) <= limit):
        return 413, _too_large(limit)
    return None


def _too_large(limit: int) -> str:
    return f"the body is too large; allowed: up to {limit} bytes"


def in_a_line_for(path: str, status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """An error; the JSON interface says all of them as JSON."""
    if path.startswith("/api/"):
        return JSONResponse({"error": text}, status, headers)
    return PlainTextResponse(f"{text}\n", status, headers)


def _single(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name. Of a name that comes twice nobody knows which one counts: it is none that we know."""
    found: dict[str, str] = {}
    for name, value in pairs:
        key = name.decode("latin-1").lower()
        found[key] = f"{found[key]}, {value.decode('latin-1')}" if key in found else value.decode("latin-1")
    return found


def _counted(receive: Receive, limit: int) -> Receive:
    """A body that did not say how large it is may still be too large, and one that did may never come."""
    seen, done = 0, False
    latest = asyncio.get_running_loop().time() + BODY_TIME

    async def counting() -> Message:
        nonlocal seen, done
        if done:
            return await receive()
        try:
            async with asyncio.timeout_at(latest):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {BODY_TIME:.0f} seconds", _CLOSE) from None
        seen += len(message.get("body", b""))
        done = not message.get("more_body", False)
        if seen > limit:
            raise HTTPException(413, _too_large(limit))
        return message

    return counting


#: As they go over the wire.
WIRE_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class SecuredResponse:
    """An answer on its way out: every one gets our headers."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            known = {name.lower() for name, _ in message.setdefault("headers", [])}
            more = [pair for pair in WIRE_HEADERS if pair[0] not in known]
            message["headers"] = [*message["headers"], *more]
        await self._send(message)
