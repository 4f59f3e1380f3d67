"""A person's decisions about the phases: one of the seed's four choices, a new start, or the state of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.breakers.phase.action import RESET
from fusewire.breakers.phase.end import START
from fusewire.breakers.phase.schema import record_of, whole_seconds
from fusewire.breakers.phase.state import PhaseRecord
from fusewire.core.events import plain
from fusewire.util.errors import InvalidTransition

if TYPE_CHECKING:
    from fusewire.breakers.phase.action import Action
    from fusewire.breakers.phase.schema import Taken

_NAME = 200


@dataclass
class PhaseResolution:
    """What a person's choice did."""

    choice: str
    phase: str
    log: list[str]
    known: int = 0


def resolve(action: Action, choice: str, actor: str, guidance: str, meant: str = "") -> PhaseResolution:
    """Reset, skip or modify an open circuit, which must be the one that is `meant`; or abort, whatever the state."""
    record, halted = action.record, action.record.open_phase()
    if record.aborted:
        raise InvalidTransition(f"{record.aborted}; {START}")
    if choice == "abort":
        return _abort(action, actor)
    if not halted:
        state = record.face(record.phase).state
        raise InvalidTransition(f"Invalid transition from {state}: no phase is open; nothing to resolve")
    if meant not in ("", halted):
        raise InvalidTransition(f"Invalid transition: {meant} is not open any more, and {halted} is")
    count = 0
    if choice == "skip":
        count = _skip(action, halted)
    elif choice == "modify":
        record.guidance = {"text": plain(guidance), "phase": halted, "given": []}
    action.reset(halted, RESET, actor)
    return PhaseResolution(choice, halted, [RESET], count)


def _abort(action: Action, actor: str) -> PhaseResolution:
    record, phase = action.record, action.record.shown_phase()
    state, said = record.face(phase).state, "Execution aborted by user"
    record.aborted = f"execution was aborted by {actor} at {whole_seconds(action.now)}"
    record.add(action.now, "state_change", phase, state, state, said)
    return PhaseResolution("abort", phase, [said])


def _skip(action: Action, phase: str) -> int:
    """Mark a phase complete; what fails in it is known from now on. In RED tests are meant to fail."""
    record = action.record
    record.skipped = [*record.skipped, phase]
    if phase == "RED":
        return 0
    names = record.failing.get(phase, [])
    failing = record.metrics.get(phase, record.marks[phase]).get("tests_failing", 0)
    count = max(int(failing), len(names))
    if count:
        record.known = [*record.known, {"phase": phase, "count": count, "tests": names, "at": action.now}]
    return count


def start(action: Action, actor: str, name: str) -> None:
    """Closed circuits, counters at 0, and a memory that is fresh."""
    old, action.record = action.record, PhaseRecord(name=plain(name, _NAME), since=action.now)
    action.record.faces, action.record.written = old.faces, old.written
    action.restart_all("New start by user", actor)


def take(action: Action, taken: Taken, source: str, actor: str) -> None:
    """The state of a file instead of ours; what a person has said to the agent stays."""
    action.restart_all(source, actor)
    old, record = action.record, record_of(taken, action.now)
    record.known, record.guidance, record.name = old.known, old.guidance, old.name
    record.faces, record.written = old.faces, old.written
    action.record = record
    if not taken.is_blank:
        action.put(taken.phase, taken.face, taken.error_hash, source, actor)
        action.follow(taken.phase, source)
