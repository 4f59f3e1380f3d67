"""Serve the pages for people: each is one view and one template."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fusewire.server import forms
from fusewire.server.drawing import figures, timelines
from fusewire.server.requests import cookie_name, project_of, projects_of, session_of
from fusewire.server.templating import REFRESH, page
from fusewire.util.errors import FusewireError, NotFound
from fusewire.views import session_list, slices
from fusewire.views.circuits import circuit_view
from fusewire.views.loop import loop_view
from fusewire.views.overview_folder import show_age
from fusewire.views.sessions import session_view
from fusewire.views.storage import memory_view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from fusewire.server.live import Live
    from fusewire.server.projects import WatchedProject

#: Days of a circuit's history, unless the address says how many.
_DAYS = 60
_CHOICES = ("7", "60", "365")

#: Seconds for which a page that was drawn is as good as a new one, if no page was told of news meanwhile. Less than a
#: page waits after the end of a cooldown before it asks what comes now.
_FRESH = 0.25

#: Digits of a place in a list: more than any list here has.
_DIGITS = 9


def to_login(request: Request) -> Response:
    """Where a browser goes that is not logged in, whatever it asked for; the part behind `#` goes along."""
    to = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(
        f"/login?{urlencode({'to': to})}" if request.method == "GET" and to != "/" else "/login", 303
    )


def problem(request: Request, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    if status == 401:
        return to_login(request)
    project = _known_project(request)
    return page(request, "problem.html", status, headers, code=status, text=text, project=project)


def _known_project(request: Request) -> WatchedProject | None:
    """The project of the address, if there is one and whoever asks may know it."""
    wanted = request.path_params.get("project") if session_of(request) is not None else None
    return next((project for project in projects_of(request) if project.name == wanted), None)


class PageCache:
    """What was drawn just now, for each browser and address.

    Whenever something happens, every open page asks for itself again. Fifty tabs of one person would keep the server
    from answering agents, if each were drawn by itself.
    """

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


def for_people(render: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """A page for whoever is logged in; reading blocks, so it is done in a thread."""

    async def endpoint(request: Request) -> Response:
        if session_of(request) is None:
            return to_login(request)
        try:
            if REFRESH in request.headers:
                cache: PageCache = request.app.state.page_cache
                return await cache.answer(request, render)
            return await run_in_threadpool(render, request)
        except NotFound as error:
            raise HTTPException(404, str(error)) from error
        except FusewireError as error:
            raise HTTPException(503, str(error)) from error

    return endpoint


# -- pages ----------------------------------------------------------------------------------------------


def front(request: Request) -> Response:
    """Everything, where all of a person's projects are shown; else every project's panel on one page."""
    if request.app.state.shows_all:
        overview = request.app.state.everything.refresh()
        known = {project.root: project for project in projects_of(request)}
        return page(request, "everything.html", view=overview, known=known, age=show_age, here="everything")
    found = [(project, project.panel()) for project in projects_of(request)]
    return page(request, "panel.html", panels=found, here="panel")


def project_panel(request: Request) -> Response:
    project = project_of(request)
    return page(request, "panel.html", panels=[(project, project.panel())], project=project, here="panel")


# -- one thing --------------------------------------------------------------------------------------------


def circuit(request: Request) -> Response:
    project = project_of(request)
    breaker = project.breaker()
    view = circuit_view(breaker, request.query_params.get("id", ""), _days(request))
    rows, left_out = timelines.circuit_rows(view.history)
    return page(
        request,
        "circuit.html",
        project=project,
        here="panel",
        view=view,
        choices=[int(days) for days in _CHOICES],
        rows=rows,
        left_out=left_out,
        boundary=timelines.before_window(rows, view.history.window_start),
        drawn=timelines.circuit_chart(view, breaker.engine.clock()),
    )


def _days(request: Request) -> int:
    """How far back the page looks; more than a rolling window, so that its boundary is seen."""
    text = request.query_params.get("days", "")
    return int(text) if text in _CHOICES else _DAYS


def session(request: Request) -> Response:
    project = project_of(request)
    view = session_view(project.breaker(), request.query_params.get("id", ""))
    rows, left_out = timelines.session_rows(view)
    span = timelines.session_span(view)
    return page(
        request,
        "session.html",
        project=project,
        here="sessions",
        view=view,
        rows=rows,
        left_out=left_out,
        drawn=timelines.session_chart(view, *span) if span else None,
        spend_drawn=figures.spend_chart(view, *span) if span and view.spend_curve else None,
        calls_drawn=figures.calls_chart(view.calls_per_minute) if view.calls_per_minute else None,
    )


# -- all of a kind ----------------------------------------------------------------------------------------


def sessions(request: Request) -> Response:
    project = project_of(request)
    panel, offset = project.panel(), _offset(request)
    listed = [] if panel.problem else session_list.sessions_view(project.breaker(), offset=offset).sessions
    return page(
        request,
        "sessions.html",
        project=project,
        here="sessions",
        view=panel,
        listed=listed,
        offset=offset,
        size=session_list.SHOWN,
    )


def _offset(request: Request) -> int:
    """Where in a list the page begins; what is no number is the beginning."""
    text = request.query_params.get("offset", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0


def loop(request: Request) -> Response:
    project = project_of(request)
    view = loop_view(project.breaker())
    broken = [one for one in project.panel().circuits if one.kind == "loop" and one.phase != "closed"]
    return page(
        request,
        "loop.html",
        project=project,
        here="loop",
        view=view,
        broken=broken,
        worth=figures.worth,
        scores_drawn=figures.score_chart(view.history),
        output_drawn=figures.output_chart(view.history),
    )


def attempts(request: Request) -> Response:
    project, offset = project_of(request), _offset(request)
    view = slices.attempts_view(project.breaker(), offset=offset)
    return page(request, "attempts.html", project=project, here="attempts", view=view, offset=offset, size=slices.SHOWN)


def memory(request: Request) -> Response:
    project = project_of(request)
    return page(request, "memory.html", project=project, here="memory", view=memory_view(project.breaker()))


ROUTES = [
    Route("/", for_people(front)),
    Route("/p/{project}/", for_people(project_panel)),
    Route("/p/{project}/circuit", for_people(circuit)),
    Route("/p/{project}/sessions", for_people(sessions)),
    Route("/p/{project}/session", for_people(session)),
    Route("/p/{project}/loop", for_people(loop)),
    Route("/p/{project}/attempts", for_people(attempts)),
    Route("/p/{project}/memory", for_people(memory)),
    Route("/p/{project}/act/{act}", forms.act, methods=["POST"]),
]
