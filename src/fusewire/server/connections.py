"""Limit connections: their number, how long a request may take to arrive and an answer to be read; answer what is no
HTTP."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from fusewire.server.security import WIRE_HEADERS
from fusewire.util.errors import in_a_line
from fusewire.util.text import visible

#: Connections at the same time: well above the pages that may listen, well below the files that a process may open.
CONNECTIONS = 512

#: Seconds in which the head of a request must have come.
HEAD_TIME = 15.0

#: Seconds in which whoever is answered must have read something more of it.
UNREAD_TIME = 15.0

#: In the scope of a request: it is a page that listens. How many there are is bounded elsewhere, and one may be asleep.
LISTENS = "fusewire.listens"

_NO_HTTP = b"this is no request that can be read\n"


class Connection(H11Protocol):
    """One that says nothing, or never comes to the end of it, or does not read its answer, is closed."""

    _late: asyncio.TimerHandle | None = None
    _began = 0.0
    _unread: asyncio.TimerHandle | None = None
    _unread_since = 0.0
    _unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # we hear of it as soon as anything has to wait for its reader
        self._began = self.loop.time()
        self._mind_the_time()
        if len(self.connections) > CONNECTIONS:
            self._make_room()

    def _make_room(self) -> None:
        """Of those that have not said all that they want, or do not read what they asked for, the one that has kept us
        waiting for longest goes: whoever asks at once is not kept out."""
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        waits = {one: since for one in others if (since := one.waited_for_since()) is not None}
        min(waits, key=waits.__getitem__, default=self).transport.abort()

    def waited_for_since(self) -> float | None:
        """When it began to keep us waiting; None if it does not."""
        if self._unread is not None:
            return None if self._listens() else self._unread_since
        return self._began if self.conn.their_state is not h11.DONE and not self.transport.is_closing() else None

    def _listens(self) -> bool:
        return bool(self.scope and LISTENS in self.scope)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._mind_the_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_the_reader()

    def _mind_the_reader(self) -> None:
        """While something waits to be read: now and then less of it must be left."""
        left = self.transport.get_write_buffer_size()
        if self._unread is not None and left >= self._unread_bytes and not self._listens():
            self.transport.abort()
            return
        self._unread_bytes, self._unread_since = left, self.loop.time()
        self._unread = self.loop.call_later(UNREAD_TIME, self._mind_the_reader)

    def _forget_the_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._mind_the_time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_the_time()
        self._forget_the_reader()
        super().connection_lost(exc)

    def _mind_the_time(self) -> None:
        """It runs while there is no request to answer, and is not lengthened by what comes meanwhile."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_the_time()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_TIME, self.transport.abort)

    def _forget_the_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def send_400_response(self, msg: str) -> None:
        """With our headers; in the middle of an answer there is nothing left to say."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *WIRE_HEADERS]
        begin = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (begin, h11.Data(data=_NO_HTTP), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def say_in_a_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What goes wrong outside of any request, on the server's own terminal."""
    error = context.get("exception")
    more = f": {visible(in_a_line(error))}" if isinstance(error, Exception) else ""
    print(f"fusewire: {context['message']}{more}", file=sys.stderr, flush=True)
