"""Judge the four phases of test-driven work: what is measured in each, and what is progress there.

Progress is compared with *marks*: the best value so far, not the last one. So 3, 2, 3, 2 is no progress, however
often it goes up. Deleting or skipping tests leaves fewer failing ones, but of a smaller total: that is none either,
and what is left of the tests completes nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Value = float | bool
    Values = dict[str, Value]

#: In the order in which one cycle of work goes through them.
PHASES = ("RED", "GREEN", "REFACTOR", "DOCUMENT")

#: What one of them alone says whether there is progress; `count`, `number` and `flag` are what a value can be.
METRICS: dict[str, dict[str, str]] = {
    "RED": {"tests_generated": "count", "criteria_covered": "count"},
    "GREEN": {"tests_passing": "count", "tests_failing": "count"},
    "REFACTOR": {
        "pattern_applied": "flag",
        "patterns_applied": "count",
        "complexity_score": "number",
        "duplication_removed": "flag",
    },
    "DOCUMENT": {"docs_generated": "count", "diagrams_valid": "count"},
}

#: What every phase takes beside them: shown, and for the total of tests.
SHARED = {
    "tests_passing": "count",
    "tests_failing": "count",
    "tests_total": "count",
    "tests_skipped": "count",
    "files_created": "count",
    "files_modified": "count",
    "files_deleted": "count",
    "progress_percent": "percent",
}

#: The one metric of each phase that its state file and its blocks show.
SHOWN = {
    "RED": "tests_generated",
    "GREEN": "tests_passing",
    "REFACTOR": "patterns_applied",
    "DOCUMENT": "docs_generated",
}

#: More is progress. Counts start at 0.
_GROWING = {
    "RED": ("tests_generated", "criteria_covered"),
    "GREEN": ("tests_passing",),
    "REFACTOR": ("patterns_applied",),
    "DOCUMENT": ("docs_generated", "diagrams_valid"),
}

#: True is progress.
_DONE = ("pattern_applied", "duplication_removed")

#: Phases that are complete when their tests pass.
BY_TESTS = ("GREEN", "REFACTOR")

#: Their mark that is no metric: the most tests that have run. Failing ones are compared at that total.
TESTS_RUN = "tests_run"


class Judged:
    """What an iteration brought: the progress in words (empty if none), and the marks after it."""

    __slots__ = ("marks", "reasons")

    def __init__(self, marks: dict[str, float], reasons: list[str]) -> None:
        self.marks, self.reasons = marks, reasons

    @property
    def progress(self) -> bool:
        return bool(self.reasons)


def circuit_of(phase: str) -> str:
    return f"phase/{phase}"


def allowed_metrics(phase: str) -> dict[str, str]:
    """Every metric that a phase takes, its own first."""
    return {**METRICS[phase], **SHARED}


def first_marks(phase: str) -> dict[str, float]:
    return {SHOWN[phase]: 0}


def with_derived(metrics: Values) -> Values:
    """Passing or failing tests from the total, where only one of them was given; ValueError if they do not add up."""
    found = dict(metrics)
    total, skipped = found.get("tests_total"), found.get("tests_skipped", 0)
    if total is None:
        return found
    known = [found[name] for name in ("tests_passing", "tests_failing") if name in found]
    if sum(known) > total or skipped > total:
        given = ", ".join(f"{name} {found[name]}" for name in SHARED if name.startswith("tests_") and name in found)
        raise ValueError(f"these tests do not add up: {given}")
    if len(known) == 1:
        missing = "tests_failing" if "tests_passing" in found else "tests_passing"
        found[missing] = max(0, total - skipped - known[0])
    return found


def tests_run(metrics: Values) -> float | None:
    """The total that failing tests are compared at; a skipped test is none. None if it is not known."""
    if "tests_total" in metrics:
        return metrics["tests_total"] - metrics.get("tests_skipped", 0)
    if "tests_passing" in metrics and "tests_failing" in metrics:
        return metrics["tests_passing"] + metrics["tests_failing"]
    return None


def judge(phase: str, marks: dict[str, float], metrics: Values) -> Judged:
    """Whether these metrics are progress beyond the marks, by the rules of the phase."""
    after, reasons = dict(marks), []
    for name in _GROWING[phase]:
        last = after.get(name, 0)
        if name in metrics and metrics[name] > last:
            reasons.append(_moved(name, last, metrics[name]))
            after[name] = metrics[name]
    if phase == "GREEN":
        _judge_failing(after, reasons, metrics)
    if phase == "REFACTOR":
        _judge_refactoring(after, reasons, metrics)
    total = tests_run(metrics)
    if phase in BY_TESTS and total is not None:
        after[TESTS_RUN] = max(total, after.get(TESTS_RUN, 0))
    return Judged(after, reasons)


def _judge_failing(marks: dict[str, float], reasons: list[str], metrics: Values) -> None:
    """Fewer failing tests at the same total; the first count is what later ones are compared with."""
    failing, total, most = metrics.get("tests_failing"), tests_run(metrics), marks.get(TESTS_RUN)
    last = None if most is None else marks.get("tests_failing")
    if failing is not None and last is not None and failing < last and total == most:
        reasons.append(_moved("tests_failing", last, failing))
    if not reasons and last is not None:
        return
    if failing is None or total is None:  # unknown how many fail now
        marks.pop("tests_failing", None)
    elif most is None or total >= most:  # the failing ones of a part of the tests would be no mark for all of them
        marks["tests_failing"] = failing


def _judge_refactoring(marks: dict[str, float], reasons: list[str], metrics: Values) -> None:
    score, last = metrics.get("complexity_score"), marks.get("complexity_score")
    if score is not None and (last is None or score < last):
        if last is not None:
            reasons.append(_moved("complexity_score", last, score))
        marks["complexity_score"] = score
    for name in _DONE:
        if metrics.get(name):
            reasons.append(name)
    if metrics.get("pattern_applied") and "patterns_applied" not in metrics:
        marks["patterns_applied"] = marks.get("patterns_applied", 0) + 1


def _moved(name: str, last: float, value: float) -> str:
    return f"{name} {last} -> {value}"


def gate(phase: str, marks: dict[str, float], metrics: Values, accepted: int = 0) -> str:
    """What is missing before a phase can be complete, in words; empty if nothing is.

    `accepted` are failing tests that a person knows of, because a phase was skipped with them.
    """
    if phase in BY_TESTS:
        return _gate_by_tests(marks, metrics, accepted)
    shown = SHOWN[phase]
    return "" if marks.get(shown, 0) > 0 else f"{shown} is 0"


def _gate_by_tests(marks: dict[str, float], metrics: Values, accepted: int) -> str:
    passing, failing, total = metrics.get("tests_passing"), metrics.get("tests_failing"), tests_run(metrics)
    if passing is None or failing is None or total is None:
        return "it is not known how many tests pass and fail"
    if failing > accepted:
        known = f", and only {accepted} of these are known failures" if accepted else ""
        return f"{failing} of the tests fail{known}"
    if not passing:
        return "no test passes"
    most = marks.get(TESTS_RUN, 0)
    return f"fewer tests ran than before ({total}, were {most})" if total < most else ""
