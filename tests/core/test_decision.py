"""Several rules speak of one event: the strictest decision wins, and what the others say is kept."""

from __future__ import annotations

import json

import pytest

from fusewire.agents import AGENTS, agent_named, render
from fusewire.core.decision import Decision, strictest
from fusewire.core.messages import agent_message, message, person_message

TOLD = Decision("tell", rule="a.told", reason="it is close")
ASKED = Decision("ask", rule="a.asked", reason="a skill would change")
DENIED = Decision("deny", rule="a.denied", reason="it is protected", next=("go on without it",))
HALTED = Decision("halt", rule="a.halted", reason="it was refused three times")
ENDED = HALTED.replace(unheeded=True)


def test_the_strictest_wins_and_the_others_are_kept() -> None:
    both = strictest((TOLD, None, DENIED))
    assert both is not None
    assert (both.verdict, both.rule, both.also) == ("deny", "a.denied", (TOLD,))
    assert (
        agent_message(both) == "BLOCKED a.denied: it is protected.\nNext: go on without it.\nWARN a.told: it is close."
    )
    ended = strictest((HALTED, ENDED, both))
    assert ended is not None
    assert ended.unheeded
    assert [one.rule for one in ended.also] == ["a.halted", "a.denied", "a.told"]
    assert strictest((None, None)) is None


def test_a_question_is_moot_once_something_is_refused() -> None:
    asked, refused = strictest((TOLD, ASKED)), strictest((ASKED, DENIED))
    assert asked is not None
    assert refused is not None
    assert (asked.verdict, asked.also) == ("ask", (TOLD,))
    assert (refused.verdict, refused.also) == ("deny", ())


def test_remarks_are_for_the_person_alone() -> None:
    both = strictest((TOLD, Decision("allow", remarks=("the store was rebuilt",))))
    assert both is not None
    assert agent_message(both) == "WARN a.told: it is close."
    assert person_message(both) == "WARN a.told: it is close.\nthe store was rebuilt"


def test_a_message_that_was_stored_is_said_as_it_stands() -> None:
    assert message(Decision("halt", rule="guard.integrity", text="BLOCKED guard.integrity: gone")) == (
        "BLOCKED guard.integrity: gone"
    )


@pytest.mark.parametrize("name", AGENTS)
def test_a_person_is_asked_where_the_program_can_else_it_is_denied_and_said(name: str) -> None:
    agent = agent_named(name)
    stdout, stderr, code = render(agent, ASKED, agent.GATES[0])
    if agent.ASKS:
        answer = json.loads(stdout)
        answer = answer.get("hookSpecificOutput", answer)
        assert answer.get("permissionDecision", answer.get("decision")) == "ask"
        assert (stderr, code) == ("", 0)
    else:
        assert code == 2
        assert "cannot ask the user" in stderr
    assert "ASK a.asked: a skill would change." in (stdout + stderr)


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_renders_every_decision(name: str) -> None:
    agent = agent_named(name)
    hook = agent.GATES[0]
    assert render(agent, Decision("allow"), hook) == ("", "", 0)
    for decision in (DENIED, HALTED):
        stdout, stderr, code = render(agent, decision, hook)
        assert (code, decision.reason in stderr, decision.reason in stdout) == (2, True, True)
    told = strictest((TOLD, Decision("allow", remarks=("the store was rebuilt",))))
    assert told is not None
    stdout, stderr, _ = render(agent, told, "PostToolUse" if name != "gemini" else "AfterTool")
    assert "it is close" in stdout + stderr
    assert "the store was rebuilt" in stdout + stderr
