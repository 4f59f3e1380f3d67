"""Read what `node --test` prints in a terminal (elsewhere it prints TAP): counts, and how each test ended."""

from __future__ import annotations

import re

from fusewire.testruns.cases import Cases
from fusewire.testruns.infrastructure import refused_in_node
from fusewire.testruns.run import RunSummary
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.tap import NodeRun, NodeTest, cases_of, unquoted
from fusewire.testruns.text import OutputLines

_SPEC_COUNT = re.compile(r"\u2139 (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)")
_SPEC_SUITE = re.compile(r"( *)\u25b6 (.+?)(?: \([\d.]+ms\))?")
_SPEC_RESULT = re.compile(
    r"( *)([\u2714\u2716\ufe63\u26a0]) (.+?)(?: \([\d.]+ms\))?(?: #(?! *TODO)(?: .*)?|( # *TODO.*))?"
)
_SPEC_CODE = re.compile(r" *code: '(\w+)',?")
_SPEC_OUTCOMES = {"\u2714": "passed", "\u2716": "failed", "\ufe63": "skipped", "\u26a0": "skipped"}
_SPEC_AGAIN = "\u2716 failing tests:"


def node_run(text: str) -> RunSummary | None:
    """Count the tests of the last run."""
    lines = text.split("\n")
    found = spec_tests(lines)
    return found.run("node", lines) if found and found.counts.get("tests") else None


def spec_tests(lines: list[str]) -> NodeRun | None:
    """Suites have a line before their tests and one after them; failures are repeated below the summary."""
    ends = [index for index, line in enumerate(lines) if line.startswith("\u2139 tests ")]
    if not ends:
        return None
    counts, last = {}, ends[-1]
    for index in range(ends[-1], min(ends[-1] + 10, len(lines))):
        if count := _SPEC_COUNT.fullmatch(lines[index]):
            counts[count[1]] = int(count[2])
            last = index
    found: list[NodeTest] = []
    suites: list[tuple[int, str]] = []
    for index in range(ends[-2] if len(ends) > 1 else 0, ends[-1]):
        line = lines[index]
        if "\u25b6 " in line and (match := _SPEC_SUITE.fullmatch(line)):
            depth = len(match[1])
            closes = (depth, match[2]) in suites
            suites = [suite for suite in suites if suite[0] < depth]
            suites += [] if closes else [(depth, match[2])]
        elif (match := _SPEC_RESULT.fullmatch(line)) and not _is_repeated(lines, index):
            parent = (len(match[1]), match[3]) in suites
            suites = [suite for suite in suites if suite[0] < len(match[1])]
            test = _spec_test(lines, match, index, ends[-1], tuple(title for _, title in suites))
            test.parent = parent
            found.append(test)
    _add_what_is_is_repeated(lines, last, found)
    return NodeRun([test for test in found if not test.parent or test.said], counts, last)


def _is_repeated(lines: list[str], index: int) -> bool:
    return lines[index] == _SPEC_AGAIN or (index > 0 and lines[index - 1].startswith("test at "))


def _spec_test(lines: list[str], match: re.Match[str], begin: int, stop: int, suites: tuple[str, ...]) -> NodeTest:
    outcome = "skipped" if match[4] else _SPEC_OUTCOMES[match[2]]
    test = NodeTest((*suites, match[3]), outcome, begin, begin + 1, line=begin)
    if outcome != "failed":
        return test
    margin, last = " " * (len(match[1]) + 2), begin
    index = begin + 1
    while index < stop and (lines[index].startswith(margin) or not lines[index].strip()):
        line = lines[index]
        if line.strip():
            last = index
            if not test.said:
                test.said, test.line = unquoted(line.strip()), index
            if not test.code and (code := _SPEC_CODE.fullmatch(line)):
                test.code = code[1]
            test.hook = test.hook or line.lstrip().startswith("at TestHook.")
        index += 1
    test.end = last + 1
    return test


def _add_what_is_is_repeated(lines: list[str], last: int, found: list[NodeTest]) -> None:
    """Later versions of node tell what a test said only below the summary."""
    again: dict[str, list[NodeTest]] = {}
    for index in range(last, len(lines)):
        if lines[index].startswith("test at ") and index + 1 < len(lines):
            match = _SPEC_RESULT.fullmatch(lines[index + 1])
            if match and match[2] == "\u2716":
                again.setdefault(match[3], []).append(_spec_test(lines, match, index + 1, len(lines), ()))
    for test in found:
        if test.outcome == "failed" and not test.said and again.get(test.titles[-1]) and not test.parent:
            more = again[test.titles[-1]].pop(0)
            test.begin, test.end, test.said, test.line = more.begin, more.end, more.said, more.line
            test.code, test.hook = more.code, more.hook


def node_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """Read how each test ended; every test has a result, also those that passed or were left out."""
    return cases_of(spec_tests(lines.plain), lines, run)


NODE = TestRunner(
    "node", "\u2139 tests ", node_run, node_cases, idle_lines=("\u2139 tests 0",), is_refusal=refused_in_node
)
