"""Build the application: routes, access, and error pages."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from fusewire.server import hooks, login, metrics, pages
from fusewire.server.actions import why_not
from fusewire.server.api import openapi, orders, routes
from fusewire.server.live import Live, LiveAll, events
from fusewire.server.projects import KnownProjects
from fusewire.server.security import SMALL, Doorkeeper
from fusewire.util.stdio import INPUT_LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request

    from fusewire.server.access import Access
    from fusewire.server.projects import Projects
    from fusewire.views.overview_all import Everything


class StaticFile(StaticFiles):
    """Our own styles and scripts, for anybody: there is nothing in them."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers["Cache-Control"] = "private, max-age=60"
        return response


ROUTES = [
    Mount("/static", StaticFile(packages=[("fusewire.server", "static")])),
    Route("/login", login.login_page),
    Route("/login", login.log_in, methods=["POST"]),
    Route("/logout", login.log_out, methods=["POST"]),
    Route("/events", events),
    Route("/hooks/{agent}", hooks.hook, methods=["POST"]),
    *routes.ROUTES,
    *orders.ROUTES,
    *openapi.ROUTES,
    *metrics.ROUTES,
    *pages.ROUTES,
]


def make_app(
    projects: Projects, everything: Everything, access: Access, hosts: Iterable[str], cookie: str
) -> Starlette:
    """The application for some projects, under the names that it is known by."""
    shows_all = isinstance(projects, KnownProjects)
    live = LiveAll(projects, everything) if isinstance(projects, KnownProjects) else Live(projects)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        for feed in live.feeds.values():
            await asyncio.to_thread(feed.look)
        looking = asyncio.create_task(live.run())
        try:
            yield
        finally:
            live.stop()
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        middleware=[Middleware(Doorkeeper, hosts=hosts, largest={"/hooks/": INPUT_LIMIT, "/": SMALL})],
        exception_handlers={HTTPException: error_response},  # type: ignore[dict-item]
    )
    app.state.projects, app.state.access, app.state.live, app.state.cookie = projects, access, live, cookie
    app.state.page_cache = pages.PageCache(live)
    app.state.hooks, app.state.metrics = hooks.Hooks(projects), metrics.Metrics(projects, live)
    app.state.everything, app.state.shows_all = everything, shows_all
    roots: list[str | None] = [project.root for project in projects]
    app.state.read_only = next((why for root in roots or [None] if (why := why_not(root))), "")
    return app


def error_response(request: Request, error: HTTPException) -> Response:
    """An error as whoever asks can read it: a page for a browser, JSON for the interface, else a line."""
    if request.url.path.startswith("/api/"):
        return routes.error_response(request, error)
    if "text/html" in request.headers.get("accept", ""):
        return pages.problem(request, error.status_code, str(error.detail), error.headers)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
