"""Describe the agents' memory folder: its files, its rotations, and what the next cleanup would do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from fusewire.breakers.session.incidents import recent
from fusewire.breakers.session.start import at_work
from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
from fusewire.janitor.names import parse_rotation
from fusewire.util.durations import format_time
from fusewire.util.errors import FusewireError
from fusewire.util.json_types import Count

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.janitor.report import Cleanup, FolderUsage

_DAY = 86400

#: Days of cleanups that are shown, and how much of each list.
_DAYS = 30
_CLEANUPS = 100
_FILES = 200
_ACTIONS = 100


class TelemetryUsage(TypedDict):
    """A telemetry file, and the used share of its limit."""

    name: str
    lines: Count
    bytes: Count
    share: float


class ArchiveUsage(TypedDict):
    """The archives together."""

    count: Count
    bytes: Count


class FileUsage(TypedDict):
    """One file of the folder."""

    name: str
    kind: str
    bytes: Count


@dataclass(frozen=True)
class MemoryUsage:
    """What the memory folder holds, as `memory --json` has it."""

    folder: str
    exists: bool
    total_bytes: Count
    limit_bytes: Count
    share: float
    telemetry: list[TelemetryUsage]
    telemetry_max_lines: Count
    telemetry_max_bytes: Count
    sessions_active: Count
    sessions_limit: Count
    archives: ArchiveUsage
    files: list[FileUsage]
    unknown: list[str]
    next_cleanup: str
    report: list[str]


@dataclass(frozen=True)
class ShownUsage(MemoryUsage):
    """The same with the 200 largest files."""

    files_left_out: Count


@dataclass(frozen=True)
class ArchivedFile:
    """An archive that is there."""

    name: str
    #: `rotation` or `session archive`
    kind: str
    bytes: Count
    #: the file that was rotated
    of: str | None
    #: of a session's archive only the day
    at: str | None


@dataclass(frozen=True)
class PastCleanup:
    """A cleanup that the incident log has."""

    at: str | None
    session: str | None
    report: str


@dataclass(frozen=True)
class PlannedCleanup:
    """What a cleanup would do, as `janitor --dry-run --json` has it."""

    dry_run: bool
    files_rotated: Count
    sessions_pruned: Count
    ledgers_truncated: Count
    archives_removed: Count
    bytes_freed: Count
    failures: Count
    actions: list[str]
    problems: list[str]
    report: str
    actions_left_out: Count


@dataclass(frozen=True)
class NextCleanup(PlannedCleanup):
    """What the next start of a session would do."""

    due: bool


@dataclass(frozen=True)
class MemoryView:
    """The memory folder; without `usage` and `next_cleanup` where it cannot be looked at."""

    usage: ShownUsage | None
    #: the newest first, like the cleanups, which are those of the last 30 days
    rotations: list[ArchivedFile]
    cleanups: list[PastCleanup]
    next_cleanup: NextCleanup | None
    #: what `fusewire janitor` would do with the other folders that grow, if any are named
    by_hand: PlannedCleanup | None
    problem: str | None


def memory_view(breaker: Breaker) -> MemoryView:
    """Nothing is written, and nothing in the folder is touched."""
    now = breaker.engine.clock()
    root = breaker.root or "."
    limits = Limits.from_settings(breaker.rules.tool)
    view = MemoryView(None, [], _cleanups(root, breaker.rules.tool["incidents"], now), None, None, None)
    try:
        janitor = Janitor(root, limits, active=at_work(breaker.store, now))
        usage = janitor.usage()
        planned = janitor.clean(now, dry_run=True, others=False)
        view = replace(view, usage=_usage(usage), rotations=_rotations(usage))
        view = replace(view, next_cleanup=NextCleanup(**_planned(planned), due=janitor.is_due(now)))
        if limits.other_folders:
            view = replace(view, by_hand=PlannedCleanup(**_planned(janitor.clean(now, dry_run=True))))
    except (FusewireError, OSError) as error:
        view = replace(view, problem=str(error))
    return view


def _usage(usage: FolderUsage) -> ShownUsage:
    found = usage.to_json()
    largest = sorted(found["files"], key=lambda file: (-int(file["bytes"]), str(file["name"])))
    cut = {"files": largest[:_FILES], "unknown": found["unknown"][:_FILES]}
    return ShownUsage(**found | cut, files_left_out=max(0, len(largest) - _FILES))


def _rotations(usage: FolderUsage) -> list[ArchivedFile]:
    found = []
    for file in usage.archives:
        known = parse_rotation(file.name)
        at = _moment(file.name) if known is None else format_time(known.micros / 1e6)
        found.append(ArchivedFile(file.name, file.kind, file.bytes, None if known is None else known.live, at))
    return sorted(found, key=lambda one: (one.at or "", one.name), reverse=True)[:_FILES]


def _moment(name: str) -> str | None:
    """Archives of sessions lie in a folder for each day."""
    parts = name.split("/")
    return parts[1] if len(parts) == 3 else None


def _cleanups(root: str, log: str, now: float) -> list[PastCleanup]:
    found = [one for one in recent(root, log, now - _DAYS * _DAY) if one.get("type") == "memory_cleanup"]
    return [
        PastCleanup(one.get("timestamp"), one.get("session"), str(one.get("reason", "")))
        for one in reversed(found[-_CLEANUPS:])
    ]


def _planned(cleanup: Cleanup) -> dict[str, Any]:
    """The fields of `PlannedCleanup`."""
    found = cleanup.to_json()
    cut = {name: found[name][:_ACTIONS] for name in ("actions", "problems")}
    return found | cut | {"actions_left_out": max(0, len(cleanup.actions) - _ACTIONS)}
