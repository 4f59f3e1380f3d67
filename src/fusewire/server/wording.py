"""Numbers, times and states as the pages say them."""

from __future__ import annotations

from datetime import UTC, datetime
from shlex import quote

from fusewire.durations import number, show_duration
from fusewire.janitor.archives import limit_shown
from fusewire.janitor.cleanup import space

#: Characters of a name: what agents call their sessions has less than fifty.
_NAME = 120


def duration(seconds: float | None) -> str:
    return "" if seconds is None else show_duration(round(seconds))


def usd(amount: float | None) -> str:
    return "" if amount is None else f"${amount:,.2f}"


def limit(size: int) -> str:
    """Bytes that are a limit, as `fusewire memory` says them."""
    return limit_shown(size // 1024)


def brief(name: str) -> str:
    """A name that anybody can read; of one that is longer than any honest one its beginning and its end."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 20]}…{name[-19:]}"


def when(moment: str | None) -> str:
    """A time as people read it: `16 Nov 14:32:07`; the whole of it is in the element's title."""
    if not moment:
        return ""
    at = datetime.fromisoformat(moment)
    year = "" if at.year == datetime.now(UTC).year else f" {at.year}"
    return f"{at.day} {at:%b}{year} {at:%H:%M:%S}"


FILTERS = {
    "brief": brief,
    "duration": duration,
    "limit": limit,
    "number": number,
    "shell": quote,
    "space": space,
    "usd": usd,
    "when": when,
}
