"""How full a meter is, in words: what kind of number it is decides how it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.circuit import within
from fusewire.util.durations import number

if TYPE_CHECKING:
    from fusewire.core.circuit import Policy
    from fusewire.core.meters import Meter

_PARTS = ("share", "trend")


def measure(meter: Meter, level: float, dollars: tuple[float, float] | None = None) -> str:
    """`5 of 5 within 30d`, `40% of 70%`, `$2.80 of $5.00`, `6, not below 0`. `dollars` are spent and granted."""
    if meter.trip_by == "below":
        return f"{number(level)}, not below {number(meter.trip)}"
    if dollars is not None:
        return f"${dollars[0]:.2f} of ${meter.trip + dollars[1]:.2f}"
    if meter.family in _PARTS:
        return f"{level:.0%} of {meter.trip:.0%}"
    return f"{number(level)} of {number(meter.trip)}{within(meter)}"


def fullness(meter: Meter, level: float, dollars: tuple[float, float] | None = None) -> float:
    """From 0 to 1; of what must not fall, all or nothing."""
    if meter.trip_by == "below":
        return float(level < meter.trip)
    level, trip = (level, meter.trip) if dollars is None else (dollars[0], meter.trip + dollars[1])
    return min(1.0, max(0.0, level / trip)) if trip > 0 else 0.0


def decisive(policy: Policy, threshold: float) -> Meter | None:
    """The meter that a status is about: the one with its threshold."""
    found = [meter for meter in policy.meters if meter.trip == threshold]
    return next(iter([*found, *policy.meters]), None)
