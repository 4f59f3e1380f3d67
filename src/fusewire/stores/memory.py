"""Store circuits in this process only: for tests, and for programs that want a breaker without a file."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count

from fusewire.core.events import plain
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
    AuditRow,
    CircuitRow,
    DecisionRow,
    Doing,
    LogRow,
    SpendRow,
)
from fusewire.stores.spent import group
from fusewire.util.fast_json import dumps, dumps_in_order, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.util.fast_json import JsonObject


class _Circuit:
    """One circuit: its state as JSON text, so that nobody can change it from outside, and its two rings."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.phase = ""
        self.state = ""
        self.kept: list[tuple[int, LogRow]] = []
        self.other: list[tuple[int, LogRow]] = []

    def __copy__(self) -> _Circuit:
        twin = _Circuit(self.kind)
        twin.phase, twin.state, twin.kept, twin.other = self.phase, self.state, list(self.kept), list(self.other)
        return twin


class MemoryStore:
    """Implements `Store`; the lock is held for a whole transaction."""

    #: how memories are kept: so that nobody can change one from outside
    _written: Callable[[JsonObject], Any] = staticmethod(dumps_in_order)
    _read: Callable[[Any], JsonObject] = staticmethod(loads)

    clock = staticmethod(time.time)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._circuits: dict[str, _Circuit] = {}
        self._audit: list[AuditRow] = []
        self._notices: list[tuple[int, float, str]] = []
        self._memories: dict[str, tuple[Any, float]] = {}
        self._doings: list[tuple[int, Doing]] = []
        self._decisions: list[tuple[int, DecisionRow]] = []
        self._spent: dict[tuple[Any, ...], SpendRow] = {}
        self._rows = 0
        #: as of the other store; what is here cannot be damaged
        self.verifies = False
        #: rows of the audit trail that are no longer in it, and commits so far
        self._forgotten = self._commits = 0
        self.after_news: Callable[[], None] | None = None

    @contextmanager
    def transact(self, circuits: Iterable[str] = ()) -> Iterator[MemoryTransaction]:
        with self._lock:
            transaction = MemoryTransaction(self)
            try:
                yield transaction
            except BaseException:
                transaction.roll_back()
                raise
            self._trim()
            self._commits += 1
        if transaction.news and self.after_news is not None:
            self.after_news()

    def circuits(self) -> list[CircuitRow]:
        with self._lock:
            return [
                CircuitRow(name, circuit.kind, circuit.phase, loads(circuit.state))
                for name, circuit in sorted(self._circuits.items())
                if circuit.state
            ]

    def circuit(self, circuit: str) -> CircuitRow | None:
        with self._lock:
            found = self._circuits.get(plain(circuit))
            if found is None or not found.state:
                return None
            return CircuitRow(plain(circuit), found.kind, found.phase, loads(found.state))

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        with self._lock:
            found = self._circuits.get(plain(circuit))
            rows = sorted(found.kept + found.other, key=lambda pair: pair[0]) if found else []
            return [row for _, row in rows if row.at >= since]

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        with self._lock:
            name = None if circuit is None else plain(circuit)
            return [row for row in self._audit if name in (None, row.circuit) and row.at >= since]

    def moves(self, after: int = 0, limit: int = 1000) -> list[tuple[int, AuditRow]]:
        with self._lock:
            first = max(0, after - self._forgotten)
            rows = self._audit[first : first + limit]
            return list(enumerate(rows, self._forgotten + first + 1))

    def last_move(self) -> int:
        with self._lock:
            return self._forgotten + len(self._audit)

    def logs(self, since: float = 0.0) -> list[LogRow]:
        with self._lock:
            pairs = [pair for one in self._circuits.values() for pair in one.kept + one.other]
            return [row for _, row in sorted(pairs, key=lambda pair: pair[0]) if row.at >= since]

    def doings(self, session: str, since: float = 0.0) -> list[Doing]:
        with self._lock:
            return [row for _, row in self._doings if row.session == plain(session) and row.at >= since]

    def answers(self, after: int = 0) -> list[tuple[int, Doing]]:
        with self._lock:
            return [(number, row) for number, row in self._doings if row.kind in ANSWERS and number > after]

    def decisions(self, after: int = 0) -> list[tuple[int, DecisionRow]]:
        with self._lock:
            return [(number, copy.deepcopy(row)) for number, row in self._decisions if number > after]

    def last_decision(self) -> int:
        with self._lock:
            return self._decisions[-1][0] if self._decisions else 0

    def version(self) -> tuple[int, ...]:
        return (self._commits,)

    def notices(self) -> list[str]:
        with self._lock:
            return [text for _, _, text in self._notices]

    def notices_after(self, after: int = 0) -> list[tuple[int, float, str]]:
        with self._lock:
            return [notice for notice in self._notices if notice[0] > after]

    def recall(self, name: str) -> JsonObject | None:
        with self._lock:
            found = self._memories.get(plain(name))
            return None if found is None else self._read(found[0])

    def remembered(self, prefix: str) -> list[tuple[str, float]]:
        with self._lock:
            found = [(name, at) for name, (_, at) in self._memories.items() if name.startswith(prefix)]
            return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        with self._lock:
            return group(self._spent.values(), by, since, until, where)

    def spent_after(self, version: int) -> list[SpendRow]:
        with self._lock:
            rows = [row for row in self._spent.values() if row.version > version]
            return sorted(rows, key=lambda row: row.version)

    def halt_on_file(self, session: str) -> JsonObject | None:
        return None

    def verify(self) -> list[str]:
        return []

    def close(self) -> None:
        pass

    def _trim(self) -> None:
        self._forgotten += max(0, len(self._audit) - AUDIT_ROWS)
        del self._audit[:-AUDIT_ROWS]
        del self._doings[:-DOINGS]
        del self._decisions[:-DECISIONS]
        del self._notices[:-NOTICES]
        idle = [name for name, one in self._circuits.items() if one.kind != "constraint" and one.phase == "closed"]
        idle.sort(key=lambda name: self._circuits[name].kind != "tool")
        for name in idle[: max(0, len(self._circuits) - CIRCUITS)]:
            del self._circuits[name]
        rows = sum(len(one.kept) + len(one.other) for one in self._circuits.values())
        if rows > LOG_ROWS:
            numbers = sorted(number for one in self._circuits.values() for number, _ in one.kept + one.other)
            oldest = numbers[-LOG_ROWS]
            for one in self._circuits.values():
                one.kept = [pair for pair in one.kept if pair[0] >= oldest]
                one.other = [pair for pair in one.other if pair[0] >= oldest]


class MemoryTransaction:
    """Writes in place, and remembers what was there, so that an error leaves nothing behind."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._before: dict[str, _Circuit | None] = {}
        self._audit, self._notices = len(store._audit), list(store._notices)
        self._memories = dict(store._memories)
        self._spent = dict(store._spent)
        self._doings, self._decisions = len(store._doings), len(store._decisions)
        #: something was written that people may want to be told
        self.news = False

    def roll_back(self) -> None:
        store = self._store
        for name, circuit in self._before.items():
            store._circuits.pop(name, None)
            if circuit is not None:
                store._circuits[name] = circuit
        del store._audit[self._audit :]
        del store._doings[self._doings :]
        del store._decisions[self._decisions :]
        store._notices = self._notices
        store._memories = self._memories
        store._spent = self._spent

    def load(self, circuit: str) -> JsonObject | None:
        found = self._store._circuits.get(plain(circuit))
        return loads(found.state) if found and found.state else None

    def save(
        self, circuit: str, kind: str, phase: str, state: JsonObject, now: float, log: LogRow | None = None
    ) -> None:
        text = dumps(state)
        found = self._touch(plain(circuit), kind)
        found.phase, found.state = phase, text
        if log is not None:
            self.log(log, kept=True)

    def log(self, row: LogRow, *, kept: bool) -> None:
        found = self._touch(row.circuit, "")
        self._store._rows += 1
        ring, size = (found.kept, KEPT_ROWS) if kept else (found.other, OTHER_ROWS)
        ring.append((self._store._rows, row))
        del ring[:-size]

    def audit(self, row: AuditRow, state: JsonObject | None = None) -> None:
        self._store._audit.append(row)
        self.news = True

    def note_halt(self, session: str, halted: JsonObject | None, now: float) -> None:
        pass

    def happened(self, doing: Doing) -> None:
        self._store._rows += 1
        self._store._doings.append((self._store._rows, doing))
        self.news = self.news or doing.kind in ANSWERS

    def decided(self, row: DecisionRow) -> str:
        self._store._rows += 1
        taken = {known.code for _, known in self._store._decisions}
        coded = next(one for one in map(row.coded, count()) if one.code not in taken)
        self._store._decisions.append((self._store._rows, coded.replace(data=loads(dumps(row.data)))))
        code: str = coded.code
        return code

    def remove(self, circuit: str) -> None:
        name = plain(circuit)
        self._remember(name)
        self._store._circuits.pop(name, None)

    def notice(self, text: str, now: float) -> None:
        self._store._rows += 1
        self._store._notices.append((self._store._rows, now, plain(text)))
        self.news = True

    def acknowledge(self) -> int:
        count = len(self._store._notices)
        self._store._notices = []
        return count

    def log_of(self, circuit: str, since: float = 0.0) -> list[LogRow]:
        return self._store.log_of(circuit, since)

    def audit_of(self, circuit: str | None, since: float = 0.0) -> list[AuditRow]:
        return self._store.audit_of(circuit, since)

    def recall(self, name: str) -> JsonObject | None:
        return self._store.recall(name)

    def remember(self, name: str, data: JsonObject, now: float) -> None:
        self._store._memories[plain(name)] = (self._store._written(data), now)

    def drop(self, name: str) -> None:
        self._store._memories.pop(plain(name), None)

    def forget(self, prefix: str, before: float) -> int:
        memories = self._store._memories
        old = [name for name, (_, at) in memories.items() if name.startswith(prefix) and at < before]
        for name in old:
            del memories[name]
        return len(old)

    def spend(self, rows: Sequence[SpendRow]) -> None:
        spent = self._store._spent
        for row in rows:
            key = (row.session, row.at, row.branch, row.model, row.helper, row.task)
            last = max((one.version for one in spent.values()), default=0)
            known = spent.get(key)
            if known is not None:
                tokens = tuple(map(sum, zip(known.tokens, row.tokens, strict=True)))
                sums = {
                    "usd": known.usd + row.usd,
                    "calls": known.calls + row.calls,
                    "starts": known.starts + row.starts,
                }
                row = known.replace(tokens=tokens, **sums)
            spent[key] = row.replace(version=last + 1)

    def forget_spend(self, before: int, version: int) -> None:
        spent = self._store._spent
        last = max((row.version for row in spent.values()), default=0)
        for key, row in list(spent.items()):
            if row.at < before and row.version <= version and row.version < last:
                del spent[key]

    def spent(
        self, by: Sequence[str] = (), since: float = 0.0, until: float = FAR, where: Mapping[str, str] = EVERYTHING
    ) -> list[tuple[Any, ...]]:
        return self._store.spent(by, since, until, where)

    def _touch(self, name: str, kind: str) -> _Circuit:
        """The circuit, moved to the end: the one that was written longest ago is dropped first."""
        self._remember(name)
        found = self._store._circuits.pop(name, None) or _Circuit(kind)
        self._store._circuits[name] = found
        return found

    def _remember(self, name: str) -> None:
        if name not in self._before:
            found = self._store._circuits.get(name)
            self._before[name] = None if found is None else copy.copy(found)
