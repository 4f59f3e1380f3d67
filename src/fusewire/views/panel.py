"""Describe all circuits of a project: what is open, why, what it costs, what to do.

One collection for everybody who shows it: the web page, `fusewire watch`, the JSON interface.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fusewire.breakers.loop.overview import LoopOverview
from fusewire.breakers.loop.overview import overview as loop_overview
from fusewire.breakers.session.names import session_ids
from fusewire.breakers.session.spend import day_of
from fusewire.breakers.session.state import SPEND, ProjectSpend
from fusewire.util.durations import counted, format_time
from fusewire.util.errors import StoreError
from fusewire.util.json_types import Count, State, Time, Usd, about
from fusewire.views.cards import CircuitCard, circuit_card
from fusewire.views.orders import OrdersView, orders_view
from fusewire.views.providers import ProviderLimit, provider_limits
from fusewire.views.session_list import SessionCounts, SessionLine, sessions_view
from fusewire.views.warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status

_ORDER = {"open": 0, "probe": 1, "watch": 2, "closed": 3}


@dataclass(frozen=True)
class ProjectName:
    """A project's folder."""

    name: str
    root: str


@dataclass(frozen=True)
class Headline:
    """What a project is like in one sentence, and how many circuits it has in each state."""

    text: str
    open: Count
    half_open: Count
    closed: Count


@dataclass(frozen=True)
class PanelSpend:
    """Dollars of all sessions."""

    today_usd: Usd
    project_usd: Usd


@dataclass(frozen=True)
class Panel:
    """All circuits of a project, its sessions, its loop, and what is wrong."""

    project: ProjectName
    at: Time
    headline: Headline
    circuits: Annotated[list[CircuitCard], about("open ones first")]
    warnings: list[str]
    sessions: Annotated[list[SessionLine], about("the first 20 of them")]
    halted: Annotated[list[SessionLine], about("all that are halted, however long ago they were heard of")]
    session_counts: Annotated[SessionCounts, about("sessions by state, and helpers that run")]
    loop: LoopOverview
    spend: PanelSpend
    providers: Annotated[list[ProviderLimit], about("providers that refuse requests now, for every project")]
    orders: OrdersView

    #: a panel that could not be collected says why, see `UnreadablePanel`
    problem = None


@dataclass(frozen=True)
class UnreadablePanel:
    """What is shown of a project whose state cannot be read: no circuit as closed."""

    project: ProjectName
    problem: str
    headline: Headline = field(default_factory=lambda: Headline("The state cannot be read", 0, 0, 0))
    circuits: Sequence[CircuitCard] = ()
    warnings: Sequence[str] = ()
    sessions: Sequence[SessionLine] = ()
    halted: Sequence[SessionLine] = ()
    session_counts: None = None
    spend: None = None
    providers: Sequence[ProviderLimit] = ()
    orders: None = None


def panel(breaker: Breaker) -> Panel:
    """Nothing is written."""
    now = breaker.engine.clock()
    known = frozenset(session_ids(breaker.store))
    circuits = [circuit_card(breaker, status, known) for status in _in_order(breaker.statuses())]
    sessions = sessions_view(breaker)
    table = ProjectSpend.recalled(breaker.store, SPEND)
    providers, unread = _providers(now)
    orders = orders_view(breaker.root, now=now)
    return Panel(
        project=ProjectName(os.path.basename(breaker.root or "") or "fusewire", breaker.root or ""),
        at=format_time(now),
        headline=_headline(Counter(one.state for one in circuits), len(sessions.halted), orders),
        circuits=circuits,
        warnings=warnings(breaker) + unread,
        sessions=sessions.sessions,
        halted=sessions.halted,
        session_counts=sessions.counts,
        loop=loop_overview(breaker),
        spend=PanelSpend(
            today_usd=round(table.spent(day_of(now)), 4),
            project_usd=round(table.usd, 4),
        ),
        providers=providers,
        orders=orders,
    )


def _providers(now: float) -> tuple[list[ProviderLimit], list[str]]:
    """What is limited, and why that cannot be told, if it cannot."""
    try:
        return provider_limits(now), []
    except StoreError as error:
        return [], [f"what is known of the providers cannot be read: {error}"]


def _in_order(statuses: list[Status]) -> list[Status]:
    """Open ones first, the newest trip before older ones; closed ones by how full they are."""

    def place(status: Status) -> tuple[Any, ...]:
        full = status.level / status.threshold if status.threshold > 0 else 0.0
        return _ORDER[status.phase], -(status.opened_at or 0.0), -min(1.0, max(0.0, full)), status.id

    return sorted(statuses, key=place)


def _headline(counts: Counter[State], halted: int, orders: OrdersView) -> Headline:
    opened, half_open = counts["OPEN"], counts["HALF_OPEN"]
    parts = ["All agents are halted by a person"] if orders.stops else []
    if opened:
        parts.append(f"{counted(opened, 'circuit')} {'is' if opened == 1 else 'are'} open")
    if halted:
        parts.append(f"{counted(halted, 'session')} {'is' if halted == 1 else 'are'} halted")
    text = " and ".join(parts)
    if not text:
        text = f"{counted(half_open, 'circuit')} half open, nothing is stopped" if half_open else "Nothing is tripped"
    return Headline(text, opened, half_open, counts["CLOSED"])
