"""What the loop remembers between iterations: bounded, and written in the same transaction as its circuits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.core.events import plain
from fusewire.stores.records import require_types

if TYPE_CHECKING:
    from fusewire.agents.output.answer import AgentOutput
    from fusewire.breakers.loop.detect import Judgement
    from fusewire.breakers.loop.iteration import Iteration
    from fusewire.stores import Store, Transaction
    from fusewire.worktree.change import TreeChange

#: The limit that is asked beside the circuits.
RATE = "loop/rate"

_NAME = "loop"
_HISTORY = 20
_RUNNING = 16
_NAMES = 20
_TEXT = 300


@dataclass
class LoopRecord:
    """The loop's memory; every list in it has an end."""

    #: the number of the newest iteration
    iteration: int = 0
    #: what the detector knows
    detector: dict[str, Any] = field(default_factory=dict)
    #: the last iterations, oldest first
    history: list[dict[str, Any]] = field(default_factory=list)
    #: iterations that have begun and not ended, by token
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    lessons: list[dict[str, Any]] = field(default_factory=list)
    #: what the agent must be told next
    notes: list[str] = field(default_factory=list)
    totals: dict[str, Any] = field(default_factory=dict)
    #: the process that began the newest iteration; another one is a new run
    owner: str = ""
    #: whom the guard or an escalation halted, and why; empty if nobody
    halted: dict[str, str] = field(default_factory=dict)

    @classmethod
    def recalled(cls, store: Store | Transaction) -> LoopRecord:
        try:
            return cls.from_data(store.recall(_NAME) or {})
        except (ValueError, TypeError, AttributeError):  # damaged: the circuits have states of their own
            return cls()

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> LoopRecord:
        record = cls(**data)
        require_types(record, cls())
        record.running = dict(record.running)  # iterations are taken out of it, perhaps in vain
        return record

    def to_data(self) -> dict[str, Any]:
        return dict(vars(self))

    def remember(self, transaction: Transaction, now: float) -> None:
        newest = sorted(self.running.items(), key=lambda item: int(item[1]["number"]))[-_RUNNING:]
        self.running = dict(newest)
        transaction.remember(_NAME, self.to_data(), now)

    def add(self, entry: dict[str, Any]) -> None:
        """One more iteration that has ended."""
        self.history = [*self.history, entry][-_HISTORY:]
        totals = dict(self.totals)
        totals["iterations"] = totals.get("iterations", 0) + 1
        totals["since_task"] = 0 if entry["tasks"] else totals.get("since_task", 0) + 1
        for name in ("tasks", "files", "calls", "cost", "seconds"):
            totals[name] = totals.get(name, 0) + (entry[name] or 0)
        self.totals = totals


def entry_of(
    running: dict[str, Any],
    facts: Iteration,
    answer: AgentOutput,
    change: TreeChange,
    judged: Judgement,
    calls_left: int,
    seconds: float,
    now: float,
) -> dict[str, Any]:
    """One iteration as the history keeps it."""
    return {
        "number": running["number"],
        "at": now,
        "state": "HALF_OPEN" if running["held"] else "CLOSED",
        "kind": judged.kind,
        "ended": facts.ended,
        "score": judged.score,
        "points": judged.points,
        "tasks": judged.tasks,
        "files": change.count,
        "names": [plain(name, _TEXT) for name in change.files[:_NAMES]],
        "commits": change.commits,
        "tests": list(facts.tests[:4]) if facts.tests else None,
        "errors": [plain(f"{one.type}: {one.message}", _TEXT) for one in answer.problems[:5]],
        "error": facts.error,
        "blocked": plain(facts.blocked, _TEXT),
        "lines": facts.lines,
        "calls": answer.calls or 1,
        "calls_left": calls_left,
        "cost": None if answer.cost is None else max(0.0, answer.cost),
        "seconds": round(seconds, 3),
    }
