"""The seeds' numbers and transitions as data: each scenario is played through the real compiled default policies.

A scenario names a circuit and lists steps. A step says when (`at`, a duration since the start, and `turn`), what is
sent (`send = "bad violation"`, or `look`), how often (`times`, `every`, `every_turn`), to which circuits (`to`), and
what must come of it (`expect`). What a step does not say about time stays as it was in the step before.
"""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from fusewire.config.rules import compile_rules
from fusewire.config.settings import KINDS
from fusewire.core import meters
from fusewire.core.circuit import CircuitState, StepResult, step, view
from fusewire.core.events import Signal
from fusewire.util.durations import parse_duration
from fusewire.util.errors import InvalidTransition
from tests.helpers import DATA

FOLDER = DATA / "scenarios"
START = 1_800_000_000.0
RULES = compile_rules(None)

STEP_KEYS = {"at", "turn", "send", "value", "fingerprint", "lease", "times", "every", "every_turn", "to", "expect"}
SEEN_IN_OUTCOME = {"verdict", "counted", "duplicate", "late", "tripped", "alert", "lease", "meter", "reason"}
SEEN_IN_STATE = {"phase", "in_a_row", "trips", "total", "vigil"}
EXPECTATIONS = SEEN_IN_OUTCOME | SEEN_IN_STATE | {"retry_after", "levels", "error"}


def scenarios() -> list[Any]:
    return [
        pytest.param(scenario, id=f"{file.stem}: {scenario['title']}")
        for file in sorted(FOLDER.glob("*.toml"))
        for scenario in tomllib.loads(file.read_text("utf-8"))["scenario"]
    ]


class Stage:
    """The circuits of one scenario, its clock and its turn."""

    def __init__(self, circuit: str) -> None:
        self.circuit = circuit
        self.states: dict[str, CircuitState | None] = {}
        self.now = START
        self.turn: int | None = None

    def play(self, line: dict[str, Any]) -> None:
        assert set(line) <= STEP_KEYS, f"unknown key in {line}"
        expect = line.get("expect", {})
        assert set(expect) <= EXPECTATIONS, f"unknown expectation in {line}"
        if "at" in line:
            self.now = START + parse_duration(line["at"])
        if "turn" in line:
            self.turn = line["turn"]
        for number in range(line.get("times", 1)):
            if number:
                self.now += parse_duration(line.get("every", "0s"))
                self.turn = self.turn if self.turn is None else self.turn + line.get("every_turn", 0)
            for circuit in line.get("to", [self.circuit]):
                self.send(circuit, line, expect, number + 1)

    def send(self, circuit: str, line: dict[str, Any], expect: dict[str, Any], number: int) -> None:
        policy = RULES.policy(circuit)
        before = self.states.get(circuit)
        kind, _, name = line["send"].partition(" ")
        where = f"{circuit}, {number}. of {line}"
        if kind == "look":
            shown, outcome = view(policy, before, self.now), StepResult()
        else:
            fields = {key: line[key] for key in ("value", "fingerprint", "lease") if key in line}
            signal = Signal(kind, circuit, name or kind, turn=self.turn, text="what happened", **fields)  # type: ignore[arg-type]
            if "error" in expect:
                with pytest.raises(InvalidTransition) as refused:
                    step(policy, before, signal, self.now)
                assert str(refused.value).startswith(expect["error"]), where
                return
            shown, outcome = step(policy, before, signal, self.now)
            self.states[circuit] = shown
        seen: dict[str, Any] = {}
        for key, wanted in expect.items():
            if key == "retry_after":
                seen[key] = "never" if outcome.retry_at is None else outcome.retry_at - self.now
                wanted = wanted if wanted == "never" else parse_duration(wanted)
            elif key == "levels":
                seen[key] = {
                    meter.name: meters.level(meter, shown.meters.get(meter.name, []), self.now, self.turn)
                    for meter in policy.meters
                    if meter.name in wanted
                }
            else:
                seen[key] = getattr(outcome if key in SEEN_IN_OUTCOME else shown, key)
            assert seen[key] == wanted, f"{key}: {where}"


@pytest.mark.parametrize("scenario", scenarios())
def test_scenario(scenario: dict[str, Any]) -> None:
    """What the title says."""
    assert set(scenario) <= {"title", "circuit", "steps"}
    assert any("expect" in line for line in scenario["steps"]), "a scenario that expects nothing cannot fail"
    stage = Stage(scenario["circuit"])
    for line in scenario["steps"]:
        stage.play(line)


def test_every_seed_has_its_scenarios_and_every_default_policy_is_played() -> None:
    """No circuit of any default policy is left without a scenario."""
    assert {file.stem for file in FOLDER.glob("*.toml")} == set(KINDS)
    played = set()
    for param in scenarios():
        (scenario,) = param.values
        for circuit in [scenario["circuit"], *(name for line in scenario["steps"] for name in line.get("to", []))]:
            played.add(RULES.policy(circuit).id)
    assert played == set(RULES.policies)


#: Every number of the seeds' tables, as the compiled policies carry it.
NUMBERS = [
    ("git-safety", "violations", 5, 30 * 86400),
    ("loop/no_progress", "no_progress", 3, 0),
    ("loop/same_error", "same_error", 5, 0),
    ("loop/output_decline", "volume", 0.7, 0),
    ("loop/permission_denied", "denied", 3, 0),
    ("loop/test_fix", "test_fix", 0.8, 0),
    ("loop/score", "score", 0, 0),
    ("loop/neutral", "neutral", 5, 0),
    ("loop/rate", "calls", 100, 3600),
    ("phase/RED", "no_progress", 3, 0),
    ("phase/RED", "same_error", 5, 0),
    ("phase/GREEN", "no_progress", 2, 0),
    ("phase/GREEN", "same_error", 3, 0),
    ("phase/REFACTOR", "no_progress", 5, 0),
    ("phase/REFACTOR", "same_error", 5, 0),
    ("phase/DOCUMENT", "no_progress", 3, 0),
    ("phase/DOCUMENT", "same_error", 5, 0),
    ("tool/hook_recursion/h", "runs", 5, 10),
    ("tool/tool_failure/Bash", "failures", 3, 5),
    ("tool/sequential_tools/Bash", "calls", 10, 1),
    ("tool/agent_spawn/s", "spawns", 5, 10),
    ("tool/external_api/s", "calls", 10, 60),
    ("tool/external_api/s", "session_calls", 50, 0),
    ("tool/agents/s", "running", 5, 0),
    ("tool/agents/s", "started", 10, 0),
    ("tool/agents/s", "pause", 1, 10),
    ("tool/api_cost/s", "spend", 5.0, 0),
    ("attempt/S-1/t", "failures", 3, 0),
    ("attempt/S-1", "failures", 7, 0),
]


@pytest.mark.parametrize(("circuit", "meter", "trip", "span"), NUMBERS)
def test_the_default_policies_carry_the_seeds_numbers(circuit: str, meter: str, trip: float, span: float) -> None:
    """The limit and the window of every meter are those that the seed writes."""
    (found,) = [candidate for candidate in RULES.policy(circuit).meters if candidate.name == meter]
    assert (found.trip, found.span) == (trip, span)


LADDERS = [
    ("hook_recursion", (5, 10, 30, 60, 300)),
    ("tool_failure", (10, 20, 60, 120, 600)),
    ("sequential_tools", (5, 10, 30, 60, 300)),
    ("agent_spawn", (10, 20, 60, 120, 600)),
    ("external_api", (30, 60, 180, 360, 1800)),
]


@pytest.mark.parametrize(("breaker", "ladder"), LADDERS)
def test_the_tool_ladders_scale_with_their_base(breaker: str, ladder: tuple[int, ...]) -> None:
    """5, 10, 30, 60, 300 seconds for a base of 5; twice that for 10, six times for 30."""
    assert RULES.policy(f"tool/{breaker}/x").cooldown == ladder
