"""The loop's memory between iterations: bounded, and written in the same transaction as its circuits.

What is shown as it is stored (an iteration of the history, a lesson, the totals) is a TypedDict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

from fusewire.breakers.loop.detect import Memory
from fusewire.stores.records import require_types
from fusewire.util.json_types import Count, Seconds, State, UnixTime, Usd, about

if TYPE_CHECKING:
    from fusewire.breakers.loop.plan import Boxes
    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

#: The limit that is asked beside the circuits.
RATE = "loop/rate"

_NAME = "loop"
_HISTORY = 20
_RUNNING = 16


Risk = Literal["LOW", "MEDIUM", "HIGH"]


class IterationFacts(TypedDict):
    """An iteration that has ended, without its time."""

    number: Count
    state: State
    kind: str
    ended: str
    score: int
    points: Annotated[dict[str, int], about("what the score is made of")]
    tasks: Count
    files: Count
    names: list[str]
    commits: Count
    tests: Annotated[list[Count] | None, about("passed, failed, skipped, errors")]
    errors: list[str]
    error: str | None
    blocked: str
    approach: Annotated[str, about("what the agent said it tries, or a mark of what it changed")]
    lines: Count | None
    calls: Count
    calls_left: Count
    cost: Usd | None
    seconds: Seconds
    risk: Risk
    trips: Annotated[list[str], about("circuits that it has opened")]


class HistoryEntry(IterationFacts):
    """An iteration that has ended, as it is stored and as `status --json` has it."""

    at: UnixTime


class RunningEntry(TypedDict):
    """An iteration that has begun and not ended."""

    number: int
    at: float
    #: the process that will end it
    owner: str
    #: the circuits whose one probe it is
    held: list[str]
    #: tasks of the plan, ticked and open
    boxes: NotRequired[Boxes]
    strategy: NotRequired[str]


class Lesson(TypedDict):
    """What a trip has taught."""

    at: UnixTime
    iteration: Count
    circuit: str
    pattern: str
    cause: str
    #: strategies, and the one that helped
    tried: list[str]
    helped: str | None
    #: how often the same has come
    times: Count


class Totals(TypedDict):
    """Sums over all iterations."""

    iterations: Count
    tasks: Count
    files: Count
    calls: Count
    cost: Usd
    seconds: Seconds
    #: iterations since a task was completed
    since_task: Count


class Halt(TypedDict, total=False):
    """Why a person must decide before the same process goes on; empty if nothing is halted."""

    owner: str
    text: str
    #: the circuits that escalated, and whether the guard halted the loop
    circuits: str
    guard: str


@dataclass
class LoopRecord:
    """The loop's memory; every list in it is bounded."""

    #: the number of the newest iteration
    iteration: int = 0
    detector: Memory = field(default_factory=Memory)
    #: the last iterations, oldest first
    history: list[HistoryEntry] = field(default_factory=list)
    #: by token
    running: dict[str, RunningEntry] = field(default_factory=dict)
    lessons: list[Lesson] = field(default_factory=list)
    #: what the agent must be told next
    notes: list[str] = field(default_factory=list)
    totals: Totals = field(default_factory=lambda: dict.fromkeys(Totals.__annotations__, 0))  # type: ignore[assignment]
    #: the process that began the newest iteration; another one is a new run
    owner: str = ""
    #: the client that printed the last answer, if it is a known one
    agent: str = ""
    halted: Halt = field(default_factory=Halt)

    @classmethod
    def recalled(cls, store: Store | Transaction) -> LoopRecord:
        try:
            return cls.from_data(store.recall(_NAME) or {})
        except (ValueError, TypeError, AttributeError, LookupError):  # damaged: the circuits have states of their own
            return cls()

    @classmethod
    def from_data(cls, data: JsonObject) -> LoopRecord:
        initial = cls()
        try:
            detector = Memory.from_data(data.get("detector", {}))
        except (ValueError, TypeError):  # what is halted or running is worth more than what it is compared with
            detector = Memory()
        totals = {**initial.totals, **data.get("totals", {})}
        record = cls(**{**data, "detector": detector, "totals": totals})
        require_types(record, initial)
        record.running = dict(record.running)  # iterations are removed from it, perhaps in a transaction that fails
        return record

    def to_data(self) -> JsonObject:
        return {**vars(self), "detector": self.detector.to_data()}

    def remember(self, transaction: Transaction, now: float) -> None:
        newest = sorted(self.running.items(), key=lambda item: int(item[1]["number"]))[-_RUNNING:]
        self.running = dict(newest)
        transaction.remember(_NAME, self.to_data(), now)

    def add(self, entry: HistoryEntry) -> None:
        """Add an iteration that has ended."""
        self.history = [*self.history, entry][-_HISTORY:]
        old = self.totals
        self.totals = {
            "iterations": old["iterations"] + 1,
            "tasks": old["tasks"] + entry["tasks"],
            "files": old["files"] + entry["files"],
            "calls": old["calls"] + entry["calls"],
            "cost": old["cost"] + (entry["cost"] or 0),
            "seconds": old["seconds"] + entry["seconds"],
            "since_task": 0 if entry["tasks"] else old["since_task"] + 1,
        }
