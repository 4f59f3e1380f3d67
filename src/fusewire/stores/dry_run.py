"""A transaction without the write lock: it reads what is stored, and discards what it writes."""

from __future__ import annotations

from fusewire.core.events import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.stores import Store
    from fusewire.stores.rows import AuditRow, DecisionRow, Doing, LogRow, SpendRow
    from fusewire.util.fast_json import JsonObject


class DryRun:
    """Implements `Transaction`. Its writes are visible to itself alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._states: dict[str, JsonObject] = {}
        self._memories: dict[str, JsonObject | None] = {}
        #: circuits that would have granted a probe: there is only one, and it takes the lock to get it
        self.probes: list[str] = []
        self.log_of = store.log_of
        self.audit_of = store.audit_of
        self.spent = store.spent

    def load(self, circuit: str) -> JsonObject | None:
        if circuit in self._states:
            return self._states[circuit]
        row = self._store.circuit(circuit)
        if row is not None and row.state is None:
            raise ValueError("not a circuit's state")
        return None if row is None else row.state

    def save(
        self, circuit: str, kind: str, phase: str, state: JsonObject, now: float, log: LogRow | None = None
    ) -> None:
        if phase == "probe" and (self.load(circuit) or {}).get("lease") != state.get("lease"):
            self.probes.append(circuit)
        self._states[circuit] = state

    def recall(self, name: str) -> JsonObject | None:
        return self._memories[plain(name)] if plain(name) in self._memories else self._store.recall(name)

    def remember(self, name: str, data: JsonObject, now: float) -> None:
        self._memories[plain(name)] = data

    def drop(self, name: str) -> None:
        self._memories[plain(name)] = None

    def log(self, row: LogRow, *, kept: bool) -> None: ...

    def audit(self, row: AuditRow, state: JsonObject | None = None) -> None: ...

    def note_halt(self, session: str, halted: JsonObject | None, now: float) -> None: ...

    def happened(self, doing: Doing) -> None: ...

    def decided(self, row: DecisionRow) -> str:
        return ""

    def remove(self, circuit: str) -> None: ...

    def notice(self, text: str, now: float) -> None: ...

    def spend(self, rows: Sequence[SpendRow]) -> None: ...

    def forget_spend(self, before: int, version: int) -> None: ...

    def acknowledge(self) -> int:
        return 0

    def forget(self, prefix: str, before: float) -> int:
        return 0
