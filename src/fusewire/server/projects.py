"""Open the projects that a server shows, each read-only through the engine."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from fusewire.config.rules import DATABASE, load_rules
from fusewire.core.circuit import CircuitState
from fusewire.engine.breaker import Breaker
from fusewire.scopes.orders import orders_path
from fusewire.stores.readonly import BriefSqlite
from fusewire.util.errors import FusewireError, NotFound, StoreError
from fusewire.util.files import file_stamp
from fusewire.views.panel import Panel, ProjectName, UnreadablePanel, panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fusewire.stores import Store
    from fusewire.views.overview_all import Everything

#: Projects that a message names.
_NAMED = 20

#: Projects that are measured, of all that a person has: those heard of last.
_MEASURED = 100


class WatchedProject:
    """One project. What is read for one page is shared by all that ask within the same second, if nothing is new."""

    def __init__(self, name: str, root: str, title: str) -> None:
        #: as it stands in addresses, and as people read it
        self.name = name
        self.title = title
        self.root = root
        self.store = self._opened()
        self._was_there = False
        self._lock = threading.Lock()
        self._seen: tuple[object, Panel] | None = None

    def _opened(self) -> Store:
        _mend(self.root)
        return Breaker.open(project=self.root, read_only=True).store

    def version(self) -> tuple[int, ...]:
        """That of the store; a state that was there and has gone is not one in which nothing has happened yet."""
        if not os.path.isdir(self.root):
            raise StoreError(f"the project's folder is gone: {self.root}")
        version = self.store.version()
        if self._was_there and not version:
            raise StoreError(f"the state database is gone: {os.path.join(self.root, DATABASE)}; see: fusewire doctor")
        self._was_there = bool(version)
        return (*version, *(file_stamp(orders_path()) or ()))

    def breaker(self) -> Breaker:
        """To look with; the rules are those that the project has now."""
        self.version()
        return Breaker(self.store, load_rules(self.root), time.time, self.root)

    def panel(self) -> Panel | UnreadablePanel:
        """The panel as it is now."""
        with self._lock:
            try:
                key = (self.version(), int(time.time()))
                if self._seen is None or self._seen[0] != key:
                    self._seen = (key, self._collected())
            except FusewireError as error:
                return UnreadablePanel(ProjectName(os.path.basename(self.root), self.root), str(error))
            return self._seen[1]

    def _collected(self) -> Panel:
        return panel(self.breaker())


class KnownProject(WatchedProject):
    """One of all that a person has: nothing of it is kept open, mended or written."""

    store: BriefSqlite

    def _opened(self) -> BriefSqlite:
        return BriefSqlite(os.path.join(self.root, DATABASE), check=CircuitState.from_data)

    def _collected(self) -> Panel:
        with self.store.held():
            return super()._collected()


def _mend(root: str) -> None:
    """A state that was lost or damaged is rebuilt before anybody looks, as every command does; from then on nothing is
    written for those who look."""
    with suppress(FusewireError), Breaker.open(project=root) as breaker:
        breaker.store.circuits()


class Projects:
    """By the name that stands in addresses."""

    _KIND = WatchedProject

    def __init__(self, roots: Iterable[str]) -> None:
        self._known: dict[str, WatchedProject] = {}
        for root in dict.fromkeys(map(os.path.realpath, roots)):
            self._add(root)

    def _add(self, root: str) -> None:
        folder = os.path.basename(root)
        name, number = self._free(folder)
        title = f"{folder} ({number})" if number > 1 else folder or name
        self._known[name] = self._KIND(name, root, title)

    def _free(self, wanted: str) -> tuple[str, int]:
        """A name that nothing else has, and how many there are of it by now."""
        base = (
            "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in wanted) or "root"
        )
        name, number = base, 1
        while name in self._known:
            number += 1
            name = f"{base}-{number}"
        return name, number

    def __iter__(self) -> Iterator[WatchedProject]:
        return iter(list(self._known.values()))

    def measured(self) -> list[WatchedProject]:
        """Those whose numbers are told."""
        return list(self)

    def __getitem__(self, name: str) -> WatchedProject:
        try:
            return self._known[name]
        except KeyError:
            raise NotFound(f"no project {name!r} is shown here; allowed: {first_few(self._known)}") from None

    def close(self) -> None:
        for project in self:
            project.store.close()


def first_few(names: Iterable[str]) -> str:
    """Names in a message: enough of them to see what kind is meant."""
    listed = list(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")


class KnownProjects(Projects):
    """All of a person's: one in which an agent is heard of for the first time is added, one that is gone is left out.

    For one thread at a time to follow, and for any to read.
    """

    _KIND = KnownProject

    def __init__(self, everything: Everything) -> None:
        self._everything = everything
        super().__init__(())
        self.follow()

    def follow(self) -> None:
        """As they were at the last refresh; whoever stays keeps its name."""
        there = self._everything.roots
        stay = {name: one for name, one in self._known.items() if one.root in there}
        if len(stay) < len(self._known):
            self._known = stay
        known = {project.root for project in stay.values()}
        for root in there:
            if root not in known:
                self._add(root)

    def measured(self) -> list[WatchedProject]:
        folders = [one for project in self._everything.overview.projects for one in project.folders]
        newest = sorted(folders, key=lambda one: one.heard or "", reverse=True)[:_MEASURED]
        roots = {one.root for one in newest}
        return [project for project in self if project.root in roots]
