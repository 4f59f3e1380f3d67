"""What `node --test` and other TAP producers print about single tests."""

from __future__ import annotations

import re

from fusewire.testruns.cases import BROKEN, SPOILED, Case, Cases
from fusewire.testruns.counts_node import spec_tests, tap_tests
from fusewire.testruns.infrastructure import BUILD, ENVIRONMENT, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.counts_node import NodeTest
    from fusewire.testruns.lines import Lines
    from fusewire.testruns.run import Run

#: How far above its result a file says why it could not be loaded; in TAP as a comment.
_ABOVE = 60
_LOADING = re.compile(r"(?:# )?((?:\w*Error)(?: \[\w+\])?: .*)")


def node_cases(lines: Lines, run: Run) -> Cases:
    """Every test has a result, also those that passed or were left out."""
    found = tap_tests(lines.plain) if run.tests.runner == "tap" else spec_tests(lines.plain)
    tests = found.tests if found else []
    hooks = {test.titles: test for test in tests if test.hook}
    stopped = {test.titles[:depth] for test in tests if test.cancelled for depth in range(len(test.titles))}
    cases: list[Case] = []
    previous = 0
    for test in tests:
        cases.append(_case(lines, test, hooks, stopped, previous))
        previous = test.end
    return Cases(run.tests, tuple(cases), verbose=True)


def _case(
    lines: Lines,
    test: NodeTest,
    hooks: dict[tuple[str, ...], NodeTest],
    stopped: set[tuple[str, ...]],
    previous: int,
) -> Case:
    """`stopped` are the suites of which tests were cancelled, `previous` is where the result above ends."""
    outcome, said, kind, suite = test.outcome, test.said, "", False
    line = test.line
    if test.cancelled:
        outcome = BROKEN
        # The hook of a suite around it says why.
        around = [test.titles[:depth] for depth in range(len(test.titles))]
        hook = next((hooks[suite] for suite in around if suite in hooks), None)
        said, line = (hook.said, hook.line) if hook else (said, line)
        return Case(test.name, test.titles, outcome, 0, line, line + 1, (line, line + 1), said)
    if test.hook:
        outcome = BROKEN if test.titles in stopped else SPOILED
        suite = outcome == BROKEN
    elif test.file:
        loading = _why_not_loaded(lines, max(previous, test.begin - _ABOVE), test.begin)
        if loading:
            said, line, kind = loading
            return Case(
                test.name, test.titles, BROKEN, 0, line, line + 1, (line, line + 1), said, kind=kind, suite=True
            )
    return Case(
        test.name, test.titles, outcome, 0, test.begin, test.end, (line, line + 1), said, kind=kind, suite=suite
    )


def _why_not_loaded(lines: Lines, begin: int, end: int) -> tuple[str, int, str] | None:
    """An import or a syntax error that ended the file; any other end is the file's own no."""
    for index in range(begin, end):
        match = _LOADING.fullmatch(lines.plain[index])
        kind = kind_of(re.sub(r" \[\w+\]:", ":", match[1], count=1), []) if match else ""
        if match and kind in (BUILD, ENVIRONMENT):
            return match[1], index, kind
    return None
