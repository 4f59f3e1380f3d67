"""Store circuits in one SQLite file: the embedded default, shared by all processes of one machine.

Every write is one `BEGIN IMMEDIATE`, taken before the first read: of eight writers that read first, four in five
counts are lost; this way none is. WAL with `synchronous=NORMAL` survives `kill -9` at any moment. A process
that ends without closing its connection (the hook does) leaves the write-ahead log to the next one, which then knows no
more what of it is in the database already: so it is emptied as soon as it is long, and not merely copied.
"""

from __future__ import annotations

import os
import time

from fusewire.core.events import plain
from fusewire.stores.fast_sqlite import (
    BUSY,
    CANNOT_OPEN,
    FULL,
    IO_ERROR,
    LOGS,
    READ_ONLY,
    code_of,
    is_damage,
    sqlite3,
)
from fusewire.stores.migrations import LATEST
from fusewire.stores.rows import (
    ANSWERS,
    EVERYTHING,
    FAR,
    AuditRow,
    CircuitRow,
    DecisionRow,
    Doing,
    LogRow,
    SpendRow,
)
from fusewire.stores.sqlite_transaction import (
    AUDIT_OF,
    LOG_OF,
    MEMORY,
    NOTICE,
    TRAIL,
    SqliteTransaction,
    audit_query,
    beginning,
    is_object,
    memory_in,
    trail_mark,
)
from fusewire.util.errors import StoreError
from fusewire.util.fast_json import loads
from fusewire.util.files import (
    FileLock,
    advise_owner,
    claim,
    ensure_state_folder,
    fault_at,
    fault_of,
    is_state_folder,
    unwritten,
    uri_path,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from fusewire.stores import Backup
    from fusewire.util.fast_json import JsonObject

#: A locked database is tried this often, with these pauses in between (seconds).
ATTEMPTS = 3
_PAUSES = (0.05, 0.2)

#: Seconds for which the lock of a rebuild is waited for: while nothing is seen to be rebuilt, and while it is.
_LOCK_PATIENCE, _REBUILD_PATIENCE = 0.5, 4.0

#: Bytes of write-ahead log beyond which it is emptied: below 1 MB even if a large event comes last.
_LOG_LIMIT = 192 * 4120

#: Milliseconds for which that waits for those who read; if they read on, the next commit tries again.
_READERS_PATIENCE = 10

#: A file that is no multiple of this was cut off.
_PAGE = 4096

#: Connections inherited through a fork: never used, and never closed, because that would drop the parent's locks.
_inherited: list[Any] = []


class _Lost(Exception):
    """There is no usable database at the path: missing, empty, damaged."""


class SqliteStore:
    """One database file, and beside it the audit trail as text (see `audit_file`)."""

    #: how SQLite opens it
    MODE = "rw"

    clock = staticmethod(time.time)

    def __init__(
        self,
        path: str,
        *,
        backup: Backup | None = None,
        check: Callable[[object], object] | None = None,
        patience: float = 2.0,
        verifies: bool = False,
        mode: int = 0o644,
    ) -> None:
        self.path = os.path.abspath(path)
        if not is_state_folder(os.path.dirname(self.path)):
            self.path = os.path.realpath(path)  # a place that somebody has named, through their own links
        self.folder = os.path.dirname(self.path)
        self._recovery_lock = os.path.join(self.folder, "recovery.lock")
        self._backup = backup
        self._check = check or is_object
        self._patience = patience
        #: who may read the file, at its creation
        self._mode = mode
        #: whether all of it is looked through when it is opened: SQLite alone overlooks damage, but a hook has no time
        self.verifies = verifies
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._process = 0
        self._lock = _thread_lock()
        self.after_news: Callable[[], None] | None = None

    # -- the unit of work ---------------------------------------------------------------------------

    def transact(self, circuits: Iterable[str] = ()) -> SqliteTransaction:
        return SqliteTransaction(self)

    def _begin(self) -> sqlite3.Connection:
        """A connection that holds the write lock."""
        started = time.monotonic()
        problem = ""
        for attempt in range(ATTEMPTS):
            try:
                mine = self._connection if self._process == os.getpid() else None
                connection = mine or self._connect()
                connection.execute("BEGIN IMMEDIATE")
                # Only now is it certain: a rebuild waits for this lock before it puts a new file in place.
                if self._inode == _inode(self.path):
                    if not self._knows_trail(connection):
                        self._agree(connection)
                    return connection
                connection.execute("ROLLBACK")
                self._drop()
                problem = "is replaced again and again"
                continue
            except sqlite3.DatabaseError as error:
                problem = "is locked by another process" if code_of(error) == BUSY else f"cannot be used ({error})"
                if is_damage(error):
                    self._recover(str(error))
                elif code_of(error) != BUSY:
                    problem = f"{self.path}: {error}{advise_owner(self.folder)}"
                    raise StoreError(f"the state database cannot be used: {problem}") from error
            if attempt < len(_PAUSES):
                time.sleep(_PAUSES[attempt])
        waited = time.monotonic() - started
        raise StoreError(f"the state database {problem}: {self.path} ({ATTEMPTS} attempts in {waited:.1f} s)")

    def _knows_trail(self, connection: sqlite3.Connection) -> bool:
        """Whether nothing was appended to the audit file, or taken from it, that the database has not heard of."""
        row = connection.execute(TRAIL).fetchone()
        return (row[0] if row else "") == trail_mark(self.folder)

    def _agree(self, connection: sqlite3.Connection) -> None:
        """Let database and audit file agree, in a transaction of its own; the caller's begins again after it."""
        from fusewire.stores.recovery import agree

        try:
            agree(connection, self.folder, self._check)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("BEGIN IMMEDIATE")

    def _connect_agreed(self) -> sqlite3.Connection:
        """A connection for reading; what only the audit file knows is in the database before anybody looks."""
        is_new = self._connection is None
        connection = self._connect()
        if is_new and self.MODE == "rw" and not self._knows_trail(connection):
            try:
                with self.transact():
                    pass
            except StoreError:
                pass  # locked, or not ours to write: it is read as it is
            connection = self._connect()
        return connection

    def _checkpoint(self, connection: sqlite3.Connection, *, moved: bool) -> None:
        """Copy the write-ahead log into the database after a commit, if a circuit moved or the log is long.

        Moves are rare; with them in the main file, losing the log cannot undo a trip. A long log must be truncated,
        not restarted: a restarted one looks full again to the next process, if no connection outlives this one.
        """
        try:
            if os.stat(f"{self.path}-wal").st_size > _LOG_LIMIT:
                connection.execute(f"PRAGMA busy_timeout={_READERS_PATIENCE}")
                try:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    connection.execute(f"PRAGMA busy_timeout={int(1000 * self._patience)}")
            elif moved:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except (OSError, sqlite3.DatabaseError):
            pass  # what was committed is in the log, and stays there

    def _connect(self) -> sqlite3.Connection:
        """The connection to the file that is at the path now; a lost or damaged one is rebuilt first."""
        process = os.getpid()
        if self._connection is not None:
            if self._process == process and self._inode == _inode(self.path):
                return self._connection
            self._drop()  # another process's, or the file was replaced: what we wrote there, nobody would read
        for _ in range(ATTEMPTS):
            try:
                self._connection = self._open_undisturbed()
                break
            except PermissionError:  # a folder that we may only read: nobody rebuilds through us
                try:
                    self._connection = self._open_existing()
                except (_Lost, PermissionError) as error:
                    problem = f"{self.folder}: {getattr(error, 'strerror', error)}{advise_owner(self.folder)}"
                    raise StoreError(f"the state folder cannot be used: {problem}") from error
                break
            except (_Lost, FileNotFoundError) as lost:
                self._recover(str(lost) if isinstance(lost, _Lost) else "its folder was missing")
            except OSError as error:
                raise StoreError(f"the state folder cannot be used: {self.folder}: {error.strerror}") from error
        else:
            raise StoreError(f"the state database cannot be rebuilt: {self.path}")
        self._process = process
        if unwritten:
            self._write_news(self._connection)
        return self._connection

    def _unwritten_news(self) -> list[tuple[str, str]]:
        project = os.path.join(os.path.dirname(self.folder), "")
        return [one for one in unwritten if one[0].startswith(project)]

    def _write_news(self, connection: sqlite3.Connection) -> None:
        """What was set aside in this project, as notices."""
        about = self._unwritten_news()
        try:
            if about and self.MODE == "rw":
                connection.executemany(NOTICE, [(time.time(), plain(text)) for _, text in about])
                unwritten[:] = [one for one in unwritten if one not in about]
        except sqlite3.DatabaseError:
            pass  # locked: the next one writes it

    def _open_undisturbed(self) -> sqlite3.Connection:
        """A rebuild changes three files; nobody may open one of them in the middle of that.

        Whoever can read the lock can hold it, an agent for as long as it likes, and would be rid of its breakers if
        nobody opened the database meanwhile. So where nothing is being rebuilt, it is opened all the same.
        """
        try:
            return self._open_within(_LOCK_PATIENCE)
        except BlockingIOError:
            return self._open_within(_REBUILD_PATIENCE)

    def _open_within(self, patience: float) -> sqlite3.Connection:
        try:
            with FileLock(self._recovery_lock, shared=True, wait=patience):
                return self._open_existing()
        except BlockingIOError:
            if self._is_being_rebuilt():
                raise
        return self._open_existing(locked=False)

    def _is_being_rebuilt(self) -> bool:
        """Whether a new database lies beside: it is there before the first of the old files moves, until it is in its
        place."""
        beginning = f"{os.path.basename(self.path)}.new-"
        return any(name.startswith(beginning) for name in os.listdir(self.folder))

    def _open_existing(self, *, locked: bool = True) -> sqlite3.Connection:
        facts = self._look()
        if facts.st_size == 0:
            raise _Lost("it was empty")
        # Before it is opened: should another file take its place in between, this one is found to be wrong.
        self._inode = facts.st_ino
        try:
            connection = sqlite3.connect(
                f"file:{uri_path(self.path)}?mode={self.MODE}",
                uri=True,
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=64,
            )
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")  # see `_checkpoint`
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                raise _Lost(str(error)) from error
            raise
        if not locked and (self._is_being_rebuilt() or self._inode != _inode(self.path)):
            connection.close()  # it began in between: what we have may be parts of the old and of the new
            raise BlockingIOError(11, "it is being rebuilt", self.path)
        if version > LATEST:
            raise StoreError(f"{self.path} was written by a newer Fusewire (format {version}, known {LATEST})")
        if version == 0:
            raise _Lost("it had no tables")
        if version < LATEST:
            connection = self._migrated(connection, version)
        if self.verifies or facts.st_size % _PAGE:
            from fusewire.stores.recovery import is_broken

            if is_broken(connection):
                connection.close()
                raise _Lost("it was damaged")
        return connection

    def _look(self) -> os.stat_result:
        """The file, before SQLite opens it, which would follow a link or wait for a pipe: it and its logs are ours."""
        claim(self.folder)
        try:
            facts = os.lstat(self.path)
        except FileNotFoundError:
            raise _Lost("it was missing") from None
        fault = fault_of(facts, self.path) or ("has another name, too" if facts.st_nlink > 1 else "")
        if fault:
            raise _Lost(f"it {fault}")
        for suffix in LOGS:
            fault = fault_at(self.path + suffix)
            if fault:
                raise _Lost(f"its {suffix} {fault}")
        return facts

    def _migrated(self, connection: sqlite3.Connection, version: int) -> sqlite3.Connection:
        from fusewire.stores.recovery import migrate

        migrate(connection, version)
        return connection

    def _recover(self, problem: str) -> None:
        """Quarantine what is there and build a new database from what can be read; one process does it."""
        from fusewire.stores import recovery

        self._drop()
        try:
            ensure_state_folder(self.folder)
            with FileLock(self._recovery_lock, wait=_REBUILD_PATIENCE):
                try:
                    probe = self._open_existing()
                    broken = recovery.is_broken(probe)
                    probe.close()
                    if not broken:
                        return  # another process has mended it
                except _Lost:
                    pass
                recovery.rebuild_database(self.path, problem, self._backup, self._check, self._mode)
        except OSError as error:
            raise StoreError(f"the state folder cannot be used: {self.folder}: {error.strerror}") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"the state database cannot be rebuilt: {self.path}: {error}") from error

    def _read(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock:
            if self._connection is None and not self._exists():
                return []
            try:
                return self._connect_agreed().execute(query, parameters).fetchall()
            except sqlite3.DatabaseError as error:
                if code_of(error) in (READ_ONLY, CANNOT_OPEN, IO_ERROR, FULL) and not is_damage(error):
                    return self._read_as_it_lies(query, parameters)
                if not is_damage(error):
                    raise StoreError(f"the state database cannot be read: {self.path}: {error}") from error
                self._recover(str(error))
            try:
                return self._connect().execute(query, parameters).fetchall()
            except sqlite3.DatabaseError as error:
                raise StoreError(f"the state database cannot be read: {self.path}: {error}") from error

    def _read_as_it_lies(self, query: str, parameters: tuple[Any, ...]) -> list[Any]:
        """From a disk that is full or that we may not write, where SQLite cannot make its index of the log.

        If it can be locked, the index is made in memory; else only the file itself is read, which has every trip.
        """
        problem = ""
        for mode in ("rw", "ro&immutable=1"):
            try:
                connection = sqlite3.connect(f"file:{uri_path(self.path)}?mode={mode}", uri=True, timeout=0.1)
                try:
                    if mode == "rw":
                        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                    return connection.execute(query, parameters).fetchall()
                finally:
                    connection.close()
            except sqlite3.DatabaseError as error:
                problem = str(error)
        raise StoreError(f"the state database cannot be read: {self.path}: {problem}")

    def _exists(self) -> bool:
        """Whether there is, or ought to be, anything to read: looking must not create a database."""
        from fusewire.stores import audit_file

        if self._unwritten_news() or os.path.exists(self.path) or os.path.exists(audit_file.path_of(self.folder)):
            return True
        if os.path.lexists(self.folder) and not os.access(self.folder, os.X_OK):
            return True  # what is in it cannot be seen
        return self._backup is not None and self._backup.available()

    # -- reading ------------------------------------------------------------------------------------

    def circuits(self) -> list[CircuitRow]:
        return [circuit_row(row) for row in self._read("SELECT id, kind, phase, state FROM circuits ORDER BY id")]

    def circuit(self, circuit: str) -> CircuitRow | None:
        rows = self._read("SELECT id, kind, phase, state FROM circuits WHERE id = ?", (plain(circuit),))
        return circuit_row(rows[0]) if rows else None

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return [LogRow(*row) for row in self._read(LOG_OF, (plain(circuit), since))]

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._read(AUDIT_OF, audit_query(circuit, since))]

    def moves(self, after: int = 0, limit: int = 1000) -> list[tuple[int, AuditRow]]:
        return [(number, AuditRow(*row)) for number, *row in self._read(_MOVES, (after, limit))]

    def last_move(self) -> int:
        rows = self._read("SELECT max(seq) FROM audit")
        return (rows[0][0] or 0) if rows else 0

    def logs(self, since: float = 0.0) -> list[LogRow]:
        return [LogRow(*row) for row in self._read(_LOGS, (since,))]

    def doings(self, session: str, since: float = 0.0) -> list[Doing]:
        return [Doing(*row) for row in self._read(_DOINGS, (plain(session), since))]

    def version(self) -> tuple[int, ...]:
        """SQLite counts what other connections commit; what this one writes is counted beside it."""
        with self._lock:  # another thread may drop the connection
            rows = self._read("PRAGMA data_version")
            written = self._connection.total_changes if self._connection is not None else 0
            return (self._inode, rows[0][0], written) if rows else ()

    def answers(self, after: int = 0) -> list[tuple[int, Doing]]:
        return [(number, Doing(*row)) for number, *row in self._read(_ANSWERS, (after,))]

    def decisions(self, after: int = 0) -> list[tuple[int, DecisionRow]]:
        return [decision_of(row) for row in self._read(_DECISIONS, (after,))]

    def last_decision(self) -> int:
        rows = self._read("SELECT max(seq) FROM decisions")
        return (rows[0][0] or 0) if rows else 0

    def notices_after(self, after: int = 0) -> list[tuple[int, float, str]]:
        query = "SELECT seq, at, text FROM notices WHERE seen = 0 AND seq > ? ORDER BY seq"
        return [(number, at, text) for number, at, text in self._read(query, (after,))]

    def notices(self) -> list[str]:
        return [text for (text,) in self._read("SELECT text FROM notices WHERE seen = 0 ORDER BY seq")]

    def recall(self, name: str) -> JsonObject | None:
        return memory_in(self._read(MEMORY, (plain(name),)))

    def halt_on_file(self, session: str) -> JsonObject | None:
        from fusewire.stores.audit_file import halt_of

        return halt_of(self.folder, plain(session))

    def remembered(self, prefix: str) -> list[tuple[str, float]]:
        return [(name, at) for name, at in self._read(_MEMORIES, beginning(prefix))]

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        from fusewire.stores.spent import sums_query

        return self._read(*sums_query(by, since, until, where))

    def spent_after(self, version: int) -> list[SpendRow]:
        from fusewire.stores.spent import AFTER, row_of

        return [row_of(row) for row in self._read(AFTER, (version,))]

    def verify(self) -> list[str]:
        found = [text for (text,) in self._read("PRAGMA quick_check") if text != "ok"]
        return found + [f"{row.id}: its state cannot be read" for row in self.circuits() if row.state is None]

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            if self._process == os.getpid():
                self._connection.close()
            else:
                _inherited.append(self._connection)
        self._connection = None


_LOGS = "SELECT circuit, at, kind, name, text, session, value, effect FROM log WHERE at >= ? ORDER BY seq"
_DOINGS = "SELECT session, agent, at, kind, tool, text, value FROM doings WHERE session = ? AND at >= ? ORDER BY seq"
_ANSWERS = (
    "SELECT seq, session, agent, at, kind, tool, text, value FROM doings"
    f" WHERE kind IN {ANSWERS} AND seq > ? ORDER BY seq"
)
_DECISIONS = "SELECT seq, at, session, kind, rule, data, code FROM decisions WHERE seq > ? ORDER BY seq"
_MOVES = "SELECT seq, circuit, at, source, target, cause, reason, actor FROM audit WHERE seq > ? ORDER BY seq LIMIT ?"
_MEMORIES = "SELECT name, updated FROM memories WHERE name >= ? AND name < ? ORDER BY updated DESC, name"


def circuit_row(row: tuple[str, str, str, str]) -> CircuitRow:
    """From what is stored: id, kind, phase, state as text."""
    try:
        state = loads(row[3]) if isinstance(row[3], str) else None
    except ValueError:
        state = None
    return CircuitRow(row[0], row[1], row[2], state if isinstance(state, dict) else None)


def decision_of(row: tuple[Any, ...]) -> tuple[int, DecisionRow]:
    """From what is stored: its number, time, session, kind, rule, data as text, code."""
    number, at, session, kind, rule, text, code = row
    try:
        data = loads(text) if isinstance(text, str) else None
    except ValueError:
        data = None
    return number, DecisionRow(at, session, kind, rule, data if isinstance(data, dict) else {}, code)


def _inode(path: str) -> int:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def _thread_lock() -> Any:
    from _thread import RLock

    return RLock()
