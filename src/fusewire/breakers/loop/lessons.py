"""Learn from trips: what happened, why, what was tried, what helped. Kept for later runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.events import plain

if TYPE_CHECKING:
    from fusewire.breakers.loop.state import Lesson
    from fusewire.core.decision import Decision

#: Lessons that are kept, and those that an agent is given at once.
KEPT = 30
GIVEN = 3

_TEXT = 300


def after_trip(lessons: list[Lesson], decision: Decision, number: int, now: float) -> list[Lesson]:
    """With the lesson of one more trip; a probe that failed adds to the lesson of its trip."""
    unsolved = _unsolved(lessons, decision.circuit)
    if unsolved is not None and decision.reason.startswith("the probe failed"):
        return lessons
    cause = plain(next((fact for fact in decision.evidence if fact.startswith("last: ")), "")[6:], _TEXT)
    # The same trip again: the newer lesson replaces the older ones, and counts them.
    same = [one for one in lessons if one["circuit"] == decision.circuit and one["cause"] == cause]
    lesson: Lesson = {
        "at": now,
        "iteration": number,
        "circuit": decision.circuit,
        "pattern": plain(decision.reason, _TEXT),
        "cause": cause,
        "tried": [],
        "helped": None,
        "times": sum(one.get("times", 1) for one in same) + 1,
    }
    return [*(one for one in lessons if one not in same), lesson][-KEPT:]


def after_probe(lessons: list[Lesson], circuit: str, strategy: str, *, helped: bool) -> list[Lesson]:
    """With what came of a strategy that was tried."""
    unsolved = _unsolved(lessons, circuit)
    if unsolved is None:
        return lessons
    changed: Lesson = {**unsolved, "tried": [*unsolved["tried"], strategy][-8:], "helped": strategy if helped else None}
    return [changed if one is unsolved else one for one in lessons]


def show_lesson(lesson: Lesson) -> str:
    """One line for an agent or a person."""
    text = f"{lesson['circuit']}: {lesson['pattern']}"
    if lesson["cause"]:
        text += f" ({lesson['cause']})"
    if lesson["helped"]:
        return f"{text}. What helped: {lesson['helped']}"
    return f"{text}. Tried in vain: {'; '.join(lesson['tried'])}" if lesson["tried"] else text


def _unsolved(lessons: list[Lesson], circuit: str) -> Lesson | None:
    return next((one for one in reversed(lessons) if one["circuit"] == circuit and one["helped"] is None), None)
