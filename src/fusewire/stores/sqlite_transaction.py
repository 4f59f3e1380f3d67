"""One unit of work on the database: everything that an event writes, or nothing of it."""

from __future__ import annotations

import os

from fusewire.core.events import plain
from fusewire.stores.fast_sqlite import is_damage, sqlite3
from fusewire.stores.rows import (
    ANSWERS,
    AUDIT_ROWS,
    CIRCUITS,
    DECISIONS,
    DOINGS,
    EVERYTHING,
    FAR,
    KEPT_ROWS,
    LOG_ROWS,
    NOTICES,
    OTHER_ROWS,
    SESSION_KEPT,
    TRIM_EVERY,
    AuditRow,
    DecisionRow,
    Doing,
    LogRow,
    SpendRow,
)
from fusewire.util.errors import StoreError, StoreRebuilt
from fusewire.util.fast_json import dumps, dumps_in_order, loads
from fusewire.util.files import advise_owner, unwritten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from fusewire.stores.sqlite import SqliteStore
    from fusewire.util.fast_json import JsonObject

# Read inside a unit of work, and by whoever only looks.
LOG_OF = (
    "SELECT circuit, at, kind, name, text, session, value, effect FROM log WHERE circuit = ? AND at >= ? ORDER BY seq"
)
ADD_LOG = (
    "INSERT OR REPLACE INTO log (circuit, slot, at, kind, name, text, session, value, effect)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ADD_AUDIT = "INSERT INTO audit (circuit, at, source, target, cause, reason, actor) VALUES (?, ?, ?, ?, ?, ?, ?)"
NOTICE = "INSERT INTO notices (at, text, seen) VALUES (?, ?, 0)"
MEMORY = "SELECT data FROM memories WHERE name = ?"
ADD_DECISION = "INSERT OR IGNORE INTO decisions (code, at, session, kind, rule, data) VALUES (?, ?, ?, ?, ?, ?)"
AUDIT_OF = (
    "SELECT circuit, at, source, target, cause, reason, actor FROM audit"
    " WHERE (? IS NULL OR circuit = ?) AND at >= ? ORDER BY seq"
)
#: Which audit file the database knows, and up to where (see `trail_mark`).
TRAIL = "SELECT data FROM memories WHERE name = 'audit-file'"
SET_TRAIL = "INSERT OR REPLACE INTO memories VALUES ('audit-file', ?, 0)"


class SqliteTransaction:
    """Holds the write lock from `__enter__` on; commits at the end, or rolls everything back."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._audit: list[tuple[AuditRow, JsonObject | None]] = []
        self._news = False

    def __enter__(self) -> SqliteTransaction:
        self._store._lock.acquire()
        try:
            self._connection = self._store._begin()
        except BaseException:
            self._store._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.DatabaseError):
                    if is_damage(error):
                        self._store._recover(str(error))
                        raise StoreRebuilt(
                            f"the state database was damaged and is rebuilt: {self._store.path}"
                        ) from error
                    advice = advise_owner(self._store.folder)
                    raise StoreError(f"the state database failed: {self._store.path}: {error}{advice}") from error
                return
            if self._audit:
                from fusewire.stores.audit_file import append

                append(self._store.folder, self._audit)
                self._connection.execute(SET_TRAIL, (trail_mark(self._store.folder),))
            if unwritten:
                self._store._write_news(self._connection)
            self._connection.execute("COMMIT")
            self._store._checkpoint(self._connection, moved=bool(self._audit))
        except (sqlite3.DatabaseError, OSError) as failure:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise StoreError(f"the state could not be written: {self._store.folder}: {failure}") from failure
        finally:
            self._store._lock.release()
        if self._news and self._store.after_news is not None:
            self._store.after_news()

    def load(self, circuit: str) -> JsonObject | None:
        row = self._connection.execute("SELECT state FROM circuits WHERE id = ?", (plain(circuit),)).fetchone()
        if row is None:
            return None
        state = loads(row[0]) if isinstance(row[0], str) else None
        is_object(state)
        return state

    def save(
        self, circuit: str, kind: str, phase: str, state: JsonObject, now: float, log: LogRow | None = None
    ) -> None:
        circuit = plain(circuit)
        text = dumps(state)
        kept = 0 if log is None else 1
        row = self._connection.execute(
            "UPDATE circuits SET phase = ?, state = ?, version = version + 1, updated = ?, kept = kept + ?"
            " WHERE id = ? RETURNING kept",
            (phase, text, now, kept, circuit),
        ).fetchone()
        if row is None:
            self._connection.execute(
                "INSERT INTO circuits (id, kind, phase, state, version, updated, kept) VALUES (?, ?, ?, ?, 1, ?, ?)",
                (circuit, kind, phase, text, now, kept),
            )
            self._drop_idle_circuits(circuit, now)
        if log is not None:
            self._insert(log, (kept if row is None else row[0]) % KEPT_ROWS)

    def log(self, row: LogRow, *, kept: bool) -> None:
        column, size, first = ("kept", KEPT_ROWS, 0) if kept else ("other", OTHER_ROWS, KEPT_ROWS)
        counted = self._connection.execute(
            f"UPDATE circuits SET {column} = {column} + 1 WHERE id = ? RETURNING {column}", (row.circuit,)
        ).fetchone()
        self._insert(row, first + ((counted[0] if counted else 0) % size))

    def _insert(self, row: LogRow, slot: int) -> None:
        written = self._connection.execute(ADD_LOG, log_values(row, slot))
        self._trim("log", LOG_ROWS, written.lastrowid)

    def audit(self, row: AuditRow, state: JsonObject | None = None) -> None:
        self._audit.append((row, state))
        self._news = True
        written = self._connection.execute(ADD_AUDIT, audit_values(row))
        self._trim("audit", AUDIT_ROWS, written.lastrowid)

    def note_halt(self, session: str, halted: JsonObject | None, now: float) -> None:
        source, target = ("running", "halted") if halted else ("halted", "lifted")
        row = AuditRow(f"session/{plain(session)}", now, source, target, target, (halted or {}).get("rule", ""), "")
        self._audit.append((row, halted))

    def happened(self, doing: Doing) -> None:
        written = self._connection.execute(
            "INSERT INTO doings (session, agent, at, kind, tool, text, value) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (doing.session, doing.agent, doing.at, doing.kind, doing.tool, doing.text, doing.value),
        )
        self._news = self._news or doing.kind in ANSWERS
        self._trim("doings", DOINGS, written.lastrowid)

    def decided(self, row: DecisionRow) -> str:
        attempt = 0
        while True:
            coded = row.coded(attempt)
            values = (coded.code, row.at, row.session, row.kind, row.rule, dumps(row.data))
            written = self._connection.execute(ADD_DECISION, values)
            if written.rowcount:
                self._trim("decisions", DECISIONS, written.lastrowid)
                return coded.code
            attempt += 1

    def remove(self, circuit: str) -> None:
        self._connection.execute("DELETE FROM circuits WHERE id = ?", (plain(circuit),))
        self._connection.execute("DELETE FROM log WHERE circuit = ?", (plain(circuit),))

    def notice(self, text: str, now: float) -> None:
        self._news = True
        self._connection.execute(NOTICE, (now, plain(text)))
        self._connection.execute(f"DELETE FROM notices WHERE seq <= (SELECT max(seq) FROM notices) - {NOTICES}")

    def acknowledge(self) -> int:
        return self._connection.execute("UPDATE notices SET seen = 1 WHERE seen = 0").rowcount

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return [LogRow(*row) for row in self._connection.execute(LOG_OF, (plain(circuit), since))]

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._connection.execute(AUDIT_OF, audit_query(circuit, since))]

    def recall(self, name: str) -> JsonObject | None:
        return memory_in(self._connection.execute(MEMORY, (plain(name),)).fetchall())

    def remember(self, name: str, data: JsonObject, now: float) -> None:
        row = (plain(name), dumps_in_order(data), now)
        self._connection.execute("INSERT OR REPLACE INTO memories VALUES (?, ?, ?)", row)

    def drop(self, name: str) -> None:
        self._connection.execute("DELETE FROM memories WHERE name = ?", (plain(name),))

    def forget(self, prefix: str, before: float) -> int:
        return self._connection.execute(
            "DELETE FROM memories WHERE name >= ? AND name < ? AND updated < ?", (*beginning(prefix), before)
        ).rowcount

    def spend(self, rows: Sequence[SpendRow]) -> None:
        from fusewire.stores import spent

        self._connection.executemany(spent.ADD, [spent.values_of(row)[:-1] for row in rows])

    def copy_spend(self, rows: Sequence[SpendRow]) -> None:
        """Put rows of a project's store, which name it as their `source`, in the place of those copied before."""
        from fusewire.stores import spent

        self._connection.executemany(spent.PUT, [spent.values_of(row) for row in rows])

    def fold_spend(self, since: int, until: int, at: int, *, session: bool) -> None:
        """Put what was spent from `since` to `until` into one row each, of all sessions together or not."""
        from fusewire.stores.spent import fold

        fold(self._connection, since, until, at, session=session)

    def forget_spend(self, before: int, version: int) -> None:
        """Drop rows that are as old, and up to that number."""
        from fusewire.stores.spent import FORGET

        self._connection.execute(FORGET, (before, version))

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        from fusewire.stores.spent import sums_query

        return self._connection.execute(*sums_query(by, since, until, where)).fetchall()

    def _trim(self, table: str, limit: int, written: int | None) -> None:
        if written is not None and written % TRIM_EVERY == 0:
            self._connection.execute(
                f"DELETE FROM {table} WHERE seq <= (SELECT seq FROM {table} ORDER BY seq DESC LIMIT 1 OFFSET {limit})"
            )

    def _drop_idle_circuits(self, newest: str, now: float) -> None:
        """Circuits of sessions long gone, before any other; never one of a constraint. One that is not closed only if
        it is a session's, whose cooldown is over after minutes: it is then kept for a week."""
        (count,) = self._connection.execute("SELECT count(*) FROM circuits").fetchone()
        if count <= CIRCUITS:
            return
        idle = self._connection.execute(
            "SELECT id FROM circuits WHERE id != ? AND kind != 'constraint'"
            " AND (phase = 'closed' OR (kind = 'tool' AND updated < ?)) ORDER BY kind != 'tool', updated LIMIT ?",
            (newest, now - SESSION_KEPT, count - CIRCUITS),
        ).fetchall()
        for (circuit,) in idle:
            self.remove(circuit)


def log_values(row: LogRow, slot: int) -> tuple[object, ...]:
    """The values that `ADD_LOG` takes."""
    return row.circuit, slot, row.at, row.kind, row.name, row.text, row.session, row.value, row.effect


def audit_values(row: AuditRow) -> tuple[object, ...]:
    """The values that `ADD_AUDIT` takes."""
    return row.circuit, row.at, row.source, row.target, row.cause, row.reason, row.actor


def trail_mark(folder: str) -> str:
    """What the audit file is now; it grows at its end, and another one has another number."""
    try:
        facts = os.lstat(f"{folder}/audit.jsonl")
    except OSError:
        return ""
    return f"{facts.st_ino} {facts.st_size}"


def memory_in(rows: list[Any]) -> JsonObject | None:
    if not rows:
        return None
    data = loads(rows[0][0]) if isinstance(rows[0][0], str) else None
    if not isinstance(data, dict):
        raise ValueError("not a detector's memory")
    return data


def beginning(prefix: str) -> tuple[str, str]:
    """Names that begin so are those from the first of these up to the second."""
    return prefix, prefix + "\U0010ffff"


def audit_query(circuit: str | None, since: float) -> tuple[str | None, str | None, float]:
    name = None if circuit is None else plain(circuit)
    return name, name, since


def is_object(state: object) -> None:
    if not isinstance(state, dict):
        raise ValueError("not a circuit's state")
