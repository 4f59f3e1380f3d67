"""Handle the forms of the pages: validate, act, and return to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from fusewire.server import actions as acting
from fusewire.server.requests import checked_form, project_of, session_of
from fusewire.server.templating import address
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from starlette.requests import Request

    from fusewire.server.projects import WatchedProject


def _reset(project: WatchedProject, fields: dict[str, str]) -> str:
    return acting.reset(project, fields.get("circuit", ""), fields.get("reason", ""), whole=True)


def _grant(project: WatchedProject, fields: dict[str, str]) -> str:
    amount, whom, session = (fields.get(name, "") for name in ("amount", "whom", "session"))
    return acting.grant(project, amount, whom, session, fields.get("reason", ""))


def _resolve(project: WatchedProject, fields: dict[str, str]) -> str:
    choice, guidance, circuit = (fields.get(name, "") for name in ("choice", "guidance", "circuit"))
    return acting.resolve(project, choice, guidance, fields.get("reason", ""), circuit)


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
    return RedirectResponse(_back(project, fields), 303)


def _back(project: WatchedProject, fields: dict[str, str]) -> str:
    """The page that the form was on; of those that there are, whatever the form says."""
    pages: dict[str, dict[str, Any]] = {
        "circuit": {"id": fields.get("circuit")},
        "session": {"id": fields.get("session")},
        "loop": {},
    }
    place = fields.get("back", "")
    return address(project, place, **pages[place]) if place in pages else address(project)
