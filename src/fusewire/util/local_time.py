"""Show a moment in the person's own time."""

from __future__ import annotations

import time


def local_time(moment: float, *, seconds: bool = False) -> str:
    """With its zone, and with the day where it is another one: `14:02 CET`, `2026-11-18 14:02 CET`."""
    at, today = time.localtime(moment), time.localtime()
    day = "" if at[:3] == today[:3] else time.strftime("%Y-%m-%d ", at)
    return day + time.strftime("%H:%M:%S %Z" if seconds else "%H:%M %Z", at)
