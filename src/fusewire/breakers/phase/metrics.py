"""What a phase is judged by: metrics as people write them, and those that a test run gives."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from fusewire.breakers.phase.detect import METRICS, allowed_metrics, with_derived
from fusewire.testruns.errors import problems_in
from fusewire.testruns.junit import read_junit_run
from fusewire.testruns.run import problems_of
from fusewire.testruns.runners import last_run
from fusewire.testruns.text import plain_text, without_quotes
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.breakers.phase.detect import Value, Values
    from fusewire.testruns.run import Problem, TestRun

#: More than any project has.
_LARGEST = 10**9

_ALLOWED = {
    "count": f"a whole number from 0 to {_LARGEST}",
    "number": f"a number from 0 to {_LARGEST}",
    "percent": "a number from 0 to 100",
    "flag": "true or false",
}

_COUNT = re.compile(r"[0-9]{1,10}")
_NUMBER = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,10})?")


def parse_metrics(phase: str, pairs: Iterable[tuple[str, str]]) -> Values:
    """The metrics of names and values as texts; FusewireError says what is wrong with one, and what is allowed."""
    found: Values = {}
    kinds = allowed_metrics(phase)
    for name, text in pairs:
        if name not in kinds:
            raise FusewireError(f"{phase} has no metric {name!r}; allowed: {', '.join(kinds)}")
        if name in found:
            raise FusewireError(f"the metric {name} is given twice")
        found[name] = value_of(name, kinds[name], text)
    return found


def value_of(name: str, kind: str, text: str) -> Value:
    """The value that a text stands for."""
    value: Value | None = None
    if kind == "flag":
        value = {"true": True, "false": False}.get(text.lower())
    elif (_COUNT if kind == "count" else _NUMBER).fullmatch(text):
        value = plain_number(float(text))
        if value > (100 if kind == "percent" else _LARGEST):
            value = None
    if value is None:
        raise FusewireError(f"{name}={text!r} is refused; allowed: {_ALLOWED[kind]}")
    return value


def plain_number(value: float) -> float:
    """3 and not 3.0, as people wrote it."""
    return int(value) if math.isfinite(value) and value == int(value) else value


def with_run(phase: str, metrics: Values, run: TestRun | None, option: str) -> Values:
    """The metrics with those of a test run; what was measured is not also claimed."""
    if run is not None:
        measured: Values = {
            "tests_passing": run.passed,
            "tests_failing": run.failed + run.broken,
            "tests_skipped": run.skipped,
            "tests_total": run.total,
        }
        twice = next((name for name in measured if name in metrics), None)
        if twice is not None:
            raise FusewireError(f"the metric {twice} is given twice: by --metric and by {option}")
        if phase == "RED":
            measured["tests_generated"] = run.total
        metrics = {**measured, **metrics}
    try:
        return with_derived(metrics)
    except ValueError as error:
        raise FusewireError(str(error)) from None


def is_measured(phase: str, metrics: Values) -> bool:
    """Whether anything is known that the phase's progress is judged by."""
    return any(name in metrics for name in METRICS[phase])


def require_comparable(phase: str, metrics: Values) -> None:
    """Fewer failing tests mean something at the same total only."""
    if phase == "GREEN" and "tests_failing" in metrics and "tests_passing" not in metrics:
        raise FusewireError("tests_failing alone is refused; allowed: with tests_passing or tests_total beside it")


def junit_run(content: bytes, shown: str) -> tuple[TestRun, list[Problem]]:
    """The test run in a JUnit XML file, and what failed in it."""
    run = read_junit_run(content)
    if run is None:
        raise FusewireError(f"{shown}: no JUnit XML; allowed: a whole file of at most 50 MB without a document type")
    return run.tests, problems_of(run)


def output_run(content: bytes, shown: str) -> tuple[TestRun | None, list[Problem]]:
    """The last test run in what a test runner printed, and what failed in it; without a run, errors of a build."""
    text = content.decode("utf-8", "replace")
    run = last_run(without_quotes(plain_text(text)))
    problems = problems_of(run) if run else problems_in(text)
    if run is None and not problems:
        raise FusewireError(
            f"{shown}: no test run in it; allowed: the output of pytest, unittest, jest, vitest, mocha, node, TAP,"
            " go test or cargo test"
        )
    return run.tests if run else None, problems
