"""Read from a request who sends it, which project it is about, and its form."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fusewire.server.peer import require_person_at
from fusewire.util.errors import AgentRefused, NotFound

if TYPE_CHECKING:
    from fusewire.server.access import Access, Session
    from fusewire.server.projects import Projects, WatchedProject


def access_of(request: Request) -> Access:
    access: Access = request.app.state.access
    return access


def projects_of(request: Request) -> Projects:
    projects: Projects = request.app.state.projects
    return projects


def project_of(request: Request) -> WatchedProject:
    """The project that the address names."""
    try:
        return projects_of(request)[request.path_params["project"]]
    except NotFound as error:
        raise HTTPException(404, str(error)) from error


def cookie_name(request: Request) -> str:
    """Cookies do not know ports: without it, two servers on one machine would log each other out."""
    name: str = request.app.state.cookie
    return name


def session_of(request: Request) -> Session | None:
    """The session of the browser that asks, if it is logged in."""
    return access_of(request).session(request.cookies.get(cookie_name(request)))


def bearer_of(request: Request) -> str | None:
    """The role of whoever sends a token; None if there is none, or a wrong one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return access_of(request).role_of(token.strip()) if scheme.lower() == "bearer" and token.strip() else None


def require_role(request: Request, *roles: str) -> str:
    """The role of the sender, who must have one of these; a browser that is logged in is a person."""
    role = bearer_of(request)
    if role is None and "authorization" not in request.headers and session_of(request) is not None:
        role = "person"
    if role is None:
        raise HTTPException(401, _no_token(request), {"WWW-Authenticate": "Bearer"})
    if role not in roles:
        raise HTTPException(403, f"this token is for {role}, and that is for {' or '.join(roles)}")
    return role


def _no_token(request: Request) -> str:
    if "authorization" in request.headers:
        return "this token is not known here: that of a person is made anew whenever the server starts"
    return "a token is needed, in the header Authorization: Bearer TOKEN"


async def require_no_agent(request: Request) -> None:
    """Refuse what a process inside an agent sends from this machine, whichever token or cookie it has got hold of."""
    if request.app.state.read_only:
        return  # where nothing can be changed, whoever looks may look
    try:
        # One that hung up at once has no port any more, and none is nobody's.
        client, server = request.client or ("", 0), request.scope["server"]
        roots = [project.root for project in projects_of(request)]
        await run_in_threadpool(require_person_at, (client[0], client[1]), server[1], roots)
    except AgentRefused as error:
        raise HTTPException(403, str(error)) from error


async def checked_form(request: Request) -> dict[str, str]:
    """The fields of a form that one of our own pages has sent."""
    session = session_of(request)
    if session is None:
        raise HTTPException(401, "log in first")
    fields = await form_fields(request)
    if not hmac.compare_digest(fields.get("form_secret", "").encode("utf-8", "replace"), session.form_secret.encode()):
        raise HTTPException(
            403, "this form was not sent by a page of this server, or the page is too old: load it anew"
        )
    await require_no_agent(request)
    return fields


async def form_fields(request: Request) -> dict[str, str]:
    """Fields of a plain form; of one that comes twice the first."""
    from urllib.parse import parse_qsl

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "a form is needed: application/x-www-form-urlencoded")
    text = (await request.body()).decode("utf-8", "replace")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=50)
    except ValueError as error:
        raise HTTPException(400, "the form has too many fields") from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields.setdefault(name, value)
    return fields
