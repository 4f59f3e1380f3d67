"""Serve `/api/v1/…`: what pages show, as JSON for programs, and the acts of a person.

Reading is for a person, a reader, or a browser that is logged in. Acting is for a person: with the token, or from one
of our own pages, whose script repeats the secret of its forms; a cookie alone could be sent by any page.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fusewire.server.api.answers import ProjectLine, ProjectList
from fusewire.server.api.endpoints import ENDPOINTS, PREFIX
from fusewire.server.api.schemas import question
from fusewire.server.api.validation import read_body, read_query
from fusewire.server.requests import project_of, projects_of, require_no_agent, require_role
from fusewire.util.errors import AgentRefused, ConfigError, FusewireError, InvalidTransition, NotFound, StoreError
from fusewire.views.models import to_json
from fusewire.views.panel import UnreadablePanel

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from fusewire.server.api.endpoints import Endpoint
    from fusewire.server.projects import WatchedProject

#: What an error is over HTTP; any other is the fault of whoever asks.
_STATUS = {NotFound: 404, InvalidTransition: 409, AgentRefused: 403, StoreError: 503, ConfigError: 503}


class Json(JSONResponse):
    """Names of files may have bytes that are no text; an answer has none."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def _handler(endpoint: Endpoint) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if endpoint.body:
            _require_person(request)
            given = await read_body(request, endpoint.body)
            await require_no_agent(request)  # last, because it takes longest
        else:
            require_role(request, "person", "reader")
            given = read_query(request, endpoint.query)
        return await run_in_thread(endpoint.work, project_of(request), given)

    return answer


async def run_in_thread(work: Callable[..., object], *given: Any) -> Response:
    """The answer; reading and writing block, so it is done in a thread."""
    try:
        return Json(await run_in_threadpool(lambda: to_json(work(*given))))
    except FusewireError as error:
        raise HTTPException(_status(error), str(error)) from error


def _status(error: FusewireError) -> int:
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 400)


def _require_person(request: Request) -> None:
    """By the token: what a browser does comes from the forms of our pages."""
    require_role(request, "person")
    if "authorization" not in request.headers:
        raise HTTPException(403, "a cookie is not enough: send the token, in the header Authorization: Bearer TOKEN")


def _project(watched: WatchedProject) -> ProjectLine:
    """One line of the list; of a project that cannot be read, why."""
    panel = watched.panel()
    if isinstance(panel, UnreadablePanel):
        return ProjectLine(watched.name, watched.root, panel.problem)
    head = panel.headline
    return ProjectLine(watched.name, watched.root, None, head.text, head.open, head.half_open, head.closed)


async def projects(request: Request) -> Response:
    """The projects that this server shows."""
    require_role(request, "person", "reader")
    read_query(request, question())
    return await run_in_thread(lambda: ProjectList([_project(watched) for watched in projects_of(request)]))


def error_response(request: Request, error: HTTPException) -> Response:
    """An error as programs read it, in one line that says what and where."""
    headers, path, text = dict(error.headers or {}), request.url.path, str(error.detail)
    if "Allow" in headers:
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
    if text == HTTPStatus(error.status_code).phrase:  # the router's own words
        known = {
            404: f"there is nothing at {path}; see {PREFIX}/openapi.json",
            405: f"{request.method} is not for {path}; allowed: {headers.get('Allow')}",
        }
        text = known.get(error.status_code, text)
    return Json({"error": " ".join(text.splitlines())}, error.status_code, headers)


async def overview(request: Request) -> Response:
    """All projects that this server shows: what needs an answer first."""
    require_role(request, "person", "reader")
    read_query(request, question())
    return await run_in_thread(request.app.state.everything.refresh)


ROUTES = [
    Route(f"{PREFIX}/projects", projects),
    Route(f"{PREFIX}/overview", overview),
    *(
        Route(endpoint.path, _handler(endpoint), methods=["POST"] if endpoint.body else ["GET"])
        for endpoint in ENDPOINTS
    ),
]
