"""Describe what sessions spent, from the person's ledger: by day, project, agent, model, and how fast."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fusewire.core.budget import BudgetUse, SpendBudget
from fusewire.core.burn import BurnRate, SpendWindow, burn_rate, used_up_at, windows
from fusewire.scopes.budgets import Spender, uses
from fusewire.scopes.ledger import DAY, QUARTER, day_start
from fusewire.scopes.user import open_user_store
from fusewire.stores.rows import FAR
from fusewire.util.durations import format_time, show_time
from fusewire.util.errors import StoreError
from fusewire.util.json_types import Count, Time, Usd, about
from fusewire.util.local_time import local_time
from fusewire.util.worktrees import branch_of, project_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.sqlite import SqliteStore


@dataclass
class Spent:
    """Dollars at list price, tokens, requests to a model, starts of an agent."""

    usd: Usd = 0.0
    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    web_search: Count = 0
    calls: Count = 0
    starts: Count = 0

    @property
    def tokens(self) -> int:
        """All tokens that went in or came out."""
        return self.input + self.output + self.cache_read + self.cache_write

    def add(self, sums: Sequence[Any]) -> None:
        """Add sums as a store has them."""
        usd, given, output, read, written, written_1h, searches, calls, starts = sums
        self.usd += usd
        self.input += given
        self.output += output
        self.cache_read += read
        self.cache_write += written + written_1h
        self.web_search += searches
        self.calls += calls
        self.starts += starts

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "usd": round(self.usd, 6), "tokens": self.tokens}


@dataclass(frozen=True)
class SpendToday:
    """What was spent since midnight where the person is: in a project with its worktrees, and in all."""

    since: float
    zone: str
    project: Spent = field(default_factory=Spent)
    everything: Spent = field(default_factory=Spent)
    #: of the project, in the last hour
    burn: BurnRate = field(default_factory=BurnRate)
    #: whether anything was ever counted, and why it is not known
    is_known: bool = False
    problem: str = ""


def today(root: str | None, now: float | None = None) -> SpendToday:
    """What today has cost; of all projects alike without a `root`. Never an exception."""
    now = time.time() if now is None else now
    since, zone = day_start(now), zone_of(now)
    where = {"project": project_key(root)} if root else {}
    project, everything = Spent(), Spent()
    try:
        store = open_user_store(read_only=True)
        try:
            for spent, condition in ((everything, {}), (project, where)):
                for sums in store.spent(since=since, where=condition):
                    spent.add(sums)
            burn = burn_rate(_usage(store, now, where), now)
            is_known = any(map(any, store.spent()))
        finally:
            store.close()
    except (StoreError, OSError) as error:
        return SpendToday(since, zone, problem=str(error))
    return SpendToday(since, zone, project, everything, burn, is_known)


def today_by_project(now: float) -> dict[str, float]:
    """Dollars since midnight, by the folder that stands for a project; empty where the ledger cannot be read."""
    try:
        store = open_user_store(read_only=True)
        try:
            return {project: usd for project, usd, *_ in store.spent(("project",), since=day_start(now))}
        finally:
            store.close()
    except (StoreError, OSError):
        return {}


def _usage(
    store: SqliteStore, now: float, where: Mapping[str, str], seconds: float = 3600.0
) -> list[tuple[float, float, int]]:
    """Time, dollars and tokens by the quarter of an hour."""
    rows = store.spent(("at",), now - seconds - QUARTER, where=where)
    return [(at, usd, sum(tokens[:5])) for at, usd, *tokens in rows]


def zone_of(moment: float) -> str:
    """The person's time zone, such as `UTC+02:00`."""
    seconds = time.localtime(moment).tm_gmtoff
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"UTC{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}" if seconds else "UTC"


def budget_json(use: BudgetUse) -> dict[str, Any]:
    """How far a limit of a budget is used."""
    return {
        "budget": use.budget.name,
        "per": list(use.budget.per),
        "agent": use.budget.agent or None,
        "counts": use.what,
        "spent": round(use.spent, 6),
        "limit": use.limit,
        "granted": use.granted,
        "allowed": use.limit + use.granted,
        "state": "used up" if use.is_reached else "near" if use.share >= use.budget.warn else "room",
        "since": show_time(use.since) if use.since else None,
        "until": show_time(use.until) if 0 < use.until < FAR else None,
    }


@dataclass(frozen=True)
class Outlook:
    """The budgets that count here, and when each is used up at the rate of the last hour; the five-hour window."""

    budgets: list[tuple[BudgetUse, float | None]] = field(default_factory=list)
    window: SpendWindow | None = None

    def window_json(self) -> dict[str, Any] | None:
        one = self.window
        if one is None:
            return None
        return {"since": show_time(one.since), "until": show_time(one.until), "usd": one.usd, "tokens": one.tokens}

    def lines(self, now: float) -> list[str]:
        found = []
        if self.window:
            until = local_time(self.window.until, now)
            found.append(f"window  {self.window.tokens:,} tokens in the 5-hour window that ends at {until}")
        for use, at in self.budgets:
            state = "used up" if use.is_reached else f"{use.share:.0%}"
            when = f"; used up at about {local_time(at, now)} at this rate" if at and not use.is_reached else ""
            found.append(f"budget  {use.budget.name}: {use.words()}: {state}{when}")
        return found


def outlook(breaker: Breaker, now: float) -> Outlook:
    """What lies ahead in a project, on its branch; budgets of a session or a run are told where these are shown."""
    root = breaker.root or ""
    spender = Spender(project_key(root), "*", branch_of(root), "*", "")
    found = [SpendBudget(*one) for one in breaker.rules.budgets]
    found = [one for one in found if not {"session", "task"} & set(one.scopes)]
    ahead = []
    try:
        store = open_user_store(read_only=True)
        for use in uses(store, found, spender, now):
            where = {scope: getattr(spender, scope) for scope in use.budget.scopes}
            where |= {"agent": use.budget.agent} if use.budget.agent else {}
            burn = burn_rate(_usage(store, now, where), now)
            rate = {"usd": burn.usd, "tokens": burn.tokens}.get(use.what, 0.0)
            at = used_up_at(use.spent, use.limit + use.granted, rate, now)
            ahead.append((use, at if at and (not use.until or at < use.until) else None))
        last = next(reversed(windows(_usage(store, now, {}, 7 * DAY))), None)
        store.close()
    except (StoreError, OSError):
        return Outlook()
    return Outlook(ahead, last if last and last.until > now else None)


@dataclass(frozen=True)
class BudgetLine:
    """How far a limit of a budget is used."""

    budget: str
    counts: Annotated[str, about("usd, tokens, calls or starts")]
    spent: float
    limit: float
    granted: float
    state: Annotated[str, about("room, near or used up")]
    text: str
    since: Time | None
    until: Time | None
    used_up_at: Annotated[Time | None, about("at the rate of the last hour")]


@dataclass(frozen=True)
class SpendOverview:
    """What today has cost in a project and in all, how fast, and what budgets allow."""

    at: Time
    since: Annotated[Time, about("midnight where the person is")]
    zone: str
    project: Spent
    everything: Annotated[Spent, about("of all projects of the person")]
    usd_per_hour: Usd
    tokens_per_hour: float
    budgets: list[BudgetLine]
    problem: Annotated[str | None, about("why it is not known")]


def spend_overview(breaker: Breaker) -> SpendOverview:
    """For whoever shows a project; nothing is written."""
    now = breaker.engine.clock()
    spent, ahead = today(breaker.root, now), outlook(breaker, now)
    return SpendOverview(
        at=format_time(now),
        since=format_time(spent.since),
        zone=spent.zone,
        project=spent.project,
        everything=spent.everything,
        usd_per_hour=round(spent.burn.usd, 4),
        tokens_per_hour=round(spent.burn.tokens),
        budgets=[_budget_line(use, at) for use, at in ahead.budgets],
        problem=spent.problem or None,
    )


def _budget_line(use: BudgetUse, at: float | None) -> BudgetLine:
    told = budget_json(use)
    names = ("budget", "counts", "spent", "limit", "granted", "state", "since", "until")
    return BudgetLine(text=use.words(), used_up_at=show_time(at), **{name: told[name] for name in names})
