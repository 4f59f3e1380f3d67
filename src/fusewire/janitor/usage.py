"""What the memory folder holds, for `fusewire memory` and the dashboard."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.janitor.archives import Archive, limit_shown
from fusewire.janitor.cleanup import space
from fusewire.janitor.due import is_aside
from fusewire.janitor.names import CONFIGURATION, PRUNING, is_telemetry, session_of
from fusewire.util.durations import counted

if TYPE_CHECKING:
    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits

_CHUNK = 1 << 20


@dataclass
class Used:
    """One file: what it is, and how much of its limit it has used (1 is all of it)."""

    name: str
    kind: str
    bytes: int
    lines: int | None = None
    share: float | None = None


@dataclass
class Usage:
    folder: str
    exists: bool
    total_bytes: int
    limits: Limits
    files: list[Used] = field(default_factory=list)

    def of(self, kind: str) -> list[Used]:
        return [file for file in self.files if file.kind == kind]

    def lines(self) -> list[str]:
        """The seed's words under `Memory Health`."""
        limits = self.limits
        share = 100 * self.total_bytes / limits.total_max_bytes
        limit = f"{limit_shown(limits.total_max_kb)} limit"
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
        archives = self.of("rotation") + self.of("session archive")
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


def usage_of(folder: Folder | None, limits: Limits) -> Usage:
    usage = Usage(limits.folder, folder is not None, 0, limits)
    if folder is None:
        return usage
    for parts, facts in folder.walk():
        usage.total_bytes += facts.st_size
        used = Used("/".join(parts), _kind(parts, Archive(parts, facts, limits), limits), facts.st_size)
        if not stat.S_ISREG(facts.st_mode):
            used.kind = "link" if stat.S_ISLNK(facts.st_mode) else "unknown"
        if used.kind == "telemetry":
            try:
                used.lines = _lines(folder, parts[0])
            except OSError:
                used.lines = 0  # gone meanwhile, or not ours to read
            used.share = max(used.lines / limits.telemetry_max_lines, used.bytes / limits.telemetry_max_bytes)
        usage.files.append(used)
    return usage


def _kind(parts: tuple[str, ...], archive: Archive, limits: Limits) -> str:
    if archive.ours:
        return "rotation" if archive.live else "session archive"
    if len(parts) > 1:
        return "unknown"
    name = parts[0]
    if is_telemetry(name, limits.telemetry):
        return "telemetry"
    if session_of(name):
        return "session"
    if is_aside(name, limits) or session_of(name, PRUNING):
        return "waiting"
    return "configuration" if name == CONFIGURATION else "unknown"


def _lines(folder: Folder, name: str) -> int:
    count, last = 0, b"\n"
    with open(folder.open(name), "rb") as file:
        while chunk := file.read(_CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")
