"""Advice for the agent with its next prompt: why it is watched, what to try now, what was learned before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.breakers.loop.lessons import GIVEN, show_lesson
from fusewire.breakers.loop.overview import calls_limit
from fusewire.breakers.loop.state import RATE
from fusewire.core import meters
from fusewire.core.circuit import near
from fusewire.core.messages import within_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.breakers.loop.state import LoopRecord
    from fusewire.config.rules import Rules
    from fusewire.core.circuit import CircuitState

#: Which trip says most about what to do, where several circuits opened together.
_SAYS_MOST = ("circular", "test_fix", "same_error", "permission_denied", "no_progress", "output_decline", "score")


@dataclass(frozen=True)
class Advice:
    """Lines for the agent, often none."""

    lines: tuple[str, ...] = ()
    #: the recovery strategy among them
    strategy: str = ""

    def in_prompt(self, number: int, state: str) -> str:
        """As it stands below the person's prompt; empty if there is no advice."""
        if not self.lines:
            return ""
        head = f"Fusewire, the circuit breaker of this loop (iteration {number}, circuit {state}):"
        return f"\n\n---\n{within_limit([head], [f'- {line}' for line in self.lines], [])}\n"


def advice_for(
    rules: Rules,
    states: Mapping[str, CircuitState],
    held: tuple[str, ...],
    record: LoopRecord,
    calls_left: int,
    first: bool,
    now: float,
) -> Advice:
    """Recovery, step by step, for a probe; warnings before a trip; lessons at the start of a run."""
    strategy = ""
    lines: list[str] = list(record.notes)
    if held:
        recovery, strategy = _recovery(rules, states, held)
        lines += recovery
    else:
        lines += _warnings(rules, states, now)
    limit = calls_limit(rules)
    if calls_left <= 0.2 * limit:
        lines.append(f"{calls_left} of {limit} calls are left in this hour: do what matters most first.")
    if first or held:
        known = [lesson for lesson in record.lessons if lesson["helped"] or lesson["tried"] or not held]
        lines += [f"Learned before: {show_lesson(lesson)}." for lesson in known[-GIVEN:]]
    return Advice(tuple(lines), strategy)


def _recovery(rules: Rules, states: Mapping[str, CircuitState], held: tuple[str, ...]) -> tuple[list[str], str]:
    circuit = min(held, key=rank)
    state, steps = states[circuit], rules.policy(circuit).next
    step = min(max(state.in_a_row, 1), len(steps))
    strategy = steps[step - 1]
    lines = [f"The circuit {circuit} opened: {state.reason}. This iteration is the one probe; it must make progress."]
    if state.evidence and state.evidence not in state.reason:
        lines.append(f"Last seen: {state.evidence}")
    lines.append(f"Strategy {step} of {len(steps)}: {strategy}.")
    return lines, strategy


def rank(circuit: str) -> int:
    """How little this circuit says about what to do."""
    name = circuit.partition("/")[2]
    return _SAYS_MOST.index(name) if name in _SAYS_MOST else len(_SAYS_MOST)


def _warnings(rules: Rules, states: Mapping[str, CircuitState], now: float) -> list[str]:
    """Name the circuits that one more of the same opens; there are none while the agent makes progress."""
    found = []
    for circuit, state in states.items():
        policy = rules.policy(circuit)
        if circuit == RATE or not near(policy, state, now):
            continue
        for meter in policy.meters:
            level = meters.level(meter, state.meters.get(meter.name, []), now)
            if level and meter.trip_by == "at" and level >= meter.trip - 1 and meter.family == "streak":
                found.append(f"Warning: {int(level)} of {int(meter.trip)} on {circuit}. Consider: {policy.next[0]}.")
    return found
