"""Read the output of vitest: the counts of a run, and how each test ended."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SKIPPED, CaseResult, Cases
from fusewire.testruns.infrastructure import MISUSED, refused_in_javascript
from fusewire.testruns.javascript import count_by_word, counted_by_word, next_lines, path_parts
from fusewire.testruns.run import RunSummary, last_summary
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines

_VITEST_END = re.compile(r"^ +Tests  (?:(\d.*) \(\d+\)|no tests)$", re.MULTILINE)
_VITEST_FAILURE = re.compile(r"^ FAIL  (\S.{0,500}?)(?: \[ .* \])?$", re.MULTILINE)
_VITEST_SUITES = "\u23af Failed Suites "
_VITEST_TESTS = "\u23af Failed Tests "


def vitest_run(text: str) -> RunSummary | None:
    last = last_summary(_VITEST_END, text)
    if last is None:
        return None
    summary, begin = last
    numbers = count_by_word(summary[1] or "")
    failures: dict[str, str] = {}
    broken: dict[str, str] = {}
    suites = text.find(_VITEST_SUITES, begin, summary.start())
    tests = text.find(_VITEST_TESTS, suites, summary.start()) if suites >= 0 else begin
    tests = summary.start() if tests < 0 else tests
    for match in _VITEST_FAILURE.finditer(text, begin, summary.start()):
        # Several tests that failed alike are listed above one message.
        # A suite whose hook failed has a name like a test, and stands before the tests.
        in_test = " > " in match[1] and match.start() > tests
        (failures if in_test else broken)[match[1]] = next_lines(text, match.end(), 1, " FAIL  ")
    if not numbers and not broken:
        return None
    first = ": ".join(min(broken.items(), default=("", ""))).strip(": ")
    return counted_by_word("vitest", summary.end(), numbers, failures, first, len(broken))


# -- single tests -----------------------------------------------------------------------------------------------------

_VITEST_FAIL = re.compile(r" FAIL  (?:\|[^|]*\| )?(\S.*?)(?: \[ .* \])?")
_VITEST_TICK = re.compile(r" (\u2713|\u00d7|\u2193) (?:\|[^|]*\| )?(\S+ > .+?)(?: \[[^\]]*\])?(?: \d+ ?m?s)?")
#: Below a file in which something failed; without the names of suites.
_VITEST_SHORT = re.compile(r" {5,}(\u2713|\u2193) (.+?)(?: \d+ ?m?s)?")
_VITEST_FILE = re.compile(r" \u276f \S+ \(\d+ tests?\b.*\).*")
_VITEST_TICKS = {"\u2713": PASSED, "\u2193": SKIPPED}
_VITEST_PART_END = re.compile(r"\u23af{3,}\[\d+/\d+\]\u23af*")
_VITEST_GROUP = re.compile(r"\u23af+ Failed (Suites|Tests) \d+ \u23af+")
_VITEST_ERRORS = re.compile(r" +Errors  \d+ errors?")


def vitest_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """The parts below FAIL; several tests may stand above one message. `--reporter=verbose` names the others."""
    end = lines.number(run.end)
    found: list[CaseResult] = []
    waiting: list[tuple[int, str]] = []
    suites = in_file = False
    short: dict[str, set[str]] = {}
    for index in range(end):
        line = lines.plain[index]
        in_file = bool(_VITEST_FILE.fullmatch(line)) or (in_file and line.startswith("     "))
        if in_file and (match := _VITEST_SHORT.fullmatch(line)):
            short.setdefault(match[2], set()).add(_VITEST_TICKS[match[1]])
        elif match := _VITEST_GROUP.fullmatch(line):
            suites = match[1] == "Suites"
        elif line.startswith(" FAIL  ") and (match := _VITEST_FAIL.fullmatch(line)):
            waiting.append((index, match[1]))
        elif waiting and _VITEST_PART_END.fullmatch(line):
            found += _vitest_part(lines, waiting, index + 1, suites)
            waiting = []
        elif (match := _VITEST_TICK.fullmatch(line)) and (outcome := _VITEST_TICKS.get(match[1])):
            found.append(_vitest_case(match[2], outcome))
    found += _vitest_part(lines, waiting, end, suites)
    # Tests of one title in two suites, of which one was left out, cannot be told apart; what a suite that broke holds
    # is not skipped by anybody's will.
    known = {PASSED} if any(case.outcome == BROKEN for case in found) else {PASSED, SKIPPED}
    found += [
        CaseResult(title, (title,), outcome)
        for title, outcomes in short.items()
        for outcome in outcomes & known
        if len(outcomes) == 1
    ]
    unhandled = next((line.strip() for line in lines.plain[end : end + 3] if _VITEST_ERRORS.fullmatch(line)), "")
    # What -t leaves out is counted as skipped, and nothing says so.
    return Cases(run.tests, tuple(found), cut=unhandled, counts_filtered=True)


def _vitest_case(name: str, outcome: str) -> CaseResult:
    file, *titles = name.split(" > ")
    return CaseResult(name, (*path_parts(file), *titles), outcome, len(path_parts(file)))


def _vitest_part(lines: OutputLines, waiting: list[tuple[int, str]], end: int, suites: bool) -> list[CaseResult]:
    if not waiting:
        return []
    begin, last = waiting[0][0], waiting[-1][0]
    line = next((index for index in range(last + 1, end) if lines.plain[index].strip()), last)
    said = lines.plain[line].strip() if line > last else ""
    cases = []
    for _, name in waiting:
        case = replace(_vitest_case(name, FAILED), begin=begin, end=end, error=(line, line + 1), said=said)
        if " > " not in name:
            case = replace(case, outcome=BROKEN, kind="build", suite=True)
        elif suites:  # a hook failed, and its tests were not run
            case = replace(case, outcome=BROKEN, suite=True)
        cases.append(case)
    return cases


VITEST = TestRunner(
    "vitest",
    "Tests  ",
    vitest_run,
    vitest_cases,
    naming_hint="add --reporter=verbose, or --junit",
    idle_lines=(r"No test files found.*", r" +Tests  no tests"),
    start_errors={MISUSED: (r"CACError: .*",)},
    is_refusal=refused_in_javascript,
)
