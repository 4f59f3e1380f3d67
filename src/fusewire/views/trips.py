"""Fold the audit trail of a circuit into trips: when each began, how it ended, and how long it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.util.durations import format_time, show_time
from fusewire.util.json_types import Count, Seconds, Time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.stores.rows import AuditRow

#: A move from `open` to `probe` ends no trip yet; the probe does, or whoever starts the work anew.
_ENDS = ("closed", "open")


@dataclass(frozen=True)
class PastTrip:
    """A trip, which may last still. One that a failed probe ended is followed by the next."""

    opened_at: Time
    #: None while it lasts
    closed_at: Time | None
    seconds: Seconds | None
    #: how it ended, and the same in words
    cause: str | None
    method: str
    #: why it opened
    reason: str
    in_a_row: Count


def trips_in(trail: Iterable[AuditRow], phase: str, since: float, now: float) -> list[PastTrip]:
    """Those that were not over before `since`, newest first; `phase` is the circuit's own by now."""
    found: list[_Trip] = []
    current: _Trip | None = None
    for row in trail:
        if row.source == row.target:  # an act of a person that moved nothing
            continue
        if current is not None and row.cause == "retried":
            current.hastened = row.actor or "a person"
        if current is not None and row.target in _ENDS:
            current.ended = row
        if row.target == "open":
            current = _Trip(row, 1 if current is None else current.in_a_row + 1)
            found.append(current)
        elif row.target == "closed":
            current = None
    if current is not None and phase == "closed":
        current.lost = True
    return [one.finished(now) for one in reversed(found) if one.ended is None or one.ended.at >= since]


class _Trip:
    def __init__(self, opened: AuditRow, in_a_row: int) -> None:
        self.opened, self.in_a_row = opened, in_a_row
        self.ended: AuditRow | None = None
        #: who ended the cooldown early
        self.hastened = ""
        #: the circuit is closed, and nobody has written how that came
        self.lost = False

    def finished(self, now: float) -> PastTrip:
        end = None if self.ended is None else self.ended.at
        until = now if end is None else end
        return PastTrip(
            opened_at=format_time(self.opened.at),
            closed_at=show_time(end),
            seconds=None if self.lost else round(max(0.0, until - self.opened.at), 3),
            cause=None if self.ended is None else self.ended.cause,
            method=self._method(),
            reason=self.opened.reason,
            in_a_row=self.in_a_row,
        )

    def _method(self) -> str:
        if self.ended is None:
            return "forgotten with its circuit" if self.lost else "not over yet"
        early = f"the cooldown was ended early by {self.hastened}, " if self.hastened else ""
        return early + _ended_by(self.ended)


def _ended_by(row: AuditRow) -> str:
    why = row.reason or "no reason given"
    words = {
        "reset": f"reset by {row.actor or 'a person'}: {why}",
        "succeeded": "the probe went well",
        "quiet": why,
        "failed": "the probe failed",
        "restarted": f"started anew: {why}",
    }
    return words.get(row.cause, f"{row.cause}: {why}")
