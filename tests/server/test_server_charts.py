"""The charts of the pages: numbers in, a picture out that is well formed, stays in its frame and says its facts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from fusewire.core.meters import Meter
from fusewire.server.drawing.axes import Axis
from fusewire.server.drawing.charts import Bar, Lane, Mark, Marker, bars, curve, timeline
from fusewire.server.drawing.figures import calls_chart, output_chart, score_chart, spend_chart
from fusewire.server.drawing.timelines import (
    ROWS,
    TimelineRow,
    before_window,
    circuit_chart,
    circuit_rows,
    newest,
    session_chart,
    session_rows,
)
from fusewire.util.text import visible
from fusewire.views.cards import fullness, measure
from fusewire.views.moves import History, LoggedSignal, Move
from fusewire.views.sessions import DoingKind, ShownDoing

NOON = 1_794_830_400.0  # 2026-11-16 12:00 UTC
DAY = 86400.0
HOSTILE = "</title><script>alert(1)</script>\u202e\0"


def parsed(drawn: Markup) -> ElementTree.Element:
    """The picture as XML; whatever is not escaped would not get through."""
    root = ElementTree.fromstring(str(drawn))
    assert (root.tag, root.get("role"), root.get("width")) == ("svg", "img", "100%")
    assert root.findtext("title")
    assert root.findtext("desc")
    assert not [one for one in root.iter() if one.get("style")]
    for one in root.iter():
        for name in ("x", "x1", "x2"):
            place = one.get(name, "0%")
            assert 0 <= float(place.removesuffix("%")) <= 100, ElementTree.tostring(one)
    return root


def kinds(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [one for one in root.iter() if kind in (one.get("class") or "").split()]


def written(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter("text")]


# -- time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "first"),
    [
        (0, "12:00"),
        (10, "12:00:00"),
        (200, "12:00"),
        (3600, "12:00"),
        (5 * 3600, "12:00"),
        (3 * DAY, "12:00"),
        (5 * DAY, "17 Nov"),
        (45 * DAY, "19 Nov"),
        (700 * DAY, "Mar 2027"),
        (4000 * DAY, "Jun 2028"),
    ],
)
def test_few_round_moments_are_written(seconds: float, first: str) -> None:
    """From a second to ten years: some, never more than fit on a phone, in order, inside."""
    axis = Axis(NOON, NOON + seconds)
    moments = list(axis.moments())
    assert 1 <= len(moments) <= 7
    assert moments == sorted(moments)
    assert all(axis.start <= at <= axis.end for at in moments)
    assert written(parsed(timeline("t", "f", [], NOON, NOON + seconds)))[0] == first


def test_what_lies_outside_is_at_the_edge() -> None:
    axis = Axis(NOON, NOON + 100)
    assert [axis.place(NOON + at) for at in (-50, 0, 25, 100, 900)] == [0, 0, 25, 100, 100]


# -- the charts -------------------------------------------------------------------------------------------


def test_a_timeline_has_a_lane_for_each_kind() -> None:
    """Its name and how many, a stroke at each moment, a bar for what lasts, a line with a name."""
    lanes = [
        Lane("failed", "failed", [Mark(NOON + 10, "pytest"), Mark(NOON + 90, HOSTILE)]),
        Lane("open", "open", [Mark(NOON + 20, "open for 30s", NOON + 50)]),
        Lane("refused", "refused"),
    ]
    root = parsed(timeline("Title", HOSTILE, lanes, NOON, NOON + 100, [Marker(NOON + 60, "now", "now")]))
    assert [one.get("x") for one in kinds(root, "mark")] == ["10%", "90%"]
    (span,) = kinds(root, "span")
    assert (span.get("x"), span.get("width"), span.findtext("title")) == ("20%", "30%", "open for 30s")
    assert {"failed (2)", "open (1)", "refused (0)", "now"} <= set(written(root))
    assert root.findtext("desc") == "</title><script>alert(1)</script>[U+202E][U+0000]"
    assert kinds(root, "mark")[1].findtext("title") == root.findtext("desc")


def test_marks_that_would_lie_on_each_other_become_one() -> None:
    """However much happened, the picture stays small, and says how many a stroke stands for."""
    marks = [Mark(NOON + number / 100, f"call {number}") for number in range(5000)]
    root = parsed(timeline("t", "f", [Lane("calls", "call", marks)], NOON, NOON + 100))
    strokes = kinds(root, "mark")
    assert 150 < len(strokes) <= 401
    assert "more)" in (strokes[0].findtext("title") or "")
    assert "calls (5000)" in written(root)


def test_bars_stand_on_zero() -> None:
    """Those below it hang; each has its number, and a part of it can be drawn otherwise."""
    given = [Bar("1", 6, "iteration 1", "good"), Bar("2", -3, "iteration 2", "bad"), Bar("3", 0, "iteration 3")]
    root = parsed(bars("Scores", "f", given))
    up, down, nothing = kinds(root, "bar")
    zero = float(kinds(root, "zero")[0].get("y1", ""))
    assert float(up.get("y", "")) + float(up.get("height", "")) == pytest.approx(zero, abs=0.02)
    assert float(down.get("y", "")) == pytest.approx(zero, abs=0.02)
    assert float(up.get("height", "")) == pytest.approx(2 * float(down.get("height", "")), abs=0.02)
    assert float(nothing.get("height", "")) == 1
    assert {"+6", "-3", "0", "1", "2", "3"} <= set(written(root))
    halves = kinds(parsed(bars("Calls", "f", [Bar("12:00", 10, "t", "call", 5)])), "bar")
    assert float(halves[1].get("height", "")) == pytest.approx(float(halves[0].get("height", "")) / 2, abs=0.02)


def test_many_bars_are_not_numbered() -> None:
    """Only the highest is said, and a few names."""
    root = parsed(bars("Calls", "f", [Bar(f"12:{number:03}", number, "t", "call") for number in range(120)]))
    assert "119" in written(root)
    assert 4 <= len([text for text in written(root) if text.startswith("12:")]) <= 6


def test_a_curve_rises_under_its_lines() -> None:
    """In steps, from the first point to the right edge; the lines lie where their amounts are."""
    lines = [Marker(5, "stops at $5.00", "limit"), Marker(1, "warns at $1.00", "warn")]
    root = parsed(curve("Dollars", "f", [(NOON, 0.5), (NOON + 50, 2.5)], lines, NOON, NOON + 100))
    (path,) = kinds(root, "curve")
    assert path.get("d") == "M0.00 150V136.8H50.00V84.0H100"
    assert [one.get("y1") for one in kinds(root, "line")] == ["18", "123.6"]


@pytest.mark.parametrize("points", [[], [(NOON, 0.0)], [(NOON, 0.0)] * 3])
def test_nothing_spent_is_a_chart_as_well(points: list[tuple[float, float]]) -> None:
    parsed(curve("Dollars", "f", points, [], NOON, NOON))


# -- from the views ---------------------------------------------------------------------------------------


def test_the_figures_say_what_they_draw() -> None:
    """A screen reader hears the numbers."""
    minutes = [[int(NOON), 3, 1], [int(NOON) + 60, 0, 0], [int(NOON) + 120, 7, 0]]
    assert parsed(calls_chart(minutes)).findtext("desc") == "10 calls in 3 minutes, 1 failed, 7 in the busiest minute"
    view: Any = SimpleNamespace(
        limit_usd=5.0, resources={"cost": {"usd": 2.4}}, spend_curve=[[NOON, 1.2], [NOON + 9, 2.4]]
    )
    root = parsed(spend_chart(view, NOON, NOON + 10))
    assert root.findtext("desc") == "$2.40 so far at list price; it is stopped at $5.00"
    view.limit_usd = 0
    root = parsed(spend_chart(view, NOON, NOON + 10))
    assert root.findtext("desc") == "$2.40 so far at list price; no limit"
    iteration = {"number": 1, "kind": "progress", "score": 6, "points": {"a task": 5, "a file": 1}, "lines": 12}
    neutral = {"number": 2, "kind": "neutral", "score": 0, "points": {}, "blocked": "rate limit", "lines": None}
    root = parsed(score_chart([iteration, neutral]))
    assert root.findtext("desc") == "iteration 1: +6 (a task +5, a file +1); iteration 2: rate limit"
    assert parsed(output_chart([iteration, neutral])).findtext("desc") == "iteration 1: 12 lines"


def doing(at: str, kind: DoingKind, text: str = "ls") -> ShownDoing:
    return ShownDoing(at, None, kind, "Bash", text, 0.0)


def test_a_session_becomes_lanes_and_rows() -> None:
    """Dollars are in a chart of their own; whose session it is is not repeated in each row."""
    step = ("CLOSED", "OPEN", "closed", "open", "tripped", "3 times", "s1")
    doings = [
        doing("2026-11-16T12:00:00Z", "ok"),
        doing("2026-11-16T12:00:01Z", "failed"),
        doing("2026-11-16T12:00:02Z", "spend"),
        doing("2026-11-16T12:00:03Z", "refused", "tool.x/s1: ls"),
        doing("2026-11-16T12:00:04Z", "halted", "tool.x/s1: ls"),
        doing("2026-11-16T12:00:05Z", "prompt", ""),
    ]
    moves = [Move("2026-11-16T12:00:02Z", "tool/x/s1", *step)]
    view: Any = SimpleNamespace(session="s1", doings=doings, moves=moves)
    root = parsed(session_chart(view, NOON, NOON + 5))
    assert root.findtext("desc") == "1 messages, 1 calls that worked, 1 failed, 0 warned, 2 refused, 1 trips"
    rows, left_out = session_rows(view)
    assert [row.what for row in rows] == ["message", "halted", "refused", "CLOSED → OPEN", "failed", "worked"]
    assert (rows[2].text, rows[3].note, left_out) == ("tool.x: ls", "tool/x, tripped", 0)


def test_rows_are_cut_and_keep_their_keys() -> None:
    """The same row has the same key when newer ones come, and no two rows have the same."""
    rows = [TimelineRow("2026-11-16T12:00:00Z", "call", "worked", "ls") for _ in range(ROWS + 5)]
    before, left_out = newest(rows[:-1])
    assert (len(before), left_out) == (ROWS, 4)
    after, _ = newest([*rows[:-1], TimelineRow("2026-11-16T12:00:01Z", "call", "worked", "new")])
    assert [row.key for row in after[1:]] == [row.key for row in before[:-1]]
    assert len({row.key for row in after}) == ROWS


def test_the_window_begins_between_two_rows() -> None:
    """One that is exactly as old as the window no longer counts."""
    entry = ("bad", "violation", "push", None, "counted", True)
    entries = [LoggedSignal(f"2026-11-{day:02}T12:00:00Z", *entry) for day in (16, 15, 14)]
    rows, _ = circuit_rows(History(None, entries, []))
    assert before_window(rows, "2026-11-15T12:00:00Z") == 1
    assert before_window(rows, "2026-11-01T12:00:00Z") is None
    assert before_window(rows, None) is None


@pytest.mark.parametrize(("days", "first", "line"), [(7, "12:00", False), (60, "22 Oct", True)])
def test_a_circuit_is_drawn_over_the_days_that_are_shown(days: int, first: str, line: bool) -> None:
    """From the first row of the list on, whatever it is; the window's beginning is there if it lies within them."""
    entry = LoggedSignal("2026-11-15T12:00:00Z", "ask", "action", "ls", None, "refused", True)
    history = History("2026-10-17T12:00:00Z", [entry], [])
    view: Any = SimpleNamespace(
        trips=[], cooldown=SimpleNamespace(until=None), state="CLOSED", days=days, history=history
    )
    drawn = circuit_chart(view, NOON)
    assert drawn is not None
    root = parsed(drawn)
    assert ("window begins" in written(root)) == line
    assert first in written(root), written(root)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x00", "[U+001B][31mred[U+0000]"),
        ("a\u202eb\u2066c", "a[U+202E]b[U+2066]c"),
        ("👩\u200d👧 ünïcode 中文 עברית", "👩\u200d👧 ünïcode 中文 עברית"),
        (5, 5),
        (Markup("<b>\x1b</b>"), Markup("<b>\x1b</b>")),
    ],
)
def test_what_hides_is_written_as_a_number(text: object, shown: object) -> None:
    """Letters of any script and signs that are made of several stay as they are."""
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("meter", "level", "words", "full"),
    [
        (Meter("v", "window", "violation", 5, span=30 * DAY), 3, "3 of 5 within 30d", 0.6),
        (Meter("v", "window", "failed", 3, span=5, turns=True), 4, "4 of 3 within 5 turns", 1),
        (Meter("s", "share", "work", 0.8, trip_by="over"), 0.4, "40% of 80%", 0.5),
        (Meter("t", "trend", "volume", 0.7), 0.0, "0% of 70%", 0),
        (Meter("s", "last_sum", "score", 0, trip_by="below"), 6, "6, not below 0", 0),
        (Meter("s", "last_sum", "score", 0, trip_by="below"), -1, "-1, not below 0", 1),
        (Meter("g", "gauge", "denied", 0), 1, "1 of 0", 0),
    ],
)
def test_a_level_is_said_as_what_it_is(meter: Meter, level: float, words: str, full: float) -> None:
    """Shares are percent, and what must not fall is not `6 of 0`."""
    assert (measure(meter, level), fullness(meter, level)) == (words, full)


def test_dollars_are_dollars() -> None:
    meter = Meter("spend", "gauge", "spend", 5.0)
    assert measure(meter, 2.8, (2.8, 5.0)) == "$2.80 of $5.00"
    assert (measure(meter, 2.8, (2.8, 0.0)), fullness(meter, 2.8, (2.8, 0.0))) == ("$2.80, no limit", 0.0)
    assert (measure(meter, 2.8, (6.0, 12.0)), fullness(meter, 2.8, (6.0, 12.0))) == ("$6.00 of $12.00", 0.5)
