"""Say how things stand in a few lines: what is stopped, what it needs, what runs, what today has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.util.durations import counted, parse_time, show_duration
from fusewire.util.local_time import local_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.views.standing import ProjectStanding, Stopped

#: Entries of a list that are shown; one screen has room for both lists.
_MOST = 5

#: What is told of a kind beside its reason.
_STATES = {
    "halt": "halted",
    "session": "halted",
    "circuit": "open",
    "provider": "refused",
    "question": "asked",
    "pause": "only logged",
    "budget": "counted",
    "near": "counted",
}


def standing_lines(standing: ProjectStanding, now: float) -> Iterator[str]:
    """What needs the person first; where nothing is stopped, all of it is one line."""
    running = _running(standing)
    if not standing.needs and not standing.waits:
        yield f"Nothing is stopped. {running}"
        return
    if not standing.stopped:
        yield "Nothing is stopped."
    if standing.needs:
        number = len(standing.needs)
        yield f"{counted(number, 'thing')} need{'s' * (number == 1)} you:"
        yield from _entries(standing.needs, now)
    if standing.waits:
        number = len(standing.waits)
        yield f"{counted(number, 'thing')} {'ends by itself' if number == 1 else 'end by themselves'}:"
        yield from _entries(standing.waits, now)
    yield running


def _entries(entries: list[Stopped], now: float) -> Iterator[str]:
    for one in entries[:_MOST]:
        since = f"; {_STATES[one.kind]} since {_at(one.since, now)}" if one.since else ""
        until = f", until {_at(one.until, now)} (in {_left(one.until, now)})" if one.until else ""
        yield f"  {one.what}: {one.why}{since}{until}"
        if one.do:
            yield f"    {'sooner' if one.until else 'do'}: {one.do}"
    if len(entries) > _MOST:
        yield f"  and {len(entries) - _MOST} more: fusewire status --all"


def _at(moment: str, now: float) -> str:
    return local_time(parse_time(moment), now)


def _left(moment: str, now: float) -> str:
    return show_duration(max(1, round(parse_time(moment) - now)))


def _running(standing: ProjectStanding) -> str:
    number, cost = standing.running, standing.today
    what = f"{counted(number, 'session')} run{'s' * (number == 1)}" if number else "No session runs"
    loop = ", a loop too" if standing.loops else ""
    everywhere = f", ${cost.everywhere_usd:.2f} in all" if cost.everywhere_usd - cost.usd >= 0.005 else ""
    return f"{what}{loop}. Today: ${cost.usd:.2f} at list price in this project{everywhere}."
