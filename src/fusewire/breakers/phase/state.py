"""The phase breaker's memory between actions: bounded, and written in the same transaction as its circuits.

What is shown as it is stored (an error, accepted failures, an event of the history) is a TypedDict.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypedDict

from fusewire.breakers.phase.detect import PHASES, first_marks
from fusewire.core.events import TEXT_LIMIT, plain
from fusewire.stores.records import require_types

if TYPE_CHECKING:
    from fusewire.breakers.phase.detect import Values
    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

_NAME = "phases"

#: Entries of the history, names of failing tests, skipped phases, contents of the state file that are known as ours.
HISTORY = 200
NAMES = 100
_KNOWN = 10
_WRITTEN = 100


@dataclass(frozen=True)
class Face:
    """One phase's circuit as people see it."""

    state: str = "CLOSED"
    no_progress: int = 0
    same_error: int = 0
    opened_at: float | None = None
    reason: str = ""


class PhaseError(TypedDict):
    """The last error of a phase."""

    hash: str
    text: str


class KnownFailures(TypedDict):
    """Failing tests that a person has accepted by skipping a phase."""

    phase: str
    count: int
    tests: list[str]
    at: float


class Guidance(TypedDict, total=False):
    """What a person has told the agent."""

    text: str
    #: the phase for which it was given, and the phases that got it
    phase: str
    given: list[str]


PhaseEvent = TypedDict("PhaseEvent", {"at": float, "event": str, "from": str, "to": str, "reason": str, "phase": str})


@dataclass
class PhaseRecord:
    """The memory of one start; every list in it is bounded."""

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
    metrics: dict[str, Values] = field(default_factory=dict)
    #: the last error of each phase
    errors: dict[str, PhaseError] = field(default_factory=dict)
    #: names of the tests that failed in the last test run of each phase
    failing: dict[str, list[str]] = field(default_factory=dict)
    #: phases that were complete and have made no progress since; and those that a person has skipped
    finished: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    known: list[KnownFailures] = field(default_factory=list)
    guidance: Guidance = field(default_factory=Guidance)
    #: why nothing may begin before a new start; empty if it may
    aborted: str = ""
    #: the circuits as they were at the end of the last action
    faces: dict[str, Face] = field(default_factory=dict)
    history: list[PhaseEvent] = field(default_factory=list)
    #: digests of the newest contents of the state file
    written: list[str] = field(default_factory=list)

    @classmethod
    def recalled(cls, store: Store | Transaction) -> PhaseRecord | None:
        """What is stored; None if nothing is, or nothing that can be read."""
        try:
            data = store.recall(_NAME)
            return None if data is None else cls.from_data(data)
        except (ValueError, TypeError, AttributeError):
            return None

    @classmethod
    def from_data(cls, data: JsonObject) -> PhaseRecord:
        faces = {phase: Face(**face) for phase, face in data.get("faces", {}).items()}
        errors: dict[str, PhaseError] = {
            phase: {"hash": error.get("hash"), "text": error.get("text", "")}
            for phase, error in data.get("errors", {}).items()
        }
        record = cls(**{**data, "faces": faces, "errors": errors})
        require_types(record, cls())
        if record.phase not in ("", *PHASES) or set(record.marks) != set(PHASES):
            raise ValueError("not a memory of phases")
        return record

    def to_data(self) -> JsonObject:
        return {**vars(self), "faces": {phase: asdict(face) for phase, face in self.faces.items()}}

    def remember(self, transaction: Transaction, now: float) -> None:
        self.known = self.known[-_KNOWN:]
        self.written = self.written[-_WRITTEN:]
        transaction.remember(_NAME, self.to_data(), now)

    def face(self, phase: str) -> Face:
        return self.faces.get(phase, Face())

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
        entry: PhaseEvent = {"at": at, "event": event, "from": source, "to": target, "reason": reason, "phase": phase}
        self.history = [*self.history, entry][-HISTORY:]
