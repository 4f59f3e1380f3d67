"""The loop in words and numbers: the status log, the eight metrics, the risk, the trend."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.loop import report as trends
from fusewire.breakers.loop.detect import CIRCUITS
from fusewire.breakers.loop.layout import STATUS_LIMIT, Places
from fusewire.breakers.loop.overview import LoopOverview, risk_of
from fusewire.breakers.loop.report import details, log_entry, metrics, summary
from fusewire.breakers.loop.state import LoopRecord
from fusewire.core.events import Signal, fingerprint
from fusewire.engine.breaker import Breaker

AT = 1_800_000_000.0


def entry(**fields: Any) -> Any:
    """One iteration of honest work as the loop remembers it, with what differs."""
    usual: dict[str, Any] = {
        "number": 7,
        "at": AT,
        "state": "CLOSED",
        "kind": "progress",
        "ended": "exit",
        "score": 1,
        "points": {"a file was changed": 1},
        "tasks": 0,
        "files": 1,
        "names": ["src/shop.py"],
        "commits": 0,
        "tests": None,
        "errors": [],
        "error": None,
        "blocked": "",
        "lines": 40,
        "calls": 1,
        "calls_left": 93,
        "cost": None,
        "seconds": 1.5,
        "risk": "LOW",
        "trips": [],
    }
    assert fields.keys() <= usual.keys()
    return {**usual, **fields}


# -- the status log -------------------------------------------------------------------------------------------


def test_an_entry_has_the_seed_s_form() -> None:
    """Every line of it, in the seed's order and words."""
    written = log_entry(
        entry(
            state="HALF_OPEN",
            tasks=2,
            files=2,
            names=["src/shop.py", "tests/test_shop.py"],
            tests=[12, 2, 1, 1],
            errors=["AssertionError: 1 == 2", "exit 2: stopped"],
            score=-4,
            risk="HIGH",
        )
    )
    assert written == (
        "## Iteration 7 — 2027-01-15T08:00:00Z\n"
        "- Circuit state: HALF-OPEN\n"
        "- Tasks completed: 2\n"
        "- Files modified: src/shop.py, tests/test_shop.py\n"
        "- Tests: 12 passed, 3 failed, 1 skipped\n"
        "- Errors encountered: AssertionError: 1 == 2, exit 2: stopped\n"
        "- Progress score: -4\n"
        "- API calls remaining: 93\n"
        "- Stagnation risk: HIGH\n"
    )


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "- Circuit state: CLOSED"),
        ({}, "- Tests: not run"),
        ({}, "- Errors encountered: none"),
        ({}, "- Progress score: +1"),
        ({"score": 0}, "- Progress score: +0"),
        ({"kind": "neutral", "score": 0}, "- Progress score: none (neutral)"),
        ({"files": 0, "names": []}, "- Files modified: none"),
        (
            {"files": 23, "names": [f"f{n}" for n in range(20)]},
            "- Files modified: " + ", ".join(f"f{n}" for n in range(20)) + " and 3 more",
        ),
        ({"names": ["a\n## Iteration 8 b"]}, "- Files modified: a ## Iteration 8 b"),
        ({"errors": ["E: one\n- Progress score: +9"]}, "- Errors encountered: E: one - Progress score: +9"),
    ],
)
def test_a_line_of_an_entry(fields: dict[str, Any], line: str) -> None:
    """What is missing is said in words; a name or a message cannot add lines of its own. Nine lines, always."""
    lines = log_entry(entry(**fields)).splitlines()
    assert line in lines
    assert len(lines) == 9


def test_the_status_log_stays_bounded(tmp_path: Path) -> None:
    """Through thousands of entries: never larger than its limit, only whole entries, the newest all there, in order."""
    places = Places(str(tmp_path))
    most = 0
    for number in range(1, 4001):
        places.log_status(entry(number=number, names=[f"{number}.py"]))
        most = max(most, os.path.getsize(places.status_log))
    for number in range(4001, 4201):  # the largest that there are
        places.log_status(entry(number=number, files=30, names=["ä" * 150] * 20, errors=["ö" * 150] * 5))
        most = max(most, os.path.getsize(places.status_log))
    assert STATUS_LIMIT // 2 < most <= STATUS_LIMIT
    kept = Path(places.status_log).read_text()
    assert kept.startswith("## Iteration ")
    numbers = [int(line.split()[2]) for line in kept.splitlines() if line.startswith("## ")]
    assert numbers == list(range(numbers[0], 4201))
    assert len(numbers) > 20
    assert all(len(one.strip().splitlines()) == 9 for one in kept.split("\n\n")[:-1])


# -- the eight metrics ----------------------------------------------------------------------------------------


def measured(
    entries: list[dict[str, Any]], calls_left: int = 90, calls_limit: int = 100
) -> dict[str, tuple[object, str, bool]]:
    """The metrics after these iterations, remembered as the loop does it."""
    record = LoopRecord()
    for one in entries:
        record.add(one)
    rows = metrics(record.history, record.totals, calls_left, calls_limit)
    return {row["metric"]: (row["value"], row["threshold"], row["alert"]) for row in rows}


def row(name: str, values: list[Any]) -> list[dict[str, Any]]:
    """Iterations that differ in one thing."""
    return [entry(**{name: value}) for value in values]


def passes(*rates: int) -> list[dict[str, Any]]:
    """Iterations with so many of a hundred tests passing."""
    return row("tests", [[rate, 100 - rate, 0, 0] for rate in rates])


def fails(*counts: int) -> list[dict[str, Any]]:
    return row("errors", [["E: x"] * count for count in counts])


NEUTRAL = entry(kind="neutral", score=0, tasks=0, files=0, lines=None, blocked="blocked on human: which one?")


def test_the_metrics_are_the_seed_s() -> None:
    """Eight, with the seed's names and thresholds; nothing has happened, so nothing is alarming."""
    assert [(name, limit, alert) for name, (_, limit, alert) in measured([]).items()] == [
        ("Loop count", ">20 for a single task", False),
        ("Tasks completed", "0 for 3+ iterations", False),
        ("Files modified", "0 for 3+ iterations", False),
        ("Test pass rate", "Declining for 3+ iterations", False),
        ("Error frequency", "Increasing for 3+ iterations", False),
        ("Output volume", "70% decline", False),
        ("API calls remaining", "<20% remaining", False),
        ("Progress score", "Negative for 3 iterations", False),
    ]


@pytest.mark.parametrize(
    ("metric", "calm", "alarming", "value"),
    [
        ("Loop count", row("tasks", [0] * 20), row("tasks", [0] * 21), 21),
        ("Loop count", row("tasks", [0, 1] + [0] * 20), row("tasks", [0, 1] + [0] * 21), 23),
        ("Tasks completed", row("tasks", [0, 0]), row("tasks", [0, 0, 0]), 0),
        ("Tasks completed", row("tasks", [1, 0, 0]), row("tasks", [1, 0, 0, 0]), 1),
        ("Files modified", row("files", [2, 0, 0]), row("files", [2, 0, 0, 0]), 2),
        ("Files modified", [*row("files", [0, 0]), NEUTRAL], [*row("files", [0, 0]), NEUTRAL, entry(files=0)], 0),
        ("Test pass rate", passes(90, 80, 70), passes(90, 80, 70, 60), "60%"),
        ("Test pass rate", passes(90, 80, 80, 70), [*passes(90, 80), entry(), *passes(70, 0)], "0%"),
        ("Error frequency", fails(0, 1, 2), fails(0, 1, 2, 3), 3),
        ("Error frequency", fails(1, 2, 2, 3), fails(9, 1, 2, 3, 4), 4),
        ("Output volume", row("lines", [100, 60, 31]), row("lines", [100, 60, 30]), 30),
        ("Output volume", row("lines", [100, 10, 20]), row("lines", [5, 100, None, 60, 30]), 30),
        ("Progress score", row("score", [-3, -3]), row("score", [-3, -3, -3]), -9),
        ("Progress score", row("score", [-3, -3, 6]), row("score", [9, -3, -3, 5]), -1),
    ],
)
def test_a_metric_alerts_at_its_threshold(
    metric: str, calm: list[dict[str, Any]], alarming: list[dict[str, Any]], value: object
) -> None:
    """And just before it there is no alert. Neutral iterations are not looked at."""
    assert measured(calm)[metric][2] is False
    assert measured(alarming)[metric][::2] == (value, True)


@pytest.mark.parametrize(("left", "limit", "alert"), [(20, 100, False), (19, 100, True), (1, 5, False), (0, 5, True)])
def test_few_calls_left_are_alarming(left: int, limit: int, alert: bool) -> None:
    """Fewer than a fifth; a fifth is not."""
    assert measured([], left, limit)["API calls remaining"] == (left, "<20% remaining", alert)


# -- the risk -------------------------------------------------------------------------------------------------

NO_PROGRESS = Signal("bad", "loop/no_progress", "no_progress")
ERROR = Signal("bad", "loop/same_error", "error", fingerprint=fingerprint("the same"))
NEUTRALLY = Signal("note", "loop/neutral", "neutral")
DENIED = Signal("bad", "loop/permission_denied", "permission_denied")


def volumes(*lines: int) -> list[Signal]:
    return [Signal("note", "loop/output_decline", "volume", value=count) for count in lines]


def scores(*values: int) -> list[Signal]:
    return [Signal("bad" if value < 0 else "good", "loop/score", "score", value=value) for value in values]


def fixes(*values: int) -> list[Signal]:
    return [Signal("bad" if value else "good", "loop/test_fix", "work", value=value) for value in values]


def risk_after(signals: list[Signal]) -> str:
    """With the real policy and the real circuits."""
    breaker = Breaker.open("memory:", clock=lambda: AT)
    breaker.engine.apply(signals)
    return risk_of(breaker.rules, {name: breaker.engine.view(name)[1] for name in CIRCUITS}, AT)


RISKS = {
    "nothing": ([], "LOW"),
    "no change, 1 of 3": ([NO_PROGRESS], "LOW"),
    "no change, 2 of 3": ([NO_PROGRESS] * 2, "HIGH"),
    "no change, open": ([NO_PROGRESS] * 3, "HIGH"),
    "the same error, 2 of 5": ([ERROR] * 2, "LOW"),
    "the same error, 3 of 5": ([ERROR] * 3, "MEDIUM"),
    "the same error, 4 of 5": ([ERROR] * 4, "HIGH"),
    "blocked, 2 of 5": ([NEUTRALLY] * 2, "LOW"),
    "blocked, 3 of 5": ([NEUTRALLY] * 3, "MEDIUM"),
    "blocked, 4 of 5": ([NEUTRALLY] * 4, "HIGH"),
    "denied, 1 of 3": ([DENIED], "LOW"),
    "denied, 2 of 3": ([DENIED] * 2, "HIGH"),
    "output falls by 3 %": (volumes(100, 98, 97), "LOW"),
    "output falls by 34 %": (volumes(100, 80, 66), "LOW"),
    "output falls by 40 %": (volumes(100, 80, 60), "MEDIUM"),
    "output falls by 60 %": (volumes(100, 80, 40), "HIGH"),
    "a score of 0": (scores(1, -1), "LOW"),
    "a negative score": (scores(1, -3), "MEDIUM"),
    "one of four only fixed tests": (fixes(1, 0, 0, 0), "LOW"),
    "one of two only fixed tests": (fixes(1, 0), "MEDIUM"),
    "two of two only fixed tests": (fixes(1, 1), "HIGH"),
    "several, the highest": ([NO_PROGRESS, *[ERROR] * 3, *[DENIED] * 2], "HIGH"),
}


@pytest.mark.parametrize("case", RISKS)
def test_the_risk(case: str) -> None:
    """HIGH where one more of the same opens a circuit, MEDIUM half way there."""
    signals, risk = RISKS[case]
    assert risk_after(signals) == risk


def test_the_risk_around_a_recovery() -> None:
    """HIGH while open and while probing, MEDIUM for the three closely watched iterations, then LOW."""
    breaker = Breaker.open("memory:", clock=lambda: AT)

    def risk() -> str:
        return risk_of(breaker.rules, {name: breaker.engine.view(name)[1] for name in CIRCUITS}, AT)

    breaker.engine.apply([NO_PROGRESS] * 3)
    breaker.reset("loop/no_progress", "x")
    found = [risk()]
    breaker.engine.apply([Signal("ask", "loop/no_progress", "iteration", lease="i4")])
    found.append(risk())
    for _ in range(4):
        breaker.engine.apply([Signal("good", "loop/no_progress", "progress", lease="i4")])
        found.append(risk())
    assert found == ["HIGH", "HIGH", "MEDIUM", "MEDIUM", "MEDIUM", "LOW"]


# -- the trend ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([4], "▄"),
        ([0, 0, 0], "▄▄▄"),
        ([-3, 1], "▁█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([-7, 0, 7], "▁▅█"),
    ],
)
def test_a_sparkline(values: list[float], bars: str) -> None:
    """One bar a value, the lowest the lowest; values that are all the same are in the middle."""
    assert trends.sparkline(values) == bars


@pytest.mark.parametrize(
    ("values", "trend"),
    [
        ([], "steady"),
        ([5], "steady"),
        ([1, 1, 1, 1], "steady"),
        ([1, 1.5], "steady"),
        ([1, 2], "rising"),
        ([2, 1], "falling"),
        ([-3, -3, 1, 6, 6], "rising"),
        ([6, 6, -9, 1, 1], "rising"),
        ([9, 9, 9, -5, 6, 9], "falling"),
        ([9, 9, -3, -5, -3, 6, 9, 9], "rising"),
    ],
)
def test_a_trend(values: list[float], trend: str) -> None:
    """The last three beside the three before them, or as many as there are."""
    assert trends.trend(values) == trend


@pytest.mark.parametrize(
    ("values", "falls", "rises", "decline"),
    [
        ([], False, False, 0.0),
        ([3, 2, 1], False, False, 2 / 3),
        ([4, 3, 2, 1], True, False, 0.75),
        ([1, 2, 3, 4], False, True, 0.0),
        ([4, 3, 3, 1], False, False, 0.0),
        ([1, 4, 3, 2, 1], True, False, 0.0),
        ([0, -1, -2], False, False, 0.0),
    ],
)
def test_where_numbers_go(values: list[float], falls: bool, rises: bool, decline: float) -> None:
    """Three falls or rises in a row need four values; a decline needs three that only fall from something."""
    assert (trends.falls(values, 3), trends.rises(values, 3)) == (falls, rises)
    assert trends.decline(values) == pytest.approx(decline)


# -- the loop as `status` shows it ----------------------------------------------------------------------------


def shown(**fields: Any) -> LoopOverview:
    """What `overview` gives, as far as it is shown."""
    record = LoopRecord()
    record.add(entry())
    view: dict[str, Any] = {
        "state": "HALF_OPEN",
        "iterations": 12,
        "running": 0,
        "risk": "HIGH",
        "score": -2,
        "trend": "falling",
        "scores": [],
        "sparkline": "█▁",
        "calls_left": 88,
        "calls_limit": 100,
        "calls_free_in": None,
        "retry_after": 90.0,
        "question": None,
        "cost": 0,
        "lessons": [],
        "last": entry(),
        "metrics": metrics(record.history, record.totals, 88, 100),
    }
    return LoopOverview(**{**view, **fields})


def test_the_summary() -> None:
    """State, risk, the time left, score, trend, calls and the last iteration."""
    assert "\n".join(summary(shown())) == (
        "LOOP HALF-OPEN: 12 iterations, stagnation risk HIGH, a probe in 1m 30s\n"
        "  score -2 over the last 3, falling █▁\n"
        "  88 of 100 calls left in this hour\n"
        "  last: iteration 7 at 2027-01-15T08:00:00Z, score +1 (a file was changed)"
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"iterations": 1}, "LOOP HALF-OPEN: 1 iteration, "),
        ({"retry_after": None}, "stagnation risk HIGH\n"),
        ({"last": NEUTRAL}, "2027-01-15T08:00:00Z, blocked on human: which one?"),
        ({"last": entry(score=0, points={})}, "score +0 (nothing that counts)"),
        ({"last": None}, "88 of 100 calls left in this hour"),
    ],
)
def test_a_summary_says(fields: dict[str, Any], text: str) -> None:
    """Only what there is to say."""
    assert text in "\n".join(summary(shown(**fields)))


def test_the_details() -> None:
    """The summary, a line a metric, alarms in capitals, and the lessons."""
    record = LoopRecord()
    for _ in range(3):
        record.add(entry(files=0, names=[], kind="none", score=-3))
    alarming = metrics(record.history, record.totals, 88, 100)
    lines = details(shown(metrics=alarming, lessons=[{"text": "loop/score: it fell. What helped: rest"}]))
    assert lines[4:] == [
        "",
        "METRICS",
        "  Loop count           3         alert: >20 for a single task",
        "  Tasks completed      0         ALERT: 0 for 3+ iterations",
        "  Files modified       0         ALERT: 0 for 3+ iterations",
        "  Test pass rate       not run   alert: Declining for 3+ iterations",
        "  Error frequency      0         alert: Increasing for 3+ iterations",
        "  Output volume        40        alert: 70% decline",
        "  API calls remaining  88        alert: <20% remaining",
        "  Progress score       -9        ALERT: Negative for 3 iterations",
        "",
        "LESSONS",
        "  loop/score: it fell. What helped: rest",
    ]


@pytest.mark.parametrize("detector", [{"of_a_later_version": 1}, {"tests": [1]}, {"tests": 5}])
def test_a_damaged_detector_does_not_lift_a_halt(detector: dict[str, Any]) -> None:
    """What iterations are compared with starts anew; the number and the halt stay."""
    halted = {"owner": "me", "text": "stop", "circuits": "loop/score", "guard": False}
    stored = {**LoopRecord().to_data(), "iteration": 7, "halted": halted, "detector": detector}
    record = LoopRecord.from_data(stored)
    assert (record.iteration, record.halted) == (7, halted)
