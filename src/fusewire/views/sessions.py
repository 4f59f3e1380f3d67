"""Describe a session in the order of time: what was done, what was stopped, what it costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from fusewire.breakers.session.names import is_session
from fusewire.breakers.session.overview import (
    ActiveCircuit,
    IncidentCounts,
    SessionResources,
    UnreadableMemory,
    overview,
    running_in,
)
from fusewire.breakers.session.state import SessionMemory, session_name
from fusewire.core.events import plain
from fusewire.util.durations import format_time, show_time
from fusewire.util.errors import NotFound
from fusewire.util.json_types import Count, Time, Usd, about
from fusewire.views.moves import Move, move_of, moved_in
from fusewire.views.session_list import SessionStanding
from fusewire.views.session_names import SessionNames
from fusewire.views.storage import MemoryUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import AuditRow, Doing

#: What is shown of each, the newest.
_DOINGS = 500
_MOVES = 500
_POINTS = 300
_MINUTES = 120

DoingKind = Literal["ok", "failed", "told", "asked", "refused", "halted", "logged", "prompt", "spend"]


@dataclass(frozen=True)
class ShownDoing:
    """Something that an agent did."""

    at: Time
    agent: str | None
    kind: DoingKind
    tool: str
    text: str
    value: float


@dataclass(frozen=True)
class DoingCounts:
    """Calls that ran, how they went, how often the agent was stopped, and messages."""

    calls: Count
    ok: Count
    failed: Count
    told: Count
    refused: Count
    halted: Count
    prompts: Count


@dataclass(frozen=True)
class RunningHelper:
    """A helper that runs."""

    name: str
    since: Time
    heard: Time


@dataclass(frozen=True)
class SessionView(SessionStanding):
    """Everything of one session: what `status --session --json` has, and what was done when."""

    session: str
    name: Annotated[str, about("its agent, the first words of its first prompt, and the beginning of its id")]
    model: str
    turn: Count | None
    active: list[ActiveCircuit]
    memory: MemoryUsage | UnreadableMemory
    resources: SessionResources
    incidents: IncidentCounts
    since: Time | None
    doings: Annotated[list[ShownDoing], about("the newest 500, oldest first")]
    moves: Annotated[list[Move], about("the newest 500, oldest first")]
    counts: DoingCounts
    calls_per_minute: Annotated[list[list[int]], about("[minute in seconds since 1970, calls, failed]")]
    spend_curve: Annotated[list[list[float]], about("[seconds since 1970, dollars]")]
    #: the line over it, grants included; 0 if there is none
    limit_usd: Usd
    #: the oldest first
    agents: list[RunningHelper]


def session_view(breaker: Breaker, session: str) -> SessionView:
    """Everything of one session; NotFound if it has not been heard of. Nothing is written."""
    session = plain(session)
    doings = breaker.store.doings(session)
    if not (doings or is_session(breaker.store, session)):
        raise NotFound(f"no session {session!r} has been heard of in this project")
    state = SessionMemory.recalled(breaker.store, session_name(session))
    view: Any = overview(breaker, session)
    cost = view["resources"]["cost"]
    facts = SessionNames.of(breaker).facts(session)
    return SessionView(
        **view,
        name=facts.name,
        model=facts.model,
        since=show_time(state.since),
        doings=[_doing(one) for one in doings[-_DOINGS:]],
        moves=[move_of(row) for row in _moves(breaker, session)],
        counts=_counts(doings),
        calls_per_minute=_per_minute(doings),
        spend_curve=_thinned([[one.at, one.value] for one in doings if one.kind == "spend"]),
        limit_usd=cost["limit_usd"] + cost["granted_usd"] if cost["limit_usd"] else 0,
        agents=_running(state, breaker.engine.clock()),
    )


def _doing(one: Doing) -> ShownDoing:
    kind = cast("DoingKind", one.kind)
    return ShownDoing(format_time(one.at), one.agent or None, kind, one.tool, one.text, one.value)


def _moves(breaker: Breaker, session: str) -> list[AuditRow]:
    return list(filter(moved_in(breaker, session), breaker.store.audit_of(None)))[-_MOVES:]


def _counts(doings: Sequence[Doing]) -> DoingCounts:
    kinds = Counter(one.kind for one in doings)
    counted = {kind: kinds[kind] for kind in ("ok", "failed", "told", "refused", "halted")}
    return DoingCounts(calls=kinds["ok"] + kinds["failed"], **counted, prompts=kinds["prompt"])


def _per_minute(doings: Sequence[Doing]) -> list[list[int]]:
    calls = [(int(one.at // 60) * 60, one.kind) for one in doings if one.kind in ("ok", "failed")]
    if not calls:
        return []
    last = max(minute for minute, _ in calls)
    first = max(min(minute for minute, _ in calls), last - 60 * (_MINUTES - 1))
    rows = {minute: [minute, 0, 0] for minute in range(first, last + 60, 60)}
    for minute, kind in calls:
        if minute in rows:
            rows[minute][1] += 1
            rows[minute][2] += kind == "failed"
    return list(rows.values())


def _thinned(points: list[list[float]]) -> list[list[float]]:
    """Not more points than a chart can show; the first and the last are among them."""
    if len(points) <= _POINTS:
        return points
    step = (len(points) - 1) / (_POINTS - 1)
    return [points[round(number * step)] for number in range(_POINTS)]


def _running(state: SessionMemory, now: float) -> list[RunningHelper]:
    return [
        RunningHelper(helper.shown, format_time(helper.began), format_time(helper.heard))
        for helper in running_in(state, now)
    ]
