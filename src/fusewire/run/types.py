"""Define the options of a run, its outcome, and what a front end shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fusewire.breakers.loop.types import IterationResult, IterationStart
    from fusewire.core.decision import Decision
    from fusewire.run.process import ProcessEnd


@dataclass(frozen=True)
class Options:
    """What a person asked for. Durations are in seconds."""

    command: tuple[str, ...]
    #: where the agent and the checks run; by default at the project's root
    cwd: str | None = None
    prompt: str | None = None
    until: str | None = None
    verify: str | None = None
    junit: str | None = None
    max_iterations: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    timeout: float = 900.0
    idle: float = 900.0
    wait: bool = True
    #: whether starts are spread over the provider's window, or over the hourly limit of starts
    pace: bool = False
    #: whether the agent runs in a sandbox: "auto" (where there is one), "require", "off"
    sandbox: str = "auto"
    #: who asked that the oldest run of the project is ended if there is no room for this one
    end_oldest: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    code: int
    reason: str
    iterations: int
    seconds: float
    cost: float | None
    #: the refusal or the trip that ended it
    decision: Decision | None = None
    #: what only a person can answer, if the run ended with that
    question: str = ""
    #: the option whose cap was reached: `max-iterations`, `max-time`, `max-cost`
    cap: str = ""


class RunView(Protocol):
    """What a person sees of a run."""

    def began(self, begun: IterationStart) -> None: ...
    def output(self, text: str) -> None: ...
    def tick(self, seconds: float) -> None: ...
    def judged(self, result: IterationResult, ended: ProcessEnd) -> None: ...
    def waits(self, why: str, left: float, whole: float, skip: str | None = None) -> bool:
        """Show that the run waits; in a run `skip` is what a key would do, and the answer whether it was pressed."""
        ...

    def opened(self, trip: Decision) -> None: ...
    def tells(self, *lines: str) -> None: ...
