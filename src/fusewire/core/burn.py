"""Tell how fast something is spent, when a limit will be reached, and in which five-hour windows it was spent."""

from __future__ import annotations

from fusewire.core.events import Noun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Seconds of a provider's window, and of the stretch that a rate is taken from.
WINDOW = 5 * 3600
_STRETCH = 3600.0

#: Seconds of the rows that spend is kept in, and the shortest stretch that says something about a rate.
_QUARTER = 900
_LEAST = 300.0


class BurnRate(Noun):
    """Dollars and tokens an hour, as of the last hour."""

    usd: float = 0.0
    tokens: float = 0.0

    def to_json(self) -> dict[str, float]:
        return {"usd_per_hour": round(self.usd, 4), "tokens_per_hour": round(self.tokens)}


class SpendWindow(Noun):
    """Five hours that begin at the full hour of the first request in them."""

    since: float
    until: float
    #: the begin of the last quarter of an hour with a request
    last: float
    usd: float
    tokens: int


def burn_rate(usage: Iterable[tuple[float, float, int]], now: float) -> BurnRate:
    """The rate of the last hour, from time, dollars and tokens by quarters of an hour; of less, if it began later."""
    usd, tokens, first = 0.0, 0.0, now
    for at, spent, count in usage:
        inside = (min(now, at + _QUARTER) - max(at, now - _STRETCH)) / max(1.0, min(now, at + _QUARTER) - at)
        if at <= now and inside > 0:
            usd, tokens, first = usd + spent * inside, tokens + count * inside, min(first, max(at, now - _STRETCH))
    hours = max(now - first, _LEAST) / 3600
    return BurnRate(usd / hours, tokens / hours)


def used_up_at(spent: float, limit: float, rate: float, now: float) -> float | None:
    """When a limit is reached at this rate an hour; None if never."""
    if spent >= limit:
        return now
    return now + 3600 * (limit - spent) / rate if rate > 0 else None


def windows(usage: Iterable[tuple[float, float, int]]) -> list[SpendWindow]:
    """The windows of what was spent, in order of time: one ends after five hours, or with five hours of silence."""
    found: list[SpendWindow] = []
    for at, usd, tokens in sorted(usage):
        last = found[-1] if found else None
        if last is None or at >= last.until:
            since = at // 3600 * 3600
            found.append(SpendWindow(since, since + WINDOW, at, usd, tokens))
        else:
            found[-1] = SpendWindow(last.since, last.until, at, last.usd + usd, last.tokens + tokens)
    return found
