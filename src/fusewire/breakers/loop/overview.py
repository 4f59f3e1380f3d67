"""The loop at one moment, for people and programs: state, risk, calls, time left, score, trend, metrics, lessons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fusewire.breakers.loop.detect import CIRCUITS
from fusewire.breakers.loop.lessons import show_lesson
from fusewire.breakers.loop.questions import question_of
from fusewire.breakers.loop.report import LoopMetric, metrics, since_recovery, sparkline, trend
from fusewire.breakers.loop.state import RATE, HistoryEntry, Lesson, LoopRecord, Risk
from fusewire.core import meters
from fusewire.core.circuit import near
from fusewire.core.decision import PUBLIC_STATE
from fusewire.util.json_types import Count, Seconds, State, Usd, about

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.config.rules import Rules
    from fusewire.core.circuit import CircuitState, Policy
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.engine import Engine


class ShownLesson(Lesson):
    """A lesson, and the line that people read."""

    text: str


@dataclass(frozen=True)
class LoopFacts:
    """The loop at one moment, without its last iteration."""

    state: State
    iterations: Count
    #: iterations that have begun and not ended
    running: Count
    risk: Risk
    score: Annotated[int, about("of the last three iterations")]
    trend: str
    scores: list[int]
    sparkline: str
    calls_left: Count
    calls_limit: Count
    calls_free_in: Annotated[Seconds | None, about("until the next call, where the hour is full")]
    retry_after: Seconds | None
    #: what a person must answer, where the last iteration asked instead of working
    question: str | None
    cost: Usd
    metrics: list[LoopMetric]
    lessons: list[ShownLesson]


@dataclass(frozen=True)
class LoopOverview(LoopFacts):
    """The loop as `status --json` has it."""

    last: HistoryEntry | None


def overview(breaker: Breaker) -> LoopOverview:
    """Collect it; nothing is written."""
    rules, now = breaker.rules, breaker.engine.clock()
    states = {circuit: breaker.engine.view(circuit)[1] for circuit in (*CIRCUITS, RATE)}
    record = LoopRecord.recalled(breaker.store)
    waits = [state.until - now for state in states.values() if state.phase == "open" and state.until is not None]
    judged = [entry for entry in record.history if entry["kind"] != "neutral"]
    scores = [entry["score"] for entry in judged]
    left, limit = calls_left(rules, states, now), calls_limit(rules)
    room = _room_at(rules, states[RATE], now)
    return LoopOverview(
        state=strictest(states),
        iterations=record.totals["iterations"],
        running=len(record.running),
        risk=risk_of(rules, states, now),
        score=sum(entry["score"] for entry in since_recovery(judged)[-3:]),
        trend=trend(scores),
        scores=scores,
        sparkline=sparkline(scores),
        calls_left=left,
        calls_limit=limit,
        calls_free_in=None if room is None else round(room - now, 3),
        retry_after=round(max(waits), 3) if waits else None,
        question=(record.history and question_of(record.history[-1])) or None,
        cost=record.totals["cost"],
        metrics=metrics(record.history, record.totals, left, limit),
        lessons=[{**lesson, "text": show_lesson(lesson)} for lesson in record.lessons],
        last=record.history[-1] if record.history else None,
    )


def strictest(states: Mapping[str, CircuitState]) -> State:
    """OPEN if any circuit is, else HALF_OPEN if any is, else CLOSED."""
    found = {PUBLIC_STATE[states[circuit].phase] for circuit in CIRCUITS if circuit in states}
    return "OPEN" if "OPEN" in found else "HALF_OPEN" if "HALF_OPEN" in found else "CLOSED"


def _room_at(rules: Rules, state: CircuitState, now: float) -> float | None:
    """When the next call may be made, where none may be made now."""
    full = [
        meter for meter in rules.policy(RATE).meters if meters.reached(meter, state.meters.get(meter.name, []), now)
    ]
    return max((meters.free_at(meter, state.meters[meter.name], now) or now for meter in full), default=None)


def calls_limit(rules: Rules) -> int:
    meter, *_ = rules.policy(RATE).meters
    return int(meter.trip)


def calls_left(rules: Rules, states: Mapping[str, CircuitState], now: float) -> int:
    meter, *_ = rules.policy(RATE).meters
    return max(0, int(meter.trip - meters.level(meter, states[RATE].meters.get(meter.name, []), now)))


def starts_in_hour(engine: Engine) -> tuple[int, int, float | None]:
    """Starts of the agent within the hour, how many there may be, and when the last one was."""
    policy, state = engine.view(RATE)
    calls, *_ = policy.meters
    times = meters.inside(calls, state.meters.get(calls.name, []), engine.clock())
    return len(times), int(calls.trip), max(times, default=None)


def risk_of(rules: Rules, states: Mapping[str, CircuitState], now: float) -> Risk:
    """HIGH if a circuit is not closed or may open with one more; MEDIUM half way there, or just recovered."""
    highest: Risk = "LOW"
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
