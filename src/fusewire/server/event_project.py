"""Find the project that an event belongs to: only those that this server shows are served.

A hook process is told where its agent was started. An event that comes by HTTP says only where the agent is now, and
that changes with every `cd`. But the calls before it went through the gate, a process, which knows: so a session
belongs to the project that remembers it, and only an unknown one to the folder that it names.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from fusewire.breakers.session.state import session_name
from fusewire.config.rules import find_guarded
from fusewire.core.events import NAME_LIMIT, plain
from fusewire.server.projects import first_few
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.server.projects import Projects, WatchedProject

#: Sessions whose project need not be looked up again.
_KEPT = 512


class EventProjects:
    """The projects of sessions, in some of which an agent may have been heard already."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._known: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, payload: dict[str, Any]) -> str:
        """The folder of the project that an event is about; 403 if it is none of ours."""
        if not payload:
            return "/"  # which project it is about does not matter: it will be refused as it is
        folder, session = _text(payload, "cwd"), plain(_text(payload, "session_id", "sessionId"), NAME_LIMIT)
        root = self._remembered(session, folder) or self._around(folder)
        if root is None:
            shown = first_few(project.root for project in self._projects)
            raise HTTPException(403, f"cwd = {folder[:200]!r} is in no project that this server shows: {shown}")
        return root

    def _around(self, folder: str) -> str | None:
        try:
            root = os.path.realpath(find_guarded(folder)) if os.path.isabs(folder) else ""
        except ValueError:  # a text that no path can be
            return None
        return root if any(project.root == root for project in self._projects) else None

    def _remembered(self, session: str, folder: str) -> str | None:
        if not session:
            return None
        with self._lock:
            if session in self._known:
                self._known.move_to_end(session)
                return self._known[session]
        roots = [project.root for project in self._projects if _remembers(project, session)]
        here = self._around(folder) if len(roots) > 1 else None
        root = here if here in roots else next(iter(roots), None)
        if root is not None:
            with self._lock:
                self._known[session] = root
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return root


def _remembers(project: WatchedProject, session: str) -> bool:
    try:
        return any(name == session_name(session) for name, _ in project.store.remembered(session_name(session)))
    except FusewireError:
        return False


def _text(payload: dict[str, Any], *names: str) -> str:
    return next((payload[name] for name in names if isinstance(payload.get(name), str)), "")
