"""Describe what a person has ordered here: who is halted, which rules only log, since when, by whom and why."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Annotated

from fusewire.scopes.orders import ALL, SESSION, HaltOrder, Orders, PauseOrder, orders_path, read_orders
from fusewire.util.durations import format_time
from fusewire.util.json_types import Time, about
from fusewire.util.local_time import local_time
from fusewire.util.worktrees import project_key


@dataclass(frozen=True)
class HaltLine:
    """A halt that holds here."""

    scope: Annotated[str, about("all, project or session")]
    key: Annotated[str, about("the project's folder or the session's id; empty for all")]
    reason: str
    by: str
    at: Time
    text: Annotated[str, about("all of it in a sentence, with local times")]


@dataclass(frozen=True)
class PauseLine:
    """Rules that only log until a time."""

    scope: Annotated[str, about("all, project or session")]
    key: Annotated[str, about("the project's folder or the session's id; empty for all")]
    rules: Annotated[list[str], about("patterns of rules; * is all of them")]
    until: Time
    reason: str
    by: str
    at: Time
    text: Annotated[str, about("all of it in a sentence, with local times")]


@dataclass(frozen=True)
class OrdersView:
    """What a person has ordered for a project and its sessions."""

    halts: Annotated[list[HaltLine], about("the widest first")]
    pauses: list[PauseLine]
    problem: Annotated[str | None, about("why the person's own record cannot be relied on")]

    @property
    def lines(self) -> list[str]:
        """What every front end shows, the most important first."""
        problem = [f"{self.problem}; a person can run: fusewire resume"] if self.problem else []
        return [*(one.text for one in self.halts), *problem, *(one.text for one in self.pauses)]

    @property
    def stops(self) -> bool:
        """Whether all agents of the project are halted."""
        return any(one.scope != SESSION for one in self.halts)


def orders_view(
    root: str | None, session: str | None = None, *, everything: bool = False, now: float | None = None
) -> OrdersView:
    """What holds for a project, or for one session of it; a session's halt shows in its project.

    `everything`: what the person has ordered anywhere.
    """
    now = time.time() if now is None else now
    orders, key = read_orders(root), project_key(root) if root else ""
    ours = _sessions(key, orders) if session is None and not everything else {session or ""}

    def concerns(scope: str, whose: str) -> bool:
        return everything or scope == ALL or whose == key or (scope == SESSION and whose in ours)

    halts = [one for one in orders.halts if concerns(one.scope, one.key)]
    pauses = [one for one in orders.pauses if one.at <= now < one.until and concerns(one.scope, one.key)]
    lost = f"the record of this halt is gone ({orders_path()}), and this project's copy of it holds"
    problem = orders.damage or (lost if orders.copied else "")
    return OrdersView(
        [
            HaltLine(
                *(one.scope, one.key, one.reason, one.by, format_time(one.at)),
                f"HALTED: {whose(one.scope, one.key)}, by {one.by} since {local_time(one.at)}: {one.reason}"
                f" (fusewire resume{_option(one.scope, one.key)})",
            )
            for one in sorted(halts, key=lambda one: (one.scope != ALL, one.scope == SESSION))
        ],
        [
            PauseLine(
                *(one.scope, one.key, list(one.rules), format_time(one.until), one.reason, one.by, format_time(one.at)),
                f"PAUSED until {local_time(one.until)} for"
                f" {whose(one.scope, one.key)}, by {one.by}: {_rules(one.rules)}: {one.reason} (fusewire pause --end)",
            )
            for one in pauses
        ],
        problem or None,
    )


def _sessions(key: str, orders: Orders) -> set[str]:
    """Sessions of the project that are named in orders: each is looked up in the person's store."""
    given: list[HaltOrder | PauseOrder] = [*orders.halts, *orders.pauses]
    named = {one.key for one in given if one.scope == SESSION}
    return {one for one in named if project_of(one) in (key, "")} if named else set()


def project_of(session: str) -> str:
    """The project of a session; empty if that is not known."""
    from fusewire.scopes.user import SESSION as PREFIX
    from fusewire.scopes.user import open_user_store
    from fusewire.util.errors import StoreError

    try:
        facts = open_user_store(read_only=True).recall(f"{PREFIX}{session}") or {}
    except (StoreError, OSError, ValueError):
        return ""
    return str(facts.get("project") or "")


def whose(scope: str, key: str) -> str:
    """Whom an order is for; a session by its name."""
    if scope == ALL:
        return "all agents"
    if scope != SESSION:
        return f"the agents of {os.path.basename(key) or key} ({key})"
    from fusewire.views.session_names import SessionNames

    return SessionNames(None, time.time()).facts(key).words


def _option(scope: str, key: str) -> str:
    return f" --session {key[:8]}" if scope == SESSION else ""


def _rules(rules: tuple[str, ...]) -> str:
    if rules == ("*",):
        return "all rules only log"
    return f"{', '.join(rules)} only log{'s' if len(rules) == 1 else ''}"
