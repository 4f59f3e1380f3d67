"""Find the last session of a project and the usage limit at which it stopped, in what the clients have recorded.

Only structure counts: the record of a refused request, never a sentence about one.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusewire.agents import AGENTS, agent_module
from fusewire.guard.known_agents import AGENTS_BY_NAME
from fusewire.util.fast_json import loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.agents.output.answer import Limit
    from fusewire.core.pacing import Window

#: Bytes of a transcript that are read, from its beginning and from its end.
_HEAD = 65_536
_TAIL = 1 << 20

#: Transcripts that are looked at, the newest first.
_MOST = 500


@dataclass
class LastSession:
    """The end of one session."""

    agent: str
    path: str
    #: when something was written to it last
    at: float
    cwd: str = ""
    #: what the last request ran into; None if it was answered
    limit: Limit | None = None
    #: when a request was answered last, where that is recorded
    answered_at: float | None = None
    #: how far the windows of the provider's limit are used, where the client notes it
    windows: tuple[Window, ...] = ()


def last_session(root: str, program: str, environment: Mapping[str, str]) -> LastSession | None:
    """The newest session in a project: of the client that `program` starts, or of any if it is no client."""
    name = os.path.basename(program)
    found = (_newest(agent, root, environment) for agent in AGENTS if agent == name or name not in AGENTS_BY_NAME)
    return max(filter(None, found), key=lambda session: session.at, default=None)


def _newest(agent: str, root: str, environment: Mapping[str, str]) -> LastSession | None:
    client = _client(agent)
    if client is None:
        return None
    known = AGENTS_BY_NAME[agent]
    home = environment.get(known.home_variable) or os.path.expanduser(known.home)
    times = {path: os.stat(path).st_mtime for path in glob.glob(f"{glob.escape(home)}/{client.FILES}")}
    for path in sorted(times, key=lambda path: -times[path])[:_MOST]:
        session = end_of_session(agent, path)
        if _is_in(session.cwd, root):
            return session
    return None


def end_of_session(agent: str, path: str) -> LastSession:
    """What the end of a transcript says; nothing if its client records no limits."""
    session, client = LastSession(agent, path, os.stat(path).st_mtime), _client(agent)
    for line in _ends(path) if client is not None else ():
        try:
            record = loads(line.decode("utf-8", "replace"))
        except ValueError:  # cut, or still being written
            continue
        if isinstance(record, dict):
            client.follow(record, session)
    return session


def _client(agent: str) -> Any:
    try:
        return agent_module(agent, "last_session")
    except ModuleNotFoundError:  # what this client records tells no limits
        return None


def _ends(path: str) -> list[bytes]:
    """The first and the last lines of a file."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
        size = os.fstat(file.fileno()).st_size
        file.seek(max(len(head), size - _TAIL))
        rest = file.read(_TAIL)
    return (head + rest).split(b"\n") if size <= _HEAD + _TAIL else [*head.split(b"\n"), *rest.split(b"\n")]


def _is_in(folder: str, root: str) -> bool:
    folder, root = os.path.realpath(folder) if folder else "", os.path.realpath(root)
    return folder == root or folder.startswith(root.rstrip("/") + "/")
