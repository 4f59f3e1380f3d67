"""Serve `POST /api/v1/halt` and `/resume`, for a gateway's kill switch: they have a token that can do nothing else.

The token lies in a file, where a program of the user's can read it. So it lifts only what it has ordered itself: what a
person has halted at a terminal, a person lets go on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.routing import Route

from fusewire.agents.caller import require_person
from fusewire.breakers.session.names import session_ids
from fusewire.scopes import order_changes as changes
from fusewire.scopes.orders import ALL, PROJECT, SESSION, HaltOrder
from fusewire.server.api import schemas
from fusewire.server.api.answers import Ordered
from fusewire.server.api.endpoints import PREFIX
from fusewire.server.api.routes import run_in_thread
from fusewire.server.api.validation import read_body
from fusewire.server.requests import projects_of, require_no_agent, require_role
from fusewire.util.durations import counted
from fusewire.util.worktrees import project_key
from fusewire.views.orders import orders_view
from fusewire.views.session_names import SessionNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from fusewire.server.projects import Projects
    from fusewire.views.models import Schema

#: Who has ordered what came with the token.
BY_TOKEN = "the halt token"


@dataclass(frozen=True)
class OrderEndpoint:
    """An address for all projects."""

    name: str
    about: str
    work: Callable[[Projects, dict[str, Any], str], Ordered]
    body: list[Schema]

    @property
    def path(self) -> str:
        return f"{PREFIX}/{self.name}"


def _halt(projects: Projects, given: dict[str, Any], by: str) -> Ordered:
    root, key = _scope(projects, given)
    order = HaltOrder(given["scope"], key, changes.person_reason(given["reason"]), by, time.time())
    problem = changes.halt(order, root)
    whose = "all agents" if order.scope == ALL else f"{order.scope} {key}"
    return _answer(f"halted: {whose}{f'; {problem}' if problem else ''}")


def _resume(projects: Projects, given: dict[str, Any], by: str) -> Ordered:
    root, key = _scope(projects, given)

    def fits(order: HaltOrder) -> bool:
        return (order.scope, order.key) == (given["scope"], key) and (by != BY_TOKEN or order.by == BY_TOKEN)

    lifted = changes.resume(fits, root, given.get("reason", ""), by, time.time())
    others = [one for one in orders_view(None, everything=True).halts if (one.scope, one.key) == (given["scope"], key)]
    if others and not lifted:
        raise HTTPException(
            409, f"{others[0].by} has halted this at a terminal, where a person can run: fusewire resume"
        )
    return _answer(f"{counted(len(lifted), 'halt')} lifted")


def _answer(done: str) -> Ordered:
    return Ordered(done, orders_view(None, everything=True).halts)


def _scope(projects: Projects, given: dict[str, Any]) -> tuple[str | None, str]:
    """A folder of the project that is meant, if one is, and the key of the order."""
    found = list(projects)
    if given["scope"] == ALL:
        return found[0].root, ""
    if given["scope"] == SESSION:
        known = [one for project in found for one in session_ids(project.store)]
        return found[0].root, SessionNames(None, time.time()).resolve(given["session"], known)
    assert given["scope"] == PROJECT
    name = given.get("project")
    if name is None and len(found) > 1:
        raise HTTPException(400, f"project is needed: {', '.join(one.name for one in found)}")
    root = found[0].root if name is None else projects[name].root
    return root, project_key(root)


ENDPOINTS = [
    OrderEndpoint("halt", "Stop agents at their next call, and runs at once", _halt, schemas.HALT),
    OrderEndpoint("resume", "Let them go on; with the halt token only what it has halted", _resume, schemas.RESUME),
]


def _handler(endpoint: OrderEndpoint) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        role = require_role(request, "halt", "person")
        if "authorization" not in request.headers:
            raise HTTPException(
                403, "a cookie is not enough: send the token, in the header Authorization: Bearer TOKEN"
            )
        given = await read_body(request, endpoint.body)
        await require_no_agent(request)
        projects = projects_of(request)

        def work() -> Ordered:
            person = require_person(f"`{endpoint.path}`", next(iter(projects)).root)
            return endpoint.work(projects, given, BY_TOKEN if role == "halt" else person)

        return await run_in_thread(work)

    return answer


ROUTES = [Route(one.path, _handler(one), methods=["POST"]) for one in ENDPOINTS]
