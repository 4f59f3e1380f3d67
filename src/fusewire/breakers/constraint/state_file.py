"""Mirror the constraints' circuits in `docs/constraints/.circuit-state.json`, in the seed's format.

The database is the truth; this file mirrors it after each change, for other tools to read and for a rebuild should
the database be lost. A version that another program wrote is kept aside before the file is overwritten.
"""

from __future__ import annotations

import json
import os

from fusewire.config.rules import CONSTRAINTS_FOLDER, STATE_FILE, STATE_FOLDER
from fusewire.core.circuit import CircuitState, cooldown, fresh
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import NAME_LIMIT, TEXT_LIMIT, fingerprint, plain
from fusewire.core.meters import keeps
from fusewire.stores.rows import KEPT_ROWS, LogRow
from fusewire.util.durations import UNITS, parse_time, show_time
from fusewire.util.errors import ConfigError
from fusewire.util.files import FileLock, NotOurs, free_name, make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypedDict

    from fusewire.config.rules import Rules
    from fusewire.core.circuit import Policy
    from fusewire.engine.engine import Engine
    from fusewire.stores import Rebuilt
    from fusewire.util.fast_json import JsonObject

    class Violation(TypedDict):
        timestamp: str | None
        action: str
        session: str | None

    class Thresholds(TypedDict):
        """The four numbers of a constraint, in the seed's units."""

        violation_threshold: float
        window_days: float
        cooldown_hours: float
        dedup_seconds: float

    class CircuitOnFile(TypedDict):
        """One circuit in the seed's schema, in the seed's order."""

        state: str
        violations: list[Violation]
        last_trip: str | None
        last_reset: str | None
        config: Thresholds


#: Violations of one constraint in the file; what counts is in the circuit's state, and the log holds more.
_SHOWN = 100

#: Seconds for which the lock of the file is waited for: it is only a mirror, and an agent may wait, twice in one call.
_PATIENCE = 1.0

_PHASES = {"CLOSED": "closed", "OPEN": "open", "HALF_OPEN": "probe", "HALF-OPEN": "probe"}


# -- writing --------------------------------------------------------------------------------------------


def _circuit_on_file(policy: Policy, state: CircuitState, log: list[LogRow]) -> CircuitOnFile:
    meter = policy.meters[0]
    return {
        "state": PUBLIC_STATE[state.phase],
        "violations": violations(log, _SHOWN),
        "last_trip": show_time(state.last_trip),
        "last_reset": show_time(state.last_reset),
        "config": {
            "violation_threshold": _plain(meter.trip),
            "window_days": _plain(meter.span / UNITS["d"]),
            "cooldown_hours": _plain((cooldown(policy, 1) or 0) / UNITS["h"]),
            "dedup_seconds": _plain(policy.dedup),
        },
    }


def violations(log: list[LogRow], most: int = KEPT_ROWS) -> list[Violation]:
    """The counted violations, newest first."""
    return [
        {"timestamp": show_time(row.at), "action": row.text, "session": row.session}
        for row in [row for row in log if row.kind == "bad" and row.effect in ("counted", "late")][: -most - 1 : -1]
    ]


def _plain(value: float) -> float:
    return int(value) if value == int(value) else round(value, 6)


def write_mirror(root: str, engine: Engine) -> str | None:
    """Bring the file up to date; a warning if another program had changed it."""
    path = os.path.join(root, STATE_FILE)
    make_folder(root, STATE_FOLDER)
    # Read under the lock: the last to write has also read last, so the file never goes back in time.
    with FileLock(_lock_path(root), wait=_PATIENCE) as lock:
        content = _render(engine)
        old = _read_bytes(path)
        ours = _ours(lock)
        if old is None and content == to_text({}):
            return None
        if old == content:
            _remember(lock, [_digest(content)])
            return None
        warning = None
        make_folder(root, CONSTRAINTS_FOLDER)
        if old is not None and _digest(old) not in ours:
            warning = _keep_aside(path, old)
        _remember(lock, [_digest(old or b""), _digest(content)])
        replace_file(path, content, path + ".tmp")
        return warning


def _render(engine: Engine) -> bytes:
    entries = {}
    for row in engine.store.circuits():
        if row.kind != "constraint":
            continue
        policy = engine.rules.constraint_policy(row.id)
        entries[row.id] = _circuit_on_file(policy, engine.state_of(row.id, policy), engine.store.log_of(row.id))
    return to_text(entries)


def to_text(entries: Mapping[str, object]) -> bytes:
    return (json.dumps(entries, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _digest(content: bytes) -> str:
    return fingerprint(content.decode("utf-8", "replace"))


def _lock_path(root: str) -> str:
    return os.path.join(root, STATE_FOLDER, "mirror.lock")


def _ours(lock: FileLock) -> list[str]:
    """Digests of the contents that we wrote last."""
    return os.pread(lock.descriptor, 4096, 0).decode("ascii", "replace").split()


def _remember(lock: FileLock, digests: list[str]) -> None:
    """Before the rename: if we die in between, both the old and the new content are known as ours."""
    os.pwrite(lock.descriptor, "\n".join(digests).encode().ljust(256), 0)  # one write: all of it or nothing


def _keep_aside(path: str, old: bytes) -> str:
    aside = free_name(f"{path}.edited")
    replace_file(aside, old)
    kept = os.path.join(CONSTRAINTS_FOLDER, os.path.basename(aside))
    return f"{STATE_FILE} was changed by somebody else; that version is kept as {kept}"


def _read_bytes(path: str) -> bytes | None:
    try:
        return read_file(path)
    except (FileNotFoundError, NotADirectoryError, NotOurs):
        return None


# -- reading --------------------------------------------------------------------------------------------


def read_entries(
    text: str, shown: str, rules: Rules, now: float
) -> tuple[dict[str, tuple[CircuitState, list[LogRow]]], list[ConfigError]]:
    """The circuits in a state file, hand-made ones too; what cannot be used is named and left out."""
    reader = _Reader(shown, rules, now)
    return reader.read(text), reader.problems


class _Reader:
    """Reads one state file, and collects what cannot be used of it."""

    def __init__(self, shown: str, rules: Rules, now: float) -> None:
        self.shown = shown
        self.rules = rules
        self.now = now
        self.problems: list[ConfigError] = []

    def read(self, text: str) -> dict[str, tuple[CircuitState, list[LogRow]]]:
        try:
            table = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._refuse("file", str(error), "JSON")
            return {}
        if not isinstance(table, dict):
            self._refuse("file", type(table).__name__, "an object of constraint ids")
            return {}
        found = {}
        for name, data in table.items():
            phase = _PHASES.get(str(data.get("state", "CLOSED"))) if isinstance(data, dict) else None
            if not name or "/" in name:
                self._refuse("id", name, "a constraint's id, which has no slash")
            elif phase is None:
                self._refuse(name, data, f"an object with a state of {', '.join(sorted(set(_PHASES)))}")
            else:
                found[name] = self._circuit(name, data, phase)
        return found

    def _refuse(self, key: str, value: object, allowed: str) -> None:
        self.problems.append(ConfigError(self.shown, key, value, allowed))

    def _circuit(self, name: str, data: JsonObject, phase: str) -> tuple[CircuitState, list[LogRow]]:
        policy = self.rules.constraint_policy(name)
        log = self._log(name, data.get("violations"))
        last_trip = self._optional_time(data.get("last_trip"), f"{name}.last_trip")
        last_reset = self._optional_time(data.get("last_reset"), f"{name}.last_reset")
        times = [row.at for row in log]
        state = fresh(min([*times, *(t for t in (last_trip, last_reset) if t is not None), self.now]))
        meter = policy.meters[0]
        counted = [moment for moment in times if last_reset is None or moment > last_reset]
        state.meters = {meter.name: counted[-keeps(meter) :]} if counted else {}
        state.total = len(log)
        state.last_counted = counted[-1] if counted else None
        state.last_trip, state.last_reset = last_trip, last_reset
        state.trips = 1 if last_trip is not None else 0
        if phase != "closed":
            state.phase, state.in_a_row, state.trips = phase, 1, max(state.trips, 1)
            wait = cooldown(policy, 1) or 0
            opened = last_trip if last_trip is not None else (times[-1] if times else self.now)
            if phase == "probe":  # its cooldown is over, whatever the times say
                opened = min(opened, self.now - wait)
            state.opened_at = state.last_trip = opened
            state.until = opened + wait
            state.probe_at = state.until if phase == "probe" else None
            state.reason = f"{len(counted)} violations on file (limit {_plain(meter.trip)})"
            state.evidence = log[-1].text if log else ""
        return state, log

    def _log(self, name: str, items: object) -> list[LogRow]:
        """The violations as rows, oldest first."""
        if items is None:
            return []
        if not isinstance(items, list):
            self._refuse(f"{name}.violations", items, "a list")
            return []
        rows = []
        for number, item in enumerate(items):
            key = f"{name}.violations[{number}]"
            if not isinstance(item, dict):
                self._refuse(key, item, "an object with timestamp, action, session")
                continue
            moment = self._time(item.get("timestamp"), f"{key}.timestamp")
            if moment is not None:
                action = plain(str(item.get("action", "")), TEXT_LIMIT)
                session = item.get("session")
                session = None if session is None else plain(str(session), NAME_LIMIT)
                rows.append(LogRow(name, moment, "bad", "violation", action, session, 1, "counted"))
        # Newest first in the file; times are in milliseconds, so some may be equal.
        rows.reverse()
        return sorted(rows, key=lambda row: row.at)

    def _optional_time(self, value: Any, key: str) -> float | None:
        return None if value is None else self._time(value, key)

    def _time(self, value: Any, key: str) -> float | None:
        try:
            return parse_time(value)
        except (ValueError, TypeError, OverflowError):
            self._refuse(key, value, "an ISO 8601 time, such as 2026-02-12T10:30:00Z")
            return None


def rebuild(root: str, rules: Rules, now: float) -> tuple[list[Rebuilt], str, list[str]]:
    """What the file gives for a lost database, its name, and what is wrong with it."""
    content = _read_bytes(os.path.join(root, STATE_FILE))
    if content is None:
        return [], "", []
    entries, problems = read_entries(content.decode("utf-8", "replace"), STATE_FILE, rules, now)
    if not problems:  # otherwise the next write keeps this version aside
        try:
            # Never wait here: the process that holds it may be waiting for the rebuilt database.
            with FileLock(_lock_path(root), wait=0) as lock:
                _remember(lock, [_digest(content)])
        except BlockingIOError:
            pass
    rows: list[Rebuilt] = [(name, "constraint", state.to_data(), log) for name, (state, log) in entries.items()]
    return rows, STATE_FILE, [str(problem) for problem in problems]


def adopt(root: str, text: str) -> None:
    """Note that a person has imported this text: if it is what the file holds, replacing it loses nothing."""
    content = _read_bytes(os.path.join(root, STATE_FILE))
    if content is not None and content == text.encode():
        with FileLock(_lock_path(root)) as lock:
            _remember(lock, [_digest(content)])


def foreign_change(root: str) -> str | None:
    """A warning if the file is not as Fusewire left it."""
    content = _read_bytes(os.path.join(root, STATE_FILE))
    if content is None or not os.path.isdir(os.path.join(root, STATE_FOLDER)):
        return None
    try:
        with FileLock(_lock_path(root), wait=0) as lock:
            if _digest(content) in _ours(lock):
                return None
    except BlockingIOError:
        return (
            f"{STATE_FILE} may be behind, because another process holds {_lock_path(root)}; the next change catches up"
        )
    except PermissionError as error:
        return f"{error.filename}: {error.strerror}"
    try:
        json.loads(content)
    except (ValueError, RecursionError) as error:
        return f"{STATE_FILE} is corrupt ({error}): it is set aside and written again with the next change"
    return (
        f"{STATE_FILE} was changed by somebody else: a person can take it over with `fusewire import`,"
        " the next change sets it aside"
    )
