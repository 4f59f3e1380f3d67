"""Find the process at the other end of a local connection: an agent is no person, whatever token it holds.

A browser sends its cookies to every port of a machine, also to the web application that an agent has just written and
that a person tries out; a terminal can be read by other programs. So what only a person may do is refused where the
process that holds the connection runs inside an agent, by the same signs as on the command line (see
`agents.caller`). That needs Linux; elsewhere, and for other machines and other users' processes, the token decides.

Of our own user's processes all are seen, also those in containers. So a connection of this user that nobody holds is
hidden: in the middle of being handed on (`SCM_RIGHTS`), or in a ring of the kernel. Only a few processes do not show
what they hold, such as the one behind an `ssh -L`: where there is one, and none of an agent's could be the one, the
token decides.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from fusewire.agents.caller import agent_among, loop_among
from fusewire.util.errors import AgentRefused
from fusewire.util.processes import PROC, ancestors

if TYPE_CHECKING:
    from collections.abc import Iterable

_TABLES = ("tcp", "tcp6")

#: How a process may have a connection that no process has open at first sight: in one of its threads, somewhere that
#: it does not show, or between two processes or inside the kernel.
_HOLDS, _UNSEEN, _HIDES = "holds", "unseen", "hides"

#: What the kernel says of a descriptor that other files are hidden in: on their way through it, or registered with it.
_HIDING = ("scm_fds", "UserFiles")


class _Row(NamedTuple):
    """One end of a connection, as the kernel lists it."""

    port: int
    other: int
    user: int
    inode: int


def require_person_at(client: tuple[str, int], server: int, roots: Iterable[str]) -> None:
    """Refuse if the process that is connected from `client` to our port `server` runs inside an agent."""
    address, port = client
    sockets = _sockets(port, server)
    if sockets is None or not (sockets or _is_of_this_machine(address)):
        return
    holders = _holders(sockets)
    _refuse_agents(holders, roots)
    if not holders and os.geteuid() in sockets.values():
        _refuse_hidden(sockets, roots)
    # Asked once more: of a process that has ended meanwhile nothing could be read.
    if not sockets or sockets != _sockets(port, server):
        raise AgentRefused("whoever sent this did not wait for the answer, so that nobody can say who it was")


def _is_of_this_machine(address: str) -> bool:
    """Whether somebody here could be at that address; nobody else can take it for a socket."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as own:
            own.bind((address, 0))
    except OSError:
        return False
    return True


def _refuse_hidden(sockets: Iterable[int], roots: Iterable[str]) -> None:
    """A connection of our own user that nobody is seen to hold: it is an agent's, unless it can be somebody else's."""
    manners = {pid: _manner(pid, _names(sockets)) for pid in _own_processes()}
    _refuse_agents([pid for pid, manner in manners.items() if manner], roots)
    if not {_HOLDS, _UNSEEN} & set(manners.values()):
        raise AgentRefused("this is for a person, and what sent it hides: no process is seen to hold the connection")


def _refuse_agents(pids: list[int], roots: Iterable[str]) -> None:
    for pid in pids:
        above = ancestors(pid)
        inside = agent_among(above)
        if not inside and any(loop_among(above, root) for root in roots):
            inside = f"the process {pid} belongs to this project's loop"
        if inside:
            raise AgentRefused(f"this is for a person, and what sent it runs inside an agent ({inside})")


def _sockets(client: int, server: int) -> dict[int, int] | None:
    """The other end of a connection and whose it is; none if it is closed, None if this system does not tell."""
    rows = [row for name in _TABLES for row in _rows(name)]
    if not any(row.port == server for row in rows):
        return None  # no table, or not ours
    return {row.inode: row.user for row in rows if (row.port, row.other) == (client, server) and row.inode}


def _rows(name: str) -> list[_Row]:
    try:
        with open(f"{PROC}/net/{name}", encoding="ascii") as file:
            lines = [line.split() for line in file][1:]
        return [_Row(_port(words[1]), _port(words[2]), int(words[7]), int(words[9])) for words in lines]
    except (OSError, ValueError, IndexError):
        return []


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _names(sockets: Iterable[int]) -> set[str]:
    return {f"socket:[{inode}]" for inode in sockets}


def _holders(sockets: Iterable[int]) -> list[int]:
    """The processes that have one of these open; those of other users are not shown to us."""
    names = _names(sockets)
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


def _own_processes() -> list[int]:
    """Those of our user that are alive, also those that show no more of themselves than that."""
    found = []
    for pid in filter(str.isdecimal, os.listdir(PROC)):
        facts = _facts(f"{PROC}/{pid}/status")
        dead = facts.get("State", "Z")[0] in "ZX" and facts.get("Threads", "1") == "1"
        if not dead and facts["Uid"].split()[1] == str(os.geteuid()):
            found.append(int(pid))
    return found


def _manner(pid: int, names: set[str]) -> str:
    """How a process may have one of these sockets all the same; empty if it cannot."""
    try:
        found = {_manner_of_thread(f"{PROC}/{pid}/task/{thread}", names) for thread in os.listdir(f"{PROC}/{pid}/task")}
    except OSError:
        return ""
    return next((manner for manner in (_HOLDS, _HIDES, _UNSEEN) if manner in found), "")


def _manner_of_thread(folder: str, names: set[str]) -> str:
    """The same for one thread, which may have descriptors of its own."""
    try:
        descriptors = os.listdir(f"{folder}/fd")
    except PermissionError:
        return _UNSEEN
    except OSError:
        return ""
    targets = {name: _target(f"{folder}/fd/{name}") for name in descriptors}
    if targets and not any(targets.values()):
        return _UNSEEN  # it is root who may not look: the names are there, and nothing else
    if not names.isdisjoint(targets.values()):
        return _HOLDS
    doubtful = [name for name, target in targets.items() if target.startswith(("socket:", "anon_inode:[io_uring"))]
    hides = any(_facts(f"{folder}/fdinfo/{name}").get(key, "0") != "0" for name in doubtful for key in _HIDING)
    return _HIDES if hides else ""


def _facts(path: str) -> dict[str, str]:
    """What the kernel says in lines of `name: value`."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}
