"""Log in: exchange the token that the server printed for a cookie that scripts cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from fusewire.server.requests import access_of, checked_form, cookie_name, form_fields, require_no_agent, session_of
from fusewire.server.templating import page

if TYPE_CHECKING:
    from starlette.requests import Request


async def login_page(request: Request) -> Response:
    return page(request, "login.html", problem="", to=_own_address(request.query_params.get("to", "")))


async def log_in(request: Request) -> Response:
    """From the form of the login page, or from its script, which reads the token behind the `#` of the address."""
    fields = await form_fields(request)
    to, token = _own_address(fields.get("to", "")), _key_in(fields.get("token", ""))
    if access_of(request).knows(token):
        await require_no_agent(request)
    name = access_of(request).log_in(token)
    if name is None and session_of(request) is not None:  # an address that was opened once more
        return RedirectResponse(to, 303)
    if name is None:
        wrong = "That is not the key that this server printed when it started, or an address that was used already."
        return page(request, "login.html", 403, problem=wrong, to=to)
    answer = RedirectResponse(to, 303)
    secure = request.headers.get("origin", "").startswith("https:")  # behind a proxy that encrypts
    answer.set_cookie(cookie_name(request), name, httponly=True, samesite="strict", path="/", secure=secure)
    return answer


async def log_out(request: Request) -> Response:
    await checked_form(request)
    access_of(request).log_out(request.cookies.get(cookie_name(request)))
    request.app.state.live.wake()  # what its pages listen to ends
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(cookie_name(request), path="/", httponly=True, samesite="strict")
    return answer


def _key_in(text: str) -> str:
    """The key, also if somebody has pasted the whole address."""
    return text.strip().rpartition("#token=")[2]


def _own_address(wanted: str) -> str:
    """A path of this server, never another one: `//elsewhere` and `/\\elsewhere` are addresses of other machines."""
    plain = wanted.startswith("/") and wanted[1:2] not in ("/", "\\") and wanted.isprintable()
    return wanted if plain and len(wanted) < 2000 else "/"
