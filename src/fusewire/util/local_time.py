"""Show a time as a person's own clock has it."""

from __future__ import annotations

import time


def local_time(moment: float, now: float | None = None, *, seconds: bool = False) -> str:
    """`14:32 CET`, with the day where it is another one than today."""
    at, today = time.localtime(moment), time.localtime(now)
    day = "" if at[:3] == today[:3] else time.strftime("%Y-%m-%d ", at)
    return day + time.strftime("%H:%M:%S %Z" if seconds else "%H:%M %Z", at)
