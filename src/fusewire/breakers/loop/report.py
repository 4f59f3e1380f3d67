"""The loop in words and numbers: the seed's status log, its eight metrics, the risk, the trend."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from fusewire.util.durations import counted, show_duration, show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.loop.overview import LoopOverview
    from fusewire.breakers.loop.state import HistoryEntry, Totals

#: Iterations on a single task beyond which something is wrong with it.
TASK_LOOPS = 20
_ROW = 3
_NAMED = 20

#: Iterations in the log of an escalation.
_LOGGED = 6

_BARS = "▁▂▃▄▅▆▇█"


class LoopMetric(TypedDict):
    """One of the seed's eight."""

    metric: str
    value: float | str
    #: what would be alarming, and whether it is
    threshold: str
    alert: bool


def log_entry(entry: HistoryEntry) -> str:
    """One iteration in the seed's form."""
    cut = f"{entry['ended']} after {show_duration(entry['seconds'])}"
    errors = [cut, *entry["errors"]] if entry["ended"] in ("timeout", "idle", "crash") else entry["errors"]
    lines = [
        f"## Iteration {entry['number']} — {show_time(entry['at'])}",
        f"- Circuit state: {entry['state'].replace('_', '-')}",
        f"- Tasks completed: {entry['tasks']}",
        f"- Files modified: {_listed(entry['names'], entry['files'])}",
        f"- Tests: {_tests(entry)}",
        f"- Errors encountered: {_listed(errors, len(errors))}",
        f"- Progress score: {entry['score']:+d}" if entry["kind"] != "neutral" else "- Progress score: none (neutral)",
        f"- API calls remaining: {entry['calls_left']}",
        f"- Stagnation risk: {entry['risk']}",
    ]
    return "\n".join(lines) + "\n"


def _tests(entry: HistoryEntry) -> str:
    tests = entry.get("tests")
    return f"{tests[0]} passed, {tests[1] + tests[3]} failed, {tests[2]} skipped" if tests else "not run"


def _listed(names: Sequence[str], count: int) -> str:
    if not count:
        return "none"
    shown = ", ".join(" ".join(name.split()) for name in names[:_NAMED])
    return f"{shown} and {count - _NAMED} more" if count > _NAMED else shown


def metrics(history: Sequence[HistoryEntry], totals: Totals, calls_left: int, calls_limit: int) -> list[LoopMetric]:
    """The seed's eight metrics, and whether they are alarming; neutral iterations are left out."""
    judged = [entry for entry in history if entry["kind"] != "neutral"]
    last = judged[-_ROW:]
    whole = len(last) == _ROW
    idle = whole and not any(entry["tasks"] for entry in last)
    unchanged = whole and not any(entry["files"] for entry in last)
    rates = [_pass_rate(entry["tests"]) for entry in judged if entry["tests"]]
    volumes = [entry["lines"] for entry in judged if entry["lines"] is not None]
    errors = [len(entry["errors"]) for entry in judged]
    recent = since_recovery(judged)[-_ROW:]
    score = sum(entry["score"] for entry in recent)
    rate = f"{rates[-1]:.0%}" if rates else "not run"
    rows: list[tuple[str, float | str, str, bool]] = [
        ("Loop count", totals["iterations"], ">20 for a single task", totals["since_task"] > TASK_LOOPS),
        ("Tasks completed", totals["tasks"], "0 for 3+ iterations", idle),
        ("Files modified", totals["files"], "0 for 3+ iterations", unchanged),
        ("Test pass rate", rate, "Declining for 3+ iterations", falls(rates, _ROW)),
        ("Error frequency", errors[-1] if errors else 0, "Increasing for 3+ iterations", rises(errors, _ROW)),
        ("Output volume", volumes[-1] if volumes else 0, "70% decline", decline(volumes[-_ROW:]) >= 0.7),
        ("API calls remaining", calls_left, "<20% remaining", calls_left < 0.2 * calls_limit),
        ("Progress score", score, "Negative for 3 iterations", len(recent) == _ROW and score < 0),
    ]
    return [{"metric": name, "value": value, "threshold": limit, "alert": alert} for name, value, limit, alert in rows]


def escalation_log(circuit: str, history: Sequence[HistoryEntry]) -> list[str]:
    """What a person is to be given with an escalation: the last errors, tests or approaches, one line an iteration."""
    name = circuit.partition("/")[2]
    judged = [entry for entry in history if entry["kind"] != "neutral"]
    if name == "circular":
        return _log("approach history", {one["number"]: one.get("approach", "") for one in judged})
    if name == "test_fix":
        return _log(
            "test analysis", {one["number"]: f"{_tests(one)}; {_listed(one['names'], one['files'])}" for one in judged}
        )
    return _log("error log", {one["number"]: "; ".join(one["errors"]) for one in judged})


def _log(title: str, rows: dict[int, str]) -> list[str]:
    lines = [f"  iteration {number}: {' '.join(text.split())}" for number, text in rows.items() if text][-_LOGGED:]
    return [f"{title}:", *lines] if lines else []


def since_recovery(judged: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
    """The iterations from the last probe that closed its circuits on: scores before it count no more."""
    probes = [at for at, entry in enumerate(judged) if entry["state"] == "HALF_OPEN" and not entry["trips"]]
    return judged[probes[-1] :] if probes else judged


def _pass_rate(tests: Sequence[int]) -> float:
    ran = tests[0] + tests[1] + tests[3]
    return tests[0] / ran if ran else 1.0


def summary(view: LoopOverview) -> list[str]:
    """The loop in three or four lines, below the circuits."""
    count = counted(view.iterations, "iteration")
    full = (
        ""
        if view.calls_free_in is None
        else f"; the hour is full, the next call in {show_duration(view.calls_free_in)}"
    )
    waits = f", a probe in {show_duration(view.retry_after)}" if view.retry_after else ""
    lines = [
        f"LOOP {view.state.replace('_', '-')}: {count}, stagnation risk {view.risk}{waits}",
        f"  score {view.score:+d} over the last 3, {view.trend} {view.sparkline}",
        f"  {view.calls_left} of {view.calls_limit} calls left in this hour{full}",
    ]
    if view.last is not None:
        lines.append(f"  last: iteration {view.last['number']} at {show_time(view.last['at'])}, {_worth(view.last)}")
    if view.question:
        lines.append(f"  BLOCKED ON A HUMAN: {view.question}")
    return lines


def _worth(entry: HistoryEntry) -> str:
    if entry["kind"] == "neutral":
        return entry["blocked"]
    return f"score {entry['score']:+d} ({', '.join(entry['points']) or 'nothing that counts'})"


def details(view: LoopOverview) -> list[str]:
    """The loop with its metrics and its lessons."""
    lines = [*summary(view), "", "METRICS"]
    width = max(len(row["metric"]) for row in view.metrics)
    for row in view.metrics:
        alarm = f"ALERT: {row['threshold']}" if row["alert"] else f"alert: {row['threshold']}"
        lines.append(f"  {row['metric']:<{width}}  {row['value']!s:<8}  {alarm}")
    if view.lessons:
        lines += ["", "LESSONS", *(f"  {lesson['text']}" for lesson in view.lessons)]
    return lines


# -- trends -----------------------------------------------------------------------------------------------


def falls(values: Sequence[float], times: int) -> bool:
    """Whether each of the last values was lower than the one before it, so many times in a row."""
    last = values[-times - 1 :]
    return len(last) == times + 1 and all(later < earlier for earlier, later in zip(last, last[1:], strict=False))


def rises(values: Sequence[float], times: int) -> bool:
    return falls([-value for value in values], times)


def decline(values: Sequence[float]) -> float:
    """How much of the first value is gone at the last, if three or more only fell."""
    if len(values) < 3 or not falls(values, len(values) - 1) or values[0] <= 0:
        return 0.0
    return 1 - values[-1] / values[0]


def sparkline(values: Sequence[float]) -> str:
    """Small bars, the lowest value the lowest bar."""
    if not values:
        return ""
    low, high = min(values), max(values)
    if low == high:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in values)


def trend(scores: Sequence[float]) -> str:
    """`rising`, `falling` or `steady`: the last three scores beside the three before them."""
    if len(scores) < 2:
        return "steady"
    half = min(3, len(scores) // 2)
    older, newer = scores[-2 * half : -half], scores[-half:]
    difference = sum(newer) / len(newer) - sum(older) / len(older)
    return "rising" if difference > 0.5 else "falling" if difference < -0.5 else "steady"
