"""The phases as they are now, for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.phase.circuits import face_of, threshold
from fusewire.breakers.phase.detect import PHASES, SHOWN, circuit_of
from fusewire.breakers.phase.report import OpenCircuit
from fusewire.breakers.phase.schema import history_entry, marks_in_order, whole_seconds

if TYPE_CHECKING:
    from fusewire.breakers.phase.state import PhaseRecord
    from fusewire.engine.engine import Engine

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
        record.errors.get(phase, {}).get("text", ""),
    )


def view_of(record: PhaseRecord, engine: Engine) -> dict[str, Any]:
    """Everything about all four phases; a circuit that the store has goes before what the record says of it."""
    now = engine.clock()
    stored = {row.id for row in engine.store.circuits()}
    for phase in PHASES:
        if circuit_of(phase) in stored:
            face = face_of(*engine.view(circuit_of(phase)), now)
            record.faces = {**record.faces, phase: vars(face)}
    shown = record.shown_phase()
    return {
        "phase": shown or None,
        "state": record.face(shown).state,
        "name": record.name,
        "aborted": record.aborted,
        "phases": [_row(record, engine, phase) for phase in PHASES],
        "known_failures": [{**known, "at": whole_seconds(known["at"])} for known in record.known],
        "guidance": record.guidance.get("text", ""),
        "history": [history_entry(entry) for entry in record.history[-_HISTORY:]],
    }


def _row(record: PhaseRecord, engine: Engine, phase: str) -> dict[str, Any]:
    policy, face = engine.rules.policy(circuit_of(phase)), record.face(phase)
    error = record.errors.get(phase, {})
    return {
        "phase": phase,
        "state": face.state,
        "no_progress_count": face.no_progress,
        "no_progress_threshold": threshold(policy, "no_progress"),
        "same_error_count": face.same_error,
        "same_error_threshold": threshold(policy, "same_error"),
        "iterations": record.iterations.get(phase, 0),
        "last_progress_metric": marks_in_order(phase, record.marks[phase]),
        "last_metrics": record.metrics.get(phase, {}),
        "last_error": error.get("text") or None,
        "last_error_hash": error.get("hash") or None,
        "opened_at": whole_seconds(face.opened_at),
        "reason": face.reason,
        "skipped": phase in record.skipped,
    }
