"""What holds for any sequence of signals, on every default policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fusewire.config.rules import compile_rules
from fusewire.core.circuit import CircuitState, Policy, cooldown, fresh, step, view
from fusewire.core.events import Signal
from fusewire.engine.engine import read_state
from fusewire.util.errors import InvalidTransition

RULES = compile_rules(None)
POLICIES = {name: Policy.from_data(data) for name, data in RULES.policies.items()}
START = 1_800_000_000.0

LEASES = st.sampled_from([None, "A", "B"])
#: Steps of the clock that matter somewhere: nothing, deduplication, cooldowns, leases, windows, and backwards.
TICKS = st.sampled_from(
    [0.0, 0.25, 1.0, 5.0, 10.0, 61.0, 300.0, 601.0, 1800.0, 3600.0, 86400.0, 31 * 86400.0, -7.0, -4000.0]
)

Sent = tuple[float, Signal]


def names_of(policy: Policy) -> list[str]:
    resets = {name for meter in policy.meters for name in meter.resets_on}
    return sorted({meter.on for meter in policy.meters} | resets | {"action", "spawn", "success"})


def signals_for(policy: Policy, *, person: bool = True) -> st.SearchStrategy[Signal]:
    kinds = ["ask", "ask", "bad", "bad", "bad", "good", "note", "release"] + (["reset", "override"] if person else [])
    return st.builds(
        Signal,
        st.sampled_from(kinds),
        st.just(policy.id),
        st.sampled_from(names_of(policy)),
        value=st.sampled_from([1, 1, 0, -3, 0.5, 40, 100]),
        fingerprint=st.sampled_from([None, "e1", "e2"]),
        text=st.sampled_from(["", "what happened", "x" * 1000]),
        turn=st.one_of(st.none(), st.integers(0, 12)),
        lease=LEASES,
    )


def sequences(policy: Policy, *, person: bool = True, size: int = 25) -> st.SearchStrategy[list[Sent]]:
    return st.lists(st.tuples(TICKS, signals_for(policy, person=person)), max_size=size)


def fold(
    policy: Policy, state: CircuitState | None, sent: list[Sent], now: float
) -> tuple[CircuitState | None, float, list[Any]]:
    """The state after the sequence, the time, and everything that was answered on the way."""
    answers: list[Any] = []
    for tick, signal in sent:
        now += tick
        try:
            state, outcome = step(policy, state, signal, now)
        except InvalidTransition as refused:
            answers.append(str(refused))
            continue
        moves = [(move.at, move.source, move.target, move.cause) for move in outcome.transitions]
        answers.append((outcome.verdict, outcome.reason, outcome.retry_at, outcome.lease, outcome.counted, moves))
    return state, now, answers


def through_json(state: CircuitState | None) -> CircuitState | None:
    return None if state is None else CircuitState.from_data(json.loads(json.dumps(state.to_data())))


quick = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", POLICIES)
@quick
@given(data=st.data())
def test_folding_in_two_parts_equals_folding_whole(name: str, data: st.DataObject) -> None:
    """A restart in the middle, with the state written down as JSON, changes no state and no answer."""
    policy = POLICIES[name]
    sent = data.draw(sequences(policy))
    cut = data.draw(st.integers(0, len(sent)))
    whole, _, answers = fold(policy, None, sent, START)
    first, now, early = fold(policy, None, sent[:cut], START)
    second, _, late = fold(policy, through_json(first), sent[cut:], now)
    assert second == whole
    assert early + late == answers


@pytest.mark.parametrize("name", POLICIES)
@settings(quick, max_examples=6)
@given(data=st.data())
def test_a_step_changes_no_argument_and_a_look_changes_nothing(name: str, data: st.DataObject) -> None:
    """Whatever state a circuit is in, `step` and `view` leave it as it was."""
    policy = POLICIES[name]
    state, now, _ = fold(policy, None, data.draw(sequences(policy)), START)
    state = state or fresh(START)
    before = json.dumps(state.to_data())
    now += data.draw(TICKS)
    view(policy, state, now)
    assert json.dumps(state.to_data()) == before
    try:
        step(policy, state, data.draw(signals_for(policy)), now)
    except InvalidTransition:
        pass
    assert json.dumps(state.to_data()) == before


@pytest.mark.parametrize("name", POLICIES)
@settings(quick, max_examples=6)
@given(data=st.data())
def test_looking_first_changes_no_answer(name: str, data: st.DataObject) -> None:
    """What time alone does is the same whether a reader's view or the next step finds it."""
    policy = POLICIES[name]
    state, now, _ = fold(policy, None, data.draw(sequences(policy)), START)
    now += data.draw(TICKS)
    signal = data.draw(signals_for(policy))
    answers = []
    for start in (state, view(policy, state, now)):
        try:
            after, outcome = step(policy, start, signal, now)
            answers.append((after.phase, after.meters, after.until, after.lease, outcome.verdict, outcome.retry_at))
        except InvalidTransition as refused:
            answers.append((str(refused),))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", POLICIES)
@settings(quick, max_examples=2)
@given(data=st.data())
def test_a_state_stays_small_however_long_its_history(name: str, data: st.DataObject) -> None:
    """After thousands of signals a state is no larger than what its limits and two texts need."""
    policy = POLICIES[name]
    sent = data.draw(st.lists(st.tuples(TICKS, signals_for(policy)), min_size=5, max_size=30))
    bound = 2000 + sum(24 * max(16, int(meter.trip)) for meter in policy.meters)
    state, now = None, START
    for _ in range(1500 // len(sent)):
        state, now, _ = fold(policy, state, sent, now)
        if state is not None:
            assert len(json.dumps(state.to_data())) < bound


@pytest.mark.parametrize("name", POLICIES)
@quick
@given(data=st.data())
def test_only_a_person_ends_a_cooldown_early(name: str, data: st.DataObject) -> None:
    """Without a reset an open circuit is open until its cooldown is over, and for ever where it has none."""
    policy = POLICIES[name]
    state: CircuitState | None = None
    now, open_until = START, None
    for tick, signal in data.draw(sequences(policy, person=False, size=40)):
        now += tick
        was_open = state is not None and state.phase == "open"
        state, outcome = step(policy, state, signal, now)
        if was_open and (open_until is None or now < open_until):
            assert state.phase == "open"
        if outcome.tripped:
            assert state.opened_at == now
            wait = cooldown(policy, state.in_a_row)
            open_until = None if wait is None or policy.cools_from == "refusal" else now + wait
            assert state.until == open_until
        if state.phase == "open" and signal.kind == "ask":
            assert outcome.verdict == "deny"
            if state.until is not None and open_until is None:  # the first refusal: the cooldown begins
                assert policy.cools_from == "refusal"
                open_until = state.until
                assert open_until == now + (cooldown(policy, state.in_a_row) or 0)
            assert state.until == open_until
        assert ("open", "closed") not in [(move.source, move.target) for move in outcome.transitions]


@pytest.mark.parametrize("name", POLICIES)
@settings(quick, max_examples=6)
@given(data=st.data())
def test_at_most_one_prober_at_a_time(name: str, data: st.DataObject) -> None:
    """Of many askers after a cooldown exactly one is let through until it settles or its lease runs out."""
    policy = POLICIES[name]
    state, now, _ = fold(policy, None, data.draw(sequences(policy, person=False)), START)
    if state is None or state.until is None:
        state = fresh(START)
        state.phase, state.opened_at, state.until = "open", START, START + 1
        now = START + 1
    now = max(now, state.until or now)
    leases = data.draw(st.lists(st.integers(0, 50).map(lambda number: f"asker-{number}"), min_size=2, unique=True))
    if view(policy, state, now).phase != "probe":
        return
    state, _ = step(policy, state, Signal("release", policy.id, "release", lease=view(policy, state, now).lease), now)
    through = []
    for lease in leases:
        state, outcome = step(policy, state, Signal("ask", policy.id, "action", lease=lease), now)
        if outcome.verdict != "deny":
            through.append(lease)
    assert through == leases[:1]


# -- stored states --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
@settings(quick, max_examples=6)
@given(data=st.data())
def test_a_state_comes_back_from_its_data(name: str, data: st.DataObject) -> None:
    """to_data, JSON and from_data give an equal state with every field of its own."""
    policy = POLICIES[name]
    state, _, _ = fold(policy, None, data.draw(sequences(policy)), START)
    state = state or fresh(START)
    twin = through_json(state)
    assert twin == state
    assert all(getattr(twin, field) == getattr(state, field) for field in CircuitState.__annotations__)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(quick, max_examples=80)
@given(JSON)
def test_what_is_no_state_is_a_value_error(value: Any) -> None:
    """Arbitrary JSON is a state or a ValueError, nothing else."""
    try:
        assert isinstance(CircuitState.from_data(value), CircuitState)
    except ValueError:
        pass


#: A state's own field names with values of any kind: what a damaged file may hold.
DAMAGED = st.fixed_dictionaries(
    {"since": st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), JSON)},
    optional={
        name: st.one_of(
            JSON,
            st.integers(-3, 30),
            st.sampled_from(["closed", "watch", "open", "probe", "A"]),
            st.dictionaries(st.sampled_from([m.name for p in POLICIES.values() for m in p.meters]), JSON, max_size=3),
        )
        for name in CircuitState.__annotations__
        if name != "since"
    },
)


@settings(quick, max_examples=80)
@given(DAMAGED)
def test_a_damaged_state_is_a_state_or_a_value_error(data: dict[str, Any]) -> None:
    """The right names with wrong values raise nothing but ValueError."""
    try:
        CircuitState.from_data(data)
    except ValueError:
        pass


@settings(quick, max_examples=80)
@given(st.sampled_from(sorted(POLICIES)), DAMAGED, st.data())
@example("{constraint}", {"since": 0, "meters": {"violations": ["yesterday"]}}, None)
@example("loop/no_progress", {"since": 0, "meters": {"no_progress": []}, "phase": "watch"}, None)
@example("loop/no_progress", {"since": 0, "meters": {"no_progress": [1]}}, None)
@example("tool/tool_failure/{tool}", {"since": 0, "phase": "probe", "in_a_row": -9}, None)
def test_what_is_accepted_as_a_state_can_be_used(name: str, stored: dict[str, Any], data: st.DataObject | None) -> None:
    """A damaged state is found out when it is read, so that it is rebuilt, and not by a crash in the next step."""
    policy = POLICIES[name]
    try:
        state = read_state(policy, stored)
    except ValueError:
        return
    signal = Signal("bad", name, policy.meters[0].on) if data is None else data.draw(signals_for(policy))
    view(policy, state, START)
    try:
        after, _ = step(policy, state, signal, START)
    except InvalidTransition:
        return
    through_json(after)


def test_an_open_state_without_its_moment_is_damaged() -> None:
    """A state that says open but not since when is not taken for a usable one."""
    with pytest.raises(ValueError, match="phase"):
        CircuitState.from_data({"since": 0, "phase": "open"})
