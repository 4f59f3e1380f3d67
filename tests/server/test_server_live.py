"""What a page is told of a project's moves, look by look: no process, no socket, a real store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from fusewire.engine.breaker import Breaker
from fusewire.server.live import Live
from fusewire.server.projects import Projects
from fusewire.stores.rows import AuditRow
from tests.helpers.project import Project


def write(breaker: Breaker, first: int, last: int) -> None:
    with breaker.store.transact() as transaction:
        for number in range(first, last + 1):
            transaction.audit(AuditRow("loop/score", 1000.0 + number, "closed", "open", "tripped", f"{number}", ""))


@contextmanager
def shown(project: Project) -> Iterator[Live]:
    """A project with one move, and nobody who looks by himself."""
    with Breaker.open(project=project.root) as breaker:
        write(breaker, 1, 1)
    projects = Projects([str(project.root)])
    yield Live(projects)
    projects.close()


async def events_of(stream: AsyncIterator[str]) -> dict[str, Any]:
    """The next message, by the names of what is in it."""
    events = (await anext(stream)).strip().split("\n\n")
    fields = [dict(line.split(": ", 1) for line in event.splitlines()) for event in events]
    return {event["event"]: json.loads(event["data"]) for event in fields if "event" in event}


def test_a_slow_page_hears_of_a_gap_that_lies_before_it(project: Project) -> None:
    """It has not yet been told what was there before the gap: both come, and how many are missing between them."""

    async def slow() -> dict[str, Any]:
        with shown(project) as live, Breaker.open(project=project.root) as breaker:
            feed = live.feeds["project"]
            feed.look()
            stream = live.listen({}, "person", lambda: True)
            await anext(stream)
            write(breaker, 2, 4)
            feed.look()
            for first in range(5, 4005, 500):
                write(breaker, first, first + 499)
            feed.look()
            return await events_of(stream)

    told = asyncio.run(slow())
    numbers = [move["number"] for move in told["moved"]]
    assert numbers[:3] == [2, 3, 4]
    assert numbers[3:] == list(range(numbers[3], numbers[-1] + 1))
    assert told["missed"] == {"project": numbers[3] - 5}
    assert numbers[3] > 5


def test_a_page_that_came_when_nothing_could_be_read_is_not_told_what_is_old(project: Project) -> None:
    """Once the state can be read, it hears that its numbers mean nothing, and of what moves from then on."""

    async def early() -> list[dict[str, Any]]:
        with shown(project) as live:
            feed = live.feeds["project"]
            database = project.root / ".fusewire" / "state.db"
            whole = database.read_bytes()
            database.write_bytes(b"this is no database " * 500)
            feed.look()
            assert "cannot be read" in feed.problem
            stream = live.listen({"project": feed.last}, "person", lambda: True)
            await anext(stream)
            told = [await events_of(stream)]
            database.write_bytes(whole)
            feed.look()
            told.append(await events_of(stream))
            with Breaker.open(project=project.root) as breaker:
                write(breaker, 2, 3)
            feed.look()
            return [*told, await events_of(stream)]

    first, mended, later = asyncio.run(early())
    assert first == {"changed": ["project"]}
    assert mended == {"missed": {"project": None}, "changed": ["project"]}
    assert [move["number"] for move in later["moved"]] == [2, 3]
    assert "missed" not in later
