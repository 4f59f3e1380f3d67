"""Read the output of `cargo test`: the counts of a run, and how each test ended."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.testruns.cases import FAILED, PASSED, SKIPPED, CaseResult, Cases
from fusewire.testruns.infrastructure import (
    CRASHED,
    DENIED,
    ERRNO,
    MISUSED,
    NO_VARIABLE,
    NOT_BUILT,
    NOT_FETCHED,
    NOT_INSTALLED,
    NOT_SET_UP,
    REFUSED,
    refused_in_rust,
)
from fusewire.testruns.run import RunSummary, counted
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines

_CARGO_START = re.compile(r"^ +Finished .*target\(s\) in .*$", re.MULTILINE)
_CARGO_END = re.compile(r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;.*$", re.MULTILINE)
#: With -q only the failing ones have a line.
_CARGO_FAILURE = re.compile(r"^(?:test )?(\S+)(?: - .*)? (?:\.\.\.|---) FAILED$", re.MULTILINE)
_CARGO_SAID = re.compile(
    r"^thread '(?P<test>[^'\n]*)' (?:\(\d+\) )?panicked at "
    r"(?:'(?P<old>.*)', .*|\S+:\n(?P<new>.*(?:\n +(?:left|right): .*)*))$",
    re.MULTILINE,
)


def cargo_run(text: str) -> RunSummary | None:
    """The results of every binary since the last build, in one."""
    results = list(_CARGO_END.finditer(text))
    if not results:
        return None
    starts = [match.end() for match in _CARGO_START.finditer(text, 0, results[-1].start())]
    begin = starts[-1] if starts else 0
    counted_results = [match for match in results if match.start() >= begin]
    passed, failed, skipped = (sum(int(match[group]) for match in counted_results) for group in (1, 2, 3))
    if not passed + failed + skipped:
        return None
    said = {
        match["test"]: match["old"] or match["new"] for match in _CARGO_SAID.finditer(text, begin, results[-1].end())
    }
    failures = {name: said.get(name, "") for name in _CARGO_FAILURE.findall(text, begin, results[-1].end())}
    return counted("cargo", results[-1].end(), failures, passed=passed, failed=failed, skipped=skipped)


# -- single tests -----------------------------------------------------------------------------------------------------

#: With -q only the failing ones have a line, `tests::login --- FAILED`.
_TEST = re.compile(r"(?:test )?(\S.*?)(?: - should panic)? (?:\.\.\.|---) (ok|FAILED|ignored(?:, .*)?)")
_PART = re.compile(r"---- (\S.*?) stdout ----")
_FILTERED = re.compile(r"test result: .*; (\d+) filtered out\b.*")
_PANIC = re.compile(r"thread '([^']*)' (?:\(\d+\) )?panicked at (?:'(.*)', \S+|\S+:)")
_OUTCOMES = {"ok": PASSED, "FAILED": FAILED}
_BORDERS = ("test ", "thread '", "failures:", "test result: ")


def cargo_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """Every test has its line, and a failing one its part."""
    end = lines.number(run.end) + 1
    found: dict[str, CaseResult] = {}
    panics: dict[str, int] = {}
    for index in range(end):
        line = lines.plain[index]
        if line.endswith(" --- FAILED") or (line.startswith("test ") and " ... " in line):
            match = _TEST.fullmatch(line)
            if match and not (match[1] in found and match[2] != "FAILED"):
                parts = tuple(re.split(r"::| - ", match[1]))
                found[match[1]] = CaseResult(match[1], parts, _OUTCOMES.get(match[2], SKIPPED), len(parts) - 1)
        elif line.startswith("---- ") and (match := _PART.fullmatch(line)) and match[1] in found:
            found[match[1]] = _cargo_part(lines, found[match[1]], index, end)
        elif line.startswith("thread '") and (match := _PANIC.fullmatch(line)):
            panics.setdefault(match[1], index)
    cases = [_with_panic(lines, case, panics.get(case.name), end) for case in found.values()]
    filtered = sum(int(match[1]) for line in lines.plain[:end] if (match := _FILTERED.fullmatch(line)))
    return Cases(run.tests, tuple(cases), deselected=filtered)


def _with_panic(lines: OutputLines, case: CaseResult, begin: int | None, end: int) -> CaseResult:
    """With --nocapture there are no parts, but a panic names its test as its thread."""
    if case.outcome != FAILED or case.end or begin is None:
        return case
    stop = begin + 1
    while stop < end and not lines.plain[stop].startswith(_BORDERS):
        stop += 1
    return _cargo_said(lines, case, begin, stop)


def _cargo_part(lines: OutputLines, case: CaseResult, begin: int, end: int) -> CaseResult:
    stop = begin + 1
    while stop < end and not _PART.fullmatch(lines.plain[stop]) and lines.plain[stop] != "failures:":
        stop += 1
    return _cargo_said(lines, case, begin, stop)


def _cargo_said(lines: OutputLines, case: CaseResult, begin: int, stop: int) -> CaseResult:
    said, error = "", (begin, begin + 1)
    for index in range(begin, stop):
        match = _PANIC.fullmatch(lines.plain[index])
        if match and match[1] == case.name:
            below = match[2] is None and index + 1 < stop
            return replace(
                case, begin=begin, end=stop, said=lines.plain[index + 1] if below else match[2] or "",
                error=(index, index + 2 if below else index + 1),
            )  # fmt: skip
        if lines.plain[index].startswith("Error: "):
            # A test that gives back an error, and does not panic, prints it last.
            said, error = lines.plain[index], (index, index + 1)
    return replace(case, begin=begin, end=stop, said=said, error=error)


CARGO = TestRunner(
    "cargo",
    "test result: ",
    cargo_run,
    cargo_cases,
    naming_hint="leave out -q, or add --junit",
    idle_lines=(r"test result: ok\. 0 passed; 0 failed; 0 ignored;.*",),
    start_errors={
        REFUSED: (rf"(?:error: |\s+|.*: ){DENIED} \(os error {ERRNO}\)",),
        NOT_FETCHED: (
            r"error: failed to (?:get|download|fetch|query|load source for|update) .*",
            r"  (?:failed to (?:fetch|download|query|connect|resolve)|network failure seems to have happened) .*",
        ),
        NO_VARIABLE: (r"error: environment variable `.*` not defined at compile time",),
        NOT_INSTALLED: (r"error: (?:linker `.*` not found|no such command: `.*`)",),
        NOT_SET_UP: (r"error: could not find `Cargo\.toml` .*",),
        CRASHED: (r"  process didn't exit successfully: .* \(signal: .*\)",),
        MISUSED: (
            r"error: (?:unexpected argument|no (?:test|bin|lib|example|bench) target|package ID specification) .*",
        ),
        NOT_BUILT: (
            r"error: could not compile .*",
            r"error: no matching package named .*",
            r"error: failed to (?:parse manifest|select a version|load manifest) .*",
        ),
    },
    is_refusal=refused_in_rust,
)
