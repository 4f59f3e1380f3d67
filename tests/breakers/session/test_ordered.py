"""How a person's halt is answered: whom it stops, in which words, and when an agent that goes on is ended."""

from __future__ import annotations

from fusewire.breakers.session.ordered import answer
from fusewire.core.decision import Decision
from fusewire.core.events import Event
from fusewire.core.messages import agent_message
from fusewire.scopes.orders import HaltOrder, Orders
from fusewire.stores.memory import MemoryStore

ROOT = "/nowhere/project"
HALT = HaltOrder("project", ROOT, "wrong branch", "kim", 1000.0)


def ask(store: MemoryStore, now: float, *, halt: HaltOrder = HALT, agent: str = "", session: str = "s1") -> Decision:
    event = Event("before_tool", "Bash", command="ls", session=session, subagent=agent)
    decision = answer(event, Orders((halt,)), ROOT, lambda: store, clock=lambda: now)
    assert decision is not None
    return decision


def test_an_agent_that_goes_on_for_more_than_three_replies_is_ended() -> None:
    store = MemoryStore()
    assert [ask(store, 1000.0 + 5 * reply).unheeded for reply in range(5)] == [False, False, False, True, True]


def test_many_calls_of_one_reply_are_one() -> None:
    store = MemoryStore()
    assert not any(ask(store, 1000.0 + call / 100).unheeded for call in range(50))


def test_each_agent_of_a_session_is_counted_for_itself_and_a_new_halt_begins_anew() -> None:
    store = MemoryStore()
    for reply in range(3):
        ask(store, 1000.0 + 5 * reply)
        assert not ask(store, 1000.0 + 5 * reply, agent="a1").unheeded
    assert not ask(store, 1020.0, halt=HALT.replace(at=1019.0)).unheeded


def test_a_clock_that_is_set_back_ends_nobody_sooner() -> None:
    store = MemoryStore()
    assert not any(ask(store, moment).unheeded for moment in (2000.0, 1000.0, 1000.1))


def test_rows_are_forgotten_after_a_day() -> None:
    store = MemoryStore()
    for number in range(20):
        ask(store, 1000.0, session=f"s{number}")
    ask(store, 1000.0 + 2 * 86400)
    assert [name for name, _ in store.remembered("ordered/")] == ["ordered/s1/"]


def test_the_message_says_who_why_since_when_and_how_it_goes_on() -> None:
    text = agent_message(ask(MemoryStore(), 1001.0))
    assert text == (
        "BLOCKED fusewire.halt: a person has halted the agents of this project"
        " (by kim since 1970-01-01 00:16 UTC): wrong branch.\n"
        "Next: stop here; no call is allowed until a person resumes.\n"
        "A person can run: fusewire resume"
    )
    assert len(agent_message(ask(MemoryStore(), 1.0, halt=HALT.replace(reason="x" * 300, by="y" * 60)))) <= 600
