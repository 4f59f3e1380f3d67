"""Name the answers of the JSON API; their schemas are derived from their classes.

Objects may get further fields in later versions; every field that is here stays, and is always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fusewire.breakers.loop.overview import LoopOverview
from fusewire.util.json_types import Count, about
from fusewire.views.cards import CircuitCard, CircuitStatus
from fusewire.views.circuits import CircuitView
from fusewire.views.loop import IterationView, LoopView
from fusewire.views.models import Schema, schema_of
from fusewire.views.moves import History, NumberedMove
from fusewire.views.orders import HaltLine, OrdersView
from fusewire.views.overview_all import OverviewProject, PersonOverview
from fusewire.views.overview_folder import OverviewFolder
from fusewire.views.panel import Panel
from fusewire.views.session_list import SessionLine, SessionList
from fusewire.views.sessions import SessionView
from fusewire.views.settings import SettingInForce
from fusewire.views.slices import AttemptsView, SliceView
from fusewire.views.spend import BudgetLine, SpendOverview, Spent
from fusewire.views.storage import MemoryUsage, MemoryView


@dataclass(frozen=True)
class ErrorAnswer:
    """Whatever went wrong."""

    error: Annotated[str, about("one line: what, where, what is allowed")]


@dataclass(frozen=True)
class Done:
    """An act of a person that was done."""

    done: Annotated[str, about("what came of it, in a sentence")]


@dataclass(frozen=True)
class Ordered:
    """A halt that was ordered or lifted."""

    done: Annotated[str, about("what came of it, in a sentence")]
    halts: Annotated[list[HaltLine], about("all that hold now, of all projects of the person")]


@dataclass(frozen=True)
class ProjectLine:
    """A project that the server shows."""

    name: Annotated[str, about("as it stands in addresses")]
    root: str
    problem: Annotated[str | None, about("why its state cannot be read")]
    headline: Annotated[str | None, about("one sentence")] = None
    open: Count | None = None
    half_open: Count | None = None
    closed: Count | None = None


@dataclass(frozen=True)
class ProjectList:
    """All of them."""

    projects: list[ProjectLine]


@dataclass(frozen=True)
class CircuitList:
    """Every circuit, and what is wrong."""

    circuits: list[CircuitStatus]
    warnings: list[str]


@dataclass(frozen=True)
class _CircuitAndDays:
    id: str
    days: float


@dataclass(frozen=True)
class CircuitHistory(History, _CircuitAndDays):
    """The history of one circuit."""


@dataclass(frozen=True)
class CircuitSettings:
    """The settings of one circuit."""

    id: str
    settings: list[SettingInForce]


@dataclass(frozen=True)
class MovePage:
    """The audit trail behind a number."""

    moves: Annotated[list[NumberedMove], about("oldest first")]
    last: Annotated[Count, about("the number of the newest move; less than `after` if the trail was begun anew")]
    more: Annotated[bool, about("whether there are moves behind these")]


NAMES: dict[type, str] = {
    ErrorAnswer: "Error",
    Done: "Done",
    Ordered: "Ordered",
    HaltLine: "Halt",
    ProjectList: "Projects",
    PersonOverview: "Overview",
    OverviewProject: "OverviewProject",
    OverviewFolder: "OverviewFolder",
    CircuitStatus: "Circuit",
    CircuitList: "Circuits",
    CircuitCard: "CircuitCard",
    CircuitView: "CircuitView",
    CircuitHistory: "History",
    CircuitSettings: "Settings",
    LoopOverview: "LoopOverview",
    LoopView: "Loop",
    IterationView: "Iteration",
    Panel: "Panel",
    OrdersView: "Orders",
    SessionLine: "SessionLine",
    SessionList: "Sessions",
    MovePage: "Moves",
    SliceView: "Slice",
    AttemptsView: "Attempts",
    SessionView: "Session",
    Spent: "Spent",
    BudgetLine: "Budget",
    SpendOverview: "Spend",
    MemoryUsage: "Usage",
    MemoryView: "Memory",
}

ANSWERS: dict[str, Schema] = {name: schema_of(model, NAMES) for model, name in NAMES.items()}
