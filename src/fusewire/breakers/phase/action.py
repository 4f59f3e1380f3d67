"""One action on the phases, inside one transaction: the record, the four circuits, and the log of their moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.phase.detect import PHASES, circuit_of
from fusewire.breakers.phase.state import Face, PhaseRecord
from fusewire.core.circuit import fresh
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import TEXT_LIMIT, Signal, plain
from fusewire.core.meters import level
from fusewire.stores.rows import AuditRow

if TYPE_CHECKING:
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.core.events import SignalKind
    from fusewire.engine.engine import BreakerTransaction

CLOSING = "Progress detected, circuit closing"
RESET = "Circuit reset by user"

_PHASE_OF = {"CLOSED": "closed", "HALF_OPEN": "watch", "OPEN": "open"}


class Action:
    """One action on the phases: every signal is followed, so that its moves are in the history and in the log."""

    def __init__(self, record: PhaseRecord, work: BreakerTransaction) -> None:
        self.record, self.work, self.transaction, self.now = record, work, work.transaction, work.now
        #: the log lines of this action's moves
        self.log: list[str] = []

    def send(self, phase: str, kind: SignalKind, name: str, **fields: Any) -> tuple[str, str]:
        """Send a signal; the states before and after it."""
        self.work.send(Signal(kind, circuit_of(phase), name, **fields))
        return self.follow(phase)

    def follow(self, phase: str, reason: str = "") -> tuple[str, str]:
        """Notice where a circuit is now, whatever has moved it; the states before and after."""
        before, face = self.record.face(phase).state, self.face(phase)
        self.record.faces = {**self.record.faces, phase: face}
        if face.state != before:
            usual = RESET if before == "OPEN" else CLOSING if face.state == "CLOSED" else face.reason
            self.record.add(self.now, "state_change", phase, before, face.state, reason or usual)
        return before, face.state

    def follow_all(self) -> None:
        for phase in PHASES:
            self.follow(phase)

    def face(self, phase: str) -> Face:
        circuit = circuit_of(phase)
        return face_of(self.work.engine.rules.policy(circuit), self.work.state(circuit), self.now)

    def reset(self, phase: str, reason: str, actor: str) -> None:
        """A person closes a circuit that is open."""
        self.work.send(Signal("reset", circuit_of(phase), "reset", text=reason, session=actor))
        self.follow(phase, reason)

    def restart_all(self, reason: str, actor: str) -> None:
        """Closed and with counters at 0, whatever they were."""
        for phase in PHASES:
            self.work.send(Signal("restart", circuit_of(phase), "restart", text=reason, session=actor))
            self.follow(phase, reason)

    def note(self, phase: str, cause: str, reason: str, actor: str) -> None:
        """What a person did, beside the moves."""
        circuit = circuit_of(phase) if phase else "phase"
        self.transaction.audit(AuditRow(circuit, self.now, "closed", "closed", cause, plain(reason, TEXT_LIMIT), actor))

    def is_stored(self, phase: str) -> bool:
        """Whether the store knows the circuit of a phase."""
        try:
            return self.transaction.load(circuit_of(phase)) is not None
        except ValueError:  # damaged, but it was there
            return True

    def put(self, phase: str, face: Face, error_hash: str, source: str, actor: str) -> None:
        """Store the circuit as a file says that it is."""
        circuit, before = circuit_of(phase), _PHASE_OF[self.face(phase).state]
        state = fresh(self.now)
        state.phase = _PHASE_OF[face.state]
        if face.no_progress:
            state.meters = {**state.meters, "no_progress": [face.no_progress, None]}
        if face.same_error:
            state.meters = {**state.meters, "same_error": [face.same_error, tagged(error_hash)]}
        state.reason = face.reason
        if face.state == "OPEN":
            state.opened_at = state.last_trip = face.opened_at if face.opened_at is not None else self.now
            state.trips = state.in_a_row = 1
        self.transaction.save(circuit, "phase", state.phase, state.to_data(), self.now)
        row = AuditRow(circuit, self.now, before, state.phase, "imported", source, actor)
        self.transaction.audit(row, state.to_data())


def face_of(policy: Policy, state: CircuitState, now: float) -> Face:
    levels = {meter.name: int(level(meter, state.meters.get(meter.name, []), now)) for meter in policy.meters}
    is_open = state.phase == "open"
    return Face(
        PUBLIC_STATE[state.phase],
        levels["no_progress"],
        levels["same_error"],
        state.opened_at if is_open else None,
        state.reason if is_open or state.phase == "watch" else "",
    )


def threshold(policy: Policy, meter: str) -> int:
    return next(int(one.trip) for one in policy.meters if one.name == meter)


def tagged(error_hash: str) -> str | None:
    """The fingerprint of an error, as a meter keeps it."""
    return f"sha256:{error_hash}" if error_hash else None
