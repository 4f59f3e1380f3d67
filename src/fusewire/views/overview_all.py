"""Collect every project and worktree of the person: what needs an answer first, then what runs, then the rest.

`Everything` reads a project only when its files say that something was written, or when time alone has changed it. It
keeps no connection and no file open, and writes nothing.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from fusewire.config.rules import DATABASE, load_rules
from fusewire.core.circuit import CircuitState
from fusewire.engine.breaker import Breaker
from fusewire.scopes.orders import read_orders
from fusewire.scopes.register import sessions
from fusewire.scopes.user import MOST_PROJECTS, PROJECT, database_path, is_any_limited
from fusewire.stores.readonly import BriefSqlite
from fusewire.util.durations import counted, format_time, parse_time, show_time
from fusewire.util.errors import FusewireError, StoreError
from fusewire.util.json_types import Count, Time, Usd, about
from fusewire.util.worktrees import project_key
from fusewire.views.orders import OrdersView, orders_view
from fusewire.views.overview_folder import RANKS, OverviewFolder, OverviewRank, folder_overview, good_until
from fusewire.views.panel import Panel, ProjectName, UnreadablePanel, panel
from fusewire.views.providers import ProviderLimit, provider_limits
from fusewire.views.spend import today_by_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fusewire.scopes.orders import Orders
    from fusewire.util.fast_json import JsonObject

#: Sessions whose names are known: those heard of last.
_SESSIONS = 1000

#: Seconds between two looks into the person's register, however much is written there.
_REGISTER = 1.0

#: Seconds between two readings of a folder that is written all the time, and how often as long as a reading took.
_REST, _TIMES = 0.5, 4

#: Times that a folder is read, if it is written meanwhile.
_ATTEMPTS = 3

#: Seconds for which a file's time does not tell two writings apart.
_COARSE = 0.05

#: Seconds after which it is said again how things are, as times are shown.
_MINUTE = 60.0


@dataclass(frozen=True)
class OverviewProject:
    """A repository with all its worktrees."""

    name: str
    root: Annotated[str, about("the folder that stands for all of its worktrees")]
    rank: OverviewRank
    folders: Annotated[list[OverviewFolder], about("its worktrees in which an agent was heard of, in the same order")]
    needs: Annotated[Count, about("what only a person can settle")]
    open: Annotated[Count, about("circuits")]
    half_open: Annotated[Count, about("circuits")]
    halted: Annotated[Count, about("sessions")]
    running: Annotated[Count, about("sessions")]
    today_usd: Usd
    heard: Time | None


@dataclass(frozen=True)
class PersonOverview:
    """Every project of the person on this machine."""

    at: Time
    headline: Annotated[str, about("one sentence")]
    needs: Annotated[Count, about("what only a person can settle, in all projects")]
    running: Annotated[Count, about("sessions")]
    today_usd: Usd
    orders: Annotated[OrdersView, about("halts and pauses that hold anywhere")]
    providers: Annotated[list[ProviderLimit], about("providers that refuse requests now")]
    projects: Annotated[
        list[OverviewProject], about("what needs an answer first, then what runs, what waits, what is quiet")
    ]
    gone: Annotated[list[str], about("folders that were known and are no longer there")]
    problems: Annotated[list[str], about("what of the person's own state cannot be read")]


class Everything:
    """The person's projects as they are now. For many threads; `refresh` where nothing is new costs two system calls
    a folder."""

    def __init__(self, roots: Iterable[str] = (), *, only_these: bool = False) -> None:
        #: shown in any case, besides those in which an agent was heard of
        self._own = [os.path.realpath(root) for root in roots]
        self._only_these = only_these
        self._folders: dict[str, _Folder] = {}
        self._wanted: set[str] = set()
        self._register = _Register()
        self._orders: Orders | None = None
        self._providers: list[ProviderLimit] = []
        self._lock = threading.Lock()
        self._overview: PersonOverview | None = None
        self._made_at = 0.0

    @property
    def overview(self) -> PersonOverview:
        """As it was at the last refresh."""
        return self._overview or self.refresh()

    @property
    def roots(self) -> list[str]:
        """The folders that are there, in the order of the alphabet."""
        return sorted(root for root, folder in list(self._folders.items()) if not folder.is_gone)

    def refresh(self) -> PersonOverview:
        """The same object as before, if nothing is new."""
        with self._lock:
            now = time.time()
            is_new = self._register.refresh(now) or self._overview is None
            wanted = dict.fromkeys((*self._own, *(() if self._only_these else self._register.roots)))
            if wanted.keys() != self._wanted:
                self._wanted = {*wanted}
                folders = {root: self._folders.get(root) or _Folder(root) for root in wanted}
                # What worktrees share is kept in the main one, whether or not an agent was heard of there.
                shared = dict.fromkeys(one.key for one in folders.values() if one.key not in folders)
                self._folders = folders | {key: _Folder(key) for key in shared if os.path.isdir(key)}
            for folder in self._folders.values():
                is_new |= folder.refresh(now)
            orders = read_orders()
            is_new |= self._orders is None or orders.to_json() != self._orders.to_json()
            is_new |= any(one.until <= now for one in self._orders.pauses) if self._orders else False
            self._orders = orders
            providers = _providers(now)
            is_new |= [one.id for one in providers] != [one.id for one in self._providers]
            self._providers = providers
            if self._overview is None or is_new or not 0 <= now - self._made_at < _MINUTE:
                self._overview, self._made_at = self._made(orders, now), now
            return self._overview

    def _made(self, orders: Orders, now: float) -> PersonOverview:
        by_project: dict[str, list[OverviewFolder]] = {}
        for root, folder in self._folders.items():
            if folder.panel is not None and not folder.is_gone:
                heard = show_time(self._register.roots.get(root))
                made = folder_overview(root, folder.panel, self._register.sessions, heard, now)
                by_project.setdefault(folder.key, []).append(made)
        spent = today_by_project(now)
        projects = _in_order([_project(key, folders, spent) for key, folders in by_project.items()])
        needs, running = sum(one.needs for one in projects), sum(one.running for one in projects)
        return PersonOverview(
            at=format_time(now),
            headline=_headline(orders, projects, needs, running),
            needs=needs,
            running=running,
            today_usd=round(sum(one.today_usd for one in projects), 4),
            providers=self._providers,
            orders=orders_view(None, everything=True, now=now),
            projects=projects,
            gone=sorted(root for root, folder in self._folders.items() if folder.is_gone),
            problems=[text for text in (self._register.problem,) if text],
        )


class _Register:
    """What the person's store knows of projects and sessions; a store that cannot be read keeps what was known."""

    def __init__(self) -> None:
        #: when an agent was last heard of in each folder
        self.roots: dict[str, float] = {}
        self.sessions: dict[str, JsonObject] = {}
        self.problem = ""
        self._stamp: object = None
        self._due = 0.0

    def refresh(self, now: float) -> bool:
        """Whether anything is new."""
        if 0 < self._due - now <= _REGISTER:
            return False
        before = self.problem
        try:
            store = BriefSqlite(database_path())
            stamp = store.stamp()
            if stamp == self._stamp:
                return False
            if self.roots and not stamp:
                raise StoreError(f"it is gone: {store.path}")
            with store.held():
                heard = store.remembered(PROJECT)
                found = sessions(store, _SESSIONS)
            is_whole = store.stamp() == stamp and not _is_recent(stamp, now)
            self.roots = {_real(name.removeprefix(PROJECT)): at for name, at in reversed(heard)}
            self.sessions, self.problem = found, ""
            self._stamp = stamp if is_whole else None
        except (FusewireError, OSError) as error:
            self._stamp, self.problem = None, f"the list of projects cannot be read: {error}"
            self._due = now + _REGISTER
            return self.problem != before
        self._due = now + _REGISTER
        return True


_real = lru_cache(maxsize=2 * MOST_PROJECTS)(os.path.realpath)


class _Folder:
    """One folder, and its panel as it was when something was last written there."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.key = project_key(root)
        self.panel: Panel | UnreadablePanel | None = None
        self.is_gone = False
        self._store = BriefSqlite(os.path.join(root, DATABASE), check=CircuitState.from_data)
        self._stamp: tuple[object, ...] | None = None
        self._was_there = False
        #: when to read again if nothing is written, and if something is; by a clock that nobody sets
        self._due = (0.0, 0.0)

    def refresh(self, now: float) -> bool:
        """Whether anything is new."""
        began = time.monotonic()
        stamp: tuple[object, ...] = ()
        try:
            stamp = self._store.stamp()
            if not stamp and not os.path.isdir(self.root):
                was_gone, self.is_gone, self._was_there = self.is_gone, True, False
                return not was_gone
            came_back, self.is_gone = self.is_gone, False
            if self.panel is not None and not came_back and began < self._due[stamp != self._stamp]:
                return False
            made: Panel | UnreadablePanel
            made, stamp, is_whole = self._read()
        except (FusewireError, OSError) as error:
            text = str(error) if isinstance(error, FusewireError) else _words(error, self.root)
            made, is_whole = UnreadablePanel(_name(self.root), text), True
            if self._is_known(text) and began < self._due[0]:
                return False
        is_new = not _is_same(made, self.panel)
        self.panel, self._stamp = made, stamp if is_whole else None
        took = time.monotonic() - began
        self._due = (began + good_until(made, now) - now, began + max(_REST, _TIMES * took))
        return is_new

    def _read(self) -> tuple[Panel, tuple[object, ...], bool]:
        """The panel, the stamp of what was read, and whether it is sure that this was all; what was written while it
        was read is read again, and no damage."""
        for attempt in range(_ATTEMPTS):
            stamp = self._store.stamp()
            if self._was_there and not stamp:
                raise StoreError(f"the state database is gone: {self._store.path}; see: fusewire doctor")
            self._was_there = bool(stamp)
            now = time.time()
            try:
                with self._store.held():
                    found = panel(Breaker(self._store, load_rules(self.root), time.time, self.root))
            except StoreError:
                if attempt == _ATTEMPTS - 1 or self._store.stamp() == stamp:
                    raise
                continue
            if self._store.stamp() == stamp:
                break
        return found, stamp, self._store.stamp() == stamp and not _is_recent(stamp, now)

    def _is_known(self, problem: str) -> bool:
        return isinstance(self.panel, UnreadablePanel) and self.panel.problem == problem


def _is_same(one: Panel | UnreadablePanel, other: Panel | UnreadablePanel | None) -> bool:
    """Whether two panels differ in their time at most."""
    if isinstance(one, Panel) and isinstance(other, Panel):
        return replace(one, at=other.at) == other
    return one == other


def _is_recent(stamp: Sequence[object], now: float) -> bool:
    """Whether a file is so new that it may be written again without another time."""
    return any(isinstance(one, int) and 0 <= now - one / 1e9 < _COARSE for one in stamp)


def _words(error: OSError, root: str) -> str:
    return f"the state database cannot be read: {error.filename or root}: {error.strerror}"


def _name(root: str) -> ProjectName:
    return ProjectName(os.path.basename(root) or root, root)


def _providers(now: float) -> list[ProviderLimit]:
    try:
        return provider_limits(now) if is_any_limited() else []
    except (StoreError, OSError):
        return []  # the register says that the person's store cannot be read


# -- from folders to everything ---------------------------------------------------------------------------


def _project(key: str, folders: list[OverviewFolder], spent: Mapping[str, float]) -> OverviewProject:
    """`spent` is what the person's ledger has of today; of a project that it does not know its folders tell."""
    folders = sorted(folders, key=_place)
    return OverviewProject(
        name=os.path.basename(key).removesuffix(".git") or key,
        root=key,
        rank=folders[0].rank,
        folders=folders,
        needs=sum(len(one.needs) for one in folders),
        open=sum(one.headline.open for one in folders),
        half_open=sum(one.headline.half_open for one in folders),
        halted=sum(need.kind == "session" for one in folders for need in one.needs),
        running=sum(one.running for one in folders),
        today_usd=round(spent.get(key) or sum(one.today_usd for one in folders), 4),
        heard=max(filter(None, (one.heard for one in folders)), default=None),
    )


#: What is asked before what is only stopped, and what cannot be read last: mending it is no answer to an agent.
_KINDS = ("question", "session", "circuit", "state")


def _place(folder: OverviewFolder) -> tuple[object, ...]:
    urgent = min((_KINDS.index(need.kind) for need in folder.needs), default=len(_KINDS))
    return RANKS.index(folder.rank), urgent, *_newest(folder.heard), folder.name, folder.root


def _newest(heard: str | None) -> tuple[float]:
    return (-parse_time(heard) if heard else 0.0,)


def _in_order(projects: list[OverviewProject]) -> list[OverviewProject]:
    return sorted(projects, key=lambda one: _place(one.folders[0]))


def _headline(orders: Orders, projects: list[OverviewProject], needs: int, running: int) -> str:
    """What a person must know first."""
    asking = sum(one.rank == "answer" for one in projects)
    parts = ["all agents are halted"] if any(one.scope == "all" for one in orders.halts) else []
    if needs:
        verb = "needs" if needs == 1 else "need"
        parts.append(f"{counted(needs, 'thing')} {verb} you, in {counted(asking, 'project')}")
    elif not parts:
        parts.append("nothing needs you")
    parts.append(f"{counted(running, 'session')} run{'s' if running == 1 else ''}" if running else "nothing runs")
    text = "; ".join(parts)
    return text[0].upper() + text[1:]
