"""What the backstop tells: a file that is not what it was, what was recorded, what was brought back, what can be."""

from __future__ import annotations

from fusewire.core.events import Noun

_set = object.__setattr__


class IntegrityFinding(Noun):
    """A protected file that is not what it was: missing, emptied, changed, mode, type, or new."""

    __slots__ = ("kind", "path")

    def __init__(self, kind: str, path: str) -> None:
        _set(self, "kind", kind)
        _set(self, "path", path)

    kind: str
    path: str


class SnapshotReport(Noun):
    """What was recorded: how much, what is not as it was recorded before, and (path, reason) of what was not kept."""

    __slots__ = ("bytes", "changed", "files", "skipped")

    def __init__(self, files: int, bytes: int, changed: list[str], skipped: list[tuple[str, str]]) -> None:
        _set(self, "files", files)
        _set(self, "bytes", bytes)
        _set(self, "changed", changed)
        _set(self, "skipped", skipped)

    files: int
    bytes: int
    changed: list[str]
    skipped: list[tuple[str, str]]


class RestoredFile(Noun):
    """A file that was brought back; where what it replaced is now; or the problem because of which it was not."""

    __slots__ = ("kept", "path", "problem")

    def __init__(self, path: str, kept: str | None = None, problem: str | None = None) -> None:
        _set(self, "path", path)
        _set(self, "kept", kept)
        _set(self, "problem", problem)

    path: str
    kept: str | None
    problem: str | None


class Version(Noun):
    """A content that a file had and that can be had again; `how` it came here: snapshot or replaced."""

    __slots__ = ("digest", "how", "size", "when")

    def __init__(self, when: float, digest: str, size: int, how: str) -> None:
        _set(self, "when", when)
        _set(self, "digest", digest)
        _set(self, "size", size)
        _set(self, "how", how)

    when: float
    digest: str
    size: int
    how: str
