"""Aligned columns of text."""

from __future__ import annotations

from fusewire.util.tables import columns


def test_columns_are_aligned_without_blanks_at_the_end() -> None:
    assert columns([("a", "long", "x"), ("name", "b", "")]) == ["a     long  x", "name  b"]


def test_numbers_are_aligned_to_the_right() -> None:
    assert columns([("model", "usd"), ("a", "$10.00")], numbers=True) == ["model     usd", "a      $10.00"]


def test_no_rows_are_no_lines() -> None:
    assert columns([]) == []
