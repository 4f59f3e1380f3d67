"""What the backstop tells: a file that is not what it was, what was recorded, what was restored."""

from __future__ import annotations

from fusewire.core.events import Noun


class IntegrityFinding(Noun):
    """A protected file that is not what it was: missing, emptied, changed, mode, type, or new."""

    kind: str
    path: str


class SnapshotReport(Noun):
    """What was recorded: how much, what is not as it was recorded before, and (path, reason) of what was not kept."""

    files: int
    bytes: int
    changed: list[str]
    skipped: list[tuple[str, str]]


class RestoredFile(Noun):
    """A file that was brought back; where what it replaced is now; or the problem because of which it was not."""

    path: str
    kept: str | None = None
    problem: str | None = None
