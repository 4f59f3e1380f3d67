"""The loop at one moment, for people and programs: state, risk, calls, time left, score, trend, metrics, lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.loop.detect import CIRCUITS
from fusewire.breakers.loop.lessons import in_words
from fusewire.breakers.loop.report import metrics
from fusewire.breakers.loop.state import RATE, LoopRecord
from fusewire.breakers.loop.trends import sparkline, trend
from fusewire.core import meters
from fusewire.core.circuit import near
from fusewire.core.decision import PUBLIC_STATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.config.rules import Rules
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.engine.breaker import Breaker


def overview(breaker: Breaker) -> dict[str, Any]:
    """Nothing is written."""
    rules, now = breaker.rules, breaker.engine.clock()
    states = {circuit: breaker.engine.view(circuit)[1] for circuit in (*CIRCUITS, RATE)}
    record = LoopRecord.recalled(breaker.store)
    waits = [state.until - now for state in states.values() if state.phase == "open" and state.until is not None]
    scores = [entry["score"] for entry in record.history if entry["kind"] != "neutral"]
    left, limit = calls_left(rules, states, now), calls_limit(rules)
    return {
        "state": strictest(states),
        "iterations": record.totals.get("iterations", 0),
        "running": len(record.running),
        "risk": risk_of(rules, states, now),
        "score": sum(scores[-3:]),
        "trend": trend(scores),
        "scores": scores,
        "sparkline": sparkline(scores),
        "calls_left": left,
        "calls_limit": limit,
        "retry_after": round(max(waits), 3) if waits else None,
        "cost": record.totals.get("cost", 0),
        "metrics": metrics(record.history, record.totals, left, limit),
        "lessons": [{**lesson, "text": in_words(lesson)} for lesson in record.lessons],
        "last": record.history[-1] if record.history else None,
    }


def strictest(states: Mapping[str, CircuitState]) -> str:
    """OPEN if any circuit is, else HALF_OPEN if any is, else CLOSED."""
    found = {PUBLIC_STATE[states[circuit].phase] for circuit in CIRCUITS}
    return next((state for state in ("OPEN", "HALF_OPEN") if state in found), "CLOSED")


def calls_limit(rules: Rules) -> int:
    (meter,) = rules.policy(RATE).meters
    return int(meter.trip)


def calls_left(rules: Rules, states: Mapping[str, CircuitState], now: float) -> int:
    (meter,) = rules.policy(RATE).meters
    return max(0, int(meter.trip - meters.level(meter, states[RATE].meters.get(meter.name, []), now)))


def risk_of(rules: Rules, states: Mapping[str, CircuitState], now: float) -> str:
    """HIGH if a circuit is not closed or may open with one more; MEDIUM half way there, or just recovered."""
    highest = "LOW"
    for circuit in CIRCUITS:
        policy, state = rules.policy(circuit), states[circuit]
        if state.phase != "closed" or near(policy, state, now):
            return "HIGH"
        if state.vigil or _half_way(policy, state, now):
            highest = "MEDIUM"
    return highest


def _half_way(policy: Policy, state: CircuitState, now: float) -> bool:
    for meter in policy.meters:
        memory = state.meters.get(meter.name, [])
        level = meters.level(meter, memory, now)
        if meter.trip_by == "below":
            if memory and level < meter.trip:
                return True
        elif level and level >= meter.trip / 2:
            return True
    return False
