"""Report what a cleanup has done and what the memory folder holds, in the words of the seed."""

from __future__ import annotations

import re
import stat
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from fusewire.janitor import files
from fusewire.janitor.names import PRUNING, is_telemetry, parse_rotation, session_of
from fusewire.util.durations import counted

if TYPE_CHECKING:
    import os
    from typing import Any

    from fusewire.janitor.limits import Limits

_KB = 1024
_CHUNK = 1 << 20

#: The seed's configuration is in the memory folder, too; it is never touched.
_CONFIGURATION = "circuit_breaker_config.json"

_SESSION_ARCHIVE = re.compile(r"(?s)session_archives/\d{4}-\d\d-\d\d/[^/]+_state(\.\d+)?\.json\.gz", re.ASCII)


@dataclass
class Cleanup:
    """The result of one cleanup. `problems` also names what was left alone on purpose; `failures` counts errors."""

    dry_run: bool = False
    files_rotated: int = 0
    sessions_pruned: int = 0
    ledgers_truncated: int = 0
    archives_removed: int = 0
    #: by how much the folder has shrunk
    bytes_freed: int = 0
    failures: int = 0
    actions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def did(self, line: str, freed: int = 0) -> None:
        self.actions.append(line)
        self.bytes_freed += freed

    def left(self, line: str) -> None:
        """Note a file that is left alone, and why."""
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
        return {**asdict(self), "bytes_freed": max(0, self.bytes_freed), "report": self.report()}


def space(size: int, gap: str = " ") -> str:
    """Format an amount of bytes; a negative one, as when tiny files grow by packing, counts as none."""
    size = max(0, size)
    if 0 < size < _KB and gap:
        return counted(size, "byte")
    amount, unit = (size / _KB, "KB") if size < _KB * _KB else (size / _KB / _KB, "MB")
    digits = 0 if unit == "KB" and amount >= 100 else 1
    return f"{amount:.{digits}f}".removesuffix(".0") + gap + unit


def format_limit(kilobytes: int) -> str:
    """Format a configured limit: 5120 and 5000 kilobytes are both 5MB."""
    step = next((step for step in (1024, 1000) if kilobytes >= step and kilobytes % step == 0), None)
    return f"{kilobytes // step}MB" if step else f"{kilobytes}KB"


@dataclass
class MemoryFile:
    """One file of the memory folder: its kind, and the used share of its limit (1 is all of it).

    `live` is the telemetry file that a rotation is of, `micros` the time of the rotation or else of the last change.
    """

    name: str
    kind: str
    bytes: int
    micros: int
    live: str = ""
    lines: int | None = None
    share: float | None = None


@dataclass
class FolderUsage:
    """What the memory folder holds."""

    folder: str
    exists: bool
    total_bytes: int
    limits: Limits
    files: list[MemoryFile] = field(default_factory=list)

    def of(self, kind: str) -> list[MemoryFile]:
        return [file for file in self.files if file.kind == kind]

    @property
    def archives(self) -> list[MemoryFile]:
        """The files that may be removed if there are too many."""
        return self.of("rotation") + self.of("session archive")

    def lines(self) -> list[str]:
        """Format the lines under `Memory Health`."""
        limits = self.limits
        share = 100 * self.total_bytes / limits.total_max_bytes
        limit = f"{format_limit(limits.total_max_kb)} limit"
        fullest = max((file.lines or 0 for file in self.of("telemetry")), default=0)
        part = 100 * fullest // limits.telemetry_max_lines
        return [
            f"Total: {space(self.total_bytes, '')} / {limit} ({share:.1f}% used)",
            f"Telemetry: {counted(fullest, 'line')} ({part}% of {limits.telemetry_max_lines} limit)",
            f"Sessions: {len(self.of('session'))} active ({self._against_limit()})",
            "Next auto-cleanup: SessionStart",
        ]

    def _against_limit(self) -> str:
        count, most = len(self.of("session")), self.limits.session_max_active
        return "at limit" if count == most else f"over the limit of {most}" if count > most else f"limit {most}"

    def to_json(self) -> dict[str, Any]:
        limits = self.limits
        archives = self.archives
        return {
            "folder": self.folder,
            "exists": self.exists,
            "total_bytes": self.total_bytes,
            "limit_bytes": limits.total_max_bytes,
            "share": round(self.total_bytes / limits.total_max_bytes, 4),
            "telemetry": [
                {"name": file.name, "lines": file.lines, "bytes": file.bytes, "share": round(file.share or 0, 4)}
                for file in self.of("telemetry")
            ],
            "telemetry_max_lines": limits.telemetry_max_lines,
            "telemetry_max_bytes": limits.telemetry_max_bytes,
            "sessions_active": len(self.of("session")),
            "sessions_limit": limits.session_max_active,
            "archives": {"count": len(archives), "bytes": sum(file.bytes for file in archives)},
            "files": [{"name": file.name, "kind": file.kind, "bytes": file.bytes} for file in self.files],
            "unknown": [file.name for file in self.of("unknown")],
            "next_cleanup": "SessionStart",
            "report": self.lines(),
        }


def measure(folder: str | None, limits: Limits) -> FolderUsage:
    """Measure the files of the memory folder."""
    usage = FolderUsage(limits.folder, folder is not None, 0, limits)
    for name, facts in files.walk(folder) if folder is not None else ():
        usage.total_bytes += facts.st_size
        file = MemoryFile(name, kind_of(name, facts, limits), facts.st_size, facts.st_mtime_ns // 1000)
        if file.kind == "rotation" and (known := parse_rotation(name)):
            file.live, file.micros = known.live, known.micros
        if folder is not None and file.kind == "telemetry":
            file.lines = _count_lines(f"{folder}/{name}")
            file.share = max(file.lines / limits.telemetry_max_lines, file.bytes / limits.telemetry_max_bytes)
        usage.files.append(file)
    return usage


def kind_of(name: str, facts: os.stat_result, limits: Limits) -> str:
    """Classify a file by its path below the memory folder; `rotation` and `session archive` may be removed."""
    if not stat.S_ISREG(facts.st_mode):
        return "link" if stat.S_ISLNK(facts.st_mode) else "unknown"
    if _SESSION_ARCHIVE.fullmatch(name) and facts.st_nlink == 1:
        return "session archive"
    if "/" in name:
        return "unknown"
    known = parse_rotation(name)
    if known is not None and is_telemetry(known.live, limits.telemetry) and not (known.packed and facts.st_nlink > 1):
        return "rotation" if known.packed else "waiting"
    if is_telemetry(name, limits.telemetry):
        return "telemetry"
    if session_of(name):
        return "waiting" if name.endswith(PRUNING) else "session"
    return "configuration" if name == _CONFIGURATION else "unknown"


def _count_lines(path: str) -> int:
    count, last = 0, b"\n"
    try:
        with open(files.open_regular(path), "rb") as file:
            while chunk := file.read(_CHUNK):
                count += chunk.count(b"\n")
                last = chunk[-1:]
    except OSError:
        pass  # removed meanwhile, or not readable for us
    return count + (last != b"\n")
