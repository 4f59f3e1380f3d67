"""How full a meter is, in words: what kind of number it is decides how it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.circuit import within
from fusewire.durations import number

if TYPE_CHECKING:
    from fusewire.circuit import Policy
    from fusewire.meters import Meter

_PARTS = ("share", "trend")


def measure(meter: Meter, level: float, *, dollars: bool = False) -> str:
    """`5 of 5 within 30d`, `40% of 70%`, `$2.80 of $5.00`, `6, not below 0`."""
    if meter.trip_by == "below":
        return f"{number(level)}, not below {number(meter.trip)}"
    if dollars:
        return f"${level:.2f} of ${meter.trip:.2f}"
    if meter.family in _PARTS:
        return f"{level:.0%} of {meter.trip:.0%}"
    return f"{number(level)} of {number(meter.trip)}{within(meter)}"


def fullness(meter: Meter, level: float) -> float:
    """From 0 to 1; of what must not fall, all or nothing."""
    if meter.trip_by == "below":
        return float(level < meter.trip)
    return min(1.0, max(0.0, level / meter.trip)) if meter.trip > 0 else 0.0


def decisive(policy: Policy, threshold: float) -> Meter | None:
    """The meter that a status is about: the one with its threshold."""
    found = [meter for meter in policy.meters if meter.trip == threshold]
    return next(iter([*found, *policy.meters]), None)


def is_spend(circuit: str) -> bool:
    return circuit.startswith("tool/spend")
