"""Draw a time axis: positions of moments, and which of them get a label."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fusewire.server.drawing.svg import group, upright_line, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

_DAY = 86400
_YEAR = 300 * _DAY
_STEPS = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(days * _DAY for days in (1, 2, 5, 7, 14, 30, 60, 120, 365)),
)

#: Moments that are written: more would touch each other on a phone; those with seconds are longer.
_WRITTEN = 6
_WITH_SECONDS = 4

#: Pixels that they need.
FOOT = 20


class Axis:
    """The time between two moments, of a second at least."""

    def __init__(self, start: float, end: float) -> None:
        middle, half = (start + end) / 2, max(1.0, end - start) / 2
        self.start, self.end = middle - half, middle + half

    def place(self, at: float) -> float:
        """Percent from the left; what lies outside is at the edge."""
        return min(100.0, max(0.0, 100 * (at - self.start) / (self.end - self.start)))

    def moments(self) -> Iterator[float]:
        """Round ones, and few of them."""
        span = self.end - self.start
        fits = (step for step in _STEPS if span / step <= (_WRITTEN if step >= 60 else _WITH_SECONDS))
        step = next(fits, _DAY * math.ceil(span / _WRITTEN / _DAY))
        at = math.ceil(self.start / step) * step
        while at <= self.end:
            yield at
            at += step

    def drawn(self, bottom: float) -> Markup:
        """Lines at round moments, and what they are."""
        moments = list(self.moments())
        within_day = "%H:%M:%S" if any(at % 60 for at in moments) else "%H:%M"
        day = "%b %Y" if self.end - self.start > _YEAR else "%-d %b"
        parts = []
        for at in moments:
            across, told = self.place(at), _told(at, within_day if at % _DAY else day)
            parts += [upright_line(across, 0, bottom, "grid"), words(told, across, bottom + 15)]
        return group("axis", *parts)


def _told(at: float, how: str) -> str:
    """`14:05`, and at midnight the day."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime(how.replace("%-d", str(moment.day)))
