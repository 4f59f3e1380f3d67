"""Create, migrate and repair the database. Off the hot path: run once, or when something is wrong.

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

from fusewire.stores import audit_file
from fusewire.stores.fast_sqlite import LOGS, is_damage
from fusewire.stores.migrations import MIGRATIONS
from fusewire.stores.rows import AUDIT_ROWS, KEPT_ROWS, AuditRow
from fusewire.stores.spent import COLUMNS
from fusewire.stores.sqlite_transaction import (
    ADD_AUDIT,
    ADD_LOG,
    NOTICE,
    SET_TRAIL,
    TRAIL,
    audit_values,
    is_object,
    log_values,
    trail_mark,
)
from fusewire.util.fast_json import dumps, dumps_in_order, loads
from fusewire.util.files import fault_at, free_name, open_file, set_aside, uri_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.stores import Backup
    from fusewire.stores.rows import LogRow
    from fusewire.util.fast_json import JsonObject

_COPIED = {
    "circuits": "id, kind, phase, state, version, kept, other, updated",
    "log": "seq, circuit, slot, at, kind, name, text, session, value, effect",
    "audit": "seq, circuit, at, source, target, cause, reason, actor",
    "notices": "seq, at, text, seen",
    "memories": "name, data, updated",
    "doings": "seq, session, agent, at, kind, tool, text, value",
    "decisions": "seq, code, at, session, kind, rule, data",
    "spent": COLUMNS,
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
    """Whether a page, a table or a text of the database cannot be read."""
    try:
        for table, columns in _COPIED.items():
            connection.execute(f"SELECT {columns} FROM {table}").fetchall()
        sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        connection.execute("PRAGMA shrink_memory")  # or later damage would hide behind cached pages
        return not sound
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return True


def rebuild_database(
    path: str, problem: str, backup: Backup | None, check: Callable[[object], object], mode: int = 0o644
) -> None:
    """Put a new database in the place of a lost one. The caller holds the recovery lock."""
    folder = os.path.dirname(path)
    for suffix in ("", *LOGS):
        fault = fault_at(path + suffix)
        if fault:
            set_aside(path + suffix, fault)
    damaged = os.path.exists(path)
    lock = os.path.join(folder, "recovery.lock")
    # The lock says that there was a database: should that and the trail be lost, it is no first start.
    expected = damaged or os.path.exists(audit_file.path_of(folder)) or os.path.getsize(lock) > 0
    _remove_leftovers(path)
    fresh = f"{path}.new-{os.getpid()}"
    os.close(open_file(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))  # SQLite would follow a link
    connection = sqlite3.connect(fresh, isolation_level=None)
    migrate(connection, 0)
    connection.execute("BEGIN")
    sources = []
    old = _lock_damaged(path) if damaged else None
    if old is not None and _copy_what_is_readable(old, connection, check):
        sources.append("what could be read of it")
    sources += _add_missing(connection, folder, backup, check)
    _add_audit_trail(connection, folder)
    connection.execute("DELETE FROM memories WHERE name = 'audit-file'")
    agree(connection, folder, check)
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
    with open(lock, "r+b") as file:
        file.write(b"a database was made\n")
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


def _state(text: Any, check: Callable[[object], object]) -> JsonObject | None:
    try:
        state = loads(text) if isinstance(text, str) else None
        check(state)
    except (ValueError, TypeError):
        return None
    return state


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
        kind = known[circuit][0] if circuit in known else _kind_of(circuit)
        row = known[circuit][1] if circuit in known else None
        if row is None or (_phase(moved) != _phase(row) and _last_move(moved) > _last_move(row)):
            _put(connection, circuit, kind, moved, [])
            sources.add("the audit trail")
    return sorted(sources)


# -- database and audit file ----------------------------------------------------------------------------

_RANK = {"closed": 0, "watch": 1, "probe": 2, "open": 3}

#: Times in the file are in milliseconds.
_ROUNDED = 0.002


def agree(connection: sqlite3.Connection, folder: str, check: Callable[[object], object]) -> None:
    """Let the database and the audit file say the same; of what either has lost, the stricter word wins.

    Lines behind what the database knew are newer than it: its log was deleted or damaged, it is an older copy, or a
    process died before its commit. If the file is another one, or shorter, times tell which of the two is newer. The
    caller holds the write lock and commits.
    """
    known = connection.execute(TRAIL).fetchone()
    before, now = (known[0] if known else ""), trail_mark(folder)
    inode, size = map(int, before.split() or (0, 0))
    if before:
        grown = now.startswith(f"{inode} ") and size <= int(now.split()[1])
    else:  # it has never known one; unless it is older than this knowledge, everything there is new
        grown = connection.execute("SELECT 1 FROM audit LIMIT 1").fetchone() is None
    words = audit_file.last_words(folder, check)

    def is_newer(word: audit_file.Word, at: float) -> bool:
        return word.offset >= size if grown else word.at > at + _ROUNDED

    applied: list[str] = []
    missing: list[tuple[AuditRow, JsonObject | None]] = []
    _agree_on_circuits(connection, words, is_newer, check, applied, missing)
    _agree_on_halts(connection, words, is_newer, applied, missing)
    if applied:
        names = ", ".join(applied[:5]) + (f" and {len(applied) - 5} more" if len(applied) > 5 else "")
        _notice(connection, f"the state database had lost what its audit trail has, which holds again: {names}")
    if before and not grown:
        _notice(connection, "the audit trail was shortened, replaced or removed; what is open or halted is in it again")
    if missing:
        try:
            audit_file.append(folder, missing)
        except OSError as error:
            _notice(connection, f"the audit trail cannot be written: {error}")
    connection.execute(SET_TRAIL, (trail_mark(folder),))


def _agree_on_circuits(
    connection: sqlite3.Connection,
    words: dict[str, audit_file.Word],
    is_newer: Callable[[audit_file.Word, float], bool],
    check: Callable[[object], object],
    applied: list[str],
    missing: list[tuple[AuditRow, JsonObject | None]],
) -> None:
    rows = connection.execute("SELECT id, kind, phase, state, updated FROM circuits").fetchall()
    known = {name: (kind, phase, _state(text, check), updated) for name, kind, phase, text, updated in rows}
    moved = dict(connection.execute("SELECT circuit, max(at) FROM audit GROUP BY circuit"))
    for name, word in words.items():
        if name.startswith(audit_file.SESSION) or word.to not in _RANK:
            continue
        kind, phase, state, _ = known.get(name, (_kind_of(name), "closed", None, 0))
        stricter = _RANK[word.to] > _RANK.get(phase, 3) or (word.to == phase != "closed" and word.state != state)
        if stricter and is_newer(word, moved.get(name, 0)):
            # The total counts what the log has; what was lost or never committed is not in it.
            moved_state = word.state if state is None else {**word.state, "total": state.get("total", 0)}
            _put(connection, name, kind, moved_state, [])
            known[name] = (kind, word.to, moved_state, 0)
            applied.append(f"{name} is {word.to}")
    for name, (_, phase, state, updated) in known.items():
        last = words[name].to if name in words else "closed"
        if state is not None and phase != last and (phase != "closed" or last in _RANK):
            row = AuditRow(name, max(moved.get(name, 0), updated), last, phase, "restated", "", "")
            missing.append((row, state))


def _agree_on_halts(
    connection: sqlite3.Connection,
    words: dict[str, audit_file.Word],
    is_newer: Callable[[audit_file.Word, float], bool],
    applied: list[str],
    missing: list[tuple[AuditRow, JsonObject | None]],
) -> None:
    known = {}
    rows = connection.execute("SELECT name, data, updated FROM memories WHERE name >= 'session/' AND name < 'session0'")
    for name, text, updated in rows.fetchall():
        if name.count("/") == 1:
            known[name] = (_state(text, is_object), updated)
    for name in {*known, *(name for name in words if name.startswith(audit_file.SESSION))}:
        record, updated = known.get(name, ({}, 0.0))
        halted, word = (record or {}).get("halted"), words.get(name)
        on_file = word.state if word is not None and word.to == "halted" else None
        if on_file and word and not halted and (record is None or is_newer(word, updated)):
            text = dumps_in_order({**(record or {}), "halted": on_file})  # without `since` it looks up what is open
            connection.execute("INSERT OR REPLACE INTO memories VALUES (?, ?, ?)", (name, text, word.at))
            applied.append(f"session {name.partition('/')[2]} is halted")
        elif bool(halted) != bool(on_file) and record is not None:
            words_of = ("running", "halted") if halted else ("halted", "lifted")
            missing.append((AuditRow(name, updated, *words_of, "restated", "", ""), halted))


def _kind_of(circuit: str) -> str:
    return circuit.partition("/")[0] if "/" in circuit else "constraint"


def _has_log(connection: sqlite3.Connection, circuit: str) -> bool:
    return connection.execute("SELECT 1 FROM log WHERE circuit = ? LIMIT 1", (circuit,)).fetchone() is not None


def _phase(state: JsonObject) -> str:
    return str(state.get("phase", "closed"))


def _last_move(state: JsonObject) -> float:
    return max(float(state.get("last_trip") or 0), float(state.get("last_reset") or 0))


def _counted_on(moved: JsonObject, counted: JsonObject) -> JsonObject:
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
    connection.executemany(ADD_AUDIT, map(audit_values, audit_file.rows(folder)[-AUDIT_ROWS:]))


def _notice(connection: sqlite3.Connection, text: str) -> None:
    connection.execute(NOTICE, (time.time(), text))


def _put(connection: sqlite3.Connection, circuit: str, kind: str, state: JsonObject, log: list[LogRow]) -> None:
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
        connection.execute(ADD_LOG, log_values(row, slot))
