"""What a run of the janitor has done, and the seed's words for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fusewire.util.durations import counted

_KB = 1024


@dataclass
class Cleanup:
    """One run. `problems` also names what was left alone on purpose; `failures` counts what could not be done."""

    dry_run: bool = False
    files_rotated: int = 0
    sessions_pruned: int = 0
    ledgers_truncated: int = 0
    archives_removed: int = 0
    #: What the folder has become smaller by.
    bytes_freed: int = 0
    failures: int = 0
    actions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def did(self, line: str, freed: int = 0) -> None:
        self.actions.append(line)
        self.bytes_freed += freed

    def left(self, line: str) -> None:
        """Something that the janitor does not touch, and why."""
        self.problems.append(line)

    def failed(self, what: str, error: OSError) -> None:
        self.failures += 1
        self.problems.append(f"{what}: {error.strerror or error}")

    @property
    def anything(self) -> bool:
        return bool(self.files_rotated or self.sessions_pruned or self.ledgers_truncated or self.archives_removed)

    def report(self) -> str:
        """`Memory cleanup: 2 files rotated, 5 sessions pruned, 1.2 MB freed`."""
        rotated = f"{counted(self.files_rotated, 'file')} rotated"
        pruned = f"{counted(self.sessions_pruned, 'session')} pruned"
        return f"Memory cleanup: {rotated}, {pruned}, {space(self.bytes_freed)} freed"

    def to_json(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run,
            "files_rotated": self.files_rotated,
            "sessions_pruned": self.sessions_pruned,
            "ledgers_truncated": self.ledgers_truncated,
            "archives_removed": self.archives_removed,
            "bytes_freed": max(0, self.bytes_freed),
            "actions": self.actions,
            "problems": self.problems,
            "failures": self.failures,
            "report": self.report(),
        }


def space(size: int, gap: str = " ") -> str:
    """An amount of bytes as people say it; packing tiny files can cost some, which frees nothing."""
    size = max(0, size)
    if 0 < size < _KB and gap:
        return counted(size, "byte")
    amount, unit = (size / _KB, "KB") if size < _KB * _KB else (size / _KB / _KB, "MB")
    digits = 0 if unit == "KB" and amount >= 100 else 1
    return f"{amount:.{digits}f}".removesuffix(".0") + gap + unit
