"""JUnit XML as cases: names and outcomes are exact there, also those of tests that passed or were skipped."""

from __future__ import annotations

import re

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SPOILED, Case, Cases
from fusewire.testruns.infrastructure import BUILD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.junit import JUnitCase
    from fusewire.testruns.run import TestRun

_PLACE = re.compile(r"[./\\]|::")
_TITLE = re.compile(r"::| > | \u203a |/")
#: How node words the end of a test whose hooks failed.
_CANCELLED = "test did not finish before its parent"
#: How pytest words what broke around a test.
_AROUND = re.compile(r"failed on (setup|teardown) with ['\"](.*?)['\"]?$", re.DOTALL)


def junit_cases(tests: TestRun, cases: list[JUnitCase]) -> Cases:
    """A test that passed and broke its teardown stands there twice."""
    return Cases(tests, tuple(_case(case) for case in cases), verbose=len(cases) >= tests.total)


def _case(case: JUnitCase) -> Case:
    base, bracket, parameters = case.name.partition("[")
    titles = _TITLE.split(base)
    titles[-1] += bracket + parameters
    place = [part for part in _PLACE.split(case.place) if part]
    name = f"{case.place}::{case.name}" if case.place else case.name
    outcome, said = case.outcome, case.message
    kind, suite = "", False
    if outcome == BROKEN:
        around = _AROUND.match(case.message)
        if around:
            outcome, said = BROKEN if around[1] == "setup" else SPOILED, around[2]
        else:
            kind, suite, said = BUILD, True, _last_error(case.text) or case.message
    elif outcome == FAILED and case.message.startswith(_CANCELLED):
        outcome, said = BROKEN, case.message
    elif outcome != PASSED:
        said = case.message or case.text.strip().split("\n")[0]
    # Folders and the module, up to the first class.
    folders = next((index for index, part in enumerate(place) if part[0].isupper()), len(place))
    said = said.split("\n")[0]
    return Case(name, (*place, *titles), outcome, folders, said=said, text=case.text, kind=kind, suite=suite)


def _last_error(text: str) -> str:
    """The line that pytest marks with E in the text of a module that could not be collected."""
    errors = [line[1:].strip() for line in text.split("\n") if line.startswith("E  ")]
    return next((line for line in reversed(errors) if line), "")
