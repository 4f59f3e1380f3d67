"""Store circuits in a schema of a PostgreSQL database: for machines that share one state.

One connection, made when it is needed and made again when it was lost. A unit that loses it in the middle has written
nothing and says so. Times are the server's, so that a machine whose clock is wrong neither opens nor closes anything.
"""

from __future__ import annotations

import os
import time
from threading import RLock
from typing import TYPE_CHECKING, Any
from zlib import crc32

import psycopg
from psycopg.pq import TransactionStatus

from fusewire.core.events import plain
from fusewire.stores import postgresql_schema as sql
from fusewire.stores.postgresql_address import Address
from fusewire.stores.postgresql_transaction import SHAPE, PostgresTransaction
from fusewire.stores.rows import EVERYTHING, FAR, AuditRow, CircuitRow, DecisionRow, Doing, LogRow, SpendRow
from fusewire.stores.spent import row_of, sums_query
from fusewire.stores.sqlite import ATTEMPTS, circuit_row, decision_of
from fusewire.stores.sqlite_transaction import audit_query, beginning, memory_in
from fusewire.util.errors import StoreError, StoreRetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fusewire.stores.postgresql_address import Connection
    from fusewire.util.fast_json import JsonObject

#: Seconds for which the server's time is known outside of units of work.
_TIME_KEPT = 1.0

#: Connections inherited through a fork: closing one would end the parent's session.
_inherited: list[Connection] = []


class PostgresStore:
    """Implements `Store`. Looking never makes the schema; the first unit of work does."""

    def __init__(self, url: str, *, patience: float = 2.0, read_only: bool = False) -> None:
        self._address = Address(url)
        #: for the key of its locks, beside which those of other schemas stand
        self.namespace = crc32(self._address.schema.encode()) - (1 << 31)
        self._lock_timeout = patience * ATTEMPTS
        self._read_only = read_only
        self._connection: Connection | None = None
        self._process = 0
        self._is_current = False
        #: held for a whole unit of work
        self.lock = RLock()
        #: when the unit that is under way began, or got the locks that it named; None until somebody asks
        self.time_of_unit: float | None = None
        self._server_time, self._asked_at = 0.0, -_TIME_KEPT
        self.after_news: Callable[[], None] | None = None

    # -- the unit of work ---------------------------------------------------------------------------

    def transact(self, circuits: Iterable[str] = ()) -> PostgresTransaction:
        if self._read_only:
            raise StoreError(f"the state database was opened for reading only: {self._address.shown}")
        return PostgresTransaction(self, circuits)

    def begin(self, *, again: bool = True) -> Connection:
        """The connection, with a transaction that has begun."""
        connection = self._connected()
        if connection.info.transaction_status != TransactionStatus.IDLE:
            raise StoreError("a unit of work is under way already")
        try:
            if not self._is_current:
                self._migrate(connection)
            connection.execute(sql.BEGIN)
        except BaseException as error:
            was_lost = connection.closed  # while nobody used it
            self._drop()
            if isinstance(error, psycopg.Error):
                if again and was_lost:
                    return self.begin(again=False)
                raise self.meaning(error) from error
            raise
        self.time_of_unit = None
        return connection

    def end(self, connection: Connection, *, commit: bool) -> None:
        """End the transaction. What cannot be rolled back is, because the server does so when a connection ends."""
        self.time_of_unit = None
        try:
            done = connection.execute("COMMIT" if commit else "ROLLBACK").statusmessage
        except psycopg.Error as error:
            self._drop()
            if commit:
                what = "was lost at the commit, and it is not known whether this was written"
                raise self._address.failure(error, what if connection.closed else "cannot be written") from error
            return
        if commit and done != "COMMIT":
            raise StoreError(f"the state database wrote nothing, because a statement had failed: {self._address.shown}")

    def meaning(self, error: psycopg.Error) -> StoreError:
        """What people and the engine are told of a unit that failed; nothing of it was written."""
        if isinstance(error, psycopg.errors.DeadlockDetected):
            return StoreRetry(str(self._address.failure(error)))
        if isinstance(error, psycopg.errors.LockNotAvailable):
            waited = f"is locked by another process (waited {self._lock_timeout:g} s)"
            return StoreError(f"the state database {waited}: {self._address.shown}")
        return self._address.failure(error)

    # -- the connection -----------------------------------------------------------------------------

    def _connected(self) -> Connection:
        if self._connection is not None and self._process != os.getpid():
            _inherited.append(self._connection)
            self._connection = None
        if self._connection is None or self._connection.closed:
            self._drop()
            self._connection = self._address.connect(lock_timeout=self._lock_timeout, read_only=self._read_only)
            self._process, self._is_current = os.getpid(), False
        return self._connection

    def _format(self, connection: Connection) -> int:
        """The version of the tables; 0 if there are none."""
        (is_there,) = _row(connection, sql.IS_THERE, (f"{self._address.schema}.migrations",))
        (version,) = _row(connection, sql.FORMAT) if is_there else (0,)
        if version > sql.LATEST:
            newer = f"was written by a newer Fusewire (format {version}, known {sql.LATEST})"
            raise StoreError(f"{self._address.shown} {newer}")
        self._is_current = version == sql.LATEST
        return int(version)

    def _migrate(self, connection: Connection) -> None:
        """Bring the tables up to date; of several processes that start at once, one does it."""
        if self._format(connection) == sql.LATEST:
            return
        schema = self._address.schema
        connection.execute(sql.BEGIN)
        connection.execute(sql.LOCK.encode(), (self.namespace, [SHAPE]))
        if not _row(connection, "SELECT to_regnamespace(%s) IS NOT NULL", (schema,))[0]:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(sql.MAKE_MIGRATIONS)
        for number in range(self._format(connection), sql.LATEST):
            name, statements = sql.MIGRATIONS[number]
            connection.execute(statements.encode())
            connection.execute(sql.ADD_MIGRATION, (number + 1, name))
        connection.execute("COMMIT")
        self._is_current = True

    def _drop(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    def _read(
        self, query: str, values: tuple[Any, ...] = (), *, of_tables: bool = True, again: bool = True
    ) -> list[Any]:
        with self.lock:
            connection = self._connected()
            is_inside = connection.info.transaction_status != TransactionStatus.IDLE
            try:
                if of_tables and not self._is_current and not self._format(connection):
                    return []
                return connection.execute(query.encode(), values).fetchall()
            except psycopg.Error as error:
                if is_inside or not again or not connection.closed:
                    raise self._address.failure(error, "cannot be read") from error
            return self._read(query, values, of_tables=of_tables, again=False)  # it was lost while nobody used it

    # -- reading ------------------------------------------------------------------------------------

    def clock(self) -> float:
        """The server's time: one for a whole unit of work, else asked for at most once a second."""
        with self.lock:
            connection = self._connected()
            if connection.info.transaction_status != TransactionStatus.IDLE:
                if self.time_of_unit is None:
                    self.time_of_unit = self._ask_time()
                return self.time_of_unit
            if not 0 <= time.monotonic() - self._asked_at < _TIME_KEPT:
                self._server_time = self._ask_time()
                self._asked_at = time.monotonic()
            return self._server_time + time.monotonic() - self._asked_at

    def _ask_time(self) -> float:
        return float(self._read(sql.NOW, of_tables=False)[0][0])

    def circuits(self) -> list[CircuitRow]:
        return [circuit_row(row) for row in self._read(sql.CIRCUITS)]

    def circuit(self, circuit: str) -> CircuitRow | None:
        rows = self._read(sql.CIRCUIT, (plain(circuit),))
        return circuit_row(rows[0]) if rows else None

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return [LogRow(*row) for row in self._read(sql.LOG_OF, (plain(circuit), since))]

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._read(sql.AUDIT_OF, audit_query(circuit, since))]

    def moves(self, after: int = 0, limit: int = 1000) -> list[tuple[int, AuditRow]]:
        return [(number, AuditRow(*row)) for number, *row in self._read(sql.MOVES, (after, limit))]

    def last_move(self) -> int:
        rows = self._read(sql.LAST_MOVE)
        return (rows[0][0] or 0) if rows else 0

    def logs(self, since: float = 0.0) -> list[LogRow]:
        return [LogRow(*row) for row in self._read(sql.LOGS, (since,))]

    def doings(self, session: str, since: float = 0.0) -> list[Doing]:
        return [Doing(*row) for row in self._read(sql.DOINGS_OF, (plain(session), since))]

    def answers(self, after: int = 0) -> list[tuple[int, Doing]]:
        return [(number, Doing(*row)) for number, *row in self._read(sql.ANSWERS_AFTER, (after,))]

    def decisions(self, after: int = 0) -> list[tuple[int, DecisionRow]]:
        return [decision_of(row) for row in self._read(sql.DECISIONS_AFTER, (after,))]

    def last_decision(self) -> int:
        rows = self._read(sql.LAST_DECISION)
        return (rows[0][0] or 0) if rows else 0

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        query, values = sums_query(by, since, until, where)
        return self._read(sql.shared(query), values)

    def spent_after(self, version: int) -> list[SpendRow]:
        return [row_of(row) for row in self._read(sql.SPENT_AFTER, (version,))]

    def notices_after(self, after: int = 0) -> list[tuple[int, float, str]]:
        return [(number, at, text) for number, at, text in self._read(sql.NOTICES_AFTER, (after,))]

    def version(self) -> tuple[int, ...]:
        """Which of the server's transactions can be seen: also those of other databases change it."""
        rows = self._read(sql.VERSION)
        return tuple(int(number) for number in rows[0][0].replace(":", " ").replace(",", " ").split()) if rows else ()

    def notices(self) -> list[str]:
        return [text for _, _, text in self.notices_after()]

    def recall(self, name: str) -> JsonObject | None:
        return memory_in(self._read(sql.MEMORY, (plain(name),)))

    def halt_on_file(self, session: str) -> JsonObject | None:
        """The server is the one place."""
        return None

    def remembered(self, prefix: str) -> list[tuple[str, float]]:
        return [(name, at) for name, at in self._read(sql.MEMORIES, beginning(prefix))]

    def verify(self) -> list[str]:
        return [f"{row.id}: its state cannot be read" for row in self.circuits() if row.state is None]

    def close(self) -> None:
        with self.lock:
            self._drop()


def _row(connection: Connection, query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    return connection.execute(query.encode(), values).fetchall()[0]
