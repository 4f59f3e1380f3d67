"""Open the database read-only, for commands that only look; it repairs nothing."""

from __future__ import annotations

from fusewire.stores.fast_sqlite import sqlite3
from fusewire.stores.sqlite import SqliteStore
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
