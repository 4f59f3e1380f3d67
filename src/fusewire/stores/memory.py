"""Circuits in this process only: for tests and for programs that want a breaker without a file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fusewire.quickjson import dumps, loads
from fusewire.stores.rows import (
    AUDIT_ROWS,
    CIRCUITS,
    KEPT_ROWS,
    LOG_ROWS,
    OTHER_ROWS,
    TRIM_EVERY,
    AuditRow,
    CircuitRow,
    LogRow,
)


class MemoryStore:
    """States are kept as JSON text, so that nobody can change one from outside and both stores keep the same."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._circuits: dict[str, tuple[str, str, str]] = {}
        self._logs: dict[str, tuple[deque[tuple[int, LogRow]], deque[tuple[int, LogRow]]]] = {}
        self._audit: deque[AuditRow] = deque(maxlen=AUDIT_ROWS)
        self._notices: list[str] = []
        self._rows = 0

    @contextmanager
    def transact(self) -> Iterator[MemoryTransaction]:
        with self._lock:
            transaction = MemoryTransaction(self)
            yield transaction
            transaction.commit()

    def circuits(self) -> list[CircuitRow]:
        with self._lock:
            return [
                CircuitRow(name, kind, phase, loads(state))
                for name, (kind, phase, state) in sorted(self._circuits.items())
            ]

    def circuit(self, circuit: str) -> CircuitRow | None:
        return next((row for row in self.circuits() if row.id == circuit), None)

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        with self._lock:
            rows = sorted((pair for ring in self._logs.get(circuit, ()) for pair in ring), key=lambda pair: pair[0])
            return [row for _, row in rows if row.at >= since]

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        with self._lock:
            return [row for row in self._audit if circuit in (None, row.circuit) and row.at >= since]

    def notices(self) -> list[str]:
        with self._lock:
            return list(self._notices)

    def verify(self) -> list[str]:
        return []

    def close(self) -> None:
        pass


class MemoryTransaction:
    """Gathers what is to be written and applies it on commit, so that an error leaves nothing behind."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._saved: dict[str, tuple[str, str, str] | None] = {}
        self._log: list[tuple[LogRow, bool]] = []
        self._audit: list[AuditRow] = []
        self._notices: list[str] = []
        self._acknowledged = False

    def load(self, circuit: str) -> dict[str, Any] | None:
        stored = self._saved[circuit] if circuit in self._saved else self._store._circuits.get(circuit)
        return None if stored is None else loads(stored[2])

    def save(self, circuit: str, kind: str, phase: str, state: dict[str, Any], now: float) -> None:
        self._saved[circuit] = (kind, phase, dumps(state))

    def log(self, row: LogRow, *, kept: bool) -> None:
        self._log.append((row, kept))

    def audit(self, row: AuditRow, state: dict[str, Any] | None = None) -> None:
        self._audit.append(row)

    def remove(self, circuit: str) -> None:
        self._saved[circuit] = None

    def notice(self, text: str, now: float) -> None:
        self._notices.append(text)

    def acknowledge(self) -> int:
        self._acknowledged = True
        return len(self._store._notices)

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return self._store.log_of(circuit, since)

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        return self._store.audit_of(circuit, since)

    def commit(self) -> None:
        store = self._store
        for circuit, stored in self._saved.items():
            store._circuits.pop(circuit, None)  # the newest is last, so that the oldest can be dropped
            if stored is None:
                store._logs.pop(circuit, None)
            else:
                store._circuits[circuit] = stored
        for row, kept in self._log:
            rings = store._logs.setdefault(row.circuit, (deque(maxlen=KEPT_ROWS), deque(maxlen=OTHER_ROWS)))
            store._rows += 1
            rings[0 if kept else 1].append((store._rows, row))
        store._audit.extend(self._audit)
        store._notices = ([] if self._acknowledged else store._notices) + self._notices
        self._trim()

    def _trim(self) -> None:
        store = self._store
        if len(store._circuits) > CIRCUITS:
            idle = [name for name, row in store._circuits.items() if row[0] != "constraint" and row[1] == "closed"]
            for name in idle[: len(store._circuits) - CIRCUITS]:
                del store._circuits[name]
                store._logs.pop(name, None)
        if store._rows % TRIM_EVERY == 0:
            numbers = sorted(number for pair in store._logs.values() for ring in pair for number, _ in ring)
            oldest = numbers[-LOG_ROWS] if len(numbers) > LOG_ROWS else 0
            for rings in store._logs.values():
                for ring in rings:
                    while ring and ring[0][0] < oldest:
                        ring.popleft()
