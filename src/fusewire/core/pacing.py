"""Spread work over a window of a provider's limit, so that it lasts until the window's end. Pure arithmetic."""

from __future__ import annotations

from fusewire.core.events import Noun

#: Seconds that one start is delayed at most.
LONGEST_DELAY = 900.0


class Window(Noun):
    """A window of a provider's limit: how much of it is used (0 to 1), when it ends, and how many seconds it lasts."""

    name: str
    used: float
    ends: float
    length: float

    def gone(self, now: float) -> float:
        """The share of its time that has passed."""
        return min(1.0, max(0.0, 1 - (self.ends - now) / self.length))

    def is_running(self, now: float) -> bool:
        """Whether it has begun and not ended; with a clock that is wrong it may seem that it has not."""
        return self.length > 0 and self.ends - self.length <= now < self.ends


def tightest(windows: tuple[Window, ...], now: float) -> Window | None:
    """The window that has been used up the furthest beyond an even pace; None if none is known to run."""
    running = [window for window in windows if window.is_running(now)]
    return max(running, key=lambda window: window.used - window.gone(now), default=None)


def delay(window: Window, now: float) -> float:
    """Seconds to wait until as much of its time has passed as of it is used: bounded, and never beyond its end."""
    if not window.is_running(now):
        return 0.0
    even_at = window.ends - window.length * (1 - min(1.0, max(0.0, window.used)))
    return min(LONGEST_DELAY, max(0.0, even_at - now))


def spacing(starts: int, limit: int, last: float | None, now: float) -> float:
    """Seconds to wait where only an hourly limit of starts is known: the hour in equal parts, one for each start."""
    if not starts or last is None or limit < 1 or last > now:
        return 0.0
    return min(LONGEST_DELAY, max(0.0, last + 3600 / limit - now))


def words(window: Window, now: float) -> str:
    """`38 % of the window five_hour used after 50 % of its time: 12 % behind an even pace`."""
    used, gone = round(100 * window.used), round(100 * window.gone(now))
    said = f"{used} % of the window {window.name} used after {gone} % of its time: "
    if used == gone:
        return said + "an even pace"
    return said + f"{abs(used - gone)} % {'ahead of' if used > gone else 'behind'} an even pace"
