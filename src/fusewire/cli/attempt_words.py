"""Print what `fusewire attempt` says: the result of an attempt, a refusal, a rollback and its undo command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.cli.common import print_json, tell_stops
from fusewire.cli.streams import tell, warn
from fusewire.worktree.discover import shortened

if TYPE_CHECKING:
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.breakers.attempt.types import AttemptResult, TrackingState
    from fusewire.util.fast_json import JsonObject
    from fusewire.worktree.checkpoint import Checkpoint
    from fusewire.worktree.rollback import RolledBack

#: Files that a message names.
_NAMED = 10


def counts(attempts: Attempts, state: TrackingState) -> str:
    test, whole = attempts.limits(state["slice_id"])
    return (
        f"{state['attempt_count']} of {test} failed attempts for the test,"
        f" {state['total_failed_attempts']} of {whole} for the slice"
    )


def say_recorded(attempts: Attempts, recorded: AttemptResult, about: JsonObject, as_json: bool) -> int:
    state = recorded.state
    if as_json:
        print_json(
            {
                **about,
                "counted": recorded.counted,
                "state": state,
                "stops": [stop.to_json() for stop in recorded.stops],
                "repeats": recorded.repeats or None,
                "scope_violations": list(recorded.violations),
                "warnings": [text for text in (recorded.near, recorded.problem) if text],
            }
        )
        return 3 if recorded.stops else 0
    kind = f" ({about['kind']}, no attempt)" if about["result"] == "infra" else ""
    if about["result"] == "fail" and not recorded.counted:
        kind = f" (no attempt: no file was changed {recorded.same_as})"
    reason = f": {about['reason']}" if about["reason"] else ""
    name = f"{state['slice_id']} {state['test_name']}"
    tell(f"{name}: {about['result'].upper()}{kind}{reason}; {counts(attempts, state)}")
    if about.get("output"):
        tell(f"The output: {os.path.relpath(os.path.join(attempts.root, about['output']))}", err=True)
    warnings = [f"this strategy repeats one: {recorded.repeats}"] if recorded.repeats else []
    warnings += [
        f"{one['file']} is outside the scope of {state['slice_id']}; justification: {one['justification']}"
        for one in recorded.violations
    ]
    warnings += [text for text in (recorded.near, recorded.problem) if text]
    warn(*warnings)
    tell_stops(recorded.stops, attempts.engine.clock())
    return 3 if recorded.stops else 0


def restored_json(restored: RolledBack | None) -> dict[str, object] | None:
    if restored is None:
        return None
    return {
        "saved": restored.saved.ref,
        "way_back": _way_back(restored),
        "written": list(restored.written),
        "removed": list(restored.removed),
        "left": list(restored.left),
        "notes": list(restored.notes),
    }


def say_restored(restored: RolledBack) -> None:
    for verb, paths in (("Brought back", restored.written), ("Taken away", restored.removed)):
        if paths:
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            tell(f"{verb}: {', '.join(map(shortened, paths[:_NAMED]))}{more}", err=True)
    saved = f"What was there is saved; the way back: {_way_back(restored)}"
    tell(*restored.left, *restored.notes, saved, err=True)


def _way_back(restored: RolledBack) -> str:
    return f"fusewire attempt restore {restored.saved.ref}"


def say_left_out(checkpoint: Checkpoint) -> None:
    if checkpoint.left_out:
        names = ", ".join(map(shortened, checkpoint.left_out[:_NAMED]))
        tell(f"Not kept, and never touched by a rollback: {names}", err=True)


def say_alike(alike: str, test: str) -> None:
    """Two names for one test would have two counters."""
    if alike:
        warn(f"{alike} and {test} may be the same test; each name has a counter of its own")
