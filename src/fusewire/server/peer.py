"""Who sits at the other end of a connection from this machine: an agent is no person, whatever token it holds.

A browser sends its cookies to every port of a machine, also to the web application that an agent has just written and
that a person tries out; a terminal can be read by other programs. So what only a person may do is refused where the
process that holds the connection runs inside an agent, by the same signs as on the command line (see
`fusewire.person`). That needs Linux; elsewhere, and for other machines and other users' processes, the token decides.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from fusewire.errors import AgentRefused
from fusewire.person import agent_among, loop_among
from fusewire.runner.proctable import PROC, ancestors

if TYPE_CHECKING:
    from collections.abc import Iterable

_TABLES = ("tcp", "tcp6")


class _Row(NamedTuple):
    """One end of a connection, as the kernel lists it."""

    port: int
    other: int
    inode: int


def require_person_at(client: int, server: int, roots: Iterable[str]) -> None:
    """Refuse if the process that is connected from port `client` to our port `server` runs inside an agent."""
    sockets = _sockets(client, server)
    if sockets is None:
        return
    for pid in _holders(sockets):
        above = ancestors(pid)
        inside = agent_among(above)
        if not inside and any(loop_among(above, root) for root in roots):
            inside = f"the process {pid} belongs to this project's loop"
        if inside:
            raise AgentRefused(f"this is for a person, and what sent it runs inside an agent ({inside})")
    # Asked once more: of a process that has ended meanwhile nothing could be read.
    if not sockets or sockets != _sockets(client, server):
        raise AgentRefused("whoever sent this did not wait for the answer, so that nobody can say who it was")


def _sockets(client: int, server: int) -> set[int] | None:
    """The other end of a connection; none if it is closed, None if this system does not tell."""
    rows = [row for name in _TABLES for row in _rows(name)]
    if not any(row.port == server for row in rows):
        return None  # no table, or not ours
    return {row.inode for row in rows if (row.port, row.other) == (client, server) and row.inode}


def _rows(name: str) -> list[_Row]:
    try:
        with open(f"{PROC}/net/{name}", encoding="ascii") as file:
            lines = [line.split() for line in file][1:]
        return [_Row(_port(words[1]), _port(words[2]), int(words[9])) for words in lines]
    except (OSError, ValueError, IndexError):
        return []


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _holders(sockets: set[int]) -> list[int]:
    """The processes that have one of these open; those of other users are not shown to us."""
    names = {f"socket:[{inode}]" for inode in sockets}
    return [int(pid) for pid in os.listdir(PROC) if pid.isdecimal() and _has_open(pid, names)]


def _has_open(pid: str, names: set[str]) -> bool:
    try:
        with os.scandir(f"{PROC}/{pid}/fd") as entries:
            return any(_target(entry.path) in names for entry in entries)
    except OSError:
        return False


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
