"""One unit of work on a PostgreSQL server: everything that an event writes, or nothing of it.

Each circuit and each memory is locked by its name before it is first read, until the commit, and never the whole
store; the locks are the server's (`pg_advisory_xact_lock`), so that they end with the connection. Circuits that are
named at the beginning are locked in one order. Should two units still wait for each other, the server ends one, and
the engine does it again (`StoreRetry`).

What gets a number that others follow (the audit trail, notices, answers to agents, what was spent) is written last,
under one lock of the store's: otherwise a row could appear behind a number that somebody has already passed.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from zlib import crc32

import psycopg

from fusewire.core.events import plain
from fusewire.stores import postgresql_schema as sql
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
from fusewire.stores.spent import sums_query, values_of
from fusewire.stores.sqlite_transaction import audit_query, audit_values, beginning, is_object, log_values, memory_in
from fusewire.util.errors import StoreError
from fusewire.util.fast_json import dumps, dumps_in_order, loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from fusewire.stores.postgresql import PostgresStore
    from fusewire.util.fast_json import JsonObject

#: Of the locks of one store: for the numbers that others follow, for the shape of the tables, and for names. There are
#: so many of the last that two circuits seldom share one, and so few that the server has room for them.
TRAIL, SHAPE, _FIRST_NAME, _NAMES = 0, 1, 2, 1024


class PostgresTransaction:
    """Begins at `__enter__`; commits at the end, or rolls everything back."""

    def __init__(self, store: PostgresStore, circuits: Iterable[str]) -> None:
        self._store = store
        self._named = sorted({_slot("circuit", circuit) for circuit in circuits})
        self._held: set[int] = set()
        self._audit: list[AuditRow] = []
        self._notices: list[tuple[float, str]] = []
        self._doings: list[Doing] = []
        #: by their codes
        self._decisions: dict[str, tuple[Any, ...]] = {}
        self._spent: list[SpendRow] = []
        self._news = False

    def __enter__(self) -> PostgresTransaction:
        self._store.lock.acquire()
        try:
            self._connection = self._store.begin()
            try:
                self._take(self._named)
            except BaseException as error:
                self._store.end(self._connection, commit=False)
                if isinstance(error, psycopg.Error):
                    raise self._store.meaning(error) from error
                raise
        except BaseException:
            self._store.lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_whole = False
        try:
            if isinstance(error, psycopg.Error):
                raise error
            if kind is None:
                self._flush()
                is_whole = True
        except psycopg.Error as failure:
            raise self._store.meaning(failure) from failure
        finally:
            try:
                self._store.end(self._connection, commit=is_whole)
            finally:
                self._store.lock.release()
        if kind is None and self._news and self._store.after_news is not None:
            self._store.after_news()

    def _run(self, query: str, values: tuple[Any, ...] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(query.encode(), values)

    def _take(self, slots: list[int]) -> None:
        if slots:
            held = self._run(sql.LOCK, (self._store.namespace, slots)).fetchall()
            self._store.time_of_unit = held[-1][1]
            self._held.update(slots)

    def _hold(self, what: str, name: str) -> str:
        """The name as it is stored, once it is ours alone."""
        name = plain(name)
        slot = _slot(what, name)
        if slot not in self._held:
            self._run(sql.LOCK, (self._store.namespace, [slot]))
            self._held.add(slot)
        return name

    # -- circuits -----------------------------------------------------------------------------------

    def load(self, circuit: str) -> JsonObject | None:
        row = self._run(sql.STATE, (self._hold("circuit", circuit),)).fetchone()
        if row is None:
            return None
        state: JsonObject = loads(row[0])
        is_object(state)
        return state

    def save(
        self, circuit: str, kind: str, phase: str, state: JsonObject, now: float, log: LogRow | None = None
    ) -> None:
        circuit, text = self._hold("circuit", circuit), dumps(state)
        kept, version = self._one(sql.SAVE, (circuit, kind, phase, text, 0 if log is None else 1, now))
        if version == 1:
            self._drop_idle_circuits(circuit, now)
        if log is not None:
            self._insert(log, kept % KEPT_ROWS)

    def log(self, row: LogRow, *, kept: bool) -> None:
        self._hold("circuit", row.circuit)
        query, size, first = (sql.COUNT_KEPT, KEPT_ROWS, 0) if kept else (sql.COUNT_OTHER, OTHER_ROWS, KEPT_ROWS)
        counted = self._run(query, (row.circuit,)).fetchone()
        self._insert(row, first + ((counted[0] if counted else 0) % size))

    def _insert(self, row: LogRow, slot: int) -> None:
        self._add("log", LOG_ROWS, sql.ADD_LOG, log_values(row, slot))

    def remove(self, circuit: str) -> None:
        circuit = self._hold("circuit", circuit)
        self._run(sql.REMOVE_CIRCUIT, (circuit,))
        self._run(sql.REMOVE_LOG, (circuit,))

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return [LogRow(*row) for row in self._run(sql.LOG_OF, (self._hold("circuit", circuit), since))]

    def _drop_idle_circuits(self, newest: str, now: float) -> None:
        """As in the SQLite store; one that somebody holds is not idle."""
        (count,) = self._one(sql.COUNT_CIRCUITS)
        if count <= CIRCUITS:
            return
        long_ago = now - SESSION_KEPT
        for (circuit,) in self._run(sql.IDLE, (newest, long_ago, count - CIRCUITS)).fetchall():
            slot = _slot("circuit", circuit)
            if slot in self._held or self._one(sql.TRY_LOCK, (self._store.namespace, slot))[0]:
                self._held.add(slot)
                if self._run(sql.REMOVE_IDLE, (circuit, long_ago)).rowcount:  # it may have moved before it was ours
                    self._run(sql.REMOVE_LOG, (circuit,))

    # -- memories -----------------------------------------------------------------------------------

    def recall(self, name: str) -> JsonObject | None:
        return memory_in(self._run(sql.MEMORY, (self._hold("memory", name),)).fetchall())

    def remember(self, name: str, data: JsonObject, now: float) -> None:
        self._run(sql.REMEMBER, (self._hold("memory", name), dumps_in_order(data), now))

    def drop(self, name: str) -> None:
        self._run(sql.DROP, (self._hold("memory", name),))

    def forget(self, prefix: str, before: float) -> int:
        return self._run(sql.FORGET, (*beginning(prefix), before)).rowcount

    # -- what others follow by its number -------------------------------------------------------------

    def audit(self, row: AuditRow, state: JsonObject | None = None) -> None:
        self._audit.append(row)
        self._news = True

    def note_halt(self, session: str, halted: JsonObject | None, now: float) -> None:
        """The server is the one place."""

    def happened(self, doing: Doing) -> None:
        self._doings.append(doing)
        self._news = self._news or doing.kind in ANSWERS

    def decided(self, row: DecisionRow) -> str:
        """The code is locked by its name, so that nobody else gives it away before the commit."""
        code = next(code for code in (row.coded(attempt).code for attempt in count()) if self._is_free(code))
        self._decisions[code] = (code, row.at, row.session, row.kind, row.rule, dumps(row.data))
        return code

    def _is_free(self, code: str) -> bool:
        held = self._hold("decision", code)
        return code not in self._decisions and self._run(sql.HAS_CODE, (held,)).fetchone() is None

    def notice(self, text: str, now: float) -> None:
        self._notices.append((now, plain(text)))
        self._news = True

    def acknowledge(self) -> int:
        self._flush()
        return self._run(sql.ACKNOWLEDGE).rowcount

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        if circuit is not None:
            self._hold("circuit", circuit)
        self._flush()
        return [AuditRow(*row) for row in self._run(sql.AUDIT_OF, audit_query(circuit, since))]

    def spend(self, rows: Sequence[SpendRow]) -> None:
        self._spent += rows

    def forget_spend(self, before: int, version: int) -> None:
        self._flush()
        self._run(sql.LOCK, (self._store.namespace, [TRAIL]))
        self._run(sql.FORGET_SPEND, (before, version))

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        query, values = sums_query(by, since, until, where)
        self._flush()
        return self._run(sql.shared(query), values).fetchall()

    def _flush(self) -> None:
        followed = self._audit or self._notices or self._decisions or self._spent
        if followed or any(doing.kind in ANSWERS for doing in self._doings):
            self._run(sql.LOCK, (self._store.namespace, [TRAIL]))
        for row in self._audit:
            self._add("audit", AUDIT_ROWS, sql.ADD_AUDIT, audit_values(row))
        for notice in self._notices:
            self._add("notices", NOTICES, sql.ADD_NOTICE, notice, every=1)
        for doing in self._doings:
            self._add("doings", DOINGS, sql.ADD_DOING, tuple(getattr(doing, name) for name in doing.fields))
        for decision in self._decisions.values():
            self._add("decisions", DECISIONS, sql.ADD_DECISION, decision)
        for spent in self._spent:
            self._run(sql.SPEND, values_of(spent)[:-1])
        self._audit, self._notices, self._doings, self._decisions, self._spent = [], [], [], {}, []

    def _add(self, table: str, limit: int, query: str, values: tuple[Any, ...], *, every: int = TRIM_EVERY) -> None:
        (number,) = self._one(query, values)
        if number % every == 0:
            self._run(sql.trim(table), (limit,))

    def _one(self, query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        row = self._run(query, values).fetchone()
        if row is None:
            raise StoreError("the state database gave no answer to what it always answers")
        return row


def _slot(what: str, name: str) -> int:
    """The lock of a name."""
    return _FIRST_NAME + crc32(f"{what} {plain(name)}".encode()) % _NAMES
