"""The loop in words and numbers: the seed's status log, its eight metrics, the risk, the trend."""

from __future__ import annotations

from fusewire.breakers.loop import trends
from fusewire.util.durations import counted, show_duration, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    #: one iteration as the loop remembers it
    Entry = dict[str, Any]

#: Iterations on a single task beyond which something is wrong with it.
LOOPS_PER_TASK = 20
_ROW = 3
_NAMED = 20


def log_entry(entry: Entry) -> str:
    """One iteration in the seed's form."""
    tests = entry.get("tests")
    counted = f"{tests[0]} passed, {tests[1] + tests[3]} failed, {tests[2]} skipped" if tests else "not run"
    lines = [
        f"## Iteration {entry['number']} — {show_time(entry['at'])}",
        f"- Circuit state: {entry['state'].replace('_', '-')}",
        f"- Tasks completed: {entry['tasks']}",
        f"- Files modified: {_listed(entry['names'], entry['files'])}",
        f"- Tests: {counted}",
        f"- Errors encountered: {_listed(entry['errors'], len(entry['errors']))}",
        f"- Progress score: {entry['score']:+d}" if entry["kind"] != "neutral" else "- Progress score: none (neutral)",
        f"- API calls remaining: {entry['calls_left']}",
        f"- Stagnation risk: {entry['risk']}",
    ]
    return "\n".join(lines) + "\n"


def _listed(names: Sequence[str], count: int) -> str:
    if not count:
        return "none"
    shown = ", ".join(" ".join(name.split()) for name in names[:_NAMED])
    return f"{shown} and {count - _NAMED} more" if count > _NAMED else shown


def metrics(
    history: Sequence[Entry], totals: dict[str, Any], calls_left: int, calls_limit: int
) -> list[dict[str, Any]]:
    """The eight metrics: name, value, what would be alarming, and whether it is."""
    judged = [entry for entry in history if entry["kind"] != "neutral"]
    last = judged[-_ROW:]
    whole = len(last) == _ROW
    rates = [_pass_rate(entry["tests"]) for entry in judged if entry.get("tests")]
    volumes = [entry["lines"] for entry in judged if entry["lines"] is not None]
    errors = [len(entry["errors"]) for entry in judged]
    scores = [entry["score"] for entry in last]
    since_task = totals.get("since_task", 0)
    rows = [
        ("Loop count", totals.get("iterations", 0), ">20 for a single task", since_task > LOOPS_PER_TASK),
        (
            "Tasks completed",
            totals.get("tasks", 0),
            "0 for 3+ iterations",
            whole and not any(entry["tasks"] for entry in last),
        ),
        (
            "Files modified",
            totals.get("files", 0),
            "0 for 3+ iterations",
            whole and not any(entry["files"] for entry in last),
        ),
        (
            "Test pass rate",
            f"{rates[-1]:.0%}" if rates else "not run",
            "Declining for 3+ iterations",
            trends.falls(rates, _ROW),
        ),
        ("Error frequency", errors[-1] if errors else 0, "Increasing for 3+ iterations", trends.rises(errors, _ROW)),
        ("Output volume", volumes[-1] if volumes else 0, "70% decline", trends.decline(volumes[-_ROW:]) >= 0.7),
        ("API calls remaining", calls_left, "<20% remaining", calls_left < 0.2 * calls_limit),
        ("Progress score", sum(scores), "Negative for 3 iterations", whole and sum(scores) < 0),
    ]
    return [{"metric": name, "value": value, "threshold": limit, "alert": alert} for name, value, limit, alert in rows]


def _pass_rate(tests: Sequence[int]) -> float:
    ran = tests[0] + tests[1] + tests[3]
    return tests[0] / ran if ran else 1.0


def summary(view: dict[str, Any]) -> list[str]:
    """The loop in three lines, below the circuits."""
    last = view["last"]
    waits = view["retry_after"]
    count = counted(view["iterations"], "iteration")
    lines = [
        f"LOOP {view['state'].replace('_', '-')}: {count}, stagnation risk {view['risk']}"
        + (f", a probe in {show_duration(waits)}" if waits else ""),
        f"  score {view['score']:+d} over the last 3, {view['trend']} {view['sparkline']}",
        f"  {view['calls_left']} of {view['calls_limit']} calls left in this hour",
    ]
    if last is not None:
        lines.append(f"  last: iteration {last['number']} at {show_time(last['at'])}, {_worth(last)}")
    return lines


def _worth(entry: Entry) -> str:
    if entry["kind"] == "neutral":
        return str(entry["blocked"])
    return f"score {entry['score']:+d} ({', '.join(entry['points']) or 'nothing that counts'})"


def details(view: dict[str, Any]) -> list[str]:
    """The loop with its metrics and its lessons."""
    lines = [*summary(view), "", "METRICS"]
    width = max(len(row["metric"]) for row in view["metrics"])
    for row in view["metrics"]:
        alarm = f"ALERT: {row['threshold']}" if row["alert"] else f"alert: {row['threshold']}"
        lines.append(f"  {row['metric']:<{width}}  {row['value']!s:<8}  {alarm}")
    if view["lessons"]:
        lines += ["", "LESSONS", *(f"  {lesson['text']}" for lesson in view["lessons"])]
    return lines
