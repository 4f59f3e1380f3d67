"""A model on loopback: threads of this process that speak a vendor's protocol and follow a script."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from harness.calls import Call, Tool
from harness.script import Reply, Script


@dataclass(frozen=True)
class Asked:
    """What a request for a reply says, whatever its protocol."""

    opening: str
    told: str
    conversation: str
    tools: tuple[str, ...]


class Vendor(Protocol):
    """One vendor's protocol."""

    def asked(self, path: str, body: dict[str, Any]) -> Asked | None:
        """What is asked for, or None if this is no request for a reply."""

    def aside(self, path: str, body: dict[str, Any]) -> Any:
        """The answer to any other request."""

    def whole(self, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Any:
        """A reply in one piece."""

    def stream(self, path: str, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Iterable[str] | None:
        """A reply as server-sent events, or None if the client wants it in one piece."""


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


@contextmanager
def model(vendor: Vendor, script: Script, translate: Callable[[Call, str], Tool]) -> Iterator[int]:
    """Serve a script until the end of the block; the port it is served on."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._send(b"")

        def do_GET(self) -> None:
            self._send_json(vendor.aside(self.path, {}))

        def do_POST(self) -> None:
            body = self._body()
            asked = vendor.asked(self.path, body)
            if asked is None:
                self._send_json(vendor.aside(self.path, body))
                return
            reply = script.answer(asked.opening, asked.told, asked.conversation, asked.tools)
            time.sleep(reply.delay)
            if reply.after is not None:
                reply.after.wait(60)
            tools = [translate(call, asked.conversation) for call in reply.calls]
            pieces = vendor.stream(self.path, body, reply, tools)
            if pieces is None:
                self._send_json(vendor.whole(body, reply, tools))
            else:
                self._send("".join(pieces).encode(), "text/event-stream")

        def _body(self) -> dict[str, Any]:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                raw = b""
                while size := int(self.rfile.readline().partition(b";")[0], 16):
                    raw += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                raw = gzip.decompress(raw)
            try:
                body = json.loads(raw)
            except ValueError:
                return {}
            return body if isinstance(body, dict) else {}

        def _send_json(self, answer: Any) -> None:
            self._send(json.dumps(answer).encode())

        def _send(self, data: bytes, kind: str = "application/json") -> None:
            try:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the client has gone; that is what some of the tests are about

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
