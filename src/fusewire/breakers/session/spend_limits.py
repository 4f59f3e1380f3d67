"""Show limits on spend in dollars, with what was granted, and as open while every call is refused.

Their circuits are told only near the limit, and not when a day is over: what is spent and granted is looked up where it
is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.session.names import session_ids
from fusewire.breakers.session.spend import ON_APIS, day_of, since_of, spent_words, whose
from fusewire.breakers.session.state import SPEND, ProjectSpend, SessionMemory, session_name
from fusewire.core.events import identifier
from fusewire.scopes.ledger import spent_elsewhere

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status
    from fusewire.stores import Store

_SESSION = ("tool/spend/", "tool/api_cost/")

_DAY = 86400

#: The limits on what all sessions spend together: what each is on, and how `fusewire grant` names it.
LIMITS_ON_ALL = {
    "tool/spend_day": ("today in this project", "--day"),
    "tool/spend_project": ("in this project", "--project-total"),
}


def in_dollars(breaker: Breaker, status: Status) -> Status:
    """The status of a limit on spend; that of any other circuit as it is."""
    now, limit = breaker.engine.clock(), status.threshold
    if status.id in LIMITS_ON_ALL:
        table = ProjectSpend.recalled(breaker.store, SPEND)
        key = table.PROJECT if status.id == "tool/spend_project" else day_of(now)
        spent, granted, in_force = table.spent(key), table.granted(key), True
        if limit > 0:
            spent = round(spent + spent_elsewhere(breaker.root, since_of(key)), 6)
        where, _ = LIMITS_ON_ALL[status.id]
    elif status.id.startswith(_SESSION):
        _, state = _spender(breaker.store, status.id)
        if status.id.startswith("tool/spend/"):
            spent, granted, where = state.usd_of_limit, state.granted, whose(state)
            limit = state.limit(breaker.rules.tool)
        else:
            spent, granted, where = state.api_usd, state.api_granted, ON_APIS
        in_force = limit > 0 and stops(state) and not long_over(state, now)
    else:
        return status
    reached = spent - granted >= limit and in_force
    shown: Status = status.replace(
        level=round(spent, 4),
        threshold=round(limit + granted, 4),
        near=not reached and in_force and spent >= 0.8 * (limit + granted),
        phase="open" if reached else status.phase,
        reason=spent_words(spent, granted, limit, where) if reached else status.reason,
    )
    return shown


def spent_and_allowed(status: Status) -> tuple[float, float] | None:
    """What is spent, and what may be (0 if there is no limit), of a status in dollars; None of any other."""
    return (status.level, status.threshold) if is_in_dollars(status.id) else None


def is_in_dollars(circuit: str) -> bool:
    return circuit in LIMITS_ON_ALL or circuit.startswith(_SESSION)


def stops(state: SessionMemory) -> bool:
    """Whether a session's limit, if it is reached, stops it: not one that came to its end before it was refused."""
    return state.ended is None or state.last_halt.startswith("HALTED tool.spend")


def long_over(state: SessionMemory, now: float) -> bool:
    """Whether a session ended more than a day ago: whatever stopped it, nobody has to do anything about it now."""
    return state.ended is not None and now - state.ended >= _DAY


def spending_session(store: Store, circuit: str) -> str | None:
    """The session whose limit it is; None of any other circuit."""
    return _spender(store, circuit)[0] if circuit.startswith(_SESSION) else None


def _spender(store: Store, circuit: str) -> tuple[str, SessionMemory]:
    """The session and what is remembered of it: its name is in the circuit's, but a long one was cut."""
    prefix = next(one for one in _SESSION if circuit.startswith(one))
    name = circuit.removeprefix(prefix)
    state = SessionMemory.recalled(store, session_name(name))
    if state.is_new:
        name = next((one for one in session_ids(store) if identifier(f"{prefix}{one}") == circuit), name)
        state = SessionMemory.recalled(store, session_name(name))
    return name, state
