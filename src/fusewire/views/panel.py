"""All circuits of a project as one fuse box: what is tripped, why, what it costs, what to do.

One collection for everybody who shows it: the web page, `fusewire watch`, the JSON interface.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fusewire.circuit import within
from fusewire.durations import counted, show_time
from fusewire.engine import next_steps
from fusewire.errors import FusewireError, NotFound
from fusewire.runner.overview import overview as loop_overview
from fusewire.session.memory import SPEND, recalled, session_name
from fusewire.session.overview import running_in, standing
from fusewire.session.spend import day_of
from fusewire.views.dollars import spent_and_granted
from fusewire.views.measures import decisive, fullness, measure
from fusewire.views.warnings import warnings

if TYPE_CHECKING:
    from fusewire.breaker import Breaker
    from fusewire.circuit import Policy
    from fusewire.reports.status import Status

#: Sessions that are shown, the ones heard of last.
_SESSIONS = 20

_ORDER = {"open": 0, "probe": 1, "watch": 2, "closed": 3}


def panel(breaker: Breaker) -> dict[str, Any]:
    """Nothing is written. Everything in it can be written as JSON; times are ISO 8601 in UTC.

    headline  one sentence, and how many circuits are `open`, `half_open`, `closed`
    circuits  the fields of `status --json`, and `title`, `window` (" in 30 days"), `near` (the next one may open it),
              `measure` (how full it is, in words) and `full` (from 0 to 1), `next` (steps), `acts` (what a person may
              do here: reset, grant, resolve); open ones first
    warnings  what is wrong with configuration or state
    sessions  the newest first: `id`, `state` (`running`, `silent`, `halted`, `ended`), `heard`, `ended`, `halted`,
              `usd`, `agents`
    loop      as in `status --json`
    spend     `today_usd`, `project_usd`
    """
    now = breaker.engine.clock()
    circuits = [circuit_card(breaker, status) for status in _in_order(breaker.statuses())]
    counts = dict.fromkeys(("open", "half_open", "closed"), 0)
    for one in circuits:
        counts[one["state"].lower()] += 1
    sessions = _sessions(breaker, now)
    table = recalled(breaker.store, SPEND)
    return {
        "project": {"name": os.path.basename(breaker.root or "") or "fusewire", "root": breaker.root},
        "at": show_time(now),
        "headline": {"text": _headline(counts, sessions), **counts},
        "circuits": circuits,
        "warnings": warnings(breaker),
        "sessions": sessions,
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


def circuit_card(breaker: Breaker, status: Status) -> dict[str, Any]:
    """One circuit as `panel` has it."""
    policy = policy_of(breaker, status.id)
    constraint = breaker.rules.constraints.get(status.id)
    meter, dollars = decisive(policy, status.threshold), spent_and_granted(breaker, status.id)
    return {
        **status.to_json(),
        "title": constraint.title if constraint is not None else "",
        "window": within(meter) if meter else "",
        "measure": measure(meter, status.level, dollars) if meter else "",
        "full": round(fullness(meter, status.level, dollars), 4) if meter else 0.0,
        "near": status.near,
        "next": list(next_steps(policy, status.id, status.phase)) if status.phase != "closed" else [],
        "acts": acts_on(policy, status),
    }


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


def _headline(counts: dict[str, int], sessions: list[dict[str, Any]]) -> str:
    halted = [one for one in sessions if one["halted"] and not one["ended"]]
    parts = []
    if counts["open"]:
        parts.append(f"{counted(counts['open'], 'circuit')} {'is' if counts['open'] == 1 else 'are'} open")
    if halted:
        parts.append(f"{counted(len(halted), 'session')} {'is' if len(halted) == 1 else 'are'} halted")
    if parts:
        return " and ".join(parts)
    if counts["half_open"]:
        return f"{counted(counts['half_open'], 'circuit')} half open, nothing is stopped"
    return "Nothing is tripped"


def _sessions(breaker: Breaker, now: float) -> list[dict[str, Any]]:
    names = (name.removeprefix("session/") for name, _ in breaker.store.remembered("session/"))
    found = []
    for name in [one for one in names if one and "/" not in one][:_SESSIONS]:
        try:
            record = recalled(breaker.store, session_name(name))
        except FusewireError:
            continue
        found.append(
            {
                "id": name,
                **standing(record, now),
                "usd": round((record.get("spend") or {}).get("usd", 0.0), 4),
                "agents": len(running_in(record, now)),
            }
        )
    return found
