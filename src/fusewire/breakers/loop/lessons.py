"""Learn from trips: what happened, why, what was tried, what helped. Kept for later runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.events import plain
from fusewire.testruns.masks import normalised

if TYPE_CHECKING:
    from fusewire.breakers.loop.state import Lesson
    from fusewire.core.decision import Decision

#: Lessons that are kept, and those that an agent is given at once.
KEPT = 30
GIVEN = 3

_TEXT = 300


def after_trip(lessons: list[Lesson], decision: Decision, number: int, now: float) -> list[Lesson]:
    """With the lesson of one more trip; a probe that failed adds to the lesson of its trip."""
    if decision.reason.startswith("the probe failed") and _newest(lessons, decision.circuit) is not None:
        return lessons
    cause = plain(next((fact for fact in decision.evidence if fact.startswith("last: ")), "")[6:], _TEXT)
    # The same trip again: the newer lesson replaces the older ones, counts them, and keeps what was tried and helped.
    known = normalised(cause)
    same = [one for one in lessons if one["circuit"] == decision.circuit and normalised(one["cause"]) == known]
    lesson: Lesson = {
        "at": now,
        "iteration": number,
        "circuit": decision.circuit,
        "pattern": plain(decision.reason, _TEXT),
        "cause": cause,
        "tried": same[-1]["tried"] if same else [],
        "helped": same[-1]["helped"] if same else None,
        "times": sum(one.get("times", 1) for one in same) + 1,
    }
    return [*(one for one in lessons if one not in same), lesson][-KEPT:]


def after_probe(lessons: list[Lesson], circuit: str, strategy: str, *, helped: bool) -> list[Lesson]:
    """With what came of a strategy that was tried."""
    lesson = _newest(lessons, circuit)
    if lesson is None:
        return lessons
    tried = [*(one for one in lesson["tried"] if one != strategy), strategy]
    before = lesson["helped"] if lesson["helped"] != strategy else None  # what does not help any more does not
    changed: Lesson = {**lesson, "tried": tried[-8:], "helped": strategy if helped else before}
    return [changed if one is lesson else one for one in lessons]


def show_lesson(lesson: Lesson) -> str:
    """One line for an agent or a person."""
    text = f"{lesson['circuit']}: {lesson['pattern']}"
    if lesson["cause"]:
        text += f" ({lesson['cause']})"
    if lesson["helped"]:
        return f"{text}. What helped: {lesson['helped']}"
    return f"{text}. Tried in vain: {'; '.join(lesson['tried'])}" if lesson["tried"] else text


def _newest(lessons: list[Lesson], circuit: str) -> Lesson | None:
    return next((one for one in reversed(lessons) if one["circuit"] == circuit), None)
