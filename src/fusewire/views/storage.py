"""The agents' memory folder as a page shows it: what it holds, what was rotated, what the next cleanup would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.incident_log import recent
from fusewire.breakers.session.start import at_work
from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
from fusewire.janitor.names import parse_rotation
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.janitor.report import Cleanup, FolderUsage

_DAY = 86400

#: Days of cleanups that are shown, and how much of each list.
_DAYS = 30
_CLEANUPS = 100
_FILES = 200
_ACTIONS = 100


def memory_view(breaker: Breaker) -> dict[str, Any]:
    """Nothing is written, and nothing in the folder is touched; times are ISO 8601 in UTC.

    usage         as `memory --json`; of `files` the 200 largest, and `files_left_out`
    rotations     archives that are there, newest first: `name`, `kind` (`rotation`, `session archive`), `bytes`,
                  `of` (the file that was rotated, or null), `at` (of a session's archive only the day)
    cleanups      of the last 30 days, newest first: `at`, `session`, `report`
    next_cleanup  what the next start of a session would do: as `janitor --dry-run --json`, and `due`
    by_hand       what `fusewire janitor` would do with the other folders that grow; null if none are named
    problem       why the folder cannot be looked at, or null; then `usage` and `next_cleanup` are null
    """
    now = breaker.engine.clock()
    root = breaker.root or "."
    limits = Limits.from_settings(breaker.rules.tool)
    view: dict[str, Any] = {
        "usage": None,
        "rotations": [],
        "cleanups": _cleanups(root, breaker.rules.tool["incidents"], now),
        "next_cleanup": None,
        "by_hand": None,
        "problem": None,
    }
    try:
        janitor = Janitor(root, limits, active=at_work(breaker.store, now))
        usage = janitor.usage()
        planned = janitor.clean(now, dry_run=True, others=False)
        view |= {"usage": _usage(usage), "rotations": _rotations(usage)}
        view["next_cleanup"] = {**_planned(planned), "due": janitor.is_due(now)}
        if limits.other_folders:
            view["by_hand"] = _planned(janitor.clean(now, dry_run=True))
    except (FusewireError, OSError) as error:
        view["problem"] = str(error)
    return view


def _usage(usage: FolderUsage) -> dict[str, Any]:
    found = usage.to_json()
    largest = sorted(found["files"], key=lambda file: (-int(file["bytes"]), str(file["name"])))
    left_out = max(0, len(largest) - _FILES)
    return {**found, "files": largest[:_FILES], "files_left_out": left_out, "unknown": found["unknown"][:_FILES]}


def _rotations(usage: FolderUsage) -> list[dict[str, Any]]:
    found = []
    for file in [*usage.of("rotation"), *usage.of("session archive")]:
        known = parse_rotation(file.name)
        found.append(
            {
                "name": file.name,
                "kind": file.kind,
                "bytes": file.bytes,
                "of": None if known is None else known.live,
                "at": _moment(file.name) if known is None else show_time(known.micros / 1e6),
            }
        )
    return sorted(found, key=lambda one: (one["at"] or "", one["name"]), reverse=True)[:_FILES]


def _moment(name: str) -> str | None:
    """Archives of sessions lie in a folder for each day."""
    parts = name.split("/")
    return parts[1] if len(parts) == 3 else None


def _cleanups(root: str, log: str, now: float) -> list[dict[str, Any]]:
    found = [one for one in recent(root, log, now - _DAYS * _DAY) if one.get("type") == "memory_cleanup"]
    return [
        {"at": one.get("timestamp"), "session": one.get("session"), "report": str(one.get("reason", ""))}
        for one in reversed(found[-_CLEANUPS:])
    ]


def _planned(cleanup: Cleanup) -> dict[str, Any]:
    found = cleanup.to_json()
    return {
        **found,
        "actions": found["actions"][:_ACTIONS],
        "problems": found["problems"][:_ACTIONS],
        "actions_left_out": max(0, len(found["actions"]) - _ACTIONS),
    }
