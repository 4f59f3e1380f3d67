"""Whether what an agent reports over HTTP arrives: the server is asked, with an event that nobody counts."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING
from urllib.request import getproxies_environment, proxy_bypass

from fusewire.words import quoted

if TYPE_CHECKING:
    from fusewire.installing.clients import Client
    from fusewire.installing.http import Http

_PATIENCE = 5

#: One that no agent is guarded by; it says only which project it is about.
_EVENT = "Notification"


def misled(client: Client) -> tuple[str, str] | None:
    """Whether agents that are started as we are would look for the server behind a proxy, and what to do."""
    if not {"http", "https"} & getproxies_environment().keys() or proxy_bypass("127.0.0.1"):
        return None
    what = f"a proxy is set: {client.title} sends its reports there, and not to 127.0.0.1, so that they are not seen"
    return what, "add 127.0.0.1 to NO_PROXY wherever the proxy is set"


def unheard(client: Client, to: Http, root: str) -> tuple[str, str] | None:
    """Why reports are not heard, and what to do; None if they are."""
    astray = misled(client)
    if astray is not None:
        return astray
    again = client.install_line("user", to)
    where = f"127.0.0.1:{to.port}"
    try:
        status, answers = _ask(client, to, root)
    except (OSError, http.client.HTTPException, ValueError):
        what = f"reports go to {where}, where no server answers: calls are judged, but what comes of them is not seen"
        return what, f"fusewire serve{to.option}, or {client.install_line('user')} (no server)"
    if status == 200 and answers:
        return None
    if status == 401:
        return f"the server at {where} does not know the token that is registered: what is reported is not seen", again
    if status == 403:
        what = f"the server at {where} does not show this project: what is reported of it is not seen"
        return what, f"start it with this project: fusewire serve {quoted(root)}{to.option}"
    return f"what answers at {where} is not Fusewire (HTTP {status}): what is reported is not seen", again


def _ask(client: Client, to: Http, root: str) -> tuple[int, bool]:
    """The status of an answer, and whether it is one of ours."""
    body = json.dumps({"hook_event_name": _EVENT, "cwd": root, "session_id": ""})
    handler = to.handler(client.name)
    connection = http.client.HTTPConnection("127.0.0.1", to.port, timeout=_PATIENCE)
    try:
        connection.request("POST", f"/hooks/{client.name}", body, handler["headers"])
        answer = connection.getresponse()
        return answer.status, answer.getheader("Fusewire-Exit-Code") is not None
    finally:
        connection.close()
