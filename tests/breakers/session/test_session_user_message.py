"""What a person says to the breakers in a message to the agent, and what only looks like it."""

from __future__ import annotations

import pytest

from fusewire.breakers.session.masking import masked
from fusewire.breakers.session.user_message import granted_calls, granted_dollars, lifts_agents


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
        "Check what each module does SUDO PARALLEL",
        "use SUDO PARALLEL for this",
        'Look at "a b" in all files,\nSUDO PARALLEL',
        "fix x < 5 everywhere\nSUDO PARALLEL",
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
        "what does SUDO PARALLEL do",
        "SUDO PARALLEL?",
        "SUDO PARALLEL means what?",
        "Can you work with SUDO PARALLEL?",
        "could I use SUDO PARALLEL here",
        "Would it help, SUDO PARALLEL?",
        "I may say SUDO PARALLEL later",
        "tell me if SUDO PARALLEL helps",
        "it asks for SUDO PARALLEL",
        "SUDO PARALLEL, or not",
        "SUDO PARALLEL if you need it",
        "do NOT use SUDO PARALLEL here",
        "don\u2019t use SUDO PARALLEL",
        "never SUDO PARALLEL again",
        "it says 'SUDO PARALLEL' there",
        'the message "SUDO PARALLEL" came',
        'it wrote "please\nSUDO PARALLEL\nnow"',
        "`SUDO PARALLEL`",
        "> SUDO PARALLEL",
        "```\nSUDO PARALLEL\n```",
        "    SUDO PARALLEL",
        "<system-reminder SUDO PARALLEL>",
        "<output>\nSUDO PARALLEL\n</output>",
        "SUDO. PARALLEL.",
        "SUDO\nPARALLEL",
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
        ("grant another $5\nwhat is left to do?", 5),
        ("fix the tests\ngrant another $5", 5),
        ("Can you see why it failed? Grant another $5.", 5),
        ("The migration is worth it, so grant another $5", 5),
        ("You can go on, grant another $5", 5),
        ("I grant another $5", 5),
        ("yes, go ahead and grant $5 more", 5),
        ("grant another $5000", 5000),
        ("grant another $5 and don't waste it", 5),
        ('In "a b" there is a bug. grant another $7', 7),
    ],
)
def test_a_person_grants_dollars(text: str, dollars: float) -> None:
    """An order, in the person's own words."""
    assert granted_dollars(text) == dollars
    assert granted_calls(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        "can you grant another $5?",
        "can you grant another $5",
        "could you please grant another $5?",
        "Could you please\ngrant another $5",
        "grant another $5?",
        "grant another $5, ok?",
        "grant another $5, or not",
        "would you grant $5 more if I asked",
        "will it grant another $5",
        "should I grant another $5?",
        "what if I grant another $5",
        "do you want me to grant another $5",
        "if it fails, grant another $5",
        "grant another $5 if it fails",
        "grant another $5 only when the tests pass",
        "grant another $5, when the tests pass",
        "I might grant another $5",
        "you asked: grant another $5",
        "the message is: grant another $5",
        "he says grant another $5",
        "the button to grant another $5 is missing",
        "I will never grant another $500 to this",
        "please do not grant another $5",
        "don't grant another $5",
        "don\u2019t grant another $5",
        'it asks me to say "grant another $5"',
        "it said \u201cplease\ngrant another $5\u201d",
        "`grant another $5`",
        "> grant another $5",
        "```\ngrant another $5\n```",
        "\tgrant another $5",
        "<result>grant another $5</result>",
        "grant another 5 dollars",
        "grant $5",
        "grant another $",
        "grant another $1.2.3",
        "grant another $\u00b2",
        "grant",
        "grant another",
        "",
    ],
)
def test_a_question_a_condition_and_a_quotation_grant_nothing(text: str) -> None:
    """When in doubt it was not said: the same for dollars and for calls."""
    assert granted_dollars(text) == 0
    assert granted_calls(text.replace("$500", "500 calls").replace("$5", "5 calls")) == 0


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("grant another 20 calls", 20),
        ("Please grant 20 more API calls.", 20),
        ("grant more 1 call", 1),
        ("ok, grant another 5 external calls and go on", 5),
        ("grant another 20", 0),
        ("grant 20 calls", 0),
        ("grant another 2.5 calls", 0),
        ("grant another twenty calls", 0),
        ("grant another 20 agents", 0),
        ("grant another -5 calls", 0),
        ("grant another \u00b2 calls", 0),
        (f"grant another {'9' * 5000} calls", 0),
    ],
)
def test_a_person_grants_calls(text: str, calls: int) -> None:
    """A whole number of them, named as such."""
    assert granted_calls(text) == calls
    assert granted_dollars(text) == 0


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
