"""One circuit as a page shows it: state, settings and their sources, meters, cooldown, history, and every trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.constraint.report import history_json
from fusewire.breakers.session.names import session_ids
from fusewire.breakers.session.spend_limits import in_dollars, spent_and_granted
from fusewire.core import circuit as circuits
from fusewire.core import meters
from fusewire.core.circuit import StepResult, within
from fusewire.core.events import identifier
from fusewire.engine.engine import read_state
from fusewire.engine.status import status_of
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import seconds_until, show_duration, show_time
from fusewire.util.errors import NotFound
from fusewire.views.measures import fullness, measure
from fusewire.views.panel import circuit_card, policy_of
from fusewire.views.settings import settings_of
from fusewire.views.trips import trips_in

if TYPE_CHECKING:
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import CircuitRow

_DAY = 86400


def circuit_view(breaker: Breaker, circuit: str, days: float = 30) -> dict[str, Any]:
    """Everything of one circuit; NotFound if there is none. Nothing is written.

    The fields of a circuit in `panel`, and
    about      of a constraint: `title`, `severity`, `file`; null for others
    settings   [{`key`, `value`, `source`}, ...]; none where the constraint's file is gone
    meters     [{`name`, `counts`, `level`, `trip`, `trip_by`, `warn`, `window` (" within 30d"), `refuses`,
               `measure` (in words), `full` (from 0 to 1)}, ...]
    cooldown   `schedule`, `steps` (seconds), `words`, `in_a_row`, `next_seconds` (what the next trip in a row would
               wait), and `began`, `until`, `seconds` (in all), `left`, which are null while nothing cools down
    history    as `history --json`: `window_start`, `entries`, `transitions`, newest first
    trips      newest first, see `trips_in`
    """
    policy, row = _found(breaker, circuit)
    now = breaker.engine.clock()
    state = breaker.engine.state_in(row, circuit, policy)
    trail = [*breaker.store.audit_of(identifier(circuit)), *_unwritten(row, policy, now)]
    since = now - days * _DAY
    log = breaker.store.log_of(identifier(circuit), since)
    recent = [move for move in trail if move.at >= since]
    status = in_dollars(breaker, status_of(circuit, policy, state, now))
    return {
        **circuit_card(breaker, status, session_ids(breaker.store)),
        "about": _about(breaker, circuit),
        "days": days,
        "settings": _settings(breaker, circuit),
        "meters": [_meter(meter, state, now, spent_and_granted(status, meter.trip)) for meter in policy.meters],
        "cooldown": _cooldown(policy, state, now),
        "history": history_json(log, recent, window_start(policy, now)),
        "trips": trips_in(trail, state.phase, since, now),
    }


def window_start(policy: Policy, now: float) -> float | None:
    """From when on a rolling window counts; None where time alone forgets nothing."""
    rolling = [meter for meter in policy.meters[:1] if meter.family == "window" and not meter.turns]
    return now - rolling[0].span if rolling else None


def _found(breaker: Breaker, circuit: str) -> tuple[Policy, CircuitRow | None]:
    """A policy serves any key, but only what something has happened to is a circuit."""
    row = breaker.store.circuit(identifier(circuit))
    if row is not None and row.kind == "constraint":
        return policy_of(breaker, circuit), row
    policy = breaker.rules.policy(circuit)
    named = "{" not in policy.id or circuit in breaker.rules.constraints
    if row is None and not named and not breaker.store.audit_of(identifier(circuit)):
        raise NotFound(f"Circuit not found: {circuit}")
    return policy, row


def _unwritten(row: CircuitRow | None, policy: Policy, now: float) -> list[AuditRow]:
    """What time has done to the circuit since somebody last wrote it."""
    if row is None:
        return []
    outcome = StepResult()
    try:
        circuits.advance(policy, read_state(policy, row.state), now, outcome)
    except ValueError:  # damaged: its log says what there is to say
        return []
    return [AuditRow(row.id, one.at, one.source, one.target, one.cause, one.reason, "") for one in outcome.transitions]


def _about(breaker: Breaker, circuit: str) -> dict[str, Any] | None:
    constraint = breaker.rules.constraints.get(circuit)
    if constraint is None:
        return None
    return {"title": constraint.title, "severity": constraint.severity, "file": constraint.file}


def _settings(breaker: Breaker, circuit: str) -> list[dict[str, Any]]:
    try:
        found = settings_of(breaker, circuit)
    except NotFound:
        return []
    return [{"key": key, "value": value, "source": source} for key, value, source in found]


def _meter(meter: meters.Meter, state: CircuitState, now: float, dollars: tuple[float, float] | None) -> dict[str, Any]:
    level = meters.level(meter, state.meters.get(meter.name, []), now)
    return {
        "name": meter.name,
        "counts": meter.on,
        "level": level,
        "trip": meter.trip,
        "trip_by": meter.trip_by,
        "warn": meter.warn,
        "window": within(meter),
        "refuses": meter.limits,
        "measure": measure(meter, level, dollars),
        "full": round(fullness(meter, level, dollars), 4),
    }


def _cooldown(policy: Policy, state: CircuitState, now: float) -> dict[str, Any]:
    until = state.until if state.phase == "open" else None
    whole = None if until is None or state.opened_at is None else round(until - state.opened_at, 3)
    return {
        "schedule": policy.schedule,
        "steps": list(policy.cooldown),
        "in_a_row": state.in_a_row,
        "began": show_time(state.opened_at) if until is not None else None,
        "until": show_time(until),
        "seconds": whole,
        "left": None if until is None else seconds_until(until, now),
        "next_seconds": circuits.cooldown(policy, state.in_a_row + 1),
        "words": _in_words(policy),
    }


def _in_words(policy: Policy) -> str:
    steps = [show_duration(one) for one in policy.cooldown]
    if policy.schedule == "none":
        return "no cooldown: a person must act"
    if policy.schedule == "fixed":
        return f"{steps[0]} after every trip"
    if policy.schedule == "doubling":
        return f"{steps[0]}, doubled after each failed probe"
    return f"{', '.join(steps)} by trips in a row"
