"""Styles and scripts: read once, so that no address ever becomes the path of a file."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    folder = resources.files("fusewire.server").joinpath("static")
    found = {}
    for file in folder.iterdir():
        kind = next((kind for ending, kind in _TYPES.items() if file.name.endswith(ending)), None)
        if kind is not None:
            found[file.name] = (file.read_bytes(), kind)
    return found


async def static_file(request: Request) -> Response:
    """One of our own files, for anybody: there is nothing in them."""
    content, kind = _files().get(request.path_params["name"], (None, ""))
    if content is None:
        raise HTTPException(404, "no such file")
    return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=60"})
