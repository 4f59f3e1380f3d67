"""How fast something is spent, when it is used up, and the five-hour windows: pure arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire.core.burn import WINDOW, burn_rate, used_up_at, windows

NOON = 1_800_000_000.0 // 3600 * 3600


def test_the_rate_is_that_of_the_last_hour() -> None:
    """Four full quarters of $1; what is older does not count."""
    usage = [(NOON - 900 * number, 1.0, 1000) for number in range(1, 9)]
    rate = burn_rate(usage, NOON)
    assert (rate.usd, rate.tokens) == (4.0, 4000.0)


def test_a_session_that_has_just_begun_is_not_taken_for_an_hour() -> None:
    """$2 in the half hour since it began are $4 an hour; within a minute it is as if it were five."""
    assert burn_rate([(NOON - 1800, 1.0, 0), (NOON - 900, 1.0, 0)], NOON).usd == pytest.approx(4)
    assert burn_rate([(NOON - 60, 1.0, 0)], NOON).usd == pytest.approx(12)


def test_nothing_spent_or_a_clock_that_was_set_back_is_no_rate() -> None:
    assert burn_rate([], NOON).usd == 0
    assert burn_rate([(NOON + 7200, 5.0, 5)], NOON).usd == 0


def test_when_a_limit_is_reached() -> None:
    assert used_up_at(5, 10, 10, NOON) == NOON + 1800
    assert used_up_at(10, 10, 10, NOON) == NOON
    assert used_up_at(1, 10, 0, NOON) is None


def test_a_window_begins_at_the_full_hour_and_lasts_five() -> None:
    """A later request begins another one; one after five silent hours as well."""
    found = windows([(NOON + 900, 1.0, 10), (NOON + 4 * 3600, 2.0, 20), (NOON + 5 * 3600, 4.0, 40)])
    assert [(one.since - NOON, one.usd, one.tokens) for one in found] == [(0, 3.0, 30), (5 * 3600, 4.0, 40)]
    assert all(one.until - one.since == WINDOW for one in found)


@given(st.lists(st.tuples(st.integers(0, 4000).map(lambda n: n * 900.0), st.floats(0, 10), st.integers(0, 10**6))))
def test_windows_lose_nothing_and_never_overlap(usage: list[tuple[float, float, int]]) -> None:
    found = windows(usage)
    assert sum(one.tokens for one in found) == sum(tokens for _, _, tokens in usage)
    assert all(one.until <= following.since for one, following in zip(found, found[1:], strict=False))


@given(
    st.lists(st.tuples(st.floats(0, 10_000).map(lambda s: NOON - s), st.floats(0, 100), st.integers(0, 100))),
)
def test_a_rate_is_never_negative(usage: list[tuple[float, float, int]]) -> None:
    rate = burn_rate(usage, NOON)
    assert rate.usd >= 0
    assert rate.tokens >= 0
