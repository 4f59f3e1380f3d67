"""All circuits of a project as one fuse box: what is tripped, why, what it costs, what to do.

One collection for everybody who shows it: the web page, `fusewire watch`, the JSON interface.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fusewire.breakers.loop.overview import overview as loop_overview
from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.spend import day_of
from fusewire.breakers.session.spend_limits import LIMITS_ON_ALL, spending_session, spent_and_granted
from fusewire.breakers.session.state import SPEND, recalled
from fusewire.core.circuit import within
from fusewire.engine.engine import next_steps
from fusewire.util.durations import counted, show_time
from fusewire.util.errors import NotFound
from fusewire.util.quoting import quoted
from fusewire.views.measures import decisive, fullness, measure
from fusewire.views.session_list import sessions_view
from fusewire.views.warnings import warnings

if TYPE_CHECKING:
    from collections.abc import Collection

    from fusewire.core.circuit import Policy
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status

_ORDER = {"open": 0, "probe": 1, "watch": 2, "closed": 3}


def panel(breaker: Breaker) -> dict[str, Any]:
    """Nothing is written. Everything in it can be written as JSON; times are ISO 8601 in UTC.

    headline  one sentence, and how many circuits are `open`, `half_open`, `closed`
    circuits  the fields of `status --json`, and `title`, `window` (" in 30 days"), `near` (the next one may open it),
              `measure` (how full it is, in words) and `full` (from 0 to 1), `next` (steps), `acts` (what a person may
              do here: reset, grant, resolve), `session` (the one whose circuit it is, or null); open ones first
    warnings  what is wrong with configuration or state
    sessions  the 20 heard of last, as `sessions_view` has them
    halted    all that are halted, however long ago, likewise
    session_counts  of all of them, likewise
    loop      as in `status --json`
    spend     `today_usd`, `project_usd`
    """
    now = breaker.engine.clock()
    known = frozenset(session_ids(breaker.store))
    circuits = [circuit_card(breaker, status, known) for status in _in_order(breaker.statuses())]
    counts = dict.fromkeys(("open", "half_open", "closed"), 0)
    for one in circuits:
        counts[one["state"].lower()] += 1
    sessions = sessions_view(breaker)
    table = recalled(breaker.store, SPEND)
    return {
        "project": {"name": os.path.basename(breaker.root or "") or "fusewire", "root": breaker.root},
        "at": show_time(now),
        "headline": {"text": _headline(counts, len(sessions["halted"])), **counts},
        "circuits": circuits,
        "warnings": warnings(breaker),
        "sessions": sessions["sessions"],
        "halted": sessions["halted"],
        "session_counts": sessions["counts"],
        "loop": loop_overview(breaker),
        "spend": {
            "today_usd": round(table.get("days", {}).get(day_of(now), 0.0), 4),
            "project_usd": round(table.get("usd", 0.0), 4),
        },
    }


def _in_order(statuses: list[Status]) -> list[Status]:
    """Open ones first, the newest trip before older ones; closed ones by how full they are."""

    def place(status: Status) -> tuple[Any, ...]:
        full = status.level / status.threshold if status.threshold > 0 else 0.0
        return _ORDER[status.phase], -(status.opened_at or 0.0), -min(1.0, max(0.0, full)), status.id

    return sorted(statuses, key=place)


def circuit_card(breaker: Breaker, status: Status, sessions: Collection[str]) -> dict[str, Any]:
    """One circuit as `panel` has it."""
    policy = policy_of(breaker, status.id)
    session = spending_session(breaker.store, status.id) or session_of(status.id, sessions)
    constraint = breaker.rules.constraints.get(status.id)
    meter = decisive(policy, status.threshold)
    dollars = spent_and_granted(status, meter.trip) if meter else None
    return {
        **status.to_json(),
        "title": constraint.title if constraint is not None else "",
        "window": within(meter) if meter else "",
        "measure": measure(meter, status.level, dollars) if meter else "",
        "full": round(fullness(meter, status.level, dollars), 4) if meter else 0.0,
        "near": status.near,
        "next": _next(policy, status, session) if status.phase != "closed" else [],
        "acts": acts_on(policy, status),
        "session": session,
    }


def _next(policy: Policy, status: Status, session: str | None) -> list[str]:
    steps = next_steps(policy, status.id, status.phase)
    if "grant" not in acts_on(policy, status):
        return list(steps)
    whom = f"--session {quoted(session)}" if session else LIMITS_ON_ALL[status.id][1]
    return [*steps, f'a person can run: fusewire grant 5 {whom} --reason "..."']


def policy_of(breaker: Breaker, circuit: str) -> Policy:
    """The policy of a circuit, also of a constraint's whose file is gone."""
    try:
        return breaker.rules.policy(circuit)
    except NotFound:
        return breaker.rules.constraint_policy(circuit)


def acts_on(policy: Policy, status: Status) -> list[str]:
    """What a person may do about a circuit with a reason and nothing else; the rest has commands of its own."""
    if status.phase != "open":
        return []
    if status.kind == "phase":
        return ["resolve"]
    acts = ["reset"] if policy.reset in ("close", "probe") else []
    return [*acts, "grant"] if status.id.startswith("tool/spend") else acts


def _headline(counts: dict[str, int], halted: int) -> str:
    parts = []
    if counts["open"]:
        parts.append(f"{counted(counts['open'], 'circuit')} {'is' if counts['open'] == 1 else 'are'} open")
    if halted:
        parts.append(f"{counted(halted, 'session')} {'is' if halted == 1 else 'are'} halted")
    if parts:
        return " and ".join(parts)
    if counts["half_open"]:
        return f"{counted(counts['half_open'], 'circuit')} half open, nothing is stopped"
    return "Nothing is tripped"
