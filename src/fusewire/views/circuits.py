"""Describe one circuit in full: state, settings and their sources, meters, cooldown, history, trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fusewire.breakers.session.names import session_ids
from fusewire.breakers.session.spend_limits import spent_and_allowed
from fusewire.core import circuit as circuits
from fusewire.core import meters
from fusewire.core.circuit import StepResult
from fusewire.core.events import identifier
from fusewire.core.meters import within
from fusewire.engine.engine import read_state
from fusewire.engine.parts import above
from fusewire.engine.status import status_of
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import seconds_until, show_time
from fusewire.util.errors import NotFound
from fusewire.util.json_types import Count, Seconds, Time, about
from fusewire.views.cards import CircuitCard, circuit_card, fullness, measure, policy_of
from fusewire.views.moves import History, history_of
from fusewire.views.settings import SettingInForce, cooldown_words, settings_of
from fusewire.views.trips import PastTrip, trips_in

if TYPE_CHECKING:
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import CircuitRow

_DAY = 86400


@dataclass(frozen=True)
class ConstraintTitle:
    """What a constraint's circuit is about."""

    title: str
    severity: str
    file: str


@dataclass(frozen=True)
class MeterView:
    """One meter of a circuit, and how full it is."""

    name: str
    counts: str
    level: float
    trip: float
    trip_by: str
    warn: float | None
    window: str
    measure: str
    full: float
    refuses: bool


@dataclass(frozen=True)
class CooldownView:
    """How a circuit cools down, and how far it has come; None where nothing cools down."""

    schedule: str
    steps: list[Seconds]
    in_a_row: Count
    began: Time | None
    until: Time | None
    #: in all, and left of it
    seconds: Seconds | None
    left: Seconds | None
    #: what the next trip in a row would wait
    next_seconds: Seconds | None
    words: str


@dataclass(frozen=True)
class CircuitView(CircuitCard):
    """Everything of one circuit."""

    trips: Annotated[list[PastTrip], about("newest first")]  # type: ignore[assignment]  # not their number
    about: ConstraintTitle | None
    days: float
    #: none where the constraint's file is gone
    settings: list[SettingInForce]
    meters: list[MeterView]
    cooldown: CooldownView
    history: History


def circuit_view(breaker: Breaker, circuit: str, days: float = 30) -> CircuitView:
    """Everything of one circuit; NotFound if there is none. Nothing is written."""
    policy, row = _found(breaker, circuit)
    now = breaker.engine.clock()
    state = breaker.engine.state_in(row, circuit, policy)
    trail = [*breaker.store.audit_of(identifier(circuit)), *_unwritten(row, policy, now)]
    since = now - days * _DAY
    log = breaker.store.log_of(identifier(circuit), since)
    recent = [move for move in trail if move.at >= since]
    (status,) = above().present(breaker, [status_of(circuit, policy, state, now)])
    card = circuit_card(breaker, status, session_ids(breaker.store))
    return CircuitView(
        **{
            **vars(card),
            "trips": trips_in(trail, state.phase, since, now),
            "about": _about(breaker, circuit),
            "days": days,
            "settings": _settings(breaker, circuit),
            "meters": [_meter(meter, state, now, spent_and_allowed(status)) for meter in policy.meters],
            "cooldown": _cooldown(policy, state, now),
            "history": history_of(log, recent, window_start(policy, now)),
        }
    )


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


def _about(breaker: Breaker, circuit: str) -> ConstraintTitle | None:
    constraint = breaker.rules.constraints.get(circuit)
    return None if constraint is None else ConstraintTitle(constraint.title, constraint.severity, constraint.file)


def _settings(breaker: Breaker, circuit: str) -> list[SettingInForce]:
    try:
        return settings_of(breaker, circuit)
    except NotFound:
        return []


def _meter(meter: meters.Meter, state: CircuitState, now: float, dollars: tuple[float, float] | None) -> MeterView:
    level = meters.level(meter, state.meters.get(meter.name, []), now)
    return MeterView(
        name=meter.name,
        counts=meter.on,
        level=level,
        trip=meter.trip,
        trip_by=meter.trip_by,
        warn=meter.warn,
        window=within(meter),
        measure=measure(meter, level, dollars),
        full=round(fullness(meter, level, dollars), 4),
        refuses=meter.limits,
    )


def _cooldown(policy: Policy, state: CircuitState, now: float) -> CooldownView:
    until = state.until if state.phase == "open" else None
    began = state.opened_at if until is not None else None
    if until is not None and policy.cools_from == "refusal":
        began = until - (circuits.cooldown(policy, state.in_a_row) or 0)
    return CooldownView(
        schedule=policy.schedule,
        steps=list(policy.cooldown),
        in_a_row=state.in_a_row,
        began=show_time(began),
        until=show_time(until),
        seconds=None if until is None or began is None else round(until - began, 3),
        left=None if until is None else seconds_until(until, now),
        next_seconds=circuits.cooldown(policy, state.in_a_row + 1),
        words=cooldown_words(policy),
    )
