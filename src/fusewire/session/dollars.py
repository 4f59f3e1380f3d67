"""Limits on spend as people see them: in dollars, with what was granted, and open while every call is refused.

Their circuits are told only near the limit, and not when a day is over: what is spent and granted is looked up where it
is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.events import identifier
from fusewire.session.memory import SPEND, recalled, session_name
from fusewire.session.names import session_ids
from fusewire.session.spend import day_of, spent_words

if TYPE_CHECKING:
    from fusewire.breaker import Breaker
    from fusewire.reports.status import Status
    from fusewire.stores import Store

_SESSION = "tool/spend/"

_DAY = 86400

#: The limits on what all sessions spend together: what each is on, and how `fusewire grant` names it.
LIMITS_ON_ALL = {
    "tool/spend_day": ("today in this project", "--day"),
    "tool/spend_project": ("in this project", "--project-total"),
}


def in_dollars(breaker: Breaker, status: Status) -> Status:
    """The status of a limit on spend; that of any other circuit as it is."""
    dollars = spent_and_granted(breaker, status.id)
    if dollars is None:
        return status
    spent, granted = dollars
    limit, (where, _) = status.threshold, LIMITS_ON_ALL.get(status.id, ("in this session", ""))
    reached = spent - granted >= limit and _is_in_force(breaker, status.id)
    shown: Status = status.replace(
        level=round(spent, 4),
        threshold=round(limit + granted, 4),
        near=not reached and spent >= 0.8 * (limit + granted),
        phase="open" if reached else status.phase,
        reason=spent_words(spent, granted, limit, where) if reached else status.reason,
    )
    return shown


def spent_and_granted(breaker: Breaker, circuit: str) -> tuple[float, float] | None:
    """The dollars that are spent, and those that a person has added to the limit; None for any other circuit."""
    if circuit.startswith(_SESSION):
        record = _record(breaker, circuit)
        return (record.get("spend") or {}).get("usd", 0.0), record.get("granted", 0.0)
    if circuit not in LIMITS_ON_ALL:
        return None
    table = recalled(breaker.store, SPEND)
    if circuit == "tool/spend_project":
        return table.get("usd", 0.0), table.get("granted_for", {}).get("project", 0.0)
    day = day_of(breaker.engine.clock())
    return table.get("days", {}).get(day, 0.0), table.get("granted_for", {}).get(day, 0.0)


def long_over(record: dict[str, Any], now: float) -> bool:
    """Whether a session ended more than a day ago: whatever stopped it, nobody has to do anything about it now."""
    ended = record.get("ended")
    return ended is not None and now - ended >= _DAY


def stops(record: dict[str, Any]) -> bool:
    """Whether a session's limit, if it is reached, stops it: not one that came to its end before it was refused."""
    return record.get("ended") is None or str(record.get("last_halt", "")).startswith("HALTED tool.spend")


def _is_in_force(breaker: Breaker, circuit: str) -> bool:
    if circuit in LIMITS_ON_ALL:
        return True
    record = _record(breaker, circuit)
    return stops(record) and not long_over(record, breaker.engine.clock())


def _record(breaker: Breaker, circuit: str) -> dict[str, Any]:
    return recalled(breaker.store, session_name(spending_session(breaker.store, circuit)))


def spending_session(store: Store, circuit: str) -> str:
    """The session whose limit it is: its name is in the circuit's, but a long one was cut."""
    name = circuit.removeprefix(_SESSION)
    if recalled(store, session_name(name)):
        return name
    return next((one for one in session_ids(store) if identifier(f"{_SESSION}{one}") == circuit), name)
