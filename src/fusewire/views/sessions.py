"""A session as a page shows it: what was done, what was stopped, what it costs, in the order of time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.names import is_session
from fusewire.breakers.session.overview import overview, running_in
from fusewire.breakers.session.state import recalled, session_name
from fusewire.core.events import plain
from fusewire.util.durations import show_time
from fusewire.util.errors import NotFound
from fusewire.views.moves import move_of, moved_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import AuditRow, Doing

#: What is shown of each, the newest.
_DOINGS = 500
_MOVES = 500
_POINTS = 300
_MINUTES = 120

#: Kinds of what agents did that are counted under their own names.
_COUNTED = ("ok", "failed", "told", "refused", "halted")


def session_view(breaker: Breaker, session: str) -> dict[str, Any]:
    """Everything of one session; NotFound if it has not been heard of. Nothing is written.

    What `status --session --json` has, and
    doings            the newest 500, oldest first: `at`, `agent`, `kind`, `tool`, `text`, `value`
    moves             of circuits of this session, and of others that it has moved: the newest 500, oldest first
    counts            `calls` that ran, `ok`, `failed`; how often the agent was `told`, `refused`, `halted`; `prompts`
    calls_per_minute  [[minute, calls, failed], ...], the last two hours of the session at most, no minute left out
    spend_curve       [[moment, dollars], ...]; `warn_usd` and `limit_usd` are the lines over it, grants included
    agents            helpers that run: `name`, `since`, `heard`, the oldest first

    Moments in the two series are seconds since 1970; all other times are ISO 8601 in UTC.
    """
    session = plain(session)
    doings = breaker.store.doings(session)
    if not (doings or is_session(breaker.store, session)):
        raise NotFound(f"no session {session!r} has been heard of in this project")
    record = recalled(breaker.store, session_name(session))
    view = overview(breaker, session)
    cost = view["resources"]["cost"]
    return {
        **view,
        "since": show_time(record.get("since")),
        "doings": [_doing(one) for one in doings[-_DOINGS:]],
        "moves": [move_of(row) for row in _moves(breaker, session)],
        "counts": _counts(doings),
        "calls_per_minute": _per_minute(doings),
        "spend_curve": _thinned([[one.at, one.value] for one in doings if one.kind == "spend"]),
        "warn_usd": cost["warn_usd"] + cost["granted_usd"],
        "limit_usd": cost["limit_usd"] + cost["granted_usd"],
        "agents": _running(record, breaker.engine.clock()),
    }


def _doing(one: Doing) -> dict[str, Any]:
    return {
        "at": show_time(one.at),
        "agent": one.agent or None,
        "kind": one.kind,
        "tool": one.tool,
        "text": one.text,
        "value": one.value,
    }


def _moves(breaker: Breaker, session: str) -> list[AuditRow]:
    return list(filter(moved_in(breaker, session), breaker.store.audit_of(None)))[-_MOVES:]


def _counts(doings: Sequence[Doing]) -> dict[str, int]:
    kinds = Counter(one.kind for one in doings)
    counted = {kind: kinds[kind] for kind in _COUNTED}
    return {"calls": kinds["ok"] + kinds["failed"], **counted, "prompts": kinds["prompt"]}


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


def _running(record: dict[str, Any], now: float) -> list[dict[str, Any]]:
    return [
        {"name": str(name), "since": show_time(began), "heard": show_time(heard)}
        for began, name, heard, *_ in running_in(record, now)
    ]
