"""Pages that load themselves anew: what many of them show at the same moment is drawn once.

Whenever something happens, every open page asks for itself again. Fifty tabs of one person would keep the server from
answering agents, if each were drawn by itself.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from fusewire.server.requests import cookie_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from fusewire.server.live import Live

#: Seconds for which a page that was drawn is as good as a new one, if no page was told of news meanwhile. Less than a
#: page waits after the end of a cooldown before it asks what comes now.
_FRESH = 0.25


class Refreshing:
    """What was drawn just now, for each browser and address."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._drawn: dict[tuple[object, ...], tuple[float, asyncio.Task[Response]]] = {}

    async def answer(self, request: Request, render: Callable[[Request], Response]) -> Response:
        """The page; nothing in it is older than what its browser has been told."""
        now = time.monotonic()
        self._drawn = {key: one for key, one in self._drawn.items() if now - one[0] < _FRESH or not one[1].done()}
        key = (
            request.cookies.get(cookie_name(request)),
            request.url.path,
            request.url.query,
            *(feed.generation for feed in self._live.feeds.values()),
        )
        if key not in self._drawn:
            self._drawn[key] = now, asyncio.create_task(run_in_threadpool(render, request))
        return await asyncio.shield(self._drawn[key][1])
