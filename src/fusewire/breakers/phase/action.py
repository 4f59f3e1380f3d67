"""One action on the phases, inside one transaction: the record, the circuits, and what is said about them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from fusewire.breakers.phase.detect import PHASES

if TYPE_CHECKING:
    from typing import Any

    from fusewire.breakers.phase.circuits import Circuits
    from fusewire.breakers.phase.state import PhaseRecord
    from fusewire.core.events import SignalKind

CLOSING = "Progress detected, circuit closing"
RESET = "Circuit reset by user"


class Action:
    """Whoever sends a circuit a signal through here has its move in the history and in the log."""

    def __init__(self, record: PhaseRecord, circuits: Circuits) -> None:
        self.record, self.circuits, self.now = record, circuits, circuits.now
        #: the log lines of this action's moves
        self.log: list[str] = []

    def send(self, phase: str, kind: SignalKind, name: str, **fields: Any) -> tuple[str, str]:
        """Send a signal; the states before and after it."""
        self.circuits.send(phase, kind, name, **fields)
        return self.follow(phase)

    def follow(self, phase: str, reason: str = "") -> tuple[str, str]:
        """Notice where a circuit is now, by whosever doing; the states before and after."""
        before, face = self.record.face(phase).state, self.circuits.face(phase)
        self.record.faces = {**self.record.faces, phase: asdict(face)}
        if face.state != before:
            usual = RESET if before == "OPEN" else CLOSING if face.state == "CLOSED" else face.reason
            self.record.add(self.now, "state_change", phase, before, face.state, reason or usual)
        return before, face.state

    def follow_all(self) -> None:
        for phase in PHASES:
            self.follow(phase)

    def reset(self, phase: str, reason: str, actor: str) -> None:
        self.circuits.reset(phase, reason, actor)
        self.follow(phase, reason)

    def restart_all(self, reason: str, actor: str) -> None:
        for phase in PHASES:
            self.circuits.restart(phase, reason, actor)
            self.follow(phase, reason)
