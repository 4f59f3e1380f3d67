"""What `cargo test` prints about single tests."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.testruns.cases import FAILED, PASSED, SKIPPED, Case, Cases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.lines import Lines
    from fusewire.testruns.run import Run

#: With -q only the failing ones have a line, `tests::login --- FAILED`.
_TEST = re.compile(r"(?:test )?(\S.*?)(?: - should panic)? (?:\.\.\.|---) (ok|FAILED|ignored(?:, .*)?)")
_PART = re.compile(r"---- (\S.*?) stdout ----")
_FILTERED = re.compile(r"test result: .*; (\d+) filtered out\b.*")
_PANIC = re.compile(r"thread '([^']*)' (?:\(\d+\) )?panicked at (?:'(.*)', \S+|\S+:)")
_OUTCOMES = {"ok": PASSED, "FAILED": FAILED}
_BORDERS = ("test ", "thread '", "failures:", "test result: ")


def cargo_cases(lines: Lines, run: Run) -> Cases:
    """Every test has its line, and a failing one its part."""
    end = lines.number(run.end) + 1
    found: dict[str, Case] = {}
    panics: dict[str, int] = {}
    for index in range(end):
        line = lines.plain[index]
        if line.endswith(" --- FAILED") or (line.startswith("test ") and " ... " in line):
            match = _TEST.fullmatch(line)
            if match and not (match[1] in found and match[2] != "FAILED"):
                parts = tuple(re.split(r"::| - ", match[1]))
                found[match[1]] = Case(match[1], parts, _OUTCOMES.get(match[2], SKIPPED), len(parts) - 1)
        elif line.startswith("---- ") and (match := _PART.fullmatch(line)) and match[1] in found:
            found[match[1]] = _cargo_part(lines, found[match[1]], index, end)
        elif line.startswith("thread '") and (match := _PANIC.fullmatch(line)):
            panics.setdefault(match[1], index)
    cases = [_with_panic(lines, case, panics.get(case.name), end) for case in found.values()]
    filtered = sum(int(match[1]) for line in lines.plain[:end] if (match := _FILTERED.fullmatch(line)))
    return Cases(run.tests, tuple(cases), deselected=filtered)


def _with_panic(lines: Lines, case: Case, begin: int | None, end: int) -> Case:
    """With --nocapture there are no parts, but a panic names its test as its thread."""
    if case.outcome != FAILED or case.end or begin is None:
        return case
    stop = begin + 1
    while stop < end and not lines.plain[stop].startswith(_BORDERS):
        stop += 1
    return _cargo_said(lines, case, begin, stop)


def _cargo_part(lines: Lines, case: Case, begin: int, end: int) -> Case:
    stop = begin + 1
    while stop < end and not _PART.fullmatch(lines.plain[stop]) and lines.plain[stop] != "failures:":
        stop += 1
    return _cargo_said(lines, case, begin, stop)


def _cargo_said(lines: Lines, case: Case, begin: int, stop: int) -> Case:
    said, error = "", (begin, begin + 1)
    for index in range(begin, stop):
        match = _PANIC.fullmatch(lines.plain[index])
        if match and match[1] == case.name:
            told = match[2] is None and index + 1 < stop
            return replace(
                case, begin=begin, end=stop, said=lines.plain[index + 1] if told else match[2] or "",
                error=(index, index + 2 if told else index + 1),
            )  # fmt: skip
        if lines.plain[index].startswith("Error: "):
            # A test that gives back an error, and does not panic, prints it last.
            said, error = lines.plain[index], (index, index + 1)
    return replace(case, begin=begin, end=stop, said=said, error=error)
