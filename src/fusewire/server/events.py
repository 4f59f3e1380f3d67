"""The stream of server-sent events that every page listens to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from fusewire.server.connections import LISTENS
from fusewire.server.live import LISTENERS, read_place
from fusewire.server.requests import bearer_of, projects_of, require_role, session_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from fusewire.server.live import Live


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
