"""Read the output of unittest: the counts of a run, and how each test ended."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SKIPPED, SPOILED, CaseResult, Cases
from fusewire.testruns.infrastructure import refused_in_python
from fusewire.testruns.run import RunSummary, counted, last_summary
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines
from fusewire.testruns.tracebacks import last_traceback

_UNITTEST_END = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n\n(OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_NAME = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \((.*?)\)", re.MULTILINE)
_RULE = "=" * 70
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:: .*)?)$", re.MULTILINE)


def unittest_run(text: str) -> RunSummary | None:
    """The last summary, also of Django's runner."""
    last = last_summary(_UNITTEST_END, text)
    if last is None:
        return None
    summary, begin = last
    counts = {name: int(number) for name, number in re.findall(r"([\w ]+)=(\d+)", summary[3] or "")}
    counts = {name.strip(): number for name, number in counts.items()}
    failures: dict[str, str] = {}
    broken: list[str] = []
    headings = unbuilt = 0
    for section in text[begin : summary.start()].split(_RULE)[1:]:
        header = _UNITTEST_NAME.search(section)
        if not header:
            continue
        headings += 1
        unbuilt += "_FailedTest" in header[3]
        said = _EXCEPTION.findall(section, header.end())
        message = said[-1] if said else ""
        if "_FailedTest" in header[3] or header[2] in _FIXTURES:
            broken.append(f"{header[2]}: {message}")
        else:
            failures[header[3] if header[3].endswith(header[2]) else f"{header[3]}.{header[2]}"] = message
    bad = counts.get("failures", 0) + counts.get("errors", 0) + counts.get("unexpected successes", 0)
    # A test has a heading for each of its subtests that failed, and one for a tearDown that broke: tests are counted.
    failed = len(failures) + max(bad - headings, 0)
    skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
    # What could not be loaded is a test to unittest, a fixture of a class is none.
    passed = max(int(summary[1]) - failed - unbuilt - skipped, 0)
    if not passed + failed + skipped + len(broken):
        return None
    first = min(broken, default="")
    return counted(
        "unittest", summary.end(), failures, broken=first,
        passed=passed, failed=failed, skipped=skipped, broken_count=len(broken),
    )  # fmt: skip


# -- single tests -----------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"(FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([^()]*)\)(.*)")
_TICK = re.compile(r"(\S+) \(([\w.]+)\) \.\.\. (ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)")
#: A test with a docstring has its result on the line of that; a subtest is indented.
_TITLE = re.compile(r"(?:  )?(\S+) \(([\w.]+)\)(.*)")
_RESULT = re.compile(r".* \.\.\. (ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)")
_TICKED = {"ok": PASSED, "FAIL": FAILED, "unexpected success": FAILED, "ERROR": FAILED}
_FIXTURES = ("setUpClass", "setUpModule", "tearDownClass", "tearDownModule")


def unittest_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """The parts between the double rules; -v names the others too."""
    end = lines.number(run.end)
    found: list[CaseResult] = []
    for index in range(end):
        tick = _tick(lines, index) if " ... " in lines.plain[index] else None
        # What failed has a part of its own below.
        if tick and tick.outcome != FAILED:
            found.append(tick)
    rules = [index for index in range(end) if lines.plain[index] == _RULE]
    for begin, stop in zip(rules, [*rules[1:], end], strict=False):
        header = _HEADER.match(lines.plain[begin + 1]) if begin + 1 < end else None
        if header:
            # An unexpected success has nothing to say; the rule below it is that of the summary.
            first = begin + 2 if header[1] == "UNEXPECTED SUCCESS" else _unittest_end(lines, begin + 2, stop) + 1
            found.append(_unittest_case(lines, header, begin + 1, _unittest_end(lines, first, stop)))
    return Cases(run.tests, tuple(found))


def _tick(lines: OutputLines, index: int) -> CaseResult | None:
    line = lines.plain[index]
    match = _TICK.fullmatch(line)
    if match:
        return _unittest(_unittest_name(match[1], match[2]), _TICKED.get(match[3], SKIPPED))
    result = _RESULT.fullmatch(line)
    title = _TITLE.fullmatch(line.partition(" ... ")[0]) or (
        _TITLE.fullmatch(lines.plain[index - 1]) if index else None
    )
    if not result or not title:
        return None
    outcome = _TICKED.get(result[1], SKIPPED)
    # One subtest that is well says nothing about the others.
    if title[3] and outcome == PASSED:
        return None
    return _unittest(_unittest_name(title[1], title[2]), outcome)


def _unittest_name(function: str, place: str) -> str:
    return place if place.endswith(f".{function}") or place == function else f"{place}.{function}"


def _unittest(name: str, outcome: str, inner: int = 2) -> CaseResult:
    """What stands before the class and its function is folders and a module."""
    parts = tuple(name.split("."))
    return CaseResult(name, parts, outcome, max(len(parts) - inner, 0))


def _unittest_end(lines: OutputLines, begin: int, stop: int) -> int:
    """The last part ends at the rule above the summary."""
    rule = "-" * 70
    return next((index for index in range(begin, stop) if lines.plain[index] == rule), stop)


def _unittest_case(lines: OutputLines, header: re.Match[str], begin: int, end: int) -> CaseResult:
    printed = next((index for index in range(begin, end) if lines.plain[index] in ("Stdout:", "Stderr:")), end)
    found = last_traceback(lines, begin + 1, printed)
    if found:
        said, error = found.said, (found.line, found.line + 1)
    else:
        error = (begin + 2, min(begin + 3, end))
        said = lines.plain[error[0]].strip() if error[0] < error[1] else ""
    name = _unittest_name(header[2], header[3])
    if "_FailedTest" in header[3]:
        parts = tuple(header[2].split("."))
        return CaseResult(header[2], parts, BROKEN, 0, begin, end, error, said, kind="build", suite=True)
    outcome, inner = FAILED, 2
    if header[2] in _FIXTURES:
        name, inner = header[3], 1
        outcome = BROKEN if header[2].startswith("setUp") else SPOILED
    elif found and found.first in ("setUp", "asyncSetUp"):
        outcome = BROKEN
    elif found and found.first in ("tearDown", "asyncTearDown"):
        outcome = SPOILED
    suite = outcome == BROKEN and inner == 1
    return replace(_unittest(name, outcome, inner), begin=begin, end=end, error=error, said=said, suite=suite)


UNITTEST = TestRunner(
    "unittest",
    "\nRan ",
    unittest_run,
    unittest_cases,
    idle_lines=(r"Ran 0 tests in [\d.]+s",),
    packages=("unittest",),
    is_refusal=refused_in_python,
)
