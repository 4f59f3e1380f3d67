"""Describe one folder in which agents work, as the overview of everything has it: what it needs of a person, what runs.

A folder is a worktree of a project, or all of it. It is made from its panel, so that both say the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from fusewire.breakers.loop.overview import LoopOverview
from fusewire.breakers.session.spawning import SILENT
from fusewire.util.durations import parse_time, show_duration, show_time
from fusewire.util.json_types import Count, State, Time, Usd, about
from fusewire.util.quoting import quoted
from fusewire.views.panel import Headline, Panel, UnreadablePanel
from fusewire.views.session_list import SessionState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fusewire.util.fast_json import JsonObject
    from fusewire.views.cards import CircuitCard
    from fusewire.views.session_list import SessionLine

OverviewRank = Literal["answer", "running", "waiting", "quiet"]

#: From what a person must see first to what is out of the way.
RANKS: tuple[OverviewRank, ...] = ("answer", "running", "waiting", "quiet")

#: Seconds after which a question that nobody has answered is history: the work was given up.
_QUESTION = 7 * 86400

#: Sessions of a folder that are named.
_NAMED = 20

#: Seconds after which a folder in which something goes on is read again, though nothing was written; and any other.
_SOON, _LATE = 60.0, 600.0


@dataclass(frozen=True)
class OverviewNeed:
    """What only a person can settle."""

    kind: Annotated[
        Literal["question", "session", "circuit", "state"],
        about("a question of a run; a halted session; a circuit that no time closes; a state that cannot be read"),
    ]
    subject: Annotated[str, about("the id of the session or circuit; else empty")]
    title: Annotated[str, about("what it is about: a session's name, a circuit's id")]
    text: Annotated[str, about("why")]
    next: Annotated[str, about("what to do")]


@dataclass(frozen=True)
class OverviewStop:
    """A circuit that is not closed, and needs nobody."""

    id: str
    state: State
    reason: str
    until: Annotated[Time | None, about("when one probe is allowed")]


@dataclass(frozen=True)
class OverviewSession:
    """A session that runs or is halted."""

    id: str
    name: Annotated[str, about("its agent, the first words of its first prompt, and the beginning of its id")]
    state: SessionState
    since: Annotated[Time | None, about("when it began")]
    heard: Time | None
    idle: Annotated[bool, about("its agent has ended its turn, and waits for a message")]
    usd: Usd


@dataclass(frozen=True)
class OverviewFolder:
    """A worktree of a project, or its only folder."""

    name: str
    root: str
    rank: Annotated[OverviewRank, about("waiting: something is stopped, and time ends that")]
    problem: Annotated[str | None, about("why its state cannot be read")]
    headline: Headline
    needs: list[OverviewNeed]
    stops: Annotated[list[OverviewStop], about("circuits that are not closed and that time closes, up to 20")]
    sessions: Annotated[list[OverviewSession], about("those that run or are halted, up to 20")]
    running: Annotated[Count, about("sessions that run")]
    loops: Annotated[Count, about("iterations of the supervised loop that run")]
    today_usd: Usd
    warnings: Count
    heard: Annotated[Time | None, about("when an agent was last heard of")]


def folder_overview(
    root: str, panel: Panel | UnreadablePanel, facts: Mapping[str, JsonObject], heard: str | None, now: float
) -> OverviewFolder:
    """`facts` is what the person's register knows of sessions, and `heard` of the folder."""
    needs = list(_needs(panel, now))
    lines = [one for one in panel.sessions if one.state == "running"]
    halted = list(panel.halted)
    running = panel.session_counts.running if panel.session_counts else 0
    loops = panel.loop.running if isinstance(panel, Panel) else 0
    return OverviewFolder(
        name=os.path.basename(root) or root,
        root=root,
        rank=_rank(needs, bool(running or loops), panel.headline),
        problem=panel.problem,
        headline=panel.headline,
        needs=needs,
        stops=_stops(panel, now),
        sessions=[_session(one, facts.get(one.id, {})) for one in [*halted, *lines][:_NAMED]],
        running=running,
        loops=loops,
        today_usd=panel.spend.today_usd if panel.spend else 0.0,
        warnings=len(panel.warnings),
        heard=max(filter(None, [heard, *(one.heard for one in panel.sessions)]), default=None),
    )


def good_until(panel: Panel | UnreadablePanel, now: float) -> float:
    """When time alone changes what was said of a folder."""
    if isinstance(panel, UnreadablePanel):
        return now + _SOON
    moments = [now + one.retry_after for one in panel.circuits if one.retry_after is not None]
    moments += [parse_time(one.heard) + SILENT for one in panel.sessions if one.state == "running" and one.heard]
    if panel.spend.today_usd:
        moments.append(now - now % 86400 + 86400)
    goes_on = bool(moments or panel.halted or panel.loop.running)
    return min([now + (_SOON if goes_on else _LATE), *(at for at in moments if at > now)])


def show_age(moment: str | None, now: str) -> str:
    """How long ago, in its largest unit: `now`, `5m`, `3h`, `2d`."""
    if moment is None:
        return ""
    seconds = parse_time(now) - parse_time(moment)
    return "now" if seconds < 60 else show_duration(seconds).partition(" ")[0]


def _rank(needs: list[OverviewNeed], runs: bool, headline: Headline) -> OverviewRank:
    if needs:
        return "answer"
    return "running" if runs else "waiting" if headline.open or headline.half_open else "quiet"


def _stops(panel: Panel | UnreadablePanel, now: float) -> list[OverviewStop]:
    """Those of halted sessions are part of the halt."""
    halted = {one.id for one in panel.halted}
    found = [one for one in panel.circuits if one.phase != "closed" and one.session not in halted]
    return [_stop(one, now) for one in found if not _waits_for_a_person(one)][:_NAMED]


def _stop(circuit: CircuitCard, now: float) -> OverviewStop:
    until = None if circuit.retry_after is None else now + circuit.retry_after
    return OverviewStop(circuit.id, circuit.state, circuit.reason or "", show_time(until and round(until)))


def _session(line: SessionLine, facts: JsonObject) -> OverviewSession:
    return OverviewSession(
        id=line.id,
        name=line.name,
        state=line.state,
        since=show_time(facts.get("since")),
        heard=line.heard,
        idle=line.state == "running" and facts.get("stopped") is not None,
        usd=line.usd,
    )


# -- what a person must do --------------------------------------------------------------------------------


def _needs(panel: Panel | UnreadablePanel, now: float) -> Iterator[OverviewNeed]:
    """The most urgent first: a run that asks, sessions that are halted, circuits, a state that cannot be read."""
    if isinstance(panel, UnreadablePanel):
        step = "a person can run: fusewire doctor"
        yield OverviewNeed("state", "", "State", panel.problem, step)
        return
    if question := _question(panel.loop, now):
        step = "answer it in the prompt or in the files, then start the run again"
        yield OverviewNeed("question", "", "The supervised run asks", question, step)
    for one in panel.halted:
        why = (one.halted or "").removeprefix("HALTED ").removesuffix(".")
        step = "it goes on as soon as you write to it"
        if one.needs == "grant":
            step = f'a person can run: fusewire grant 5 --session {quoted(one.id)} --reason "..."'
        yield OverviewNeed("session", one.id, one.name, f"halted: {why}", step)
    named = {one.id for one in panel.halted}
    for circuit in panel.circuits:
        if _waits_for_a_person(circuit) and circuit.session not in named:
            yield OverviewNeed("circuit", circuit.id, circuit.id, f"open: {circuit.reason}", _step(circuit))


def _question(loop: LoopOverview, now: float) -> str:
    if not loop.question or loop.running or loop.last is None or now - loop.last["at"] > _QUESTION:
        return ""
    return loop.question


def _waits_for_a_person(circuit: CircuitCard) -> bool:
    return circuit.phase == "open" and circuit.retry_after is None and not circuit.override_until


def _step(circuit: CircuitCard) -> str:
    """The step with a command in it, if one has."""
    return next((one for one in circuit.next if "fusewire " in one), next(iter(circuit.next), "look at it"))
