"""Logging in: the token that the server printed, sent once, becomes a cookie that scripts cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from fusewire.server.requests import access_of, checked_form, cookie_name, form_fields
from fusewire.server.templating import page

if TYPE_CHECKING:
    from starlette.requests import Request


async def login_page(request: Request) -> Response:
    return page(request, "login.html", problem="", to=_own_address(request.query_params.get("to", "")))


async def log_in(request: Request) -> Response:
    """From the form of the login page, or from its script, which reads the token behind the `#` of the address."""
    fields = await form_fields(request)
    name = access_of(request).log_in(fields.get("token", "").strip())
    if name is None:
        wrong = "That is not the token that this server printed when it started."
        return page(request, "login.html", 403, problem=wrong, to=_own_address(fields.get("to", "")))
    answer = RedirectResponse(_own_address(fields.get("to", "")), 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(cookie_name(request), name, httponly=True, samesite="strict", path="/", secure=secure)
    return answer


async def log_out(request: Request) -> Response:
    await checked_form(request)
    access_of(request).log_out(request.cookies.get(cookie_name(request)))
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(cookie_name(request), path="/", httponly=True, samesite="strict")
    return answer


def _own_address(wanted: str) -> str:
    """A path of this server, never another one: `//elsewhere` and `/\\elsewhere` are addresses of other machines."""
    plain = wanted.startswith("/") and wanted[1:2] not in ("/", "\\") and wanted.isprintable()
    return wanted if plain and len(wanted) < 2000 else "/"
