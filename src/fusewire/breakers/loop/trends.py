"""Where a row of numbers is going."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def falls(values: Sequence[float], times: int) -> bool:
    """Whether each of the last values was lower than the one before it, so many times in a row."""
    last = values[-times - 1 :]
    return len(last) == times + 1 and all(later < earlier for earlier, later in zip(last, last[1:], strict=False))


def rises(values: Sequence[float], times: int) -> bool:
    return falls([-value for value in values], times)


def decline(values: Sequence[float]) -> float:
    """How much of the first value is gone at the last, if three or more only fell."""
    if len(values) < 3 or not falls(values, len(values) - 1) or values[0] <= 0:
        return 0.0
    return 1 - values[-1] / values[0]


def sparkline(values: Sequence[float]) -> str:
    """Small bars, the lowest value the lowest bar."""
    if not values:
        return ""
    low, high = min(values), max(values)
    if low == high:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


def trend(scores: Sequence[float]) -> str:
    """`rising`, `falling` or `steady`: the last three scores beside the three before them."""
    if len(scores) < 2:
        return "steady"
    half = min(3, len(scores) // 2)
    older, newer = scores[-2 * half : -half], scores[-half:]
    difference = sum(newer) / len(newer) - sum(older) / len(older)
    return "rising" if difference > 0.5 else "falling" if difference < -0.5 else "steady"
