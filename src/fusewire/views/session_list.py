"""List the sessions of a project: the state of each, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from fusewire.breakers.session.overview import running_in, standing
from fusewire.breakers.session.state import SessionMemory, session_name
from fusewire.util.json_types import Count, Time, Usd, about
from fusewire.views.session_names import SessionNames

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker

SessionState = Literal["running", "silent", "halted", "ended"]
STATES: tuple[SessionState, ...] = get_args(SessionState)

#: Sessions of a page, unless somebody asks for more or fewer.
SHOWN = 20


@dataclass(frozen=True)
class SessionStanding:
    """What a session is at."""

    state: Annotated[SessionState, about("silent: nothing was heard of it for an hour")]
    heard: Time | None
    ended: Time | None
    halted: Annotated[str | None, about("why it was halted")]
    needs: Annotated[Literal["message", "grant"] | None, about("what a halted one needs of a person to go on")]


@dataclass(frozen=True)
class _Id:
    id: str
    name: Annotated[str, about("its agent, the first words of its first prompt, and the beginning of its id")]


@dataclass(frozen=True)
class SessionLine(SessionStanding, _Id):
    """One session in a list."""

    usd: Usd
    agents: Annotated[Count, about("helpers that run")]


@dataclass(frozen=True)
class SessionCounts:
    """Sessions by state, and the helpers that run."""

    all: Count
    running: Count
    silent: Count
    halted: Count
    ended: Count
    agents: Count


@dataclass(frozen=True)
class SessionList:
    """A page of the sessions of a project."""

    sessions: Annotated[
        list[SessionLine], about("those that have ended behind the others; among each the one heard of last first")
    ]
    halted: Annotated[list[SessionLine], about("all that are halted")]
    counts: Annotated[SessionCounts, about("sessions by state, and helpers that run")]


def sessions_view(breaker: Breaker, limit: int = SHOWN, offset: int = 0) -> SessionList:
    """Nothing is written."""
    now = breaker.engine.clock()
    names = SessionNames.of(breaker)
    found = [_line(breaker, name, now) for name in names.ids]
    found.sort(key=lambda one: one.state == "ended")
    states = Counter(one.state for one in found)
    agents = sum(one.agents for one in found if not one.ended)
    counts = SessionCounts(all=len(found), agents=agents, **{state: states[state] for state in STATES})

    def named(lines: list[SessionLine]) -> list[SessionLine]:
        return [replace(one, name=names.name(one.id)) for one in lines]

    halted = [one for one in found if one.state == "halted"]
    return SessionList(named(found[offset : offset + limit]), named(halted), counts)


def _line(breaker: Breaker, name: str, now: float) -> SessionLine:
    state = SessionMemory.recalled(breaker.store, session_name(name))
    return SessionLine(
        id=name,
        name="",
        **standing(state, now, state.limit(breaker.rules.tool)),
        usd=round(state.usd, 4),
        agents=len(running_in(state, now)),
    )
