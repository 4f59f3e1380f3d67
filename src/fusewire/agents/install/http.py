"""Register hooks over HTTP: reports can go to the running server, without a new process for each event.

An agent goes on if such a hook fails (no server, any answer but 2xx, a time-out), so what can refuse
something stays a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fusewire.util.fast_json import JsonObject
from fusewire.util.server_address import PORT

#: The header by which one of ours is known.
MARK = "X-Fusewire"

#: Above the server's own deadline. An agent waits so long for a server that is stuck, at every event.
_SECONDS = 5

_BEARER = "Bearer "


@dataclass(frozen=True, slots=True)
class Http:
    """Where reports go, and the token that the server wants to see."""

    port: int
    token: str = field(repr=False)

    @property
    def option(self) -> str:
        """How a command line names the port; the usual one need not be named."""
        return "" if self.port == PORT else f" --port {self.port}"

    def url(self, agent: str) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/{agent}"

    def handler(self, agent: str) -> JsonObject:
        headers = {"Authorization": f"{_BEARER}{self.token}", MARK: agent}
        return {"type": "http", "url": self.url(agent), "headers": headers, "timeout": _SECONDS}


def reports_to_us(handler: Any, agent: str) -> bool:
    """Whether a registered hook sends what happens to a server of ours."""
    headers = handler.get("headers") if isinstance(handler, dict) and handler.get("type") == "http" else None
    return isinstance(headers, dict) and headers.get(MARK) == agent


def http_of(hooks: Mapping[str, list[JsonObject]], agent: str) -> Http | None:
    """Where the registered hooks report to; None if all are commands."""
    for handler in (one for handlers in hooks.values() for one in handlers):
        if reports_to_us(handler, agent):
            return Http(_port(handler.get("url")), str(handler["headers"].get("Authorization")).removeprefix(_BEARER))
    return None


def _port(url: Any) -> int:
    """0 where there is none that anything could listen on."""
    try:
        return urlsplit(url).port or 0 if isinstance(url, str) else 0
    except ValueError:
        return 0
