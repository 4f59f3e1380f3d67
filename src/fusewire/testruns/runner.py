"""The record that describes one test runner; each has its own module, and `runners.py` lists them."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.testruns.cases import Cases
    from fusewire.testruns.lines import Lines
    from fusewire.testruns.run import Run


#: What makes most runners name the tests that passed.
NAMING_HINT = "add -v, or --junit"


@dataclass(frozen=True, slots=True)
class TestRunner:
    """How the output of one test runner is read."""

    __test__ = False  # pytest must not collect it

    #: the name that a TestRun of this runner has
    name: str
    #: a word that every summary has, so that texts without it cost nothing
    marker: str
    #: the counts of the last run in a plain text
    read_counts: Callable[[str], Run | None]
    #: how each test of that run ended
    read_cases: Callable[[Lines, Run], Cases | None]
    #: what makes the runner name the tests that passed
    naming_hint: str = NAMING_HINT
