"""Interrupt a turn of Codex that a person attends, in the server of all sessions.

A hook cannot halt Codex, and the server must not be ended; but it accepts the request that the person's Escape sends:
`turn/interrupt`, as JSON in a WebSocket frame on its own socket (measured on 0.166.0: 0.1 s).
"""

from __future__ import annotations

import os

#: Seconds for each step; the hook has an answer to give.
_PATIENCE = 1.0

_SOCKET = "app-server-control/app-server-control.sock"


def interrupt(record: str, thread: str, turn: str) -> bool:
    """End a turn of a session, whose `record` names the home folder of Codex; False if that failed."""
    import socket

    from fusewire.util.fast_json import dumps

    home = record.partition("/sessions/")[0]
    wanted = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "fusewire", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "turn/interrupt", "params": {"threadId": thread, "turnId": turn}},
    )
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_PATIENCE)
            line.connect(os.path.realpath(f"{home}/{_SOCKET}"))
            line.sendall(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: ZnVzZXdpcmUgaW50ZXJydXA=\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            heard = line.recv(4096)
            if not heard.startswith(b"HTTP/1.1 101 "):
                return False
            line.sendall(b"".join(_frame(dumps(one).encode()) for one in wanted))
            while b'"id":2' not in heard:
                more = line.recv(65536)
                if not more:
                    return False
                heard = heard[-16:] + more
            return b'"id":2,"result"' in heard
    except (OSError, ValueError):
        return False


def _frame(data: bytes) -> bytes:
    """One text frame; a client must mask, and a mask of zeroes is one."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126, *len(data).to_bytes(2, "big")])
    return b"\x81" + size + b"\0\0\0\0" + data
