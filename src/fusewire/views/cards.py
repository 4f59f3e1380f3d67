"""Describe one circuit as lists show it: status, how full it is, next steps, its session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from fusewire.breakers.session.names import session_of
from fusewire.breakers.session.spend_limits import LIMITS_ON_ALL, is_in_dollars, spending_session, spent_and_allowed
from fusewire.core.meters import within
from fusewire.engine.engine import next_steps
from fusewire.util.durations import number
from fusewire.util.errors import NotFound
from fusewire.util.json_types import Count, Kind, Phase, Seconds, State, Time, about
from fusewire.util.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Collection

    from fusewire.core.circuit import Policy
    from fusewire.core.meters import Meter
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status

Act = Literal["reset", "grant", "resolve"]


@dataclass(frozen=True)
class CircuitStatus:
    """A circuit as `status --json` has it."""

    id: str
    kind: Kind
    state: State
    phase: Phase
    rule: str
    level: float
    threshold: float
    opened_at: Time | None
    retry_after: Seconds | None
    reason: str | None
    evidence: str | None
    trips: Count
    total: Count
    last_trip: Time | None
    last_reset: Time | None
    override_until: Time | None
    session_ended: Annotated[Time | None, about("when the session ended that it belongs to: then it is history")]


@dataclass(frozen=True)
class CircuitCard(CircuitStatus):
    """A circuit in a list."""

    title: str
    window: Annotated[str, about("what counts, in words; empty where time forgets nothing")]
    measure: Annotated[str, about("how full it is, in words")]
    full: Annotated[float, about("from 0 to 1")]
    near: Annotated[bool, about("the next one may open it")]
    next: Annotated[list[str], about("what to do now")]
    acts: Annotated[list[Act], about("what a person may do here")]
    session: Annotated[str | None, about("the session whose circuit it is")]


def circuit_card(breaker: Breaker, status: Status, sessions: Collection[str]) -> CircuitCard:
    policy = policy_of(breaker, status.id)
    session = spending_session(breaker.store, status.id) or session_of(status.id, sessions)
    constraint = breaker.rules.constraints.get(status.id)
    meter = _decisive(policy, status.threshold)
    dollars = spent_and_allowed(status)
    return CircuitCard(
        **status.to_json(),
        title=constraint.title if constraint is not None else "",
        window=within(meter) if meter else "",
        measure=measure(meter, status.level, dollars) if meter else "",
        full=round(fullness(meter, status.level, dollars), 4) if meter else 0.0,
        near=status.near,
        next=_next(policy, status, session) if status.phase != "closed" and not status.session_ended else [],
        acts=acts_on(policy, status),
        session=session,
    )


def policy_of(breaker: Breaker, circuit: str) -> Policy:
    """The policy of a circuit, also of a constraint's whose file is gone."""
    try:
        return breaker.rules.policy(circuit)
    except NotFound:
        return breaker.rules.constraint_policy(circuit)


def acts_on(policy: Policy, status: Status) -> list[Act]:
    """What a person may do about a circuit with a reason and nothing else; the rest has commands of its own."""
    if status.phase != "open" or status.session_ended is not None:
        return []
    if status.kind == "phase":
        return ["resolve"]
    acts: list[Act] = ["reset"] if policy.reset in ("close", "probe") else []
    return [*acts, "grant"] if is_in_dollars(status.id) else acts


def _next(policy: Policy, status: Status, session: str | None) -> list[str]:
    steps = next_steps(policy, status.id, status.phase)
    if "grant" not in acts_on(policy, status):
        return list(steps)
    whom = f"--session {quoted(session)}" if session else LIMITS_ON_ALL[status.id][1]
    return [*steps, f'a person can run: fusewire grant 5 {whom} --reason "..."']


# -- how full a meter is ----------------------------------------------------------------------------------


def _decisive(policy: Policy, threshold: float) -> Meter | None:
    """The meter that a status is about: the one with its threshold."""
    found = [meter for meter in policy.meters if meter.trip == threshold]
    return next(iter([*found, *policy.meters]), None)


def measure(meter: Meter, level: float, dollars: tuple[float, float] | None = None) -> str:
    """`5 of 5 within 30d`, `40% of 70%`, `$2.80 of $5.00`, `6, not below 0`. `dollars` are spent and allowed."""
    if meter.trip_by == "below":
        return f"{number(level)}, not below {number(meter.trip)}"
    if dollars is not None:
        return f"${dollars[0]:.2f} of ${dollars[1]:.2f}" if dollars[1] else f"${dollars[0]:.2f}, no limit"
    if meter.family in ("share", "trend"):
        return f"{level:.0%} of {meter.trip:.0%}"
    return f"{number(level)} of {number(meter.trip)}{within(meter)}"


def fullness(meter: Meter, level: float, dollars: tuple[float, float] | None = None) -> float:
    """From 0 to 1; of what must not fall, all or nothing."""
    if meter.trip_by == "below":
        return float(level < meter.trip)
    level, trip = (level, meter.trip) if dollars is None else dollars
    return min(1.0, max(0.0, level / trip)) if trip > 0 else 0.0
