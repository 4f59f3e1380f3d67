"""The phase table, exhaustively: every cause in every phase, and every signal in every phase."""

from __future__ import annotations

import pytest

from fusewire.core import circuit
from fusewire.core.circuit import PHASES, CircuitState, InvalidTransition, Policy, StepResult, fresh, step, view
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import Signal
from fusewire.core.meters import Meter

NAMES = ("closed", "watch", "open", "probe")
CAUSES = ("warned", "tripped", "recovered", "cooled", "reset", "retried", "restarted", "succeeded", "quiet", "failed")

#: Written out a second time on purpose: the table in the code is compared with this one.
MOVES = {
    "closed": {"warned": "watch", "tripped": "open"},
    "watch": {"tripped": "open", "recovered": "closed", "restarted": "closed"},
    "open": {"cooled": "probe", "reset": "closed", "retried": "probe", "restarted": "closed"},
    "probe": {"succeeded": "closed", "quiet": "closed", "failed": "open", "restarted": "closed"},
}

METER = Meter("faults", "streak", "fault", 3, warn=2, resets_on=("success",), reason="{level} of {limit}")


def policy(**fields: object) -> Policy:
    settings = {"schedule": "fixed", "cooldown": (60.0,), "lease": 30.0, "override": True, **fields}
    return Policy("p", "p", "tool", (METER,), **settings)  # type: ignore[arg-type]


def sent(kind: str, name: str = "fault", **fields: object) -> Signal:
    return Signal(kind, "p", name, **fields)  # type: ignore[arg-type]


def circuit_in(phase: str, rules: Policy) -> tuple[CircuitState, float]:
    """A circuit that was led into the phase by signals, and the time at which it is there."""
    state: CircuitState = fresh(0.0)
    for _ in range({"closed": 0, "watch": 2, "open": 3, "probe": 3}[phase]):
        state, _ = step(rules, state, sent("bad"), 0.0)
    now = 1.0
    if phase == "probe":
        now = 61.0
        state, _ = step(rules, state, sent("ask", "action", lease="L"), now)
    assert state.phase == phase
    return state, now


def test_the_table_is_the_one_that_is_written_down_here() -> None:
    """No pair was added to or lost from the phase table."""
    assert {(phase, cause): target for phase, moves in MOVES.items() for cause, target in moves.items()} == PHASES


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("phase", NAMES)
def test_a_cause_moves_a_phase_as_the_table_says_or_is_an_error(phase: str, cause: str) -> None:
    """A pair of the table moves a copy and is noted once; any other raises, and nothing has changed."""
    state, _ = circuit_in(phase, policy())
    before = state.to_data()
    outcome = StepResult()
    target = MOVES[phase].get(cause)
    if target is None:
        with pytest.raises(InvalidTransition, match=f"^Invalid transition from {PUBLIC_STATE[phase]}"):
            circuit._move(state, cause, 5.0, "because", outcome)
        assert outcome.transitions == []
    else:
        moved = circuit._move(state, cause, 5.0, "because", outcome)
        assert moved.phase == target
        (move,) = outcome.transitions
        assert (move.source, move.target, move.cause, move.at, move.reason) == (phase, target, cause, 5.0, "because")
    assert state.to_data() == before


#: What one signal does to a circuit in each phase; None is refused as an invalid transition.
SIGNALS = [
    ("closed", sent("ask", "action"), "closed"),
    ("closed", sent("bad"), "closed"),
    ("closed", sent("good", "success"), "closed"),
    ("closed", sent("note", "weather"), "closed"),
    ("closed", sent("release", lease="L"), "closed"),
    ("closed", sent("reset"), None),
    ("closed", sent("restart"), "closed"),
    ("closed", sent("override", value=60), None),
    ("closed", sent("deny"), None),
    ("watch", sent("ask", "action"), "watch"),
    ("watch", sent("bad"), "open"),
    ("watch", sent("good", "success"), "closed"),
    ("watch", sent("good", "something_else"), "watch"),
    ("watch", sent("note", "weather"), "watch"),
    ("watch", sent("note", "fault"), "open"),
    ("watch", sent("release", lease="L"), "watch"),
    ("watch", sent("reset"), None),
    ("watch", sent("restart"), "closed"),
    ("watch", sent("override", value=60), None),
    ("watch", sent("deny"), None),
    ("open", sent("ask", "action"), "open"),
    ("open", sent("bad"), "open"),
    ("open", sent("good", "success"), "open"),
    ("open", sent("good", "success", lease="L"), "open"),
    ("open", sent("note", "fault"), "open"),
    ("open", sent("release", lease="L"), "open"),
    ("open", sent("reset"), "closed"),
    ("open", sent("restart"), "closed"),
    ("open", sent("override", value=60), "open"),
    ("open", sent("deny"), None),
    ("probe", sent("ask", "action"), "probe"),
    ("probe", sent("ask", "action", lease="L"), "probe"),
    ("probe", sent("bad"), "open"),
    ("probe", sent("bad", lease="L"), "open"),
    ("probe", sent("bad", lease="another"), "probe"),
    ("probe", sent("good", "success"), "probe"),
    ("probe", sent("good", "success", lease="L"), "closed"),
    ("probe", sent("good", "success", lease="another"), "probe"),
    ("probe", sent("note", "fault"), "probe"),
    ("probe", sent("release", lease="L"), "probe"),
    ("probe", sent("reset"), None),
    ("probe", sent("restart"), "closed"),
    ("probe", sent("override", value=60), "probe"),
    ("probe", sent("deny"), None),
]


@pytest.mark.parametrize(("phase", "signal", "target"), SIGNALS)
def test_a_signal_leads_from_phase_to_phase_and_never_changes_its_argument(
    phase: str, signal: Signal, target: str | None
) -> None:
    """Every kind of signal in every phase; the state that went in is as it was, whatever came out."""
    rules = policy()
    state, now = circuit_in(phase, rules)
    before, memories = state.to_data(), {name: list(memory) for name, memory in state.meters.items()}
    if target is None:
        with pytest.raises(InvalidTransition):
            step(rules, state, signal, now)
    else:
        after, outcome = step(rules, state, signal, now)
        assert after.phase == target
        assert [(move.source, move.target) for move in outcome.transitions] == (
            [] if target == phase else [(phase, target)]
        )
        assert outcome.tripped is (target == "open" != phase)
    assert state.to_data() == before
    assert state.meters == memories


def test_every_signal_kind_is_tried_in_every_phase() -> None:
    """The list above leaves no kind of signal out of any phase."""
    kinds = {"ask", "bad", "good", "note", "release", "reset", "restart", "override", "deny"}
    assert {(phase, signal.kind) for phase, signal, _ in SIGNALS} == {
        (phase, kind) for phase in NAMES for kind in kinds
    }


@pytest.mark.parametrize(("rule", "target"), [("close", "closed"), ("probe", "probe"), ("refuse", None)])
def test_what_a_reset_does_is_the_policys_choice(rule: str, target: str | None) -> None:
    """A person's reset closes, ends the cooldown early, or is refused."""
    rules = policy(reset=rule)
    state, now = circuit_in("open", rules)
    if target is None:
        with pytest.raises(InvalidTransition):
            step(rules, state, sent("reset", text="why"), now)
    else:
        after, _ = step(rules, state, sent("reset", text="why"), now)
        assert (after.phase, after.last_reset) == (target, now)


def test_a_signal_that_changes_nothing_gives_the_very_same_state_back() -> None:
    """Whoever asks for nothing to be written can tell by identity."""
    rules = policy()
    unchanging = {
        "closed": [sent("ask", "action"), sent("note", "weather"), sent("good", "success"), sent("release", lease="L")],
        "watch": [sent("ask", "action"), sent("note", "weather"), sent("release", lease="L")],
        "open": [sent("ask", "action"), sent("note", "weather"), sent("good", "success"), sent("release", lease="L")],
        "probe": [
            sent("ask", "action"),
            sent("ask", "action", lease="L"),
            sent("note", "weather"),
            sent("release", lease="another"),
        ],
    }
    for phase, signals in unchanging.items():
        state, now = circuit_in(phase, rules)
        for signal in signals:
            assert step(rules, state, signal, now)[0] is state, (phase, signal)


#: age of a trip at t=0 with a cooldown of 60 s and a quiet time of 100 s -> what a reader sees
@pytest.mark.parametrize(
    ("now", "phase"),
    [(-1000.0, "open"), (0.0, "open"), (59.999, "open"), (60.0, "probe"), (159.999, "probe"), (160.0, "closed")],
)
def test_a_reader_sees_what_time_has_done_and_writes_nothing(now: float, phase: str) -> None:
    """`view` shows the phase at that very moment; the state it was given stays open."""
    rules = policy(quiet=100.0)
    state, _ = circuit_in("open", rules)
    before = state.to_data()
    seen = view(rules, state, now)
    assert seen.phase == phase
    assert state.to_data() == before
    assert (seen is state) is (phase == "open")


def test_a_reader_of_nothing_sees_a_closed_circuit() -> None:
    """A circuit that nothing has happened to is closed."""
    assert view(policy(), None, 5.0) == fresh(5.0)
    assert fresh(5.0).phase == "closed"


def test_time_that_passed_unseen_is_written_down_by_the_next_step() -> None:
    """One step after a long absence notes both moves at the moments when they happened."""
    rules = policy(quiet=100.0)
    state, _ = circuit_in("open", rules)
    after, outcome = step(rules, state, sent("ask", "action"), 1000.0)
    assert after.phase == "closed"
    assert [(move.cause, move.at) for move in outcome.transitions] == [("cooled", 60.0), ("quiet", 160.0)]


def test_a_vigil_is_counted_down_on_a_copy() -> None:
    """Good signals after a recovery shorten the vigil of the new state, not of the old one."""
    rules = policy(vigil=3)
    state, now = circuit_in("probe", rules)
    state, _ = step(rules, state, sent("good", "success", lease="L"), now)
    after, _ = step(rules, state, sent("good", "success"), now)
    assert (state.vigil, after.vigil) == (3, 2)
