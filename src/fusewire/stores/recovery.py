"""Making, migrating and mending the database. Off the hot path: run once, or when something is wrong.

A damaged database is never deleted and never silently replaced by an empty one: it is set aside, a new one is
filled with what can still be read from it, from the audit trail and from the mirrored state file, and a
notice says so until a person acknowledges it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from fusewire.quickjson import dumps, loads
from fusewire.stores import audit_file
from fusewire.stores.migrations import MIGRATIONS
from fusewire.stores.rows import AUDIT_ROWS, KEPT_ROWS

if TYPE_CHECKING:
    from fusewire.stores import Backup
    from fusewire.stores.rows import LogRow

_COPIED = {
    "circuits": "id, kind, phase, state, version, kept, other, updated",
    "log": "seq, circuit, slot, at, kind, name, text, session, value, effect",
    "audit": "seq, circuit, at, source, target, cause, reason, actor",
    "notices": "seq, at, text, seen",
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


def rebuild_database(path: str, problem: str, backup: Backup | None) -> None:
    """Put a new database in the place of a lost one. The caller holds the recovery lock."""
    folder = os.path.dirname(path)
    damaged = os.path.exists(path)
    expected = damaged or os.path.exists(audit_file.path_of(folder))
    _remove_leftovers(path)
    fresh = f"{path}.new-{os.getpid()}"
    connection = sqlite3.connect(fresh, isolation_level=None)
    migrate(connection, 0)
    connection.execute("BEGIN")
    sources = []
    old = _lock_damaged(path) if damaged else None
    if old is not None and _copy_what_is_readable(old, connection):
        sources.append("what could be read of it")
    sources += _add_missing(connection, folder, backup)
    _add_audit_trail(connection, folder)
    aside = f"{path}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
    if expected or sources:
        found = f"rebuilt from {' and '.join(sources)}" if sources else "nothing was left, all circuits start empty"
        what = f"the state database was damaged ({problem})" if damaged else f"there was no state database ({problem})"
        kept = f"; the old file is kept as {os.path.basename(aside)}" if damaged else ""
        _notice(connection, f"{what}: {found}{kept}")
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    # The old file's write-ahead log must never meet the new one. The replacement itself is one step.
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    if damaged:
        os.link(path, aside)
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
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{quoted}?mode=rw", uri=True, isolation_level=None)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    except sqlite3.DatabaseError:
        return None
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.DatabaseError:
        pass
    return connection


def _copy_what_is_readable(source: sqlite3.Connection, connection: sqlite3.Connection) -> bool:
    """Copy row by row until a page cannot be read; True if any circuit came over."""
    for table, columns in _COPIED.items():
        marks = ", ".join("?" * (columns.count(",") + 1))
        try:
            for row in source.execute(f"SELECT {columns} FROM {table}"):
                if table == "circuits" and not _is_state(row[3]):
                    continue
                try:
                    connection.execute(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", row)
                except sqlite3.IntegrityError:
                    continue
        except sqlite3.DatabaseError:
            continue
    (count,) = connection.execute("SELECT count(*) FROM circuits").fetchone()
    return bool(count)


def _is_state(text: Any) -> bool:
    from fusewire.circuit import State

    try:
        State.from_data(loads(text))
    except (ValueError, TypeError):
        return False
    return True


def _add_missing(connection: sqlite3.Connection, folder: str, backup: Backup | None) -> list[str]:
    """Circuits that the old file did not give, from the mirrored state and from the audit trail.

    The mirror knows more violations, but the audit trail is never behind on phases: where they differ, it is right.
    """
    known = {name for (name,) in connection.execute("SELECT id FROM circuits")}
    audited = {name: state for name, state in audit_file.last_states(folder).items() if _is_state(dumps(state))}
    mirrored, word, problems = backup.read() if backup is not None else ([], "", [])
    for problem in problems[:10]:
        _notice(connection, f"while the state database was rebuilt: {problem}")
    sources = set()
    for circuit, kind, state, log in mirrored:
        if circuit in known:
            continue
        trail = audited.pop(circuit, state)
        if trail.get("phase", "closed") != state.get("phase", "closed"):
            state = trail
            sources.add("the audit trail")
        _insert(connection, circuit, kind, state, log)
        known.add(circuit)
        sources.add(word)
    for circuit, state in audited.items():
        if circuit not in known:
            kind = circuit.partition("/")[0] if "/" in circuit else "constraint"
            _insert(connection, circuit, kind, state, [])
            sources.add("the audit trail")
    return sorted(sources)


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


def _insert(connection: sqlite3.Connection, circuit: str, kind: str, state: dict[str, Any], log: list[LogRow]) -> None:
    log = log[-KEPT_ROWS:]
    connection.execute(
        "INSERT INTO circuits (id, kind, phase, state, version, kept, updated) VALUES (?, ?, ?, ?, 1, ?, ?)",
        (circuit, kind, state.get("phase", "closed"), dumps(state), len(log), time.time()),
    )
    for slot, row in enumerate(log, 1):
        connection.execute(
            "INSERT OR REPLACE INTO log (circuit, slot, at, kind, name, text, session, value, effect)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                circuit,
                slot % KEPT_ROWS,
                row.at,
                row.kind,
                row.name,
                row.text,
                row.session,
                row.value,
                row.effect,
            ),
        )
