"""Keep to the person's own clock: hours in which nothing is to start, such as "23:00-07:00", and times as text."""

from __future__ import annotations

import time

#: From and to, in minutes since midnight.
Hours = tuple[int, int]


def parse_clock(text: str) -> int:
    """Minutes since midnight of "07:30"; raises ValueError for anything else."""
    hours, colon, minutes = text.strip().partition(":")
    whole = all(part.isascii() and part.isdigit() and len(part) <= 2 for part in (hours, minutes))
    if not colon or not whole or len(minutes) != 2 or int(hours) > 23 or int(minutes) > 59:
        raise ValueError(text)
    return int(hours) * 60 + int(minutes)


def parse_hours(text: str) -> Hours | None:
    """The hours of "23:00-07:00"; None for an empty text."""
    if not text:
        return None
    first, _, last = text.partition("-")
    hours = parse_clock(first), parse_clock(last)
    if hours[0] == hours[1]:
        raise ValueError(text)
    return hours


def end_of_quiet(hours: Hours | None, moment: float) -> float:
    """When the quiet hours end that a moment lies in; the moment itself if it lies in none."""
    if hours is None:
        return moment
    first, last = hours
    clock = time.localtime(moment)
    minute = clock.tm_hour * 60 + clock.tm_min
    is_quiet = first <= minute < last if first < last else minute >= first or minute < last
    return _at(clock, last, tomorrow=minute >= last) if is_quiet else moment


def next_at(minute: int, now: float) -> float:
    """The next moment at which a clock shows this minute of the day."""
    clock = time.localtime(now)
    return _at(clock, minute, tomorrow=clock.tm_hour * 60 + clock.tm_min >= minute)


def _at(day: time.struct_time, minute: int, *, tomorrow: bool) -> float:
    hour, rest = divmod(minute, 60)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday + tomorrow, hour, rest, 0, 0, 0, -1))
