"""Check that the server receives what an agent reports over HTTP, with an event that is not counted."""

from __future__ import annotations

import hmac
import http.client
import json
import secrets
from urllib.request import getproxies_environment, proxy_bypass

from fusewire.agents.install.client import Client
from fusewire.agents.install.http import Http
from fusewire.util.quoting import quoted
from fusewire.util.server_address import PROOF, QUESTION, proof

_PATIENCE = 5

#: One that no agent is guarded by; it says only which project it is about.
_EVENT = "Notification"


def proxy_problem(client: Client) -> tuple[str, str] | None:
    """Whether agents that are started as we are would look for the server behind a proxy, and what to do."""
    if not {"http", "https"} & getproxies_environment().keys() or proxy_bypass("127.0.0.1"):
        return None
    what = f"a proxy is set: {client.title} sends its reports there, and not to 127.0.0.1, so that they are not seen"
    return what, "add 127.0.0.1 to NO_PROXY wherever the proxy is set"


def reports_problem(client: Client, to: Http, root: str) -> tuple[str, str] | None:
    """Why reports are not heard, and what to do; None if they are."""
    astray = proxy_problem(client)
    if astray is not None:
        return astray
    again = client.install_line("user", to)
    where = f"127.0.0.1:{to.port}"
    try:
        status, proven = _ask(client, to, root)
    except (OSError, http.client.HTTPException, ValueError):
        what = f"reports go to {where}, where no server answers: calls are judged, but what comes of them is not seen"
        return what, f"fusewire serve{to.option}, or {client.install_line('user')} (no server)"
    if proven is None:
        what = f"what answers at {where} is not Fusewire, or an older one (HTTP {status}): what is reported is not seen"
        return what, f"fusewire serve{to.option}, once nothing else is there"
    if status == 401 or not proven:
        return f"the server at {where} does not know the token that is registered: what is reported is not seen", again
    if status == 403:
        what = f"the server at {where} does not show this project: what is reported of it is not seen"
        return what, f"start it with this project: fusewire serve {quoted(root)}{to.option}"
    if status != 200:
        return f"the server at {where} failed (HTTP {status}): what is reported is not seen", "see its terminal"
    return None


def _ask(client: Client, to: Http, root: str) -> tuple[int, bool | None]:
    """The status of the last answer, and whether the server knows the token; None if it is none of ours.

    The token itself is shown only to who knows it.
    """
    question = secrets.token_hex(16)
    status, given = _post(client, to, {QUESTION: question}, "")
    if given is None:
        return status, None
    if not hmac.compare_digest(given.encode(), proof(to.token, to.port, question).encode()):
        return status, False
    body = json.dumps({"hook_event_name": _EVENT, "cwd": root, "session_id": ""})
    return _post(client, to, to.handler(client.name)["headers"], body)[0], True


def _post(client: Client, to: Http, headers: dict[str, str], body: str) -> tuple[int, str | None]:
    """The status of an answer, and its proof."""
    connection = http.client.HTTPConnection("127.0.0.1", to.port, timeout=_PATIENCE)
    try:
        connection.request("POST", f"/hooks/{client.name}", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader(PROOF)
    finally:
        connection.close()
