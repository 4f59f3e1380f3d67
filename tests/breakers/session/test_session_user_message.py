"""What a person says to the breakers in a message to the agent, and what only looks like it."""

from __future__ import annotations

import pytest

from fusewire.breakers.session.masking import masked
from fusewire.breakers.session.user_message import granted, lifts_agents


@pytest.mark.parametrize(
    "text",
    [
        "SUDO PARALLEL",
        "Research these twelve modules. SUDO PARALLEL!",
        "SUDO  PARALLEL please",
        "ok, SUDO PARALLEL: one agent for each file",
        "It isn't much.\nSUDO PARALLEL",
        "SUDO PARALLEL and don't stop until it is done",
        "Can you look at all modules, SUDO PARALLEL, and do not ask?",
        "SUDO PARALLEL: could you check every file?",
    ],
)
def test_a_person_lifts_the_limits_on_agents(text: str) -> None:
    """In a sentence of their own."""
    assert lifts_agents(text)


@pytest.mark.parametrize(
    "text",
    [
        "sudo parallel",
        "what does SUDO PARALLEL mean?",
        "do NOT use SUDO PARALLEL here",
        "never SUDO PARALLEL again",
        "it says 'SUDO PARALLEL' there",
        'the message "SUDO PARALLEL" came',
        "`SUDO PARALLEL`",
        "> SUDO PARALLEL",
        "```\nSUDO PARALLEL\n```",
        "<system-reminder SUDO PARALLEL>",
        "SUDO. PARALLEL.",
    ],
)
def test_quoting_asking_and_denying_lift_nothing(text: str) -> None:
    """When in doubt it was not said."""
    assert not lifts_agents(text)


@pytest.mark.parametrize(
    ("text", "dollars"),
    [
        ("grant another $5", 5),
        ("Please grant another $2.50.", 2.5),
        ("ok. Grant another $5, and go on", 5),
        ("grant $10 more", 10),
        ("grant more $3", 3),
        ("go on!\ngrant another $5", 5),
        ("grant another $5000", 5000),
        ("grant another $5 and don't waste it", 5),
        ("grant another 5 dollars", 0),
        ("I will never grant another $500 to this", 0),
        ("please do not grant another $5", 0),
        ("don't grant another $5", 0),
        ("should I grant another $5?", 0),
        ('it asks me to say "grant another $5"', 0),
        ("> grant another $5", 0),
        ("```\ngrant another $5\n```", 0),
        ("grant another $", 0),
        ("grant another $1.2.3", 0),
        ("grant another $\u00b2", 0),
        ("grant", 0),
        ("", 0),
    ],
)
def test_a_person_grants_dollars(text: str, dollars: float) -> None:
    """An amount that is said, and nothing that is quoted, asked or denied."""
    assert granted(text) == dollars


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("104857600 y.bin", "136314880 y.bin"),
        ("count 1234567890123456", "count 1234567890999999"),
        ('{"processed_bytes": 987654321}', '{"processed_bytes": 999654321}'),
        ("9f8e7d6c5b4a39281706", "1f8e7d6c5b4a39281706"),
        ("3.9s", "4.1s"),
        ("45% done", "46% done"),
        ("Rebasing (3/20)", "Rebasing (4/20)"),
    ],
)
def test_what_grows_or_is_all_that_was_asked_for_is_not_masked(one: str, other: str) -> None:
    """Sizes, counts, and an answer that is nothing but a hash or a time."""
    assert masked(one) != masked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 1794823754 it failed", "at 1794823799 it failed"),
        ("error in app.py:12:5", "error in app.py:14:1"),
        ("took 3.9s to fail", "took 4.1s to fail"),
        ("commit 9f8e7d6c is broken", "commit 1f8e7d6d is broken"),
        ("GET http://localhost:34567/x failed", "GET http://localhost:45678/x failed"),
    ],
)
def test_what_is_only_another_time_or_place_is_masked(one: str, other: str) -> None:
    """The same failure at another moment."""
    assert masked(one) == masked(other)
