"""Whose file is it? A checkpoint is of the whole project, but several slices and people may work in it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.attempt.scope.boundary import BLOCKED, Boundary
from fusewire.breakers.attempt.scope.types import NoScope
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.breakers.attempt.scope.lock import ScopeLock
    from fusewire.breakers.attempt.state import SliceRecord
    from fusewire.worktree.checkpoint import Checkpoint


def boundary_of(lock: ScopeLock, slice_id: str) -> Boundary | None:
    """What a slice may change; None where nobody has said so. FusewireError if that cannot be read."""
    try:
        scope = lock.scope(slice_id)
    except NoScope:
        return None
    justified = tuple(record["file"] for record in lock.justifications(slice_id))
    return Boundary(slice_id, scope.entries, justified)


def owns(boundary: Boundary, path: str) -> bool:
    return boundary.answer(path)[0] != BLOCKED


def without_others(lock: ScopeLock, slice_id: str, files: list[str], others: Iterable[str]) -> list[str]:
    """The files without those that are another slice's, and not this one's, by their scopes."""
    try:
        mine = boundary_of(lock, slice_id)
    except FusewireError:
        mine = None
    theirs = []
    for other in others:
        try:
            theirs.append(boundary_of(lock, other))
        except FusewireError:
            continue  # what cannot be read takes no file away from anybody
    return [
        path
        for path in files
        if (mine is not None and owns(mine, path)) or not any(one is not None and owns(one, path) for one in theirs)
    ]


def doubt(record: SliceRecord, checkpoint: Checkpoint, others: list[str]) -> str:
    """Who else may have changed files since a checkpoint; empty if nobody is known to."""
    if others:
        return f"{', '.join(others)} was worked on meanwhile"
    moved = record.after and record.after.get("head") != checkpoint.head
    return "commits were made since the checkpoint" if moved else ""
