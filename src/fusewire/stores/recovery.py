"""Making, migrating and mending the database. Off the hot path: run once, or when something is wrong.

A damaged database is never deleted and never silently replaced by an empty one: it is set aside, a new one is
filled with what can still be read from it, from the audit trail and from the mirrored state file, and a
notice says so until a person acknowledges it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from fusewire.quickjson import dumps, loads
from fusewire.stores import audit_file
from fusewire.stores.migrations import MIGRATIONS
from fusewire.stores.quicksqlite import LOGS
from fusewire.stores.rows import AUDIT_ROWS, KEPT_ROWS
from fusewire.util.files import fault_at, free_name, open_file, set_aside, uri_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.stores import Backup
    from fusewire.stores.rows import LogRow

_COPIED = {
    "circuits": "id, kind, phase, state, version, kept, other, updated",
    "log": "seq, circuit, slot, at, kind, name, text, session, value, effect",
    "audit": "seq, circuit, at, source, target, cause, reason, actor",
    "notices": "seq, at, text, seen",
    "memories": "name, data, updated",
    "doings": "seq, session, agent, at, kind, tool, text, value",
}


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a database from an older shape to the latest, all steps or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for number, (name, statements) in enumerate(MIGRATIONS[version:], version + 1):
            for statement in statements.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, number))
            connection.execute(f"PRAGMA user_version={number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def is_broken(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
    except sqlite3.DatabaseError:
        return True


def rebuild_database(path: str, problem: str, backup: Backup | None, check: Callable[[object], object]) -> None:
    """Put a new database in the place of a lost one. The caller holds the recovery lock."""
    folder = os.path.dirname(path)
    for suffix in ("", *LOGS):
        fault = fault_at(path + suffix)
        if fault:
            set_aside(path + suffix, fault)
    damaged = os.path.exists(path)
    expected = damaged or os.path.exists(audit_file.path_of(folder))
    _remove_leftovers(path)
    fresh = f"{path}.new-{os.getpid()}"
    os.close(open_file(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))  # SQLite would follow a link
    connection = sqlite3.connect(fresh, isolation_level=None)
    migrate(connection, 0)
    connection.execute("BEGIN")
    sources = []
    old = _lock_damaged(path) if damaged else None
    if old is not None and _copy_what_is_readable(old, connection, check):
        sources.append("what could be read of it")
    sources += _add_missing(connection, folder, backup, check)
    _add_audit_trail(connection, folder)
    aside = free_name(f"{path}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    if expected or sources:
        found = f"rebuilt from {' and '.join(sources)}" if sources else "nothing was left, all circuits start empty"
        what = f"the state database was damaged ({problem})" if damaged else f"there was no state database ({problem})"
        kept = f"; the old file is kept as {os.path.basename(aside)}" if damaged else ""
        _notice(connection, f"{what}: {found}{kept}")
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    # The old file's write-ahead log must never meet the new one. The replacement itself is one step.
    for suffix in LOGS:
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    if damaged:
        try:
            os.link(path, aside)
        except OSError:  # a file system without links
            shutil.copy2(path, aside)
    os.replace(fresh, path)
    if old is not None:
        old.close()


def _remove_leftovers(path: str) -> None:
    """Half-made databases of processes that died here."""
    folder, name = os.path.split(path)
    for entry in os.listdir(folder):
        if entry.startswith(f"{name}.new-"):
            os.unlink(os.path.join(folder, entry))


def _lock_damaged(path: str) -> sqlite3.Connection | None:
    """The damaged file, open for reading, and for writing locked where that is still possible.

    So that a process which has not noticed the damage cannot commit to a file that nobody will read again.
    """
    try:
        connection = sqlite3.connect(f"file:{uri_path(path)}?mode=rw", uri=True, isolation_level=None)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    except sqlite3.DatabaseError:
        return None
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.DatabaseError:
        pass
    return connection


def _copy_what_is_readable(
    source: sqlite3.Connection, connection: sqlite3.Connection, check: Callable[[object], object]
) -> bool:
    """Copy row by row until a page cannot be read; True if any circuit came over."""
    for table, columns in _COPIED.items():
        marks = ", ".join("?" * (columns.count(",") + 1))
        try:
            for row in source.execute(f"SELECT {columns} FROM {table}"):
                if table == "circuits" and _state(row[3], check) is None:
                    continue
                try:
                    connection.execute(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", row)
                except sqlite3.IntegrityError:
                    continue
        except sqlite3.DatabaseError:
            continue
    (count,) = connection.execute("SELECT count(*) FROM circuits").fetchone()
    return bool(count)


def _state(text: Any, check: Callable[[object], object]) -> dict[str, Any] | None:
    try:
        state = loads(text)
        check(state)
    except (ValueError, TypeError):
        return None
    return state  # type: ignore[no-any-return]


def _add_missing(
    connection: sqlite3.Connection, folder: str, backup: Backup | None, check: Callable[[object], object]
) -> list[str]:
    """What the old file did not give, or knew only in an older form, from the audit trail and the backup.

    The trail is never behind on phases, but does not hear of every count; the backup is the other way round.
    """
    rows = connection.execute("SELECT id, kind, state FROM circuits").fetchall()
    known = {name: (kind, _state(text, check) or {}) for name, kind, text in rows}
    trail = audit_file.last_states(folder, check)
    outside, word, problems = backup.read() if backup is not None else ([], "", [])
    for problem in problems[:10]:
        _notice(connection, f"while the state database was rebuilt: {problem}")
    sources = set()
    for circuit, kind, state, log in outside:
        if circuit in known:
            if not _has_log(connection, circuit):
                _put(connection, circuit, kind, known[circuit][1], log)
            continue
        moved = trail.get(circuit)
        if moved is not None:
            sources.add("the audit trail")
            state = _counted_on(moved, state) if _phase(moved) == _phase(state) else moved
        _put(connection, circuit, kind, state, log)
        known[circuit] = (kind, state)
        sources.add(word)
    for circuit, moved in trail.items():
        kind = known[circuit][0] if circuit in known else circuit.partition("/")[0] if "/" in circuit else "constraint"
        row = known[circuit][1] if circuit in known else None
        if row is None or (_phase(moved) != _phase(row) and _last_move(moved) > _last_move(row)):
            _put(connection, circuit, kind, moved, [])
            sources.add("the audit trail")
    return sorted(sources)


def _has_log(connection: sqlite3.Connection, circuit: str) -> bool:
    return connection.execute("SELECT 1 FROM log WHERE circuit = ? LIMIT 1", (circuit,)).fetchone() is not None


def _phase(state: dict[str, Any]) -> str:
    return str(state.get("phase", "closed"))


def _last_move(state: dict[str, Any]) -> float:
    return max(float(state.get("last_trip") or 0), float(state.get("last_reset") or 0))


def _counted_on(moved: dict[str, Any], counted: dict[str, Any]) -> dict[str, Any]:
    """The state at the last move, with what was counted since."""
    if (counted.get("last_counted") or 0) <= (moved.get("last_counted") or 0):
        return moved
    merged = {**moved, "meters": counted.get("meters", {}), "last_counted": counted["last_counted"]}
    merged["total"] = max(moved.get("total", 0), counted.get("total", 0))
    return merged


def _add_audit_trail(connection: sqlite3.Connection, folder: str) -> None:
    (count,) = connection.execute("SELECT count(*) FROM audit").fetchone()
    if count:
        return
    for row in audit_file.rows(folder)[-AUDIT_ROWS:]:
        connection.execute(
            "INSERT INTO audit (circuit, at, source, target, cause, reason, actor) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.circuit, row.at, row.source, row.target, row.cause, row.reason, row.actor),
        )


def _notice(connection: sqlite3.Connection, text: str) -> None:
    connection.execute("INSERT INTO notices (at, text, seen) VALUES (?, ?, 0)", (time.time(), text))


def _put(connection: sqlite3.Connection, circuit: str, kind: str, state: dict[str, Any], log: list[LogRow]) -> None:
    """A circuit's row, and its log unless the old file gave that."""
    newest = "SELECT slot FROM log WHERE circuit = ? AND slot {} ? ORDER BY seq DESC LIMIT 1"
    kept = connection.execute(newest.format("<"), (circuit, KEPT_ROWS)).fetchone()
    other = connection.execute(newest.format(">="), (circuit, KEPT_ROWS)).fetchone()
    rows = [] if kept else log[-KEPT_ROWS + 1 :]
    connection.execute(
        "INSERT OR REPLACE INTO circuits (id, kind, phase, state, version, kept, other, updated)"
        " VALUES (?, ?, ?, ?, 1, ?, ?, ?)",
        (
            circuit,
            kind,
            _phase(state),
            dumps(state),
            kept[0] if kept else len(rows),
            other[0] - KEPT_ROWS if other else 0,
            time.time(),
        ),
    )
    for slot, row in enumerate(rows, 1):
        connection.execute(
            "INSERT INTO log (circuit, slot, at, kind, name, text, session, value, effect)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (circuit, slot, row.at, row.kind, row.name, row.text, row.session, row.value, row.effect),
        )
