"""The sessions of a project side by side: what each of them is at, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.names import session_ids
from fusewire.breakers.session.overview import running_in, standing
from fusewire.breakers.session.state import recalled, session_name

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.stores import Store

#: Sessions of a page, unless somebody asks for more or fewer.
SHOWN = 20

STATES = ("running", "silent", "halted", "ended")


def sessions_view(breaker: Breaker, limit: int = SHOWN, offset: int = 0) -> dict[str, Any]:
    """Nothing is written; times are ISO 8601 in UTC.

    sessions  the one heard of last first, without the first `offset`: `id`, `state` (`running`, `silent`, `halted`,
              `ended`), `heard`, `ended`, `halted` (why), `needs` (a `message` or a `grant`, to go on), `usd`, `agents`
              (helpers that run)
    halted    all of them that are halted and wait for a person
    counts    how many there are in each state, `all`, and `agents` that run
    """
    now = breaker.engine.clock()
    usd = breaker.rules.tool["resource_limits.api_cost_block_usd"]
    found = [_line(breaker.store, name, now, usd) for name in session_ids(breaker.store)]
    states = Counter(one["state"] for one in found)
    return {
        "sessions": found[offset : offset + limit],
        "halted": [one for one in found if one["state"] == "halted"],
        "counts": {
            "all": len(found),
            **{state: states[state] for state in STATES},
            "agents": sum(one["agents"] for one in found if not one["ended"]),
        },
    }


def _line(store: Store, name: str, now: float, limit: float) -> dict[str, Any]:
    record = recalled(store, session_name(name))
    return {
        "id": name,
        **standing(record, now, limit),
        "usd": round((record.get("spend") or {}).get("usd", 0.0), 4),
        "agents": len(running_in(record, now)),
    }
