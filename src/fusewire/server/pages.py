"""The pages for people, and what they send: each page is one collection of a report and one template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fusewire.errors import FusewireError, NotFound
from fusewire.server import acting
from fusewire.server.requests import checked_form, project_of, projects_of, session_of
from fusewire.server.templating import address, page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from fusewire.server.projects import Watched


def to_login(request: Request) -> Response:
    """Where a browser goes that is not logged in, whatever it asked for; the part behind `#` goes along."""
    to = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(
        f"/login?{urlencode({'to': to})}" if request.method == "GET" and to != "/" else "/login", 303
    )


def problem(request: Request, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    if status == 401:
        return to_login(request)
    return page(request, "problem.html", status, headers, code=status, text=text)


def for_people(render: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """A page for whoever is logged in; reading blocks, so it is done in a thread."""

    async def endpoint(request: Request) -> Response:
        if session_of(request) is None:
            return to_login(request)
        try:
            return await run_in_threadpool(render, request)
        except NotFound as error:
            raise HTTPException(404, str(error)) from error
        except FusewireError as error:
            raise HTTPException(503, str(error)) from error

    return endpoint


# -- pages ----------------------------------------------------------------------------------------------


def panels(request: Request) -> Response:
    """Every project's panel on one page."""
    found = [(project, project.panel()) for project in projects_of(request)]
    return page(request, "panel.html", panels=found, here="panel")


def project_panel(request: Request) -> Response:
    project = project_of(request)
    return page(request, "panel.html", panels=[(project, project.panel())], project=project, here="panel")


# -- acts -----------------------------------------------------------------------------------------------


def _reset(project: Watched, fields: dict[str, str]) -> str:
    return acting.reset(project, fields.get("circuit", ""), fields.get("reason", ""))


def _grant(project: Watched, fields: dict[str, str]) -> str:
    amount, whom, session = (fields.get(name, "") for name in ("amount", "whom", "session"))
    return acting.grant(project, amount, whom, session, fields.get("reason", ""))


def _resolve(project: Watched, fields: dict[str, str]) -> str:
    return acting.resolve(project, fields.get("choice", ""), fields.get("guidance", ""), fields.get("reason", ""))


_ACTS = {"reset": _reset, "grant": _grant, "resolve": _resolve}


async def act(request: Request) -> Response:
    """What a person does with a form: done, then back to the page, which says what came of it."""
    fields = await checked_form(request)
    project = project_of(request)
    work = _ACTS.get(request.path_params["act"])
    if work is None:
        raise HTTPException(404, f"{request.path_params['act']!r} cannot be done here")
    try:
        kind, text = "done", await run_in_threadpool(work, project, fields)
    except FusewireError as error:
        kind, text = "refused", str(error)
    session = session_of(request)
    if session is not None:
        session.told.append((kind, text))
    back = {
        "circuit": ("circuit", {"id": fields.get("circuit")}),
        "session": ("session", {"id": fields.get("session")}),
    }
    place, query = back.get(fields.get("back", ""), ("", {}))
    return RedirectResponse(address(project, place, **query), 303)


ROUTES = [
    Route("/", for_people(panels)),
    Route("/p/{project}/", for_people(project_panel)),
    Route("/p/{project}/act/{act}", act, methods=["POST"]),
]
