"""The end and the beginning of a constraint's circuit: retired into the archive, or imported from a state file.

The archive, `docs/constraints/.circuit-state-archive.json`, keeps what is left of a circuit in the seed's schema.
"""

from __future__ import annotations

import json
import os

from fusewire.breakers.constraint.state_file import adopt, read_entries, to_text, violations
from fusewire.config.rules import CONSTRAINTS_FOLDER, STATE_FOLDER
from fusewire.core.circuit import CircuitState, view
from fusewire.core.decision import PUBLIC_STATE
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import UNITS, show_time
from fusewire.util.errors import ConfigError, NotFound
from fusewire.util.files import FileLock, NotOurs, free_name, make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from fusewire.breakers.constraint.state_file import Violation
    from fusewire.core.circuit import Policy
    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import LogRow
    from fusewire.util.fast_json import JsonObject

    class Trip(TypedDict):
        """When a circuit opened and how that ended."""

        tripped: str | None
        #: None while it is open
        reset: str | None
        #: `cooldown` or `manual`; None while it is open
        method: str | None

    class ArchivedCircuit(TypedDict):
        """A circuit's whole life."""

        archived: str | None
        final_state: str
        total_violations: int
        total_trips: int
        lifetime_days: int
        violations: list[Violation]
        trip_history: list[Trip]


ARCHIVE_FILE = os.path.join(CONSTRAINTS_FOLDER, ".circuit-state-archive.json")


def archive(breaker: Breaker, circuit: str, *, actor: str) -> ArchivedCircuit:
    """Move a constraint's circuit into the archive; NotFound if it has none."""
    assert breaker.root is not None
    constraint = breaker.rules.constraints.get(circuit)
    policy = breaker.rules.constraint_policy(circuit)
    with breaker.store.transact() as transaction:
        now = breaker.engine.clock()
        state = breaker.engine.load(transaction, policy, circuit, now)
        if state is None:
            known = f"nothing has happened to {circuit} yet" if constraint else f"Constraint not found: {circuit}"
            raise NotFound(known)
        audit = transaction.audit_of(circuit, state.since)
        entry = _archived(policy, state, transaction.log_of(circuit), audit, now)
        # The archive first: if we are interrupted, the circuit is still there and is archived again.
        warning = _add_to_archive(breaker.root, circuit, entry)
        if warning is not None:
            transaction.notice(warning, now)
        transaction.audit(AuditRow(circuit, now, state.phase, "removed", "archived", "", actor))
        transaction.remove(circuit)
    breaker.mirror({circuit})
    return entry


def archive_retired(breaker: Breaker) -> list[str]:
    """The lifecycle hook: circuits of constraints that say `status: retired` go into the archive."""
    retired = [name for name, constraint in breaker.rules.constraints.items() if constraint.retired]
    done = []
    for name in retired:
        if breaker.store.circuit(name) is not None:
            archive(breaker, name, actor="constraint lifecycle")
            done.append(name)
    return done


def import_states(breaker: Breaker, text: str, shown: str, *, actor: str) -> tuple[dict[str, str], list[ConfigError]]:
    """Take circuits over from a state file; the public state of each, and what could not be used."""
    now = breaker.engine.clock()
    entries, problems = read_entries(text, shown, breaker.rules, now)
    with breaker.store.transact() as transaction:
        for name, (state, log) in entries.items():
            transaction.remove(name)
            transaction.save(name, "constraint", state.phase, state.to_data(), now)
            for row in log:
                transaction.log(row, kept=True)
            if state.opened_at is not None:
                trip = AuditRow(name, state.opened_at, "closed", "open", "tripped", state.reason, actor)
                transaction.audit(trip, state.to_data())
            transaction.audit(AuditRow(name, now, state.phase, state.phase, "imported", shown, actor), state.to_data())
    if breaker.root is not None and not problems:
        adopt(breaker.root, text)
    breaker.mirror(set(entries))
    states = {name: view(breaker.rules.constraint_policy(name), state, now) for name, (state, _) in entries.items()}
    return {name: PUBLIC_STATE[state.phase] for name, state in states.items()}, problems


# -- the archive's file --------------------------------------------------------------------------------------


def _archived(
    policy: Policy, state: CircuitState, log: list[LogRow], audit: list[AuditRow], now: float
) -> ArchivedCircuit:
    state = view(policy, state, now)
    return {
        "archived": show_time(now),
        "final_state": PUBLIC_STATE[state.phase],
        "total_violations": state.total,
        "total_trips": state.trips,
        "lifetime_days": int(max(0, now - state.since) // UNITS["d"]),
        "violations": violations(log),
        "trip_history": _trips(audit, state, now),
    }


def _trips(audit: list[AuditRow], state: CircuitState, now: float) -> list[Trip]:
    """Newest first. A cooldown ends a trip when it is over; what the probe then brings is a new trip or none."""
    trips: list[Trip] = []
    for row in audit:
        if row.target == "open" and row.source != "open":
            if trips and trips[-1]["reset"] is None and trips[-1]["tripped"] == show_time(row.at):
                continue  # the same trip, taken over from a file once more
            trips.append({"tripped": show_time(row.at), "reset": None, "method": None})
        elif trips and trips[-1]["reset"] is None and row.cause in ("cooled", "reset", "retried"):
            trips[-1]["reset"] = show_time(row.at)
            trips[-1]["method"] = "cooldown" if row.cause == "cooled" else "manual"
    if trips and trips[-1]["reset"] is None and state.phase != "open":
        trips[-1]["reset"], trips[-1]["method"] = show_time(state.probe_at or now), "cooldown"
    return trips[::-1]


def _add_to_archive(root: str, name: str, entry: ArchivedCircuit) -> str | None:
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
            entries[name] = _continued(earlier, entry)
        else:
            entries[name] = entry
        replace_file(path, to_text(entries), path + ".tmp")
        return warning


def _read(path: str) -> tuple[JsonObject, str | None]:
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


def _continued(earlier: JsonObject, entry: ArchivedCircuit) -> JsonObject:
    """The entry with the numbers and lists of an earlier one added, as far as these can be used."""
    merged: JsonObject = {**entry}
    for key in ("total_violations", "total_trips", "lifetime_days", "violations", "trip_history"):
        if isinstance(earlier.get(key), type(merged[key])):
            merged[key] = merged[key] + earlier[key]
    return merged
