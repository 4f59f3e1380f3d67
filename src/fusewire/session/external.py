"""Calls of external APIs: by the scripts that make them, by tools, and by hosts that curl and its like are sent to."""

from __future__ import annotations

from fusewire.globs import matches
from fusewire.wrappers import SHELLS, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fusewire.events import Decision, Event
    from fusewire.session.moment import Moment
    from fusewire.session.watch import Call

#: A line that calls more often is refused at the latest here.
_MOST = 100

_FETCHING = frozenset(("curl", "wget", "http", "https", "xh", "httpie", "aria2c", "fetch"))

_INTERPRETERS = (
    "python",
    "pypy",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "tsx",
    "ts-node",
    "uv",
    "poetry",
    "pipenv",
)


def limits_on_api(moment: Moment, call: Call, lease: str) -> Iterator[Decision]:
    """May it call? The breaker first, then the limits; each call of a line is one."""
    for _ in range(min(_MOST, api_calls(moment.event, call.commands, moment.settings))):
        if moment.has("tool/external_api/{session}"):
            yield moment.signal("ask", f"tool/external_api/{moment.session}", "api_call", lease=lease, text=call.shown)
        yield moment.signal("ask", f"tool/api_calls/{moment.session}", "api_call", text=call.shown)


def api_calls(event: Event, commands: list[list[str]], settings: dict[str, Any]) -> int:
    """How many external calls a tool call makes; reading or editing such a script is none."""
    if any(matches(event.tool, pattern) for pattern in settings["external_api.tools"]):
        return 1
    if event.command is None:
        return 0
    hosts, scripts = settings["external_api.hosts"], settings["external_api.commands"]
    seen: list[list[str]] = []
    for words in commands:
        # A wrapped command is listed with its wrapper and without: it is one.
        if any(len(words) < len(outer) and outer[-len(words) :] == words for outer in seen[-3:]):
            continue
        if _runs(words, scripts) or _fetches(words, hosts):
            seen.append(words)
    return len(seen)


def _runs(words: list[str], scripts: tuple[str, ...]) -> bool:
    name = program(words)
    if any(matches(name, pattern) for pattern in scripts):
        return True
    runs_files = (
        name.startswith(_INTERPRETERS)
        or name in SHELLS
        or name in ("env", "timeout", "nohup", "time", "xargs", "nice", "sudo")
    )
    if not runs_files:
        return False
    return any(matches(word.rsplit("/", 1)[-1], pattern) for word in words[1:4] for pattern in scripts)


def _fetches(words: list[str], hosts: tuple[str, ...]) -> bool:
    return program(words) in _FETCHING and any(_host(word) == host for word in words[1:] for host in hosts)


def _host(word: str) -> str:
    rest = word.partition("://")[2] or word
    return rest.partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
