"""The parts of `fusewire watch`: keys, texts, what is collected and when, the pages in rows."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from fusewire.cli.watch.keys import KeyDecoder
from fusewire.cli.watch.pages import read_lines
from fusewire.cli.watch.rows import harmless, level_of, shown
from fusewire.cli.watch.source import Source
from fusewire.cli.watch.view import Page, WatchView
from fusewire.engine.breaker import Breaker
from tests.helpers.project import Project
from tests.helpers.watching import DEADLINE


def test_keys_may_come_in_pieces() -> None:
    """A sequence or a character of several bytes that is cut; Escape alone only if nothing follows."""
    keys = KeyDecoder()
    assert keys.feed(b"j\x1b[") == ["j"]
    assert keys.waiting
    assert keys.feed(b"5~\xc3") == ["pgup"]
    assert keys.feed("é漢".encode()[1:]) == ["é", "漢"]
    assert keys.feed(b"\x1b") == []
    assert keys.flush() == ["esc"]
    assert not keys.waiting
    assert keys.feed(b"\x1bq\x1b\x1b[A") == ["esc", "q", "esc", "up"]
    assert keys.feed(b"\x1b[200~\x1b[1;5A\x01\xff\r\n\x7f \t") == ["enter", "enter", "backspace", " "]
    assert keys.flush() == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\n b\tc", "a b c"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\u202eevil\u2069\ufeff", "\ufffdevil\ufffd\ufffd"),
        ("漢字 é", "漢字 é"),
        ("\udce9", "\ufffd"),
        ("x" * 9000, "x" * 4000 + " [...]"),
    ],
)
def test_texts_are_shown_harmless(text: str, seen: str) -> None:
    """One line, no escapes, no turned or hidden characters, not too long."""
    assert shown(text) == seen


def test_a_line_with_line_ends_is_one_line_and_hides_nothing_of_itself() -> None:
    """Lines of reports quote agents: what stands before a carriage return is seen, too."""
    assert harmless("  OPEN Bash(x\r\nfine\rdone)") == "  OPEN Bash(x fine done)"


def test_a_panel_that_takes_long_is_collected_less_often(project: Project) -> None:
    """Looking ten times in a row collects once; what is written is seen at the next look all the same."""
    with Breaker.open(project=project.root) as breaker:
        breaker.record("loop/no_progress", "x")
        source = Source(str(project.root), recent=5)
        source.look()
        seen = source.panel
        source.look()
        assert source.panel is seen
        breaker.record("loop/no_progress", "x")
        deadline = time.monotonic() + DEADLINE
        while source.panel is seen and time.monotonic() < deadline:
            source.look()
        assert source.panel is not None
        assert source.panel.circuits[0].level == 2
        source.close()


def test_the_loop_has_a_page(project: Project) -> None:
    """Its state, score and metrics as `status loop` tells them, in rows that are not too wide."""
    project.run("loop", "begin")
    project.run("loop", "end")
    source = Source(str(project.root))
    source.look()
    rows = [row.plain for row in read_lines(source, "loop", "", 40)]
    source.close()
    assert rows[0].startswith("LOOP CLOSED: 1 iteration")
    assert "METRICS" in rows
    assert max(map(len, rows)) <= 40


def test_a_score_that_fell_too_far_is_full_while_its_probe_is_awaited(project: Project) -> None:
    """Its limit is 0, of which nothing is a share."""
    for _ in range(3):
        project.run("loop", "begin")
        project.run("loop", "end")
    project.run("reset", "loop", "--reason", "the network is back")
    source = Source(str(project.root))
    source.look()
    rows = [row.plain for row in read_lines(source, "circuit", "loop/score", 100)]
    source.close()
    assert rows[0] == "loop/score  HALF_OPEN"
    assert next(row for row in rows if row.startswith("Level")).startswith(f"Level    {'━' * 12} -")


def test_levels_are_said_in_their_own_unit() -> None:
    """Dollars as dollars and shares as shares; whatever is counted is a number."""
    for level, threshold, measure, told in (
        (2.4, 5, "$2.40 of $5.00", "$2.40/$5"),
        (12, 7.5, "$12.00 of $7.50", "$12/$7.50"),
        (0.4, 0.7, "40% of 70%", "40%/70%"),
        (3, 5, "3 of 5 within 30d", "3/5"),
        (-13, 0, "-13, not below 0", "-13/0"),
    ):
        card: Any = SimpleNamespace(level=level, threshold=threshold, measure=measure)
        assert level_of(card) == told


def test_a_session_that_is_halted_is_in_the_list_however_old_it_is() -> None:
    """Before those that were heard of since."""
    halted, other = SimpleNamespace(id="a", state="halted"), SimpleNamespace(id="b", state="running")
    panel: Any = SimpleNamespace(circuits=[], halted=[halted], sessions=[other])
    view = WatchView([Page("panel"), Page("sessions")])
    assert view.rows(panel) == [halted, other]
    panel.sessions = [other, halted]
    assert view.rows(panel) == [halted, other]
    assert view.rows(None) == []
