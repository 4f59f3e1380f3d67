"""Tell how things stand in a project: what is stopped, what it needs of a person, what today has cost.

Each source of what is stopped is a function of `SOURCES`; those that a person should see first come first. What has a
time at which it goes on by itself is waited for, everything else needs a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from fusewire.breakers.loop.questions import NEXT
from fusewire.breakers.session.spend import day_of
from fusewire.breakers.session.spend_limits import LIMITS_ON_ALL, is_in_dollars
from fusewire.breakers.session.state import SPEND, ProjectSpend
from fusewire.core.budget import raise_command
from fusewire.scopes.orders import ALL, PROJECT
from fusewire.util.durations import show_time
from fusewire.util.json_types import Count, Time, Usd, about
from fusewire.util.quoting import quoted
from fusewire.views.cards import policy_of
from fusewire.views.panel import Panel, panel
from fusewire.views.session_names import SessionNames
from fusewire.views.spend import outlook, today

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fusewire.engine.breaker import Breaker
    from fusewire.views.cards import CircuitCard
    from fusewire.views.session_list import SessionLine

#: Seconds for which the question of a run that ended is worth a line.
_ASKED = 7 * 86400

#: The share of a limit on spend from which on a person is told.
_NEAR = 0.8

StopKind = Literal["halt", "question", "session", "provider", "circuit", "budget", "near", "pause", "damage"]

#: Kinds that are told beside what is stopped: nothing waits for them.
_NO_STOPS = ("near", "pause", "damage")


@dataclass(frozen=True)
class Stopped:
    """Something that is stopped, or that a person should know of before it is."""

    kind: StopKind
    what: Annotated[str, about("by its readable name")]
    why: str
    since: Time | None
    until: Annotated[Time | None, about("when it goes on by itself; null: only a person can let it go on")]
    do: Annotated[str | None, about("what a person can run or do")]


@dataclass(frozen=True)
class CostToday:
    """What today has cost, at list price."""

    usd: Annotated[Usd, about("in this project and its worktrees")]
    everywhere_usd: Annotated[Usd, about("in all projects")]
    problem: Annotated[str | None, about("why the person's ledger cannot be read")]


@dataclass(frozen=True)
class ProjectStanding:
    """How things stand in a project."""

    stopped: Annotated[bool, about("whether anything is")]
    needs: Annotated[list[Stopped], about("what needs a person, the most urgent first")]
    waits: Annotated[list[Stopped], about("what goes on by itself")]
    running: Annotated[Count, about("sessions that run")]
    loops: Annotated[Count, about("iterations of a supervised loop that run")]
    today: CostToday


@dataclass(frozen=True)
class Seen:
    """What the sources of a project's standing look at."""

    breaker: Breaker
    panel: Panel
    root: str
    now: float
    names: SessionNames

    def session_name(self, session: str) -> str:
        return self.names.facts(session).words


def standing(breaker: Breaker) -> ProjectStanding:
    """Nothing is written."""
    shown, now = panel(breaker), breaker.engine.clock()
    seen = Seen(breaker, shown, breaker.root or ".", now, SessionNames.of(breaker))
    found = [one for source in SOURCES for one in source(seen)]
    return ProjectStanding(
        stopped=any(one.kind not in _NO_STOPS for one in found),
        needs=[one for one in found if one.until is None],
        waits=[one for one in found if one.until is not None],
        running=shown.session_counts.running,
        loops=shown.loop.running,
        today=_cost(seen),
    )


def _cost(seen: Seen) -> CostToday:
    """Of the person's ledger; where it cannot be read, what this worktree alone has counted, by days in UTC."""
    spent = today(seen.root, seen.now)
    if spent.problem or not spent.is_known:
        return CostToday(seen.panel.spend.today_usd, 0.0, spent.problem or None)
    return CostToday(round(spent.project.usd, 4), round(spent.everything.usd, 4), None)


def _providers(seen: Seen) -> Iterator[Stopped]:
    """Providers that refuse requests: nobody starts agents of them before the wait is over."""
    for limit in seen.panel.providers:
        if limit.retry_after is None:
            continue  # the next start is the probe
        until = show_time(seen.now + limit.retry_after)
        why = f"{'an outage' if limit.is_outage else 'a usage limit'} ({limit.kind}), met by {limit.agent}"
        do = f'fusewire reset {quoted(limit.id)} --reason "..."'
        yield Stopped("provider", limit.id, why, limit.since, until, do)


def _orders(seen: Seen) -> Iterator[Stopped]:
    """Halts and pauses of the person that concern this project."""
    orders = seen.panel.orders
    if orders.problem:
        yield Stopped("damage", "halts and pauses", orders.problem, None, None, "fusewire resume")
    for halt in orders.halts:
        what = {ALL: "every agent", PROJECT: "every agent of this project"}.get(halt.scope)
        run = "fusewire resume" if what else f"fusewire resume --session {quoted(halt.key)}"
        why = f"{halt.reason} (by {halt.by})"
        yield Stopped("halt", what or seen.session_name(halt.key), why, halt.at, None, run)
    for pause in orders.pauses:
        what = "all rules" if pause.rules == ["*"] else ", ".join(pause.rules)
        yield Stopped("pause", what, f"{pause.reason} (by {pause.by})", pause.at, pause.until, "fusewire pause --end")


def _question(seen: Seen) -> Iterator[Stopped]:
    """What the agent of a supervised loop has asked before the run ended."""
    loop = seen.panel.loop
    if loop.question and loop.last and not loop.running and seen.now - loop.last["at"] < _ASKED:
        yield Stopped("question", "the loop", loop.question, show_time(loop.last["at"]), None, NEXT)


def _halted_sessions(seen: Seen) -> Iterator[Stopped]:
    """Sessions that a rule has halted."""
    for session in seen.panel.halted:
        why = (session.halted or "").removeprefix("HALTED ").removeprefix("BLOCKED ").removesuffix(".")
        yield Stopped("session", seen.session_name(session.id), why, session.heard, None, _going_on(session))


def _going_on(session: SessionLine) -> str:
    if session.needs == "grant":
        return f'fusewire grant 5 --session {quoted(session.id)} --reason "..."'
    return "resume that session and write to it" if session.ended else "write to it; your next message lets it go on"


def _open_circuits(seen: Seen) -> Iterator[Stopped]:
    """Open circuits, without those of halted sessions."""
    halted = {session.id for session in seen.panel.halted}
    for card in seen.panel.circuits:
        if card.phase == "open" and card.session not in halted:
            until = None if card.retry_after is None else show_time(seen.now + card.retry_after)
            yield Stopped(
                "circuit", _name(seen, card), card.reason or card.measure, card.opened_at, until, _command(seen, card)
            )


def _budgets(seen: Seen) -> Iterator[Stopped]:
    """Budgets that are used up, or nearly so."""
    for use, _ in outlook(seen.breaker, seen.now).budgets:
        if use.is_reached or use.share >= use.budget.warn:
            since = show_time(use.since) if use.since else None
            until = show_time(use.until) if use.is_reached and use.budget.period else None
            kind: StopKind = "budget" if use.is_reached else "near"
            yield Stopped(kind, f"budget {use.budget.name}", use.words(), since, until, raise_command(use))


def _limits_on_spend(seen: Seen) -> Iterator[Stopped]:
    """Limits of the project on spend that are nearly reached; their circuits know of it only later."""
    table, day = ProjectSpend.recalled(seen.breaker.store, SPEND), day_of(seen.now)
    for key, span in ((day, "day"), (table.PROJECT, "project")):
        limit = seen.breaker.rules.tool[f"resource_limits.api_cost_block_usd_per_{span}"]
        spent, allowed = table.spent(key), limit + table.granted(key)
        if limit and _NEAR * allowed <= spent < allowed:
            where, option = LIMITS_ON_ALL[f"tool/spend_{span}"]
            why = f"${spent:.2f} of ${allowed:.2f} is spent"
            yield Stopped("near", f"the limit {where}", why, None, None, f'fusewire grant 5 {option} --reason "..."')


def _name(seen: Seen, card: CircuitCard) -> str:
    """A circuit's id, its session by name."""
    if not card.session:
        return card.id
    return f"{card.id.replace(f'/{card.session}', '')} in {seen.session_name(card.session)}"


def _command(seen: Seen, card: CircuitCard) -> str | None:
    """What a person can run about a circuit."""
    if card.kind == "attempt":
        return f'fusewire attempt retry {quoted(card.id.split("/")[1])} --guidance "..."'
    if "resolve" in card.acts:
        return "fusewire phase resolve reset"
    if is_in_dollars(card.id):
        whom = f"--session {quoted(card.session)}" if card.session else LIMITS_ON_ALL[card.id][1]
        return f'fusewire grant 5 {whom} --reason "..."'
    if "reset" in card.acts:
        return f'fusewire reset {quoted(policy_of(seen.breaker, card.id).group or card.id)} --reason "..."'
    return None


#: Where everything that is stopped comes from.
SOURCES: tuple[Callable[[Seen], Iterator[Stopped]], ...] = (
    _orders,
    _question,
    _halted_sessions,
    _providers,
    _open_circuits,
    _budgets,
    _limits_on_spend,
)
