"""Spreading work over a window of a provider's limit: the arithmetic, and what must hold for all numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire.core.pacing import LONGEST_DELAY, Window, delay, spacing, tightest, words

NOW = 1_800_000_000.0
HOUR = 3600.0

windows = st.builds(
    Window,
    name=st.just("five_hour"),
    used=st.floats(0, 5),
    ends=st.floats(NOW - 30 * 86400, NOW + 60 * 86400),
    length=st.floats(0, 40 * 86400),
)


def half(used: float) -> Window:
    """A window of five hours of which half has passed."""
    return Window("five_hour", used, NOW + 2.5 * HOUR, 5 * HOUR)


@pytest.mark.parametrize(
    ("used", "waits"),
    [(0.0, 0.0), (0.38, 0.0), (0.5, 0.0), (0.51, 180.0), (0.55, 900.0), (0.9, 900.0), (1.0, 900.0), (7.0, 900.0)],
)
def test_who_is_ahead_waits_until_as_much_time_has_passed(used: float, waits: float) -> None:
    """1 % of five hours is three minutes; one start waits a quarter of an hour at most."""
    assert delay(half(used), NOW) == pytest.approx(waits)


@pytest.mark.parametrize(
    ("used", "says"),
    [
        (0.38, "38 % of the window five_hour used after 50 % of its time: 12 % behind an even pace"),
        (0.62, "62 % of the window five_hour used after 50 % of its time: 12 % ahead of an even pace"),
        (0.5, "50 % of the window five_hour used after 50 % of its time: an even pace"),
    ],
)
def test_it_says_how_far_ahead_or_behind_one_is(used: float, says: str) -> None:
    assert words(half(used), NOW) == says


@given(windows, st.floats(-60 * 86400, 60 * 86400))
def test_a_delay_is_bounded_and_never_beyond_the_window(window: Window, offset: float) -> None:
    now = NOW + offset
    seconds = delay(window, now)
    assert 0 <= seconds <= LONGEST_DELAY
    assert seconds <= max(0.0, window.ends - now) + 1e-3
    assert seconds == 0 or window.is_running(now)


@given(windows)
def test_after_all_delays_the_pace_is_even(window: Window) -> None:
    """Whoever waits again and again without using anything is let go, at the window's end at the latest."""
    now, waits = NOW, 0
    while (seconds := delay(window, now)) > 1e-3:
        now, waits = now + seconds, waits + 1
        assert waits <= window.length / LONGEST_DELAY + 2
    assert not window.is_running(now) or window.gone(now) >= min(1.0, window.used) - 1e-6


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_use_never_waits_shorter(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert delay(half(less), NOW) <= delay(half(more), NOW)


@given(st.lists(windows, max_size=3))
def test_the_tightest_window_is_one_that_runs(some: list[Window]) -> None:
    found = tightest(tuple(some), NOW)
    running = [window for window in some if window.is_running(NOW)]
    assert (found is None) == (not running)
    assert found is None or all(found.used - found.gone(NOW) >= one.used - one.gone(NOW) for one in running)


@pytest.mark.parametrize(
    "window",
    [
        Window("over", 0.9, NOW - 1, 5 * HOUR),
        Window("not begun", 0.9, NOW + 6 * HOUR, 5 * HOUR),
        Window("of no length", 0.9, NOW + 1, 0.0),
    ],
    ids=lambda window: window.name,
)
def test_a_window_that_does_not_run_delays_nothing(window: Window) -> None:
    """A clock that is wrong, a window of yesterday: nothing is known then."""
    assert (delay(window, NOW), tightest((window,), NOW)) == (0.0, None)


@pytest.mark.parametrize(
    ("starts", "limit", "last", "waits"),
    [(0, 100, None, 0), (1, 100, NOW, 36), (1, 100, NOW - 30, 6), (5, 100, NOW - 36, 0), (1, 2, NOW, 900)],
)
def test_an_hourly_limit_is_spread_in_equal_parts(starts: int, limit: int, last: float | None, waits: float) -> None:
    assert spacing(starts, limit, last, NOW) == pytest.approx(waits)


@given(st.integers(0, 1000), st.integers(0, 1000), st.none() | st.floats(NOW - 7200, NOW + 7200))
def test_a_spacing_is_bounded(starts: int, limit: int, last: float | None) -> None:
    assert 0 <= spacing(starts, limit, last, NOW) <= LONGEST_DELAY
