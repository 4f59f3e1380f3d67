"""The test runners that are known, and what the last run in an output says, whichever runner it was."""

from __future__ import annotations

from fusewire.testruns.cargo import CARGO
from fusewire.testruns.cases import Cases
from fusewire.testruns.go import GO, GO_JSON
from fusewire.testruns.jest import JEST
from fusewire.testruns.junit import is_refusal, read_junit_cases
from fusewire.testruns.mocha import MOCHA
from fusewire.testruns.node import NODE
from fusewire.testruns.pytest import PYTEST
from fusewire.testruns.run import RunSummary, TestRun
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.tap import TAP
from fusewire.testruns.text import OutputLines, plain_text, without_quotes
from fusewire.testruns.unittest import UNITTEST
from fusewire.testruns.vitest import VITEST

#: Of two runs that end at the same place, the one of the earlier runner counts.
RUNNERS: tuple[TestRunner, ...] = (PYTEST, UNITTEST, JEST, VITEST, MOCHA, TAP, NODE, GO, GO_JSON, CARGO)
_BY_NAME = {runner.name: runner for runner in RUNNERS}


def runner_named(name: str) -> TestRunner | None:
    """The runner of a TestRun; None if it was read from JUnit XML."""
    return _BY_NAME.get(name)


def last_run(text: str) -> RunSummary | None:
    """Read the run that ends last; the text is plain, and without quotations."""
    runs = [run for runner in RUNNERS if runner.marker in text and (run := runner.read_counts(text)) is not None]
    return max(runs, key=lambda run: run.end, default=None)


def read_tests(text: str) -> TestRun | None:
    """Count the tests of the last run in a text; quoted runs (in a Markdown fence) are left out."""
    run = last_run(without_quotes(plain_text(text)))
    return run.tests if run else None


def read_cases(lines: OutputLines, junit: bytes | None) -> Cases | None:
    """Read how each test ended: from JUnit XML, which is exact, or else from the run that ends last in the output."""
    found = read_junit_cases(junit) if junit else None
    if found and found.tests.total:
        return found
    run = last_run(lines.text)
    return _BY_NAME[run.tests.runner].read_cases(lines, run) if run else None


def refused_by_filesystem(runner: str, said: str, section: list[str]) -> bool:
    """Whether a test that ran failed by a refusal of the filesystem; `section` is what the runner prints about it."""
    known = runner_named(runner)
    return known.is_refusal(said, section) if known else is_refusal(said, section)
