"""The stream of server-sent events that every page listens to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from fusewire.server.live import LISTENERS, read_place
from fusewire.server.requests import projects_of, require_role

if TYPE_CHECKING:
    from starlette.requests import Request

    from fusewire.server.live import Live


async def events(request: Request) -> Response:
    """`moved` (a list of moves) and `changed` (projects in which something is new); a page that comes back goes on
    where it was."""
    require_role(request, "person", "reader")
    live: Live = request.app.state.live
    if live.listeners >= LISTENERS:
        raise HTTPException(503, f"{LISTENERS} pages are listening already", {"Retry-After": "5"})
    place = request.headers.get("last-event-id") or request.query_params.get("after", "")
    stream = live.listen(read_place(place, projects_of(request)))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
