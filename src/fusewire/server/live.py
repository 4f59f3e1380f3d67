"""Tell every open page at once what moves, by server-sent events and without a queue for any of them.

One task looks at each project's version several times a second. Pages hold only a number, how far they have seen the
audit trail, and fetch what is behind it: from a memory that all share, or from the store if they are far behind.
So memory does not grow with pages that are slow, and no move is lost to one that was away; if it was away for longer
than the trail reaches back, it is told how many moves it has missed.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from fusewire.server.connections import LISTENS
from fusewire.server.requests import bearer_of, projects_of, require_role, session_of
from fusewire.util.errors import FusewireError, in_a_line
from fusewire.views.models import to_json
from fusewire.views.moves import numbered_move
from fusewire.views.trail import Trail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from starlette.requests import Request

    from fusewire.server.projects import KnownProjects, Projects, WatchedProject
    from fusewire.stores.rows import AuditRow
    from fusewire.views.overview_all import Everything
    from fusewire.views.trail import Move

    #: its number, and all of it as JSON
    Encoded = tuple[int, str]

#: Seconds between two looks at a project.
LOOK = 0.2

#: Seconds between two messages to one page, and after which a page hears that it is still connected.
PAUSE = 0.25
HEARTBEAT = 5.0

#: Moves that are kept for all pages (more than the trail itself keeps), and that one message holds at most.
_RECENT = 5000
_BATCH = 200

#: The same where there are many projects: what is older is read from the store.
_RECENT_OF_MANY = 200

#: Characters in which a page says how far it has come; projects for which there is no room begin at the present.
_PLACE = 4096

#: The name of the feed of all projects together, which no project can have.
EVERYTHING = "~"

#: Who may listen at the same time, for each role: programs that read cannot take a person's place.
LISTENERS = 128


class Known(NamedTuple):
    """What pages can be told of moves: never changed, only replaced, for they read it from other threads."""

    #: which trail it is: in another one old numbers mean nothing
    trail: int = 0
    #: the number behind which a page goes on that comes from another trail
    since: int = 0
    last: int = 0
    recent: Sequence[Encoded] = ()


class Feed:
    """What one project's pages are told."""

    def __init__(self, project: WatchedProject, recent: int = _RECENT) -> None:
        self.project = project
        self._recent = recent
        self.version: tuple[int, ...] | None = None
        self.problem = ""
        #: raised whenever something in the project is new
        self.generation = 0
        self.known = Known()
        self._trail = Trail()

    @property
    def last(self) -> int:
        return self.known.last

    def look(self) -> bool:
        """Whether there is news; blocks, for a moment."""
        try:
            version, problem = self.project.version(), ""
            if version == self.version:
                return False
            known = self._caught_up()
        except Exception as error:  # whatever it is: the next look may succeed
            version, problem = None, str(error) if isinstance(error, FusewireError) else in_a_line(error)
            known = self.known
            if problem == self.problem:
                return False
        self.version, self.problem = version, problem
        self.generation += 1
        self.known = known  # last: whoever hears of a move finds the generation that has it
        return True

    def _caught_up(self) -> Known:
        moves = self._encoded(self._trail.news(self.project.store))
        known, trail, last = self.known, self._trail.trails, self._trail.number
        if trail == known.trail:
            return Known(trail, known.since, last, [*known.recent, *moves][-self._recent :])
        return Known(trail, moves[0][0] - 1 if moves else last, last, moves[-self._recent :])

    def _encoded(self, moves: list[Move]) -> list[Encoded]:
        return [(number, encoded(self.project.name, number, row)) for number, row in moves]

    def behind(self, number: int, known: Known) -> Sequence[Encoded]:
        """The next moves behind a number, oldest first; none if they cannot be read now."""
        recent = known.recent
        if number >= known.last:
            return []
        if not recent or number + 1 < recent[0][0]:
            try:
                found = self._encoded(self.project.store.moves(number, _BATCH))
            except FusewireError:
                found = []
            if found and (not recent or found[0][0] < recent[0][0]):
                return found
        at = bisect_right(recent, number, key=itemgetter(0))
        return recent[at : at + _BATCH]


class OverviewFeed(Feed):
    """What the page of everything is told: that something in it is new."""

    def __init__(self, everything: Everything) -> None:
        self._everything = everything
        self._seen: object = None
        self.generation = 0
        self.known = Known()

    def look(self) -> bool:
        overview = self._everything.refresh()
        if overview is self._seen:
            return False
        self._seen = overview
        self.generation += 1
        return True


def encoded(project: str, number: int, row: AuditRow) -> str:
    """One move as JSON."""
    return json.dumps({"project": project, **to_json(numbered_move(number, row))})


class Live:
    """All projects' feeds, the task that looks, and the pages that listen."""

    def __init__(self, projects: Projects) -> None:
        #: by name; replaced and never changed where projects come and go
        self.feeds: dict[str, Feed] = {project.name: Feed(project) for project in projects}
        #: by role
        self.listening: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._stopped = False

    @property
    def listeners(self) -> int:
        return self.listening.total()

    async def run(self) -> None:
        """Look, for as long as the server runs; a project that takes long keeps no other waiting."""
        await asyncio.gather(*(self._keep_looking(feed.look) for feed in self.feeds.values()))

    async def _keep_looking(self, look: Callable[[], bool]) -> None:
        while not self._stopped:
            if await asyncio.to_thread(look):
                self.wake()
            await asyncio.sleep(LOOK)

    def stop(self) -> None:
        self._stopped = True
        self.wake()

    def wake(self) -> None:
        """Let every page see whether there is something for it."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def listen(self, seen: dict[str, int], role: str, may_listen: Callable[[], bool]) -> AsyncIterator[str]:
        """Messages for one page, until it may listen no more; `seen` says how far it has come in each project."""
        self.listening[role] += 1
        try:
            page = _Page(self, seen)
            yield "retry: 1000\n\n"
            while not self._stopped and may_listen():
                news = self._news
                message = await page.message()
                if message:
                    yield message
                    await asyncio.sleep(PAUSE)
                    continue
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                except TimeoutError:
                    yield "event: beat\ndata: 1\n\n"  # with no data at all a browser would not tell the page
        finally:
            self.listening[role] -= 1


class LiveAll(Live):
    """The feeds of all of a person's projects, looked at one after the other: to look costs a few system calls, and a
    task for each of hundreds would cost more."""

    def __init__(self, projects: KnownProjects, everything: Everything) -> None:
        super().__init__(projects)
        self._projects = projects
        self.feeds[EVERYTHING] = OverviewFeed(everything)

    async def run(self) -> None:
        await self._keep_looking(self._look_at_all)

    def _look_at_all(self) -> bool:
        is_new = [feed.look() for feed in self.feeds.values()]
        self._projects.follow()
        known = {EVERYTHING: self.feeds[EVERYTHING]}
        for project in self._projects:
            feed = self.feeds.get(project.name)
            if feed is None or feed.project is not project:
                feed = Feed(project, _RECENT_OF_MANY)
                is_new.append(feed.look())
            known[project.name] = feed
        self.feeds = known
        return any(is_new)


class _Page:
    """How far one page has come."""

    def __init__(self, live: Live, seen: dict[str, int]) -> None:
        self._live = live
        feeds = live.feeds
        self._seen = {name: min(seen.get(name, feed.last), feed.last) for name, feed in feeds.items()}
        self._generations: dict[str, int] = {}
        self._trails = {name: feed.known.trail for name, feed in feeds.items()}

    async def message(self) -> str:
        """What is new since the last one; empty if nothing is."""
        moves: list[str] = []
        missed: dict[str, int | None] = {}
        feeds = self._live.feeds
        for name, feed in feeds.items():
            known = feed.known
            self._seen.setdefault(name, known.last)
            if self._trails.setdefault(name, known.trail) != known.trail:
                self._trails[name], self._seen[name], missed[name] = known.trail, known.since, None
            before = self._seen[name]
            found = await asyncio.to_thread(feed.behind, before, known) if before < known.last else []
            if found:
                moves += [text for _, text in found]
                self._seen[name] = found[-1][0]
                if gone := found[-1][0] - before - len(found):
                    missed.setdefault(name, gone)
        new = {name: feed.generation for name, feed in feeds.items()}
        changed = [name for name in new if new[name] != self._generations.get(name)]
        self._generations = new
        self._seen = {name: self._seen[name] for name in feeds}
        parts = [
            self._event("missed", json.dumps(missed)) if missed else "",
            self._event("moved", f"[{','.join(moves)}]") if moves else "",
            self._event("changed", json.dumps(changed)) if changed else "",
        ]
        return "".join(parts)

    def _event(self, name: str, data: str) -> str:
        return f"id: {write_place(self._seen)}\nevent: {name}\ndata: {data}\n\n"


def write_place(seen: Mapping[str, int]) -> str:
    """How far a page has come in each project, as its browser will say it again."""
    text = ",".join(f"{project}:{number}" for project, number in seen.items() if project != EVERYTHING)
    return text if len(text) <= _PLACE else text[:_PLACE].rpartition(",")[0]


def read_place(text: str, projects: Projects) -> dict[str, int]:
    """How far a page has come, from the id of the last message that it got; what makes no sense is left out."""
    names = {project.name for project in projects}
    found = {}
    for part in text[:_PLACE].split(","):
        name, _, number = part.rpartition(":")
        if name in names and number.isascii() and number.isdigit() and len(number) < 16:
            found[name] = int(number)
    return found


async def events(request: Request) -> Response:
    """`moved` (a list of moves), `changed` (projects in which something is new), `missed` (how many moves could not be
    told any more); a page that comes back goes on where it was."""
    role = require_role(request, "person", "reader")
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    live: Live = request.app.state.live
    if live.listening[role] >= LISTENERS:
        raise HTTPException(503, f"{LISTENERS} pages are listening already", {"Retry-After": "5"})
    place = request.headers.get("last-event-id") or request.query_params.get("after", "")
    by_token = bearer_of(request) is not None
    stream = live.listen(
        read_place(place, projects_of(request)), role, lambda: by_token or session_of(request) is not None
    )
    request.scope[LISTENS] = True
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
