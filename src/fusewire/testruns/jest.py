"""Read the output of jest: the counts of a run, and how each test ended."""

from __future__ import annotations

import re

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SKIPPED, CaseResult, Cases
from fusewire.testruns.infrastructure import CRASHED, MISUSED, refused_in_javascript
from fusewire.testruns.javascript import count_by_word, counted_by_word, next_lines, path_parts
from fusewire.testruns.run import RunSummary, last_summary
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines

_JEST_END = re.compile(r"^Tests: +(?:(\d.*), )?(\d+) total$", re.MULTILINE)
_JEST_FAILURE = re.compile(r"^  \u25cf (.+)$", re.MULTILINE)
_JEST_BROKEN = "Test suite failed to run"


def jest_run(text: str) -> RunSummary | None:
    last = last_summary(_JEST_END, text)
    if last is None:
        return None
    summary, begin = last
    numbers = count_by_word(summary[1] or "")
    failures: dict[str, str] = {}
    broken: list[str] = []
    for match in _JEST_FAILURE.finditer(text, begin, summary.start()):
        if match[1] == _JEST_BROKEN:
            broken.append(next_lines(text, match.end(), 1))
        elif "\u203a" in match[1] or numbers.get("failed"):
            failures.setdefault(match[1], next_lines(text, match.end(), 3))
    if not int(summary[2]) and not broken:
        return None
    return counted_by_word("jest", summary.end(), numbers, failures, min(broken, default=""), len(set(broken)))


# -- single tests -----------------------------------------------------------------------------------------------------

_JEST_FILE = re.compile(r"(PASS|FAIL) (?:\S+ )?(?:\./)?(\S+\.\w+)(?: \([\d.]+ m?s\))?")
_JEST_TITLE = re.compile(r"  \u25cf (.+)")
_JEST_TICK = re.compile(r"( +)(?:(\u2713|\u2715|\u25cb|\u270e) (?:skipped |todo )?)?(.+?)(?: \([\d.]+ m?s\))?")
_JEST_TICKS = {"\u2713": PASSED, "\u25cb": SKIPPED, "\u270e": SKIPPED}
#: Below the summary, with -t: what does not match is counted as skipped.
_JEST_BY_NAME = re.compile(r"Ran all test suites.* with tests matching .*")
_JEST_TAIL = 10
_JEST_BORDERS = ("PASS ", "FAIL ", "RUNS ", "Test Suites: ", "Summary of all failing tests")
_FRAME_LINE = re.compile(r" *(?:(>) +)?\d+ \| (.*)")
_HOOK = re.compile(r"\s*(?:beforeAll|beforeEach)\(")
_TEST = re.compile(r"\s*(?:(?:test|it)(?:\.\w+)*\(|describe(?:\.\w+)*\(|after(?:All|Each)\()")


def jest_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """The parts below the bullets; the ticks of a single file name the others too."""
    end = lines.number(run.end)
    found: dict[tuple[str, str], CaseResult] = {}
    file, index = "", 0
    while index < end:
        line = lines.plain[index]
        if line.startswith(("PASS ", "FAIL ")) and (match := _JEST_FILE.fullmatch(line)):
            file = match[2]
            index = _jest_ticks(lines, file, index + 1, end, found)
            continue
        if line.startswith("  \u25cf ") and (match := _JEST_TITLE.fullmatch(line)):
            stop = index + 1
            while stop < end and not lines.plain[stop].startswith(("  \u25cf ", *_JEST_BORDERS)):
                stop += 1
            if match[1] != "Console":
                case = _jest_case(lines, file, match[1], index, stop)
                # The summary of all failing tests says everything again.
                found.setdefault((case.name, FAILED), case)
            index = stop
            continue
        index += 1
    by_name = any(_JEST_BY_NAME.fullmatch(line) for line in lines.plain[end : end + _JEST_TAIL])
    return Cases(run.tests, tuple(found.values()), counts_filtered=by_name)


def _jest_ticks(lines: OutputLines, file: str, index: int, end: int, found: dict[tuple[str, str], CaseResult]) -> int:
    """Suites are recognised by their indentation."""
    suites: list[tuple[int, str]] = []
    while index < end and (match := _JEST_TICK.fullmatch(lines.plain[index])):
        if lines.plain[index].startswith("  \u25cf"):
            break
        depth = len(match[1])
        suites = [suite for suite in suites if suite[0] < depth]
        if match[2] is None:
            suites.append((depth, match[3]))
        elif (outcome := _JEST_TICKS.get(match[2])) is not None:
            titles = (*(title for _, title in suites), match[3])
            name = " \u203a ".join(titles)
            found.setdefault(
                (name, outcome), CaseResult(name, (*path_parts(file), *titles), outcome, len(path_parts(file)))
            )
        index += 1
    return index


def _jest_case(lines: OutputLines, file: str, title: str, begin: int, end: int) -> CaseResult:
    line = next((index for index in range(begin + 1, end) if lines.plain[index].strip()), begin)
    said = lines.plain[line].strip() if line > begin else ""
    error = (line, line + 1)
    path = path_parts(file)
    if title == _JEST_BROKEN:
        name = f"{file}: {_JEST_BROKEN}"
        return CaseResult(name, path, BROKEN, len(path), begin, end, error, said, kind="build", suite=True)
    outcome = BROKEN if _in_hook(lines, begin, end) else FAILED
    return CaseResult(title, (*path, *title.split(" \u203a ")), outcome, len(path), begin, end, error, said)


def _in_hook(lines: OutputLines, begin: int, end: int) -> bool:
    """jest blames a hook's error on each test; the marked line of the code, or the call above it, tells them apart."""
    frame: list[str] = []
    for line in lines.plain[begin:end]:
        if match := _FRAME_LINE.fullmatch(line):
            frame.append(match[2])
            if match[1]:
                break
    for line in reversed(frame):
        if _HOOK.match(line):
            return True
        if _TEST.match(line):
            return False
    return False


JEST = TestRunner(
    "jest",
    "Tests: ",
    jest_run,
    jest_cases,
    naming_hint="add --verbose, or --junit",
    idle_lines=(r"No tests found.*", r"Tests: +0 total"),
    start_errors={
        CRASHED: (r"  \u25cf  process\.exit called with .*",),
        MISUSED: (r"\u25cf (?:Unrecognized CLI Parameter|Validation Error|Multiple configurations found).*",),
    },
    is_refusal=refused_in_javascript,
)
