"""Who is told in the tests: a real web server and a real mail server on loopback that keep what they are sent."""

from __future__ import annotations

import json
import os
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Loopback is asked directly, whatever the environment of whoever runs the tests says.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1"


def until(holds: Callable[[], Any], what: str, seconds: float = 60) -> None:
    """Wait for a condition; a test that waits in vain says for what."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@dataclass
class Webhook:
    """What a web server was sent, and how it answers: at once, with a status; or not before it is let go."""

    port: int = 0
    status: int = 200
    #: answered to the first requests instead
    first: list[int] = field(default_factory=list)
    answer: bytes = b"{}"
    requests: list[tuple[str, Any]] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body in self.requests]

    @property
    def titles(self) -> list[str]:
        return [body["title"] for body in self.bodies]

    def wait_for(self, count: int) -> None:
        until(lambda: len(self.requests) >= count, f"{count} requests, and there are {self.titles}")


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[int]:
    """The port of a server that answers until the end of the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def webhook(status: int = 200) -> Iterator[Webhook]:
    """A web server until the end of the block; whoever still waits for an answer then gets it."""
    kept = Webhook(status=status)
    kept.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept.requests.append((self.path, json.loads(body)))
            kept.answers.wait(60)
            try:
                self.send_response(kept.first.pop(0) if kept.first else kept.status)
                self.send_header("Content-Length", str(len(kept.answer)))
                self.end_headers()
                self.wfile.write(kept.answer)
            except OSError:
                pass  # whoever asked has been killed

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    with _serving(Server(("127.0.0.1", 0), Handler)) as kept.port:
        try:
            yield kept
        finally:
            kept.answers.set()


@dataclass
class Mailbox:
    port: int = 0
    letters: list[str] = field(default_factory=list)
    #: what was said to the server, line by line
    heard: list[str] = field(default_factory=list)


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """As much of SMTP as a letter needs."""
    kept = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 ready")
            for raw in self.rfile:
                line = raw.decode().strip()
                kept.heard.append(line)
                word = line.partition(" ")[0].upper()
                if word == "DATA":
                    self.say("354 go on")
                    lines = []
                    while (text := self.rfile.readline().decode()) not in (".\r\n", ""):
                        lines.append(text)
                    kept.letters.append("".join(lines))
                self.say("221 bye" if word == "QUIT" else "250 ok")
                if word == "QUIT":
                    return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with _serving(Server(("127.0.0.1", 0), Handler)) as kept.port:
        yield kept
