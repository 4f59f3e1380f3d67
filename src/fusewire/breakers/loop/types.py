"""An iteration as it goes through the loop: begun, observed, judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusewire.agents.output.answer import AgentOutput
    from fusewire.breakers.loop.advice import Advice
    from fusewire.breakers.loop.plan import Boxes
    from fusewire.breakers.loop.state import HistoryEntry
    from fusewire.core.decision import Decision
    from fusewire.stores.rows import CircuitRow
    from fusewire.util.fast_json import JsonObject
    from fusewire.worktree.difference import TreeChange
    from fusewire.worktree.snapshot import Snapshot


@dataclass(frozen=True)
class IterationStart:
    """An iteration that may run now."""

    token: str
    number: int
    #: CLOSED, or HALF_OPEN if this is the one probe
    state: str
    advice: Advice
    calls_left: int
    before: Snapshot
    #: circuits whose one probe this is
    held: tuple[str, ...] = ()
    #: what was stored when it began, should the agent remove it
    memory: JsonObject = field(default_factory=dict)
    rows: tuple[CircuitRow, ...] = ()


def halt_cause(text: str) -> str:
    """What halted the loop, in one line: without the verdict, and without what the agent should do next."""
    lines = [line.removeprefix("BLOCKED ").removesuffix(".") for line in text.splitlines()]
    return "; ".join(line for line in lines if not line.startswith("Next: "))


@dataclass(frozen=True)
class IterationTrace:
    """What an iteration has left behind."""

    change: TreeChange
    tree_before: str
    #: tasks of the plan that are ticked, and that are open
    boxes: Boxes
    #: of the guard: `halt`, `tell` or nothing, and its words
    verdict: str
    text: str


@dataclass(frozen=True)
class IterationResult:
    """What an iteration has brought."""

    number: int
    #: CLOSED, OPEN or HALF_OPEN: the strictest of the loop's circuits
    state: str
    kind: str
    score: int
    points: dict[str, int]
    change: TreeChange
    answer: AgentOutput
    ended: str
    #: one decision for each circuit that this iteration opened
    trips: tuple[Decision, ...]
    #: these trips are for a person: nothing is left to try, or it came again right after a recovery
    escalates: bool
    #: what the guard halted the loop for, and what it only tells
    halted: str
    told: str
    #: the agent says that it is finished, or the plan is
    finished: str
    entry: HistoryEntry
    #: what it asked instead of working, and how often that was asked in a row
    question: str = ""
    asked: int = 0
