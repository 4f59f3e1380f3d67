"""Count, and say what was counted: seven small families of meters.

A meter's *memory* is a short JSON-able list that never grows beyond what its question needs ("n in T"
needs the last n times). `count` folds one observation into a memory, `level` reads it, `reached` compares
it with a limit, `free_at` says when it will have fallen below. No clock, no I/O: `now` is an argument.

| family   | memory             | level                                                              |
|----------|--------------------|--------------------------------------------------------------------|
| streak   | [count, mark]      | observations in a row; where `marked`, of one and the same mark    |
| window   | [time, ...]        | observations younger than `span` (seconds, or turns)               |
| total    | [sum]              | everything since the last clearing                                 |
| last_sum | [value, ...]       | sum of the last n values                                           |
| share    | [value, ...]       | mean of the last n values (0 or 1 each)                            |
| trend    | [value, ...]       | decline from the first to the last of n values that only fell      |
| gauge    | [value]            | a value that is set                                                |
"""

from __future__ import annotations

from fusewire.core.events import Noun
from fusewire.util.durations import counted, number, show_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Memory = list[Any]

#: A window keeps so many times more than its limit, so that raising a threshold later does not forget any.
WINDOW_KEEPS = 8

#: More than any setting allows a meter to keep.
_LONGEST = 1000 + WINDOW_KEEPS

_NUMBERS = {int, float}

FAMILIES = ("streak", "window", "total", "last_sum", "share", "trend", "gauge")


class Meter(Noun):
    """One meter of a policy: what it counts, how, and the levels that matter. Built from policy data."""

    name: str
    family: str
    on: str
    trip: float
    #: `at` (>=), `over` (>), `below` (<), or `ask`: the question after the limit is full trips
    trip_by: str = "at"
    warn: float | None = None
    span: float = 0
    turns: bool = False
    #: how many values last_sum, share and trend look back on
    size: int = 0
    #: how many observations there must be before the level means anything
    needs: int = 0
    #: trend: the first value must be at least this large to fall from
    floor: float = 0
    #: streak: only observations with the same fingerprint are in a row
    marked: bool = False
    #: refuses while the level is at the limit, but never opens the circuit
    limits: bool = False
    #: questions that are refused while it is full, beside those that it counts; `*` is every one
    checks: tuple[str, ...] = ()
    resets_on: tuple[str, ...] = ()
    reason: str = ""

    def asked(self, name: str) -> bool:
        """Whether a question of that name is answered by this meter's level."""
        if self.trip_by != "ask" and not self.limits:
            return False
        return name == self.on or name in self.checks or "*" in self.checks

    def to_data(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.fields])

    @classmethod
    def from_data(cls, data: tuple[Any, ...]) -> Meter:
        meter = cls.__new__(cls)
        meter.__dict__.update(zip(cls.fields, data, strict=True))
        return meter


def count(meter: Meter, memory: Memory, value: float, mark: str | None, at: float, turn: int | None) -> Memory:
    """The memory after one more observation."""
    family = meter.family
    if family == "streak":
        mark = mark if meter.marked else None
        same = bool(memory) and memory[1] == mark
        return [memory[0] + 1 if same else 1, mark]
    if family == "window":
        if value < 0:
            return memory  # taken back from a total; what was done lately was done
        when: float = (turn or 0) if meter.turns else at
        return [*memory, when][-keeps(meter) :]
    if family == "total":
        return [(memory[0] if memory else 0) + value]
    if family == "gauge":
        return [value]
    return [*memory, value][-meter.size :]


def keeps(meter: Meter) -> int:
    """How many times a window remembers."""
    return int(meter.trip) + WINDOW_KEEPS


def span_words(meter: Meter) -> str:
    """How far back a window looks: "5 turns", "30d"."""
    return counted(int(meter.span), "turn") if meter.turns else show_duration(meter.span)


def level(meter: Meter, memory: Memory, now: float, turn: int | None = None) -> float:
    """How full the meter is."""
    family = meter.family
    if family == "window":
        return len(inside(meter, memory, now, turn))
    if not memory:
        return 0
    if family == "last_sum":
        return float(sum(memory))
    if family == "share":
        return float(sum(memory)) / len(memory)
    if family == "trend":
        return _decline(meter, memory)
    first: float = memory[0]
    return first


def inside(meter: Meter, memory: Memory, now: float, turn: int | None = None) -> Memory:
    """The times that still count: a half-open interval, so one exactly `span` old no longer does.

    A time in the future (the clock was set back) still counts: nothing is forgotten by a wrong clock.
    """
    if meter.turns:
        newest = turn if turn is not None else (memory[-1] if memory else 0)
        return [when for when in memory if when > newest - meter.span]
    return [when for when in memory if when > now - meter.span]


def reached(meter: Meter, memory: Memory, now: float, turn: int | None = None) -> bool:
    """Whether the level trips the circuit (or, for a limit, is full)."""
    if meter.family in ("last_sum", "share", "trend") and len(memory) < meter.needs:
        return False
    height = level(meter, memory, now, turn)
    if meter.trip_by == "over":
        return height > meter.trip
    if meter.trip_by == "below":
        return height < meter.trip
    return height >= meter.trip


def warned(meter: Meter, memory: Memory, now: float, turn: int | None = None) -> bool:
    """Whether the level has reached the warning before the limit."""
    return meter.warn is not None and level(meter, memory, now, turn) >= meter.warn


def free_at(meter: Meter, memory: Memory, now: float) -> float | None:
    """When a full window of seconds will have room again; None where time alone does not help."""
    if meter.family != "window" or meter.turns:
        return None
    times = inside(meter, memory, now)
    limit = int(meter.trip)
    return sorted(times)[-limit] + meter.span if len(times) >= limit > 0 else now


def fits(meter: Meter, memory: Any) -> bool:
    """Whether a stored memory can be this meter's; one that cannot is damaged."""
    if type(memory) is not list:
        return False
    if meter.family == "streak":
        return not memory or (len(memory) == 2 and type(memory[0]) is int and type(memory[1]) in (str, type(None)))
    if not memory:
        return True
    most = 1 if meter.family in ("total", "gauge") else _LONGEST
    numbers = len(memory) <= most and {*map(type, memory)} <= _NUMBERS
    return numbers and min(memory) > -1e12 and max(memory) < 1e12


def _decline(meter: Meter, values: Memory) -> float:
    falling = all(later < earlier for earlier, later in zip(values, values[1:], strict=False))
    if not falling or values[0] < meter.floor or values[0] <= 0:
        return 0
    return round(float(1 - values[-1] / values[0]), 9)  # so that 70 % is 70 %


def within(meter: Meter) -> str:
    """ " within 30d", or nothing where a meter has no window."""
    if meter.family != "window":
        return ""
    return f" within {span_words(meter)}"


def explain(meter: Meter, height: float, name: str = "") -> str:
    """What a meter says at a height, with its limit."""
    return meter.reason.format(
        level=number(height),
        s="" if height == 1 else "s",
        percent=number(round(height * 100, 1)),
        limit=number(meter.trip),
        limit_percent=number(round(meter.trip * 100, 1)),
        span=span_words(meter),
        size=meter.size,
        name=name,
    )
