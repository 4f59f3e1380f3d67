"""The supervised loop as a page shows it: its state, its last iterations, and what runs now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from fusewire.breakers.loop.overview import overview
from fusewire.breakers.loop.state import LoopRecord
from fusewire.run.registry import under_way
from fusewire.util.durations import format_time
from fusewire.views.models import Count, Seconds, State, Time, UnixTime, Usd, about

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker

Risk = Literal["LOW", "MEDIUM", "HIGH"]


class IterationFacts(TypedDict):
    """One iteration as the loop remembers it, without the time of its end."""

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
    lines: Count | None
    calls: Count
    calls_left: Count
    cost: Usd | None
    seconds: Seconds
    risk: Risk
    trips: Annotated[list[str], about("circuits that it has opened")]


class RememberedIteration(IterationFacts):
    """The same as `status --json` has it."""

    at: UnixTime


class IterationView(IterationFacts):
    """The same as a page has it."""

    at: Time


class LoopMetric(TypedDict):
    """One of the eight metrics."""

    metric: str
    value: float | str
    threshold: str
    alert: bool


class LessonView(TypedDict):
    """What the loop learned from a trip."""

    at: UnixTime
    iteration: Count
    circuit: str
    pattern: str
    cause: str
    tried: list[str]
    helped: str | None
    times: Count
    text: str


class LoopTotals(TypedDict):
    """What is added up of a loop's iterations; while the first runs there is nothing yet."""

    iterations: Count
    tasks: Count
    files: Count
    calls: Count
    cost: Usd
    seconds: Seconds
    since_task: Count


@dataclass(frozen=True)
class LoopFacts:
    """The loop at one moment."""

    state: State
    iterations: Count
    running: Count
    risk: Risk
    score: Annotated[int, about("of the last three iterations")]
    trend: str
    scores: list[int]
    sparkline: str
    calls_left: Count
    calls_limit: Count
    retry_after: Seconds | None
    cost: Usd
    metrics: list[LoopMetric]
    lessons: list[LessonView]


@dataclass(frozen=True)
class LoopOverview(LoopFacts):
    """The loop as `status --json` has it."""

    last: RememberedIteration | None


@dataclass(frozen=True)
class StartedIteration:
    """One that has begun and not ended."""

    number: Count
    since: Time
    probe: bool


@dataclass(frozen=True)
class LoopProcess:
    """A run of `fusewire run` that is there."""

    pid: Count
    command: str
    since: Time


@dataclass(frozen=True)
class LoopView(LoopFacts):
    """The loop with its last iterations."""

    last: IterationView | None
    history: Annotated[list[IterationView], about("the last 20, oldest first")]
    under_way: list[StartedIteration]
    #: the oldest first
    runs: list[LoopProcess]
    totals: LoopTotals
    #: why it was halted for a person
    halted: str | None


def loop_overview(breaker: Breaker) -> LoopOverview:
    return LoopOverview(**overview(breaker))


def loop_view(breaker: Breaker) -> LoopView:
    """Nothing is written."""
    record = LoopRecord.recalled(breaker.store)
    history = [entry | {"at": format_time(entry["at"])} for entry in record.history]
    running = sorted(record.running.values(), key=lambda entry: int(entry["number"]))
    nothing = dict.fromkeys(LoopTotals.__annotations__, 0)
    facts = overview(breaker) | {
        "last": history[-1] if history else None,
        "history": history,
        "under_way": [StartedIteration(one["number"], format_time(one["at"]), bool(one["held"])) for one in running],
        "runs": [LoopProcess(run.pid, run.command, format_time(run.at)) for run in under_way(breaker.store)],
        "totals": {**nothing, **record.totals},
        "halted": record.halted.get("text") or None,
    }
    return LoopView(**facts)
