"""The seven families of meters, each at its boundary."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire.core.meters import FAMILIES, WINDOW_KEEPS, Meter, count, free_at, level, reached, warned

HOUR = 3600.0
#: Times as stores keep them: UTC seconds with milliseconds.
TIMES = st.integers(1_700_000_000_000, 1_900_000_000_000).map(lambda ms: ms / 1000)


def fed(meter: Meter, *values: float, mark: str | None = None, at: float = 0.0, turn: int | None = None) -> list[Any]:
    memory: list[Any] = []
    for value in values:
        memory = count(meter, memory, value, mark, at, turn)
    return memory


# -- streak ---------------------------------------------------------------------------------------------


@given(st.integers(0, 30), st.integers(1, 20))
def test_a_streak_trips_at_its_number_and_not_one_earlier(times: int, trip: int) -> None:
    """n in a row reach a limit of n, n - 1 do not."""
    meter = Meter("m", "streak", "x", trip)
    memory = fed(meter, *[1.0] * times)
    assert level(meter, memory, 0.0) == times
    assert reached(meter, memory, 0.0) is (times >= trip)


@given(st.lists(st.sampled_from(["a", "b", None]), max_size=30))
def test_a_marked_streak_counts_only_the_last_run_of_one_mark(marks: list[str | None]) -> None:
    """Another mark starts anew at one; so does the absence of a mark."""
    meter = Meter("m", "streak", "x", 3, marked=True)
    memory: list[Any] = []
    for mark in marks:
        memory = count(meter, memory, 1, mark, 0.0, None)
    run = 0
    while run < len(marks) and marks[-1 - run] == marks[-1]:
        run += 1
    assert level(meter, memory, 0.0) == run


@given(st.lists(st.sampled_from(["a", "b", None]), max_size=30))
def test_an_unmarked_streak_ignores_marks(marks: list[str | None]) -> None:
    """Where marks do not matter, everything is in a row."""
    meter = Meter("m", "streak", "x", 3)
    memory: list[Any] = []
    for mark in marks:
        memory = count(meter, memory, 1, mark, 0.0, None)
    assert level(meter, memory, 0.0) == len(marks)


# -- window ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "counts"),
    [(0.0, 1), (HOUR - 0.001, 1), (HOUR, 0), (HOUR + 0.001, 0), (-0.001, 1), (-10 * HOUR, 1)],
)
def test_a_window_is_half_open_and_forgets_nothing_because_of_a_wrong_clock(age: float, counts: int) -> None:
    """An observation exactly `span` old no longer counts; one from the future does."""
    meter = Meter("m", "window", "x", 1, span=HOUR)
    memory = count(meter, [], 1, None, 1_800_000_000.0, None)
    assert level(meter, memory, 1_800_000_000.0 + age) == counts
    assert reached(meter, memory, 1_800_000_000.0 + age) is bool(counts)


@pytest.mark.parametrize(("turn", "counts"), [(10, 1), (14, 1), (15, 0), (3, 1), (None, 1)])
def test_a_window_of_turns_counts_turns_and_not_seconds(turn: int | None, counts: int) -> None:
    """Five turns are the current one and the four before; without a turn the newest one is the current."""
    meter = Meter("m", "window", "x", 1, span=5, turns=True)
    memory = count(meter, [], 1, None, 0.0, 10)
    assert level(meter, memory, 1e9, turn) == counts


@given(st.lists(TIMES, max_size=60), TIMES, st.integers(1, 40), st.sampled_from([1.0, 60.0, HOUR, 30 * 86400.0]))
def test_a_window_remembers_enough_to_answer_and_no_more(
    times: list[float], now: float, trip: int, span: float
) -> None:
    """The short memory decides exactly as the whole history does, as long as the clock runs forward."""
    meter = Meter("m", "window", "x", trip, span=span)
    memory: list[Any] = []
    for at in sorted(times):
        memory = count(meter, memory, 1, None, at, None)
    whole = sum(1 for at in times if at > now - span)
    assert reached(meter, memory, now) is (whole >= trip)
    assert level(meter, memory, now) == min(whole, trip + WINDOW_KEEPS)
    assert len(memory) <= trip + WINDOW_KEEPS


@given(st.lists(TIMES, min_size=1, max_size=40), st.integers(1, 20), st.sampled_from([1.0, 60.0, HOUR]))
def test_a_full_window_has_room_at_the_moment_it_names_and_not_before(
    times: list[float], trip: int, span: float
) -> None:
    """Whoever waits until `free_at` gets through; a millisecond earlier it is still full."""
    meter = Meter("m", "window", "x", trip, span=span)
    memory: list[Any] = []
    for at in sorted(times):
        memory = count(meter, memory, 1, None, at, None)
    now = max(times)
    free = free_at(meter, memory, now)
    assert free is not None
    if reached(meter, memory, now):
        assert free > now
        assert not reached(meter, memory, free)
        assert reached(meter, memory, free - 0.001)
    else:
        assert free == now


@given(st.lists(st.integers(0, 200).map(float), min_size=1, max_size=12), st.integers(1, 5))
def test_a_full_window_has_room_at_the_moment_it_names_after_the_clock_was_set_back(
    times: list[float], trip: int
) -> None:
    """Times that are out of order make no difference to when there is room."""
    meter = Meter("m", "window", "x", trip, span=60.0)
    memory: list[Any] = []
    for at in times:
        memory = count(meter, memory, 1, None, at, None)
    if reached(meter, memory, times[-1]):
        free = free_at(meter, memory, times[-1])
        assert free is not None
        assert not reached(meter, memory, free)
        assert reached(meter, memory, free - 0.5)


@given(st.lists(st.integers(1, 30), max_size=30), st.integers(1, 30), st.integers(1, 10))
def test_a_window_of_turns_counts_those_within_the_last_turns(turns: list[int], span: int, trip: int) -> None:
    """The level is the number of observations in the last `span` turns up to the newest."""
    meter = Meter("m", "window", "x", trip, span=span, turns=True)
    memory: list[Any] = []
    for turn in sorted(turns):
        memory = count(meter, memory, 1, None, 0.0, turn)
    newest = max(turns, default=0)
    expected = sum(1 for turn in turns if newest - span < turn <= newest)
    assert reached(meter, memory, 0.0, newest) is (expected >= trip)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "window"])
def test_where_time_does_not_help_no_time_is_named(family: str) -> None:
    """Only a window of seconds empties by itself."""
    meter = Meter("m", family, "x", 1, size=3)
    assert free_at(meter, fed(meter, 1.0, 1.0, 1.0), 0.0) is None
    assert free_at(Meter("m", "window", "x", 1, span=3, turns=True), [1, 2], 0.0) is None


# -- total and gauge ------------------------------------------------------------------------------------


@given(st.lists(st.integers(-5, 9), max_size=40))
def test_a_total_is_the_sum_of_everything(values: list[int]) -> None:
    """However many there were, one number is kept."""
    meter = Meter("m", "total", "x", 7)
    memory = fed(meter, *values)
    assert level(meter, memory, 0.0) == sum(values)
    assert reached(meter, memory, 0.0) is (sum(values) >= 7)
    assert len(memory) <= 1


@given(st.lists(st.integers(-5, 9), min_size=1, max_size=40))
def test_a_gauge_is_set(values: list[int]) -> None:
    """The last value stands."""
    meter = Meter("m", "gauge", "x", 5)
    assert level(meter, fed(meter, *values), 0.0) == values[-1]


# -- the last n values ----------------------------------------------------------------------------------


@given(st.lists(st.integers(-9, 9), max_size=20))
def test_below_is_strict_and_needs_three(scores: list[int]) -> None:
    """Three scores that sum to less than 0 trip; a sum of 0 does not, and two scores never do."""
    meter = Meter("m", "last_sum", "x", 0, trip_by="below", size=3, needs=3)
    memory = fed(meter, *scores)
    assert reached(meter, memory, 0.0) is (len(scores) >= 3 and sum(scores[-3:]) < 0)
    assert len(memory) <= 3


@given(st.lists(st.integers(0, 1), max_size=20))
def test_over_is_strict_and_needs_three(kinds: list[int]) -> None:
    """More than 80 % of the last five, from the third on; exactly 80 % is not more."""
    meter = Meter("m", "share", "x", 0.8, trip_by="over", size=5, needs=3)
    memory = fed(meter, *kinds)
    last = kinds[-5:]
    assert reached(meter, memory, 0.0) is (len(kinds) >= 3 and 5 * sum(last) > 4 * len(last))


TREND = Meter("m", "trend", "x", 0.7, size=3, needs=3, floor=20)


@pytest.mark.parametrize(
    ("volumes", "trips"),
    [
        ((100, 60, 30), True),
        ((100, 60, 31), False),
        ((100, 60, 0), True),
        ((20, 10, 6), True),
        ((19, 10, 0), False),
        ((100, 30), False),
        ((100, 100, 30), False),
        ((100, 30, 30), False),
        ((100, 20, 25), False),
        ((60, 100, 20), False),
        ((500, 100, 60, 30), True),
        ((30, 100, 60, 30), True),
        ((100, 60, 30, 30), False),
        ((0, 0, 0), False),
        ((), False),
    ],
)
def test_a_trend_needs_three_falling_values_from_a_height(volumes: tuple[float, ...], trips: bool) -> None:
    """70 % or more down across the last three, each smaller than the one before, from at least 20."""
    assert reached(TREND, fed(TREND, *volumes), 0.0) is trips


def test_a_decline_of_exactly_the_limit_trips_whatever_the_limit() -> None:
    """A fall from 1000 lines by n % trips a limit of n %, one line less does not."""
    wrong = []
    for percent in range(2, 101):
        meter = Meter("m", "trend", "x", percent / 100, size=3, needs=3, floor=20)
        at, short = 1000 - 10 * percent, 1001 - 10 * percent
        if not reached(meter, fed(meter, 1000, 999, at), 0.0) or reached(meter, fed(meter, 1000, 999, short), 0.0):
            wrong.append(percent)
    assert wrong == []


# -- all of them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_an_empty_meter_stands_at_nothing(family: str) -> None:
    """Nothing observed: level 0, no limit reached, no warning."""
    meter = Meter("m", family, "x", 1, warn=1, span=5, size=3, needs=1)
    assert level(meter, [], 100.0) == 0
    assert not reached(meter, [], 100.0)
    assert not warned(meter, [], 100.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_counting_leaves_the_old_memory_alone(family: str) -> None:
    """A memory is never changed, only followed by another."""
    meter = Meter("m", family, "x", 1, span=5, size=2)
    memory = fed(meter, 3.0, 2.0)
    before = list(memory)
    assert count(meter, memory, 1.0, "mark", 9.0, 9) is not memory
    assert memory == before


@pytest.mark.parametrize(("height", "is_warned"), [(79, False), (80, True), (81, True)])
def test_a_warning_comes_at_its_level(height: int, is_warned: bool) -> None:
    """At the level, not one earlier."""
    meter = Meter("m", "total", "x", 100, warn=80)
    assert warned(meter, [height], 0.0) is is_warned
    assert not warned(Meter("m", "total", "x", 100), [height], 0.0)


@pytest.mark.parametrize(
    ("meter", "name", "asked"),
    [
        (Meter("m", "total", "x", 1), "x", False),
        (Meter("m", "total", "x", 1, trip_by="ask"), "x", True),
        (Meter("m", "total", "x", 1, trip_by="ask"), "y", False),
        (Meter("m", "total", "x", 1, limits=True), "x", True),
        (Meter("m", "total", "x", 1, limits=True, checks=("y",)), "y", True),
        (Meter("m", "total", "x", 1, limits=True, checks=("*",)), "anything", True),
        (Meter("m", "total", "x", 1, checks=("*",)), "anything", False),
    ],
)
def test_only_limits_and_asking_meters_answer_questions(meter: Meter, name: str, asked: bool) -> None:
    """A meter of failures is not asked; a limit is, about its own signal and what it checks."""
    assert meter.asked(name) is asked


def test_a_meter_survives_being_compiled() -> None:
    """Every field of a meter comes back from its data."""
    meter = Meter(
        "m", "trend", "x", 0.7, trip_by="over", warn=0.5, span=3, turns=True, size=3, needs=2, floor=20, marked=True,
        limits=True, checks=("a",), resets_on=("b",), reason="r",
    )  # fmt: skip
    twin = Meter.from_data(meter.to_data())
    assert twin == meter
