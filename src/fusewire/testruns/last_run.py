"""The last run of a test runner in a text, whichever runner it was."""

from __future__ import annotations

from fusewire.testruns.counts_compiled import cargo_run, go_json_run, go_run
from fusewire.testruns.counts_jest import jest_run, mocha_run, vitest_run
from fusewire.testruns.counts_node import node_run, tap_run
from fusewire.testruns.counts_python import pytest_run, unittest_run
from fusewire.testruns.junit import read_junit
from fusewire.testruns.masks import plain_text
from fusewire.testruns.quotes import without_quotes
from fusewire.testruns.run import TestRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.run import Run

__all__ = ["last_run", "read_junit", "read_tests"]

#: A word that the summary of each runner has, so that texts without it cost nothing.
_RUNNERS = (
    (" in ", pytest_run),
    ("\nRan ", unittest_run),
    ("Tests: ", jest_run),
    ("Tests  ", vitest_run),
    (" passing (", mocha_run),
    ("1..", tap_run),
    ("\u2139 tests ", node_run),
    ("\t", go_run),
    ('"Action":', go_json_run),
    ("test result: ", cargo_run),
)


def last_run(text: str) -> Run | None:
    """The run that ends last; the text is plain, and without quotations."""
    runs = [run for word, read in _RUNNERS if word in text and (run := read(text)) is not None]
    return max(runs, key=lambda run: run.end, default=None)


def read_tests(text: str) -> TestRun | None:
    """The last run of a test runner in a text; quoted ones (in a Markdown fence) are none."""
    run = last_run(without_quotes(plain_text(text)))
    return run.tests if run else None
