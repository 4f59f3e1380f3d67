"""Render templates with everything escaped; the content security policy allows nothing inline."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import escape
from starlette.responses import HTMLResponse

from fusewire import __version__
from fusewire.server.filters import FILTERS
from fusewire.server.live import write_place
from fusewire.server.requests import projects_of, session_of
from fusewire.util.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request


#: A header of pages that load themselves anew: nobody has asked for them just now.
REFRESH = "fusewire-refresh"


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("fusewire.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    made.filters.update(FILTERS, exactly=escape)
    made.globals.update(address=address, version=__version__)
    return made


def page(
    request: Request, template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
) -> HTMLResponse:
    """A page for the browser that asks, with what every page shows."""
    session = session_of(request)
    told = []
    if session is not None and REFRESH not in request.headers:
        told, session.told = session.told, []
    live = request.app.state.live
    html = (
        environment()
        .get_template(template)
        .render(
            path=request.url.path,
            # Whoever is not logged in is not told what there is.
            projects=list(projects_of(request)) if session is not None else [],
            shows_all=request.app.state.shows_all,
            read_only=request.app.state.read_only if session is not None else "",
            form_secret=session.form_secret if session is not None else "",
            told=told,
            place=write_place({name: feed.last for name, feed in live.feeds.items()}),
            **{"project": None, "here": "", **values},
        )
    )
    return HTMLResponse(html, status, dict(headers or {}))


def address(project: Any, place: str = "", **query: Any) -> str:
    """The path of a page of a project."""
    given = {key: value for key, value in query.items() if value is not None}
    return f"/p/{project.name}/{place}" + (f"?{urlencode(given)}" if given else "")
