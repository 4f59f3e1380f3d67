"""Tell what stops the work at a test or at a slice, in the order of the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.attempt.state import SliceRecord
from fusewire.core.events import Signal, identifier

if TYPE_CHECKING:
    from fusewire.core.decision import Decision
    from fusewire.engine.engine import Engine
    from fusewire.stores import Store


def circuit_of(slice_id: str, test: str | None = None) -> str:
    return identifier(f"attempt/{slice_id}/{test}" if test else f"attempt/{slice_id}")


def record_of(store: Store, slice_id: str) -> SliceRecord:
    """What is remembered of a slice; an empty record if that is damaged."""
    try:
        return SliceRecord.recalled(store, slice_id)
    except ValueError:
        return SliceRecord()


def stops_of(engine: Engine, record: SliceRecord, slice_id: str, test: str | None = None) -> list[Decision]:
    """The refusals, strictest first."""
    circuits = ([circuit_of(slice_id, test)] if test else []) + [circuit_of(slice_id)]
    asked = [engine.foresee(Signal("ask", circuit, "action")) for circuit in circuits]
    stops = [decision for decision in asked if not decision.allowed]
    if record.arch_stop:
        architecture = next((stop for stop in stops if stop.circuit == circuits[-1]), None)
        if architecture is not None:
            reason = f"ARCH-STOP (deviation rule 4): {record.arch_stop['reason']}"
            steps = ("report to the orchestrator; no further attempt",)
            stops.remove(architecture)
            stops.insert(0, architecture.replace(rule="attempt.arch_stop", reason=reason, evidence=(), next=steps))
    return stops
