"""What the phase breaker remembers between actions: bounded, and written in the same transaction as its circuits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.breakers.phase.detect import PHASES, first_marks
from fusewire.core.events import TEXT_LIMIT, plain
from fusewire.stores.records import require_types

if TYPE_CHECKING:
    from fusewire.stores import Store, Transaction

_NAME = "phases"

#: Entries of the history, names of failing tests, skipped phases, contents of the state file that are known as ours.
HISTORY = 200
NAMES = 100
_KNOWN = 10
_WRITTEN = 100


@dataclass
class Face:
    """One phase's circuit as people see it."""

    state: str = "CLOSED"
    no_progress: int = 0
    same_error: int = 0
    opened_at: float | None = None
    reason: str = ""


@dataclass
class PhaseRecord:
    """The memory of one start; every list in it has an end."""

    #: what a person called this start, and when it was
    name: str = ""
    since: float = 0.0
    #: the phase that was worked on last
    phase: str = ""
    #: how often each phase has ended
    iterations: dict[str, int] = field(default_factory=dict)
    #: the best values so far, and what they were before the last end
    marks: dict[str, dict[str, float]] = field(default_factory=lambda: {phase: first_marks(phase) for phase in PHASES})
    before: dict[str, dict[str, float]] = field(default_factory=dict)
    #: as given with the last end of each phase
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: the last error of each phase: its hash and its text
    errors: dict[str, dict[str, str]] = field(default_factory=dict)
    #: names of the tests that failed in the last test run of each phase
    failing: dict[str, list[str]] = field(default_factory=dict)
    #: phases that were complete and have made no progress since; and those that a person has skipped
    finished: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    #: what a person has accepted by skipping: phase, count, names, time
    known: list[dict[str, Any]] = field(default_factory=list)
    #: a person's guidance: its text, for which phase it was given, and the phases that were told
    guidance: dict[str, Any] = field(default_factory=dict)
    #: why nothing may begin before a new start; empty if it may
    aborted: str = ""
    #: the circuits as they were at the end of the last action
    faces: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    #: digests of the newest contents of the state file
    written: list[str] = field(default_factory=list)

    @classmethod
    def recalled(cls, store: Store | Transaction) -> PhaseRecord | None:
        """What is stored; None if nothing is, or nothing that can be read."""
        try:
            data = store.recall(_NAME)
            return None if data is None else cls.from_data(data)
        except (ValueError, TypeError):
            return None

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> PhaseRecord:
        record = cls(**data)
        require_types(record, cls())
        if record.phase not in ("", *PHASES) or set(record.marks) != set(PHASES):
            raise ValueError("not a memory of phases")
        for face in record.faces.values():
            Face(**face)
        return record

    def to_data(self) -> dict[str, Any]:
        return dict(vars(self))

    def remember(self, transaction: Transaction, now: float) -> None:
        self.known = self.known[-_KNOWN:]
        self.written = self.written[-_WRITTEN:]
        transaction.remember(_NAME, self.to_data(), now)

    def face(self, phase: str) -> Face:
        return Face(**self.faces.get(phase, {}))

    def open_phase(self) -> str:
        """The phase whose circuit is open, the one worked on last before others; empty if none is."""
        is_open = [phase for phase in PHASES if self.face(phase).state == "OPEN"]
        return self.phase if self.phase in is_open else next(iter(is_open), "")

    def shown_phase(self) -> str:
        """The phase that a state without a name is about."""
        return self.open_phase() or self.phase

    def add(self, at: float, event: str, phase: str, source: str, target: str, reason: str) -> None:
        """One more entry of the history."""
        reason = plain(reason, TEXT_LIMIT)
        entry = {"at": at, "event": event, "from": source, "to": target, "reason": reason, "phase": phase}
        self.history = [*self.history, entry][-HISTORY:]
