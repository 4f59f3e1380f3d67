"""List the endpoints of the JSON API: address, parameters, and the function that answers.

The routes, the check of what is asked and the OpenAPI document all come from `ENDPOINTS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.server import actions as acting
from fusewire.server.api import answers, schemas
from fusewire.util.errors import StoreError
from fusewire.views import session_list, slices
from fusewire.views.cards import CircuitStatus
from fusewire.views.circuits import circuit_view
from fusewire.views.loop import loop_view
from fusewire.views.moves import numbered_move
from fusewire.views.panel import Panel, UnreadablePanel
from fusewire.views.sessions import session_view
from fusewire.views.spend import spend_overview
from fusewire.views.storage import memory_view
from fusewire.views.warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.server.projects import WatchedProject
    from fusewire.views.models import Schema

    Given = dict[str, Any]

PREFIX = "/api/v1"

# -- what is read, where a view alone is not the answer ---------------------------------------------------


def _panel(watched: WatchedProject, given: Given) -> Panel:
    panel = watched.panel()
    if isinstance(panel, UnreadablePanel):
        raise StoreError(panel.problem)
    return panel


def _circuits(watched: WatchedProject, given: Given) -> answers.CircuitList:
    breaker = watched.breaker()
    found = [status for status in breaker.statuses() if all(getattr(status, name) == given[name] for name in given)]
    return answers.CircuitList([CircuitStatus(**status.to_json()) for status in found], warnings(breaker))


def _history(watched: WatchedProject, given: Given) -> answers.CircuitHistory:
    view = circuit_view(watched.breaker(), given["id"], given["days"])
    return answers.CircuitHistory(**given, **vars(view.history))


def _settings(watched: WatchedProject, given: Given) -> answers.CircuitSettings:
    return answers.CircuitSettings(given["id"], circuit_view(watched.breaker(), given["id"]).settings)


def _moves(watched: WatchedProject, given: Given) -> answers.MovePage:
    found = watched.store.moves(given["after"], given["limit"])
    last = max(watched.store.last_move(), found[-1][0] if found else 0)
    moves = [numbered_move(number, row) for number, row in found]
    return answers.MovePage(moves, last, more=bool(found) and found[-1][0] < last)


# -- what a person does -----------------------------------------------------------------------------------


def _reset(watched: WatchedProject, given: Given) -> answers.Done:
    return answers.Done(acting.reset(watched, given["circuit"], given["reason"]))


def _grant(watched: WatchedProject, given: Given) -> answers.Done:
    amount = f"{given['amount']:.2f}"
    return answers.Done(acting.grant(watched, amount, given["whom"], given.get("session", ""), given["reason"]))


def _resolve(watched: WatchedProject, given: Given) -> answers.Done:
    return answers.Done(acting.resolve(watched, given["choice"], given.get("guidance", ""), given["reason"]))


# -- the table --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Endpoint:
    """One address of a project."""

    name: str
    about: str
    #: the name of the answer's schema
    answer: str
    work: Callable[[WatchedProject, Given], object]
    query: Schema = field(default_factory=schemas.question)
    #: the shapes that a body may have; an endpoint with a body changes something
    body: list[Schema] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"{PREFIX}/projects/{{project}}/{self.name}"


_FILTER = schemas.question("state", "kind", state=schemas.STATE, kind=schemas.KIND)
_ID = schemas.question(id=schemas.ID)
_ID_AND_DAYS = schemas.question(id=schemas.ID, days=schemas.DAYS)
_BEHIND = schemas.question(after=schemas.AFTER, limit=schemas.limit(200, 1000))
_SESSIONS = schemas.question(limit=schemas.limit(session_list.SHOWN, 200), offset=schemas.OFFSET)
_SLICES = schemas.question(limit=schemas.limit(slices.SHOWN, 100), offset=schemas.OFFSET)

ENDPOINTS = [
    Endpoint("panel", "Everything that the Panel shows", "Panel", _panel),
    Endpoint("circuits", "Every circuit, as `status --json` has it", "Circuits", _circuits, _FILTER),
    Endpoint(
        "circuit",
        "Everything about one circuit",
        "CircuitView",
        lambda watched, given: circuit_view(watched.breaker(), given["id"], given["days"]),
        _ID_AND_DAYS,
    ),
    Endpoint("history", "What reached a circuit, and its moves", "History", _history, _ID_AND_DAYS),
    Endpoint("settings", "A circuit's settings, and where each comes from", "Settings", _settings, _ID),
    Endpoint(
        "sessions",
        "Sessions, the one heard of last first",
        "Sessions",
        lambda watched, given: session_list.sessions_view(watched.breaker(), **given),
        _SESSIONS,
    ),
    Endpoint(
        "session",
        "Everything about one session",
        "Session",
        lambda watched, given: session_view(watched.breaker(), given["id"]),
        schemas.question(id=schemas.SESSION),
    ),
    Endpoint("loop", "The supervised loop", "Loop", lambda watched, given: loop_view(watched.breaker())),
    Endpoint(
        "attempts",
        "Slices and the attempts at their tests",
        "Attempts",
        lambda watched, given: slices.attempts_view(watched.breaker(), **given),
        _SLICES,
    ),
    Endpoint(
        "slice",
        "One slice",
        "Slice",
        lambda watched, given: slices.slice_view(watched.breaker(), given["id"]),
        schemas.question(id=schemas.SLICE),
    ),
    Endpoint(
        "spend",
        "What today has cost, how fast, and what budgets allow",
        "Spend",
        lambda watched, given: spend_overview(watched.breaker()),
    ),
    Endpoint("memory", "The agents' memory folder", "Memory", lambda watched, given: memory_view(watched.breaker())),
    Endpoint("moves", "The audit trail behind a number, for whoever asks again", "Moves", _moves, _BEHIND),
    Endpoint("reset", "End an open circuit as its policy allows", "Done", _reset, body=schemas.RESET),
    Endpoint("grant", "Allow more spend", "Done", _grant, body=schemas.GRANT),
    Endpoint("resolve", "Decide about an open phase", "Done", _resolve, body=schemas.RESOLVE),
]
