"""The record that describes one test runner; each has its own module, and `runners.py` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fusewire.testruns.cases import Cases
from fusewire.testruns.infrastructure import Cause, StartError
from fusewire.testruns.run import RunSummary
from fusewire.testruns.text import OutputLines

#: What makes most runners name the tests that passed.
NAMING_HINT = "add -v, or --junit"


def _is_no_refusal(said: str, section: list[str]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TestRunner:
    """How the output of one test runner is read."""

    __test__ = False  # pytest must not collect it

    #: the name that a TestRun of this runner has
    name: str
    #: a word that every summary has, so that texts without it cost nothing
    marker: str
    #: the counts of the last run in a plain text
    read_counts: Callable[[str], RunSummary | None]
    #: how each test of that run ended
    read_cases: Callable[[OutputLines, RunSummary], Cases | None]
    #: what makes the runner name the tests that passed
    naming_hint: str = NAMING_HINT
    #: the first line of a run, where there is one
    first_line: str = ""
    #: lines which say that there was nothing to run
    idle_lines: tuple[str, ...] = ()
    #: lines which say why tests could not run, by cause
    start_errors: Mapping[Cause, tuple[str, ...]] = field(default_factory=dict)
    #: an error of its own that takes more than one line to recognise
    find_start_error: Callable[[OutputLines], StartError | None] | None = None
    #: Python packages whose frames are the runner's own
    packages: tuple[str, ...] = ()
    #: whether the error of a failing test, with the lines about that test, is a refusal of the filesystem
    is_refusal: Callable[[str, list[str]], bool] = _is_no_refusal
