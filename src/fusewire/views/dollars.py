"""What a limit on spend is about now: its circuit is told only near the limit, and not when more is granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.session.memory import SPEND, recalled, session_name
from fusewire.session.spend import day_of

if TYPE_CHECKING:
    from fusewire.breaker import Breaker

_SESSION = "tool/spend/"


def spent_and_granted(breaker: Breaker, circuit: str) -> tuple[float, float] | None:
    """The dollars that are spent, and those that a person has added to the limit; None for any other circuit."""
    if circuit.startswith(_SESSION):
        record = recalled(breaker.store, session_name(circuit.removeprefix(_SESSION)))
        return (record.get("spend") or {}).get("usd", 0.0), record.get("granted", 0.0)
    table = recalled(breaker.store, SPEND) if circuit in ("tool/spend_day", "tool/spend_project") else None
    if table is None:
        return None
    if circuit == "tool/spend_project":
        return table.get("usd", 0.0), table.get("granted_for", {}).get("project", 0.0)
    day = day_of(breaker.engine.clock())
    return table.get("days", {}).get(day, 0.0), table.get("granted_for", {}).get(day, 0.0)
