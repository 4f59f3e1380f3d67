"""Pages that listen to `/events`, as many as wanted in one process: what each was told, and when."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.serving import Served


@dataclass
class Page:
    """One listener. It keeps every move and the place where a new connection would go on."""

    served: Served
    place: str = ""
    moves: list[dict[str, Any]] = field(default_factory=list)
    heard_at: list[float] = field(default_factory=list)
    changed: int = 0
    missed: list[dict[str, int | None]] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        return [move["number"] for move in self.moves]

    def request(self) -> bytes:
        place = [f"Last-Event-ID: {self.place}"] if self.place else []
        lines = ["GET /events HTTP/1.0", f"Host: {self.served.host}", f"Cookie: {self.served.cookie}", *place, "", ""]
        return "\r\n".join(lines).encode()

    async def listen(self, *, buffer: int = 0, until: asyncio.Event | None = None) -> None:
        """Until the stream ends or the task is cancelled; nothing is read before `until`."""
        host, _, port = self.served.host.rpartition(":")
        made = socket.socket()
        if buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(made, (host, int(port)))
            await loop.sock_sendall(made, self.request())
            if until is not None:
                await until.wait()
            rest = b""
            while part := await loop.sock_recv(made, 65536):
                *events, rest = (rest + part).split(b"\n\n")
                for event in events:
                    self._take(event.decode())
        finally:
            made.close()

    def _take(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        data = json.loads(fields["data"]) if "event" in fields else None
        self.place = fields.get("id", self.place)
        match fields.get("event"):
            case "moved":
                self.moves += data
                self.heard_at += [time.monotonic()] * len(data)
            case "changed":
                self.changed += 1
            case "missed":
                self.missed.append(data)


async def wait_until(true: Any, seconds: float, what: str) -> None:
    """For a condition, with a deadline."""
    ended = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ended, f"not within {seconds:.0f} s: {what}"
        await asyncio.sleep(0.05)
