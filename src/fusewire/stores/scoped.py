"""Join two stores: a worktree's own, and the one that all worktrees of its repository share.

Which circuits are shared is told by their ids. A transaction locks the own store first and the shared one at the first
circuit that is in it, so that two of them cannot wait for each other; what it writes to the shared one is committed
first. What people are shown and warned of comes from both; moves are followed in each store by itself.

A worktree in which version 0.1 kept such a circuit by itself gives it to the shared store at the first access: where
both know it, the stricter one stays.
"""

from __future__ import annotations

from contextlib import suppress

from fusewire.stores.rows import EVERYTHING, FAR, AuditRow
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, TypeVar

    from fusewire.stores import Store, Transaction
    from fusewire.stores.rows import CircuitRow, DecisionRow, Doing, LogRow, SpendRow
    from fusewire.util.fast_json import JsonObject

    IsShared = Callable[[str], bool]
    Rows = TypeVar("Rows", AuditRow, LogRow)

#: From mild to strict.
_PHASES = ("closed", "watch", "probe", "open")


class ScopedStore:
    """Implements `Store`. The shared store is opened when the first of its circuits is asked for."""

    def __init__(self, own: Store, open_shared: Callable[[], Store], is_shared: IsShared) -> None:
        self.own, self.is_shared, self._open = own, is_shared, open_shared
        self._shared: Store | None = None
        self._adopted = self._looked = False
        #: whether all of the shared store is looked through when it is opened
        self.verifies = False
        self.clock = own.clock

    @property
    def shared(self) -> Store:
        if self._shared is None:
            self._shared = self._open()
        return self._shared

    @property
    def after_news(self) -> Callable[[], None] | None:
        return self.own.after_news

    @after_news.setter
    def after_news(self, listener: Callable[[], None] | None) -> None:
        self.own.after_news = listener

    def transact(self, circuits: Iterable[str] = ()) -> ScopedTransaction:
        return ScopedTransaction(self)

    def _of(self, circuit: str) -> Store:
        """The store of a circuit."""
        if not self.is_shared(circuit):
            return self.own
        self.adopt()
        return self.own if self._is_stricter_here(circuit) else self.shared

    def adopt(self) -> None:
        """Give what the own store still has of shared circuits to the shared one, as far as both can be written."""
        if self._looked or self._adopted:
            return
        self._looked = True
        if not any(self.is_shared(row.id) for row in self.own.circuits()):
            return
        with suppress(StoreError), self.transact() as transaction:
            transaction.share()

    def _is_stricter_here(self, circuit: str) -> bool:
        """Whether the own store, which could not give it away, has it in a stricter state."""
        mine = self.own.circuit(circuit)
        return mine is not None and is_stricter(mine, self.shared.circuit(circuit))

    # -- reading ------------------------------------------------------------------------------------

    def circuits(self) -> list[CircuitRow]:
        self.adopt()
        found = {row.id: row for row in self.shared.circuits() if self.is_shared(row.id)}
        for row in self.own.circuits():
            if not self.is_shared(row.id) or is_stricter(row, found.get(row.id)):
                found[row.id] = row
        return [found[name] for name in sorted(found)]

    def circuit(self, circuit: str) -> CircuitRow | None:
        return self._of(circuit).circuit(circuit)

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return self._of(circuit).log_of(circuit, since)

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        if circuit is not None:
            return self._of(circuit).audit_of(circuit, since)
        shared = [row for row in self.shared.audit_of(None, since) if self.is_shared(row.circuit)]
        return _merged(self.own.audit_of(None, since), shared)

    def logs(self, since: float = 0.0) -> list[LogRow]:
        shared = [row for row in self.shared.logs(since) if self.is_shared(row.circuit)]
        return _merged(self.own.logs(since), shared)

    def version(self) -> tuple[int, ...]:
        return (*self.own.version(), *self.shared.version())

    def notices(self) -> list[str]:
        return list(dict.fromkeys((*self.own.notices(), *self.shared.notices())))

    def verify(self) -> list[str]:
        return [*self.own.verify(), *self.shared.verify()]

    def close(self) -> None:
        self.own.close()
        if self._shared is not None:
            self._shared.close()

    def moves(self, after: int = 0, limit: int = 1000) -> list[tuple[int, AuditRow]]:
        return self.own.moves(after, limit)

    def last_move(self) -> int:
        return self.own.last_move()

    def doings(self, session: str, since: float = 0.0) -> list[Doing]:
        return self.own.doings(session, since)

    def answers(self, after: int = 0) -> list[tuple[int, Doing]]:
        return self.own.answers(after)

    def decisions(self, after: int = 0) -> list[tuple[int, DecisionRow]]:
        return self.own.decisions(after)

    def last_decision(self) -> int:
        return self.own.last_decision()

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        return self.own.spent(by, since, until, where)

    def spent_after(self, version: int) -> list[SpendRow]:
        return self.own.spent_after(version)

    def notices_after(self, after: int = 0) -> list[tuple[int, float, str]]:
        return self.own.notices_after(after)

    def recall(self, name: str) -> JsonObject | None:
        return self.own.recall(name)

    def halt_on_file(self, session: str) -> JsonObject | None:
        return self.own.halt_on_file(session)

    def remembered(self, prefix: str) -> list[tuple[str, float]]:
        return self.own.remembered(prefix)


class ScopedTransaction:
    """Implements `Transaction`: of the own store from the beginning, of the shared one from its first circuit on."""

    def __init__(self, store: ScopedStore) -> None:
        self._store = store
        self._unit: AbstractContextManager[Transaction] = store.own.transact()
        self._shared_unit: AbstractContextManager[Transaction] | None = None
        self._shared: Transaction | None = None

    def __enter__(self) -> ScopedTransaction:
        self._own = self._unit.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._shared_unit is not None:
                self._shared_unit.__exit__(kind, error, trace)
        except BaseException as failure:
            with suppress(type(failure)):
                self._unit.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._unit.__exit__(kind, error, trace)

    def share(self) -> Transaction:
        """The shared store's transaction."""
        if self._shared is None:
            shared = self._store.shared
            if self._store.verifies and hasattr(shared, "verifies"):
                shared.verifies = True
            unit = shared.transact()
            self._shared = unit.__enter__()
            self._shared_unit = unit
            self._adopt(self._shared)
        return self._shared

    def _of(self, circuit: str) -> Transaction:
        return self.share() if self._store.is_shared(circuit) else self._own

    def _adopt(self, shared: Transaction) -> None:
        for row in [] if self._store._adopted else self._store.own.circuits():
            if self._store.is_shared(row.id):
                if is_stricter(row, self._store.shared.circuit(row.id)):
                    self._give(row, shared)
                self._own.remove(row.id)
        self._store._adopted = True

    def _give(self, row: CircuitRow, shared: Transaction) -> None:
        """Move a circuit; of one whose state cannot be read the engine makes it anew from its log and its last move."""
        log, audit = self._own.log_of(row.id), self._own.audit_of(row.id)
        at = max((*(one.at for one in log), *(move.at for move in audit)), default=0.0)
        shared.remove(row.id)
        shared.save(row.id, row.kind, row.phase, row.state or {}, at)
        for one in log:
            shared.log(one, kept=one.effect not in ("refused", "duplicate"))
        for move in audit[-1:]:
            shared.audit(move, row.state)
        shared.audit(AuditRow(row.id, at, row.phase, row.phase, "imported", "from one worktree to all", ""), row.state)

    # -- what names a circuit -----------------------------------------------------------------------

    def load(self, circuit: str) -> JsonObject | None:
        return self._of(circuit).load(circuit)

    def save(
        self, circuit: str, kind: str, phase: str, state: JsonObject, now: float, log: LogRow | None = None
    ) -> None:
        self._of(circuit).save(circuit, kind, phase, state, now, log)

    def log(self, row: LogRow, *, kept: bool) -> None:
        self._of(row.circuit).log(row, kept=kept)

    def audit(self, row: AuditRow, state: JsonObject | None = None) -> None:
        self._of(row.circuit).audit(row, state)

    def remove(self, circuit: str) -> None:
        self._of(circuit).remove(circuit)

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return self._of(circuit).log_of(circuit, since)

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        return (self._own if circuit is None else self._of(circuit)).audit_of(circuit, since)

    # -- the worktree's own -------------------------------------------------------------------------

    def acknowledge(self) -> int:
        return self._own.acknowledge() + self.share().acknowledge()

    def note_halt(self, session: str, halted: JsonObject | None, now: float) -> None:
        self._own.note_halt(session, halted, now)

    def happened(self, doing: Doing) -> None:
        self._own.happened(doing)

    def decided(self, row: DecisionRow) -> str:
        return self._own.decided(row)

    def spend(self, rows: Sequence[SpendRow]) -> None:
        self._own.spend(rows)

    def forget_spend(self, before: int, version: int) -> None:
        self._own.forget_spend(before, version)

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        return self._own.spent(by, since, until, where)

    def notice(self, text: str, now: float) -> None:
        self._own.notice(text, now)

    def recall(self, name: str) -> JsonObject | None:
        return self._own.recall(name)

    def remember(self, name: str, data: JsonObject, now: float) -> None:
        self._own.remember(name, data, now)

    def drop(self, name: str) -> None:
        self._own.drop(name)

    def forget(self, prefix: str, before: float) -> int:
        return self._own.forget(prefix, before)


def _merged(own: list[Rows], shared: list[Rows]) -> list[Rows]:
    """By time, those of each store in the order in which they were written."""
    from heapq import merge

    return list(merge(own, shared, key=lambda row: row.at))


def is_stricter(mine: CircuitRow, other: CircuitRow | None) -> bool:
    """Whether a circuit refuses more in one store than in another; one that cannot be read is what its phase says."""
    return other is None or _rank(mine) > _rank(other)


def _rank(row: CircuitRow) -> tuple[int, float]:
    total = (row.state or {}).get("total", 0)
    phase = _PHASES.index(row.phase) if row.phase in _PHASES else len(_PHASES)
    return phase, total if isinstance(total, (int, float)) else 0
