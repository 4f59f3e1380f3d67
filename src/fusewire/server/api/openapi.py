"""Build the OpenAPI document of the JSON API from its endpoints. It has no secrets, so it needs no token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from fusewire import __version__
from fusewire.server.api.answers import ANSWERS
from fusewire.server.api.endpoints import ENDPOINTS, PREFIX
from fusewire.server.api.orders import ENDPOINTS as ORDER_ENDPOINTS
from fusewire.server.api.routes import Json
from fusewire.server.api.schemas import ref

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from fusewire.server.api.endpoints import Endpoint
    from fusewire.server.api.orders import OrderEndpoint
    from fusewire.views.models import Schema

Security = list[dict[str, list[str]]]

_ERRORS = {
    400: "what is asked cannot be read, or is not allowed",
    401: "a token is needed",
    403: "this token is for something else, or this server acts on nothing",
    404: "there is no such project, circuit, session or slice",
    409: "the circuit or the phase is in no state for that; nothing was changed",
    413: "the body is too large",
    415: "the body is no JSON",
    503: "the state cannot be read or written now",
}
_OF_READING = (400, 401, 403, 404, 503)
_OF_ACTING = tuple(_ERRORS)

_READER: Security = [{"bearer": []}, {"cookie": []}]
_PERSON: Security = [{"bearer": []}]

_ABOUT = """\
What the pages of `fusewire serve` show, as JSON, and what a person may do there.

Times are ISO 8601 in UTC unless a field says otherwise. Circuit ids have slashes and go as the query parameter `id`.
Every error is `{"error": "..."}` in one line. A request under another Host is answered with 421, and one with another
Origin with 403.
"""


def document(cookie: str) -> dict[str, Any]:
    """For a server whose browsers have a cookie of this name."""
    listed = _operation("projects", "The projects that this server shows", "Projects", (400, 401, 403), _READER)
    overview = _operation("overview", "What needs an answer, in all of them", "Overview", (400, 401, 403), _READER)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fusewire",
            "version": __version__,
            "summary": "Circuit breakers for coding agents",
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": _READER,
        "paths": {
            f"{PREFIX}/projects": {"get": listed},
            f"{PREFIX}/overview": {"get": overview},
            **{endpoint.path: {"post": _order(endpoint)} for endpoint in ORDER_ENDPOINTS},
            **{endpoint.path: _path(endpoint) for endpoint in ENDPOINTS},
        },
        "components": {
            "schemas": ANSWERS,
            "responses": {str(status): _answer(words, "Error") for status, words in _ERRORS.items()},
            "parameters": {
                "project": {
                    "name": "project",
                    "in": "path",
                    "required": True,
                    "description": "a project's name, as `projects` has it",
                    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
                }
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "that of a reader or for halts (in files of the user's), or of the person (printed)",
                },
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "a browser's, logged in"},
            },
        },
    }


def _path(endpoint: Endpoint) -> dict[str, Any]:
    parameters = [{"$ref": "#/components/parameters/project"}]
    if not endpoint.body:
        operation = _operation(endpoint.name, endpoint.about, endpoint.answer, _OF_READING, _READER)
        query = [_parameter(name, one, endpoint.query) for name, one in endpoint.query["properties"].items()]
        return {"parameters": parameters, "get": {**operation, **({"parameters": query} if query else {})}}
    operation = _operation(endpoint.name, endpoint.about, endpoint.answer, _OF_ACTING, _PERSON)
    return {"parameters": parameters, "post": {**operation, "requestBody": _body(endpoint.body)}}


def _order(endpoint: OrderEndpoint) -> dict[str, Any]:
    operation = _operation(endpoint.name, endpoint.about, "Ordered", _OF_ACTING, _PERSON)
    return {**operation, "requestBody": _body(endpoint.body)}


def _body(shapes: list[Schema]) -> dict[str, Any]:
    shape = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    return {"required": True, "content": {"application/json": {"schema": shape}}}


def _operation(name: str, about: str, answer: str, errors: tuple[int, ...], security: Security) -> dict[str, Any]:
    responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in errors}
    return {
        "operationId": name,
        "summary": about,
        "security": security,
        "responses": {"200": _answer(about, answer), **responses},
    }


def _parameter(name: str, schema: Schema, query: Schema) -> dict[str, Any]:
    plain = {key: value for key, value in schema.items() if key != "description"}
    words = {"description": schema["description"]} if "description" in schema else {}
    return {"name": name, "in": "query", "required": name in query["required"], **words, "schema": plain}


def _answer(words: str, schema: str) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": ref(schema)}}}


async def openapi(request: Request) -> Response:
    return Json(document(request.app.state.cookie))


ROUTES = [Route(f"{PREFIX}/openapi.json", openapi)]
