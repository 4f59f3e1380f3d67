"""Define the contract of a store, and open one by the scheme of its URL.

What an implementation must give is `Store` and `Transaction` below, and it proves it with the conformance
suite (`tests/stores/test_store_conformance.py`). The contract in one sentence: a transaction holds the only right to
write what it reads, from before its first read of it until it commits, and then either all of it is there or nothing.
"""

from __future__ import annotations

from fusewire.util.errors import StoreError, in_a_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from fusewire.stores.rows import EVERYTHING, FAR, AuditRow, CircuitRow, DecisionRow, Doing, LogRow, SpendRow
    from fusewire.util.fast_json import JsonObject

    class Transaction(Protocol):
        """The atomic unit of work."""

        def load(self, circuit: str) -> JsonObject | None:
            """The stored state of a circuit; ValueError if what is stored is no JSON object."""

        def save(
            self, circuit: str, kind: str, phase: str, state: JsonObject, now: float, log: LogRow | None = None
        ) -> None:
            """Write a circuit's state, and a row of its log that is kept."""

        def log(self, row: LogRow, *, kept: bool) -> None:
            """Append to the circuit's log; rows that are not `kept` share a smaller ring of their own."""

        def audit(self, row: AuditRow, state: JsonObject | None = None) -> None:
            """Append to the audit trail, with the state to rebuild from where there is one."""

        def note_halt(self, session: str, halted: JsonObject | None, now: float) -> None:
            """Note that a session is halted, or (None) no longer, in a second place if the store is a file."""

        def happened(self, doing: Doing) -> None:
            """Append to what agents did; the oldest of all sessions are forgotten first."""

        def decided(self, row: DecisionRow) -> str:
            """Append an answer that was not a plain allow; the code that it has from now on. The oldest are forgotten
            first."""

        def remove(self, circuit: str) -> None:
            """Forget a circuit and its log; the audit trail stays."""

        def notice(self, text: str, now: float) -> None:
            """A warning that people are shown until one of them acknowledges it."""

        def acknowledge(self) -> int: ...

        def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]: ...

        def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]: ...

        def recall(self, name: str) -> JsonObject | None:
            """What a detector remembered under a name; ValueError if what is stored is no JSON object."""

        def remember(self, name: str, data: JsonObject, now: float) -> None:
            """Keep what a detector must know at its next event; whoever calls keeps it small."""

        def drop(self, name: str) -> None:
            """Forget what was remembered under exactly this name."""

        def forget(self, prefix: str, before: float) -> int:
            """Drop what was remembered under names that begin so, and not again since; how many that were."""

        def spend(self, rows: Sequence[SpendRow]) -> None:
            """Add to what was spent; each row that has grown gets a number above all others."""

        def forget_spend(self, before: int, version: int) -> None:
            """Drop rows that are as old, and up to that number."""

        def spent(
            self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
        ) -> list[tuple[Any, ...]]: ...

    class Store(Protocol):
        """Everything that the engine asks of storage."""

        #: called after each commit that wrote what people may want to be told (a move, a notice, a halted agent), when
        #: no lock is held any more
        after_news: Callable[[], None] | None

        def transact(self, circuits: Iterable[str] = ()) -> AbstractContextManager[Transaction]:
            """A unit of work. A store that locks each circuit by itself locks these at the beginning."""

        def clock(self) -> float:
            """The time of its rows: this machine's, or one that all machines share."""

        def circuits(self) -> list[CircuitRow]: ...

        def circuit(self, circuit: str) -> CircuitRow | None: ...

        def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
            """Oldest first."""

        def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
            """Oldest first; of every circuit for None."""

        def moves(self, after: int = 0, limit: int = 1000) -> list[tuple[int, AuditRow]]:
            """The audit trail behind a number, oldest first, each row with its own number."""

        def last_move(self) -> int:
            """The number of the newest row of the audit trail; 0 if there is none."""

        def logs(self, since: float = 0.0) -> list[LogRow]:
            """The logs of all circuits, oldest first."""

        def doings(self, session: str, since: float = 0.0) -> list[Doing]:
            """What the agents of a session did, oldest first."""

        def answers(self, after: int = 0) -> list[tuple[int, Doing]]:
            """Where agents were told something or halted, behind a number, oldest first, each with its own number."""

        def decisions(self, after: int = 0) -> list[tuple[int, DecisionRow]]:
            """Answers that were no plain allow, behind a number, oldest first, each with its own number."""

        def last_decision(self) -> int:
            """The number of the newest of them; 0 if there is none."""

        def notices_after(self, after: int = 0) -> list[tuple[int, float, str]]:
            """The notices behind a number that nobody has acknowledged: number, time, text; oldest first."""

        def spent(
            self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
        ) -> list[tuple[Any, ...]]:
            """Sums of what was spent, for each value of the columns in `by`: these, dollars, tokens by kind, calls,
            starts. `where` is what columns must be (`"not COLUMN"`: must not be)."""

        def spent_after(self, version: int) -> list[SpendRow]:
            """The rows that have grown behind a number, in its order."""

        def version(self) -> tuple[int, ...]:
            """Another one whenever somebody has written since: for whoever looks again and again."""

        def notices(self) -> list[str]: ...

        def recall(self, name: str) -> JsonObject | None: ...

        def halt_on_file(self, session: str) -> JsonObject | None:
            """The second copy of a session's halt."""

        def remembered(self, prefix: str) -> list[tuple[str, float]]:
            """Names that begin so, and when each was last written; the newest first."""

        def verify(self) -> list[str]:
            """What is wrong with the storage; empty if nothing is."""

        def close(self) -> None: ...

    #: one circuit as it is known outside a lost store: id, kind, state, log
    Rebuilt = tuple[str, str, JsonObject, list[LogRow]]

    class Backup(Protocol):
        """What a lost store can be refilled from."""

        def available(self) -> bool: ...

        def read(self) -> tuple[list[Rebuilt], str, list[str]]:
            """The circuits, a word on where they come from, and what could not be used."""


def open_store(
    url: str,
    *,
    backup: Backup | None = None,
    check: Callable[[object], object] | None = None,
    patience: float = 2.0,
    read_only: bool = False,
) -> Store:
    """The store behind `sqlite:PATH`, `memory:` or `postgresql://...`.

    `check` raises ValueError for what is no circuit's state. One that is `read_only` neither writes nor mends: what is
    damaged is said as a StoreError.
    """
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite" and colon and rest:
        from fusewire.stores.sqlite import SqliteStore

        path = rest.removeprefix("//")
        if read_only:
            from fusewire.stores.readonly import ReadOnlySqlite

            return ReadOnlySqlite(path, backup=backup)
        return SqliteStore(path, backup=backup, check=check, patience=patience, verifies=True)
    if scheme == "memory" and colon:
        from fusewire.stores.memory import MemoryStore

        return MemoryStore()
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        from importlib import import_module  # by name: a hook never gets here, and it needs what is installed

        try:
            module = import_module("fusewire.stores.postgresql")
        except ImportError as error:  # psycopg, or the libpq that it needs
            needed = "pip install 'fusewire[postgresql]'"
            raise StoreError(f"a store on PostgreSQL needs psycopg ({in_a_line(error)}): {needed}") from error
        store: Store = module.PostgresStore(url, patience=patience, read_only=read_only)
        return store
    named = repr(url) if "@" not in url and "password" not in url else f"this URL ({scheme}:...)"
    raise StoreError(f"no store for {named}; allowed: sqlite:PATH, memory:, postgresql://HOST/DATABASE")
