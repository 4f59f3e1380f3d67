"""Turn amounts of the views into charts: calls a minute, dollars, scores and output of the loop."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fusewire.server.drawing.charts import Bar, Marker, bars, curve
from fusewire.util.durations import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from fusewire.views.loop import IterationView
    from fusewire.views.sessions import SessionView


def calls_chart(series: Sequence[Sequence[int]]) -> Markup:
    """Calls of each minute, and how many of them failed."""
    made = sum(calls for _, calls, _ in series)
    failed = sum(bad for _, _, bad in series)
    busiest = max(calls for _, calls, _ in series)
    facts = f"{made} calls in {counted(len(series), 'minute')}, {failed} failed, {busiest} in the busiest minute"
    return bars("Calls a minute", facts, [_minute(*row) for row in series])


def _minute(minute: int, calls: int, failed: int) -> Bar:
    name = f"{datetime.fromtimestamp(minute, UTC):%H:%M}"
    return Bar(name, calls, f"{name}: {counted(calls, 'call')}, {failed} failed", "call", failed)


def spend_chart(view: SessionView, start: float, end: float) -> Markup:
    """Dollars of the session's tokens under the line at which it is stopped."""
    limit, spent = view.limit_usd, view.resources["cost"]["usd"]
    lines = [Marker(limit, f"stops at ${limit:.2f}", "limit")] if limit else []
    facts = f"${spent:.2f} so far at list price; {f'it is stopped at ${limit:.2f}' if limit else 'no limit'}"
    points = [(at, usd) for at, usd in view.spend_curve]
    return curve("Dollars of the session", facts, points, lines, start, end)


def score_chart(history: Sequence[IterationView]) -> Markup:
    """The score of each iteration; one that was neutral has none."""
    given = [
        Bar(
            str(one["number"]),
            0 if one["kind"] == "neutral" else one["score"],
            f"iteration {one['number']}: {worth(one)}",
            "good" if one["score"] > 0 else "bad",
        )
        for one in history
    ]
    facts = "; ".join(bar.text for bar in given)
    return bars("Progress score of each iteration", facts, given)


def output_chart(history: Sequence[IterationView]) -> Markup:
    """Lines that each iteration printed."""
    given = [
        Bar(str(one["number"]), one["lines"], f"iteration {one['number']}: {counted(one['lines'], 'line')}", "plain")
        for one in history
        if one["lines"] is not None
    ]
    return bars("Lines of output of each iteration", "; ".join(bar.text for bar in given), given)


def worth(one: IterationView) -> str:
    """The score of an iteration in words, and what it is made of."""
    if one["kind"] == "neutral":
        return one["blocked"] or "neutral, not judged"
    made_of = ", ".join(f"{what} {points:+d}" for what, points in one["points"].items())
    return f"{one['score']:+d} ({made_of or 'nothing that counts'})"
