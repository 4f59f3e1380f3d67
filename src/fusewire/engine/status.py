"""Describe one circuit at one moment, as people and programs read it."""

from __future__ import annotations

from fusewire.config.rules import rule_id
from fusewire.core import circuit as circuits
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import Noun
from fusewire.util.durations import seconds_until, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.core.circuit import CircuitState, Policy


class Status(Noun):
    """One circuit at one moment."""

    id: str
    kind: str
    rule: str
    phase: str
    level: float
    threshold: float
    #: the next one may open it
    near: bool
    opened_at: float | None
    retry_after: float | None
    reason: str
    evidence: str
    trips: int
    total: int
    last_trip: float | None
    last_reset: float | None
    override_until: float | None
    override_reason: str
    #: when the session ended that it belongs to: then it is history
    session_ended: float | None = None

    @property
    def state(self) -> str:
        return PUBLIC_STATE[self.phase]

    def to_json(self) -> dict[str, Any]:
        """The fields that other programs rely on (docs/json.md)."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "phase": self.phase,
            "rule": self.rule,
            "level": self.level,
            "threshold": self.threshold,
            "opened_at": show_time(self.opened_at),
            "retry_after": self.retry_after,
            "reason": self.reason or None,
            "evidence": self.evidence or None,
            "trips": self.trips,
            "total": self.total,
            "last_trip": show_time(self.last_trip),
            "last_reset": show_time(self.last_reset),
            "override_until": show_time(self.override_until),
            "session_ended": show_time(self.session_ended),
        }


def status_of(circuit: str, policy: Policy, state: CircuitState, now: float) -> Status:
    """The status of a circuit whose state has been brought to `now` (see `circuit.view`)."""
    closest = circuits.nearest(policy, state, now)
    wait_until = circuits.cooled_at(policy, state, now) if state.phase == "open" else None
    if state.phase == "probe" and state.lease_until is not None and now < state.lease_until:
        wait_until = circuits.probe_free_at(policy, state)
    return Status(
        id=circuit,
        kind=policy.kind,
        rule=rule_id(policy, circuit),
        phase=state.phase,
        level=closest[1] if closest else 0,
        threshold=closest[0].trip if closest else 0,
        near=circuits.near(policy, state, now),
        opened_at=state.opened_at,
        retry_after=None if wait_until is None else seconds_until(wait_until, now),
        reason=state.reason,
        evidence=state.evidence,
        trips=state.trips,
        total=state.total,
        last_trip=state.last_trip,
        last_reset=state.last_reset,
        override_until=state.override_until if circuits.overridden(state, now) else None,
        override_reason=state.override_reason if circuits.overridden(state, now) else "",
    )
