"""The four circuits inside one transaction: sent signals, looked at, or put as a file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.phase.detect import PHASES, circuit_of
from fusewire.breakers.phase.state import Face
from fusewire.core.circuit import fresh
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import TEXT_LIMIT, Signal, plain
from fusewire.core.meters import level
from fusewire.stores.rows import AuditRow

if TYPE_CHECKING:
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.core.decision import Decision
    from fusewire.core.events import SignalKind
    from fusewire.engine.engine import BreakerTransaction

_PHASE_OF = {"CLOSED": "closed", "HALF_OPEN": "watch", "OPEN": "open"}


class Circuits:
    """The circuits of the phases at one moment, under the write lock."""

    def __init__(self, work: BreakerTransaction) -> None:
        self.work, self.transaction, self.now = work, work.transaction, work.now

    def send(self, phase: str, kind: SignalKind, name: str, **fields: Any) -> Decision:
        return self.work.send(Signal(kind, circuit_of(phase), name, **fields))

    def face(self, phase: str) -> Face:
        circuit = circuit_of(phase)
        return face_of(self.work.engine.rules.policy(circuit), self.work.state(circuit), self.now)

    def reset(self, phase: str, reason: str, actor: str) -> None:
        """A person closes a circuit that is open."""
        self.send(phase, "reset", "reset", text=reason, session=actor)

    def restart(self, phase: str, reason: str, actor: str) -> None:
        """Closed and with counters at 0, whatever it was."""
        self.send(phase, "restart", "restart", text=reason, session=actor)

    def note(self, phase: str, cause: str, reason: str, actor: str) -> None:
        """What a person did, beside the moves."""
        circuit = circuit_of(phase) if phase else "phase"
        self.transaction.audit(AuditRow(circuit, self.now, "closed", "closed", cause, plain(reason, TEXT_LIMIT), actor))

    def stored(self) -> bool:
        """Whether the store knows any of them."""
        return any(self.knows(phase) for phase in PHASES)

    def knows(self, phase: str) -> bool:
        try:
            return self.transaction.load(circuit_of(phase)) is not None
        except ValueError:  # damaged, but it was there
            return True

    def put(self, phase: str, face: Face, error_hash: str, source: str, actor: str) -> None:
        """The circuit as somebody else's file says that it is."""
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
    """The mark of an error in a meter: the hash with the house's tag."""
    return f"sha256:{error_hash}" if error_hash else None
