"""What moves is told to every open page at once, without a queue for any of them.

One task looks at each project's version several times a second. Pages hold only a number, how far they have seen the
audit trail, and fetch what is behind it: from a short memory that all share, or from the store if they are far behind.
So memory does not grow with pages that are slow, and no move is lost to one that was away.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING

from fusewire.durations import show_time
from fusewire.errors import FusewireError
from fusewire.events import PUBLIC_STATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fusewire.server.projects import Projects, Watched
    from fusewire.stores.rows import AuditRow

#: Seconds between two looks at a project.
LOOK = 0.2

#: Seconds between two messages to one page, and after which a page hears that it is still connected.
PAUSE = 0.25
HEARTBEAT = 5.0

#: Moves that are kept for all pages, and that one message holds at most.
_RECENT = 2000
_BATCH = 200

#: Pages that may listen at the same time.
LISTENERS = 256


class Feed:
    """What one project's pages are told."""

    def __init__(self, project: Watched) -> None:
        self.project = project
        self.version: tuple[int, ...] | None = None
        self.problem = ""
        #: raised whenever something in the project is new
        self.generation = 0
        self.last = 0
        self._recent: deque[tuple[int, str]] = deque(maxlen=_RECENT)

    def look(self) -> bool:
        """Whether there is news; blocks, for a moment."""
        store = self.project.store
        try:
            version, problem = store.version(), ""
            if version == self.version:
                return False
            first = self.version is None
            if first:
                self.last = store.last_move()
            while moves := store.moves(self.last, _RECENT):
                self._recent.extend((number, encoded(self.project.name, number, row)) for number, row in moves)
                self.last = moves[-1][0]
        except FusewireError as error:
            version, problem = (), str(error)
            if problem == self.problem:
                return False
        self.version, self.problem = version, problem
        self.generation += 1
        return True

    def behind(self, number: int) -> list[tuple[int, str]]:
        """The next moves behind a number, oldest first."""
        if number >= self.last:
            return []
        if self._recent and self._recent[0][0] <= number + 1:
            skip = number + 1 - self._recent[0][0]
            if skip < len(self._recent) and self._recent[skip][0] == number + 1:  # no gap in the numbers
                return [self._recent[at] for at in range(skip, min(skip + _BATCH, len(self._recent)))]
        rows = self.project.store.moves(number, _BATCH)
        return [(seq, encoded(self.project.name, seq, row)) for seq, row in rows]


def encoded(project: str, number: int, row: AuditRow) -> str:
    """One move as JSON."""
    return json.dumps(
        {
            "project": project,
            "number": number,
            "at": show_time(row.at),
            "circuit": row.circuit,
            "from": PUBLIC_STATE.get(row.source, row.source),
            "to": PUBLIC_STATE.get(row.target, row.target),
            "cause": row.cause,
            "reason": row.reason,
            "actor": row.actor or None,
        }
    )


class Live:
    """All projects' feeds, the task that looks, and the pages that listen."""

    def __init__(self, projects: Projects) -> None:
        self.feeds = {project.name: Feed(project) for project in projects}
        self.listeners = 0
        self._news = asyncio.Event()
        self._stopped = False

    async def run(self) -> None:
        """Look, for as long as the server runs."""
        while not self._stopped:
            found = [await asyncio.to_thread(feed.look) for feed in self.feeds.values()]
            if any(found):
                self._wake()
            await asyncio.sleep(LOOK)

    def stop(self) -> None:
        self._stopped = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def listen(self, seen: dict[str, int]) -> AsyncIterator[str]:
        """Messages for one page, for ever; `seen` says how far it has come in each project."""
        self.listeners += 1
        try:
            generations = dict.fromkeys(self.feeds, -1)
            for name, feed in self.feeds.items():
                seen.setdefault(name, feed.last)
            yield "retry: 1000\n\n"
            while not self._stopped:
                news = self._news
                message = await self._message(seen, generations)
                if message:
                    yield message
                    await asyncio.sleep(PAUSE)
                    continue
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                except TimeoutError:
                    yield "event: beat\ndata: \n\n"
        finally:
            self.listeners -= 1

    async def _message(self, seen: dict[str, int], generations: dict[str, int]) -> str:
        moves: list[str] = []
        changed = []
        for name, feed in self.feeds.items():
            if seen[name] > feed.last:  # the trail was rebuilt, and is shorter now
                seen[name] = feed.last
            if seen[name] < feed.last:
                found = await asyncio.to_thread(feed.behind, seen[name])
                moves += [text for _, text in found]
                seen[name] = found[-1][0] if found else feed.last
            if generations[name] != feed.generation:
                generations[name] = feed.generation
                changed.append(name)
        parts = []
        if moves:
            parts.append(_event("moved", f"[{','.join(moves)}]", seen))
        if changed:
            parts.append(_event("changed", json.dumps(changed), seen))
        return "".join(parts)


def _event(name: str, data: str, seen: dict[str, int]) -> str:
    place = ",".join(f"{project}:{number}" for project, number in seen.items())
    return f"id: {place}\nevent: {name}\ndata: {data}\n\n"


def read_place(text: str, projects: Projects) -> dict[str, int]:
    """How far a page has come, from the id of the last message that it got; what makes no sense is left out."""
    names = {project.name for project in projects}
    found = {}
    for part in text[:4096].split(","):
        name, _, number = part.rpartition(":")
        if name in names and number.isascii() and number.isdigit() and len(number) < 16:
            found[name] = int(number)
    return found
