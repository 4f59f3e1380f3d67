"""Open the database read-only, for commands that only look; it repairs nothing."""

from __future__ import annotations

import os
from contextlib import contextmanager

from fusewire.stores.fast_sqlite import sqlite3
from fusewire.stores.sqlite import ATTEMPTS, SqliteStore
from fusewire.util.errors import StoreError
from fusewire.util.files import fits_mark, is_state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from fusewire.stores.sqlite_transaction import SqliteTransaction


class ReadOnlySqlite(SqliteStore):
    """Damage is said and left to the next one that may write; only an older shape is brought up to date."""

    MODE = "ro"

    def transact(self, circuits: Iterable[str] = ()) -> SqliteTransaction:
        raise StoreError(f"the state database was opened for reading only: {self.path}")

    def _recover(self, problem: str) -> None:
        raise StoreError(f"the state database cannot be read: {self.path} ({problem}); see: fusewire doctor")

    def _migrated(self, connection: sqlite3.Connection, version: int) -> sqlite3.Connection:
        connection.close()
        writer = SqliteStore(self.path)
        writer.circuits()
        writer.close()
        return self._open_existing()


class BriefSqlite(ReadOnlySqlite):
    """Opened for each read and closed after it, for whoever looks at many projects: it keeps no file open, takes no
    lock of ours, and leaves no log beside a database that has none.

    A database without a log is read as a file that does not change. Where several reads belong together, compare its
    `stamp` from before with that from after, and read again where they differ.
    """

    def __init__(self, path: str, *, check: Callable[[object], object] | None = None) -> None:
        super().__init__(path, check=check, patience=0.5)
        self._holders = 0

    def stamp(self) -> tuple[object, ...]:
        """What the system knows of the database and its log: another one, or another time, is news. Empty if there is
        no database; OSError if it cannot be known."""
        try:
            facts = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        try:
            log = os.stat(f"{self.path}-wal")
        except FileNotFoundError:
            return (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        return (facts.st_ino, facts.st_size, facts.st_mtime_ns, log.st_ino, log.st_size, log.st_mtime_ns)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the connection between the reads of a block."""
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                self._release()

    def version(self) -> tuple[int, ...]:
        try:
            return self.stamp()  # type: ignore[return-value]
        except OSError as error:
            raise StoreError(f"the state database cannot be read: {self.path}: {error.strerror}") from error

    def _release(self) -> None:
        if not self._holders:
            self._drop()

    def _read(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """What was written while a database without a log was read is read again."""
        with self._lock:
            for attempt in range(ATTEMPTS):
                before = self.version()
                try:
                    rows = super()._read(query, parameters)
                except StoreError:
                    if attempt == ATTEMPTS - 1 or self.version() == before:
                        raise
                    continue
                finally:
                    self._release()
                if self.MODE == "ro" or self.version() == before:
                    break
            return rows

    def _open_undisturbed(self) -> sqlite3.Connection:
        return self._open_existing(locked=False)

    def _open_existing(self, *, locked: bool = True) -> sqlite3.Connection:
        try:
            has_log = os.stat(f"{self.path}-wal").st_size > 0
        except FileNotFoundError:
            has_log = False
        self.MODE = "ro" if has_log else "ro&immutable=1"
        return super()._open_existing(locked=locked)

    def _look(self) -> os.stat_result:
        if is_state_folder(self.folder) and os.path.isdir(self.folder) and not fits_mark(self.folder):
            # Whoever works there adopts it or sets it aside; whoever looks does neither.
            raise StoreError(f"the state folder was not made here: {self.folder}; run in its project: fusewire status")
        return super()._look()
