"""What the JSON interface answers, by name; the schemas of all answers come from their classes.

Objects may get further fields in later versions; every field that is here stays, and is always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fusewire.breakers.loop.overview import LoopOverview
from fusewire.server.api import answer_parts as parts
from fusewire.server.api.schemas import (
    COUNT,
    NUMBER,
    TEXT,
    TEXTS,
    TIME,
    USD,
    WHOLE,
    YES_NO,
    fields,
    maybe,
    one_of,
    ref,
    rows,
    told,
)
from fusewire.views.cards import CircuitCard, CircuitStatus
from fusewire.views.circuits import CircuitView
from fusewire.views.loop import IterationView, LoopView
from fusewire.views.models import Count, Schema, about, schema_of
from fusewire.views.moves import History, NumberedMove
from fusewire.views.panel import Panel
from fusewire.views.session_list import SessionLine, SessionList
from fusewire.views.settings import SettingInForce


@dataclass(frozen=True)
class ErrorAnswer:
    """Whatever went wrong."""

    error: Annotated[str, about("one line: what, where, what is allowed")]


@dataclass(frozen=True)
class Done:
    """An act of a person that was done."""

    done: Annotated[str, about("what came of it, in a sentence")]


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
    ProjectList: "Projects",
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
    SessionLine: "SessionLine",
    SessionList: "Sessions",
    MovePage: "Moves",
}

ANSWERS: dict[str, Schema] = {
    **{name: schema_of(model, NAMES) for model, name in NAMES.items()},
    "Session": fields(
        session=TEXT,
        turn=maybe(COUNT),
        since=maybe(TIME),
        **parts.STANDING,
        active=rows(parts.ACTIVE),
        memory={"anyOf": [ref("Usage"), fields(problem=TEXT, report=TEXTS)]},
        resources=parts.RESOURCES,
        incidents=parts.INCIDENTS,
        doings=told(rows(parts.DOING), "the newest 500, oldest first"),
        moves=told(rows(fields(**parts.MOVE)), "the newest 500, oldest first"),
        counts=parts.COUNTS,
        calls_per_minute=told(rows(rows(WHOLE)), "[minute in seconds since 1970, calls, failed]"),
        spend_curve=told(rows(rows(NUMBER)), "[seconds since 1970, dollars]"),
        warn_usd=USD,
        limit_usd=USD,
        agents=rows(fields(name=TEXT, since=TIME, heard=TIME)),
    ),
    "Usage": fields(**parts.USAGE),
    "Slice": fields(
        id=TEXT,
        at=maybe(TIME),
        state=one_of("stopped", "under way", "waiting", "finished"),
        failures=COUNT,
        limit=COUNT,
        retries=COUNT,
        stops=rows(parts.DECISION),
        arch_stop=maybe(TEXT),
        tests=rows(parts.TEST),
        infrastructure=rows(fields(test=TEXT, kind=TEXT, reason=TEXT, evidence=TEXT, at=TIME)),
        scope=maybe(fields(patterns=rows(fields(pattern=TEXT, source=TEXT)), explicit=YES_NO, problem=maybe(TEXT))),
        violations=maybe(rows(parts.OUTSIDE)),
        justifications=rows(fields(file=TEXT, test=TEXT, reason=TEXT, relationship=TEXT, at=TIME)),
        prior=maybe(TEXT),
    ),
    "Attempts": fields(
        slices=rows(ref("Slice")),
        left_out=told(COUNT, "how many more there are behind these"),
        counts=parts.SLICE_COUNTS,
        under_way=rows(fields(slice=TEXT, sessions=maybe(TEXTS))),
        problem=maybe(TEXT),
    ),
    "Memory": fields(
        usage=maybe(fields(**parts.USAGE, files_left_out=COUNT)),
        rotations=rows(fields(name=TEXT, kind=TEXT, bytes=COUNT, of=maybe(TEXT), at=maybe(TEXT))),
        cleanups=rows(fields(at=maybe(TEXT), session=maybe(TEXT), report=TEXT)),
        next_cleanup=maybe(fields(**parts.CLEANUP, due=YES_NO)),
        by_hand=maybe(fields(**parts.CLEANUP)),
        problem=maybe(TEXT),
    ),
}
