"""`docs/constraints/.circuit-state-archive.json`: what is left of a circuit when its constraint is retired."""

from __future__ import annotations

import json
import os

from fusewire.breakers.constraint.state_file import to_text, violations
from fusewire.config.rules import CONSTRAINTS_FOLDER, STATE_FOLDER
from fusewire.core.circuit import CircuitState, view
from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.durations import UNITS, show_time
from fusewire.util.files import FileLock, NotOurs, free_name, make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.core.circuit import Policy
    from fusewire.stores.rows import AuditRow, LogRow

ARCHIVE_FILE = os.path.join(CONSTRAINTS_FOLDER, ".circuit-state-archive.json")


def archive_entry(
    policy: Policy, state: CircuitState, log: list[LogRow], audit: list[AuditRow], now: float
) -> dict[str, Any]:
    """A circuit's whole life, in the seed's schema."""
    state = view(policy, state, now)
    return {
        "archived": show_time(now),
        "final_state": PUBLIC_STATE[state.phase],
        "total_violations": state.total,
        "total_trips": state.trips,
        "lifetime_days": int(max(0, now - state.since) // UNITS["d"]),
        "violations": violations(log),
        "trip_history": trip_history(audit, state, now),
    }


def trip_history(
    audit: list[AuditRow], state: CircuitState | None = None, now: float | None = None
) -> list[dict[str, Any]]:
    """When the circuit opened and how that ended, newest first: `cooldown`, `manual`, or not yet.

    A cooldown ends a trip at the moment it is over; what the probe then brings is a new trip or none.
    """
    trips: list[dict[str, Any]] = []
    for row in audit:
        if row.target == "open" and row.source != "open":
            if trips and trips[-1]["reset"] is None and trips[-1]["tripped"] == show_time(row.at):
                continue  # the same trip, taken over from a file once more
            trips.append({"tripped": show_time(row.at), "reset": None, "method": None})
        elif trips and trips[-1]["reset"] is None and row.cause in ("cooled", "reset", "retried"):
            trips[-1]["reset"] = show_time(row.at)
            trips[-1]["method"] = "cooldown" if row.cause == "cooled" else "manual"
    if trips and trips[-1]["reset"] is None and state is not None and state.phase != "open":
        trips[-1]["reset"], trips[-1]["method"] = show_time(state.probe_at or now), "cooldown"
    return trips[::-1]


def add_to_archive(root: str, name: str, entry: dict[str, Any]) -> str | None:
    """Put an entry into the file; one that is there already is continued, not replaced.

    A file that cannot be read is set aside, and a warning says so.
    """
    path = os.path.join(root, ARCHIVE_FILE)
    make_folder(root, STATE_FOLDER)
    make_folder(root, CONSTRAINTS_FOLDER)
    with FileLock(os.path.join(root, STATE_FOLDER, "archive.lock")):
        entries, warning = _read(path)
        earlier = entries.get(name)
        # The same life again means that the last archiving was interrupted after this file was written.
        if isinstance(earlier, dict) and earlier.get("violations") != entry["violations"]:
            entry = _continued(earlier, entry)
        entries[name] = entry
        replace_file(path, to_text(entries), path + ".tmp")
        return warning


def _read(path: str) -> tuple[dict[str, Any], str | None]:
    try:
        entries = json.loads(read_file(path))
        if isinstance(entries, dict):
            return entries, None
        problem = "not an object of constraint ids"
    except (FileNotFoundError, NotOurs):
        return {}, None
    except (ValueError, RecursionError) as error:
        problem = str(error)
    aside = free_name(f"{path}.corrupt")
    os.rename(path, aside)
    kept = os.path.join(CONSTRAINTS_FOLDER, os.path.basename(aside))
    return {}, f"{ARCHIVE_FILE} could not be read ({problem}) and is kept as {kept}"


def _continued(earlier: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    merged = dict(entry)
    for key in ("total_violations", "total_trips", "lifetime_days"):
        if isinstance(earlier.get(key), int):
            merged[key] = entry[key] + earlier[key]
    for key in ("violations", "trip_history"):
        if isinstance(earlier.get(key), list):
            merged[key] = entry[key] + earlier[key]
    return merged
