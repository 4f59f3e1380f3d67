"""The phases as they are now, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from fusewire.breakers.phase.action import face_of, threshold
from fusewire.breakers.phase.detect import PHASES, SHOWN, circuit_of
from fusewire.breakers.phase.report import OpenCircuit
from fusewire.breakers.phase.schema import history_entry, marks_in_order, whole_seconds

if TYPE_CHECKING:
    from fusewire.breakers.phase.detect import Values
    from fusewire.breakers.phase.state import PhaseRecord
    from fusewire.engine.engine import Engine
    from fusewire.util.fast_json import JsonObject

#: Entries of the history in a view.
_HISTORY = 20


def open_circuit(record: PhaseRecord, phase: str) -> OpenCircuit:
    """What a person must know about an open phase."""
    metric, given = SHOWN[phase], record.metrics.get(phase, {})
    total = None
    if phase == "GREEN":
        run = [given[name] for name in ("tests_passing", "tests_failing") if name in given]
        total = given.get("tests_total", sum(run) if len(run) == 2 else None)
    return OpenCircuit(
        phase,
        record.face(phase).reason,
        record.iterations.get(phase, 0),
        metric,
        given.get(metric, record.marks[phase].get(metric, 0)),
        total,
        record.before.get(phase, record.marks[phase]).get(metric, 0),
        record.errors[phase]["text"] if phase in record.errors else "",
    )


@dataclass(frozen=True)
class PhaseOverview:
    """One phase as `phase status --json` has it."""

    phase: str
    state: str
    no_progress_count: int
    no_progress_threshold: int
    same_error_count: int
    same_error_threshold: int
    iterations: int
    last_progress_metric: dict[str, float]
    last_metrics: Values
    last_error: str | None
    last_error_hash: str | None
    opened_at: str | None
    reason: str
    skipped: bool


class ShownFailures(TypedDict):
    """Accepted failures, with the time as people read it."""

    phase: str
    count: int
    tests: list[str]
    at: str | None


@dataclass(frozen=True)
class PhasesOverview:
    """Everything about all four phases."""

    #: the phase that is open, or was worked on last
    phase: str | None
    state: str
    name: str
    aborted: str
    phases: list[PhaseOverview]
    known_failures: list[ShownFailures]
    guidance: str
    #: the newest events, as the state file has them
    history: list[JsonObject]


def overview(record: PhaseRecord, engine: Engine) -> PhasesOverview:
    """Collect it; the state of a stored circuit takes precedence over the record."""
    now = engine.clock()
    stored = {row.id for row in engine.store.circuits()}
    for phase in PHASES:
        if circuit_of(phase) in stored:
            record.faces = {**record.faces, phase: face_of(*engine.view(circuit_of(phase)), now)}
    shown = record.shown_phase()
    return PhasesOverview(
        phase=shown or None,
        state=record.face(shown).state,
        name=record.name,
        aborted=record.aborted,
        phases=[_phase_overview(record, engine, phase) for phase in PHASES],
        known_failures=[{**known, "at": whole_seconds(known["at"])} for known in record.known],
        guidance=record.guidance.get("text", ""),
        history=[history_entry(entry) for entry in record.history[-_HISTORY:]],
    )


def _phase_overview(record: PhaseRecord, engine: Engine, phase: str) -> PhaseOverview:
    policy, face, error = engine.rules.policy(circuit_of(phase)), record.face(phase), record.errors.get(phase)
    return PhaseOverview(
        phase=phase,
        state=face.state,
        no_progress_count=face.no_progress,
        no_progress_threshold=threshold(policy, "no_progress"),
        same_error_count=face.same_error,
        same_error_threshold=threshold(policy, "same_error"),
        iterations=record.iterations.get(phase, 0),
        last_progress_metric=marks_in_order(phase, record.marks[phase]),
        last_metrics=record.metrics.get(phase, {}),
        last_error=error["text"] or None if error else None,
        last_error_hash=error["hash"] or None if error else None,
        opened_at=whole_seconds(face.opened_at),
        reason=face.reason,
        skipped=phase in record.skipped,
    )
