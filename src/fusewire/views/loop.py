"""Describe the supervised loop: its state, its last iterations, and what runs now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fusewire.breakers.loop.overview import LoopFacts, overview
from fusewire.breakers.loop.state import IterationFacts, LoopRecord, Totals
from fusewire.run.registry import under_way
from fusewire.util.durations import format_time
from fusewire.util.json_types import Count, Time, about

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker


class IterationView(IterationFacts):
    """An iteration as a page has it."""

    at: Time


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
    totals: Totals
    #: why it was halted for a person
    halted: str | None


def loop_view(breaker: Breaker) -> LoopView:
    """Nothing is written."""
    record = LoopRecord.recalled(breaker.store)
    history: list[IterationView] = [{**entry, "at": format_time(entry["at"])} for entry in record.history]
    running = sorted(record.running.values(), key=lambda entry: int(entry["number"]))
    facts = vars(overview(breaker)) | {
        "last": history[-1] if history else None,
        "history": history,
        "under_way": [StartedIteration(one["number"], format_time(one["at"]), bool(one["held"])) for one in running],
        "runs": [LoopProcess(run.pid, run.command, format_time(run.at)) for run in under_way(breaker.store)],
        "totals": record.totals,
        "halted": record.halted.get("text") or None,
    }
    return LoopView(**facts)
