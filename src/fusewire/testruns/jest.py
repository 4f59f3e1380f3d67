"""What jest and vitest print about single tests, and what can be said of mocha."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SKIPPED, Case, Cases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.lines import Lines
    from fusewire.testruns.run import Run

_JEST_FILE = re.compile(r"(PASS|FAIL) (?:\S+ )?(?:\./)?(\S+\.\w+)(?: \([\d.]+ m?s\))?")
_JEST_TITLE = re.compile(r"  \u25cf (.+)")
_JEST_TICK = re.compile(r"( +)(?:(\u2713|\u2715|\u25cb|\u270e) (?:skipped |todo )?)?(.+?)(?: \([\d.]+ m?s\))?")
_JEST_TICKS = {"\u2713": PASSED, "\u25cb": SKIPPED, "\u270e": SKIPPED}
#: Below the summary, with -t: what does not match is counted as skipped.
_JEST_BY_NAME = re.compile(r"Ran all test suites.* with tests matching .*")
_JEST_TAIL = 10
_JEST_BROKEN = "Test suite failed to run"
_JEST_END = ("PASS ", "FAIL ", "RUNS ", "Test Suites: ", "Summary of all failing tests")
_FRAME_LINE = re.compile(r" *(?:(>) +)?\d+ \| (.*)")
_HOOK = re.compile(r"\s*(?:beforeAll|beforeEach)\(")
_TEST = re.compile(r"\s*(?:(?:test|it)(?:\.\w+)*\(|describe(?:\.\w+)*\(|after(?:All|Each)\()")


def jest_cases(lines: Lines, run: Run) -> Cases:
    """The parts below the bullets; the ticks of a single file name the others too."""
    end = lines.number(run.end)
    found: dict[tuple[str, str], Case] = {}
    file, index = "", 0
    while index < end:
        line = lines.plain[index]
        if line.startswith(("PASS ", "FAIL ")) and (match := _JEST_FILE.fullmatch(line)):
            file = match[2]
            index = _jest_ticks(lines, file, index + 1, end, found)
            continue
        if line.startswith("  \u25cf ") and (match := _JEST_TITLE.fullmatch(line)):
            stop = index + 1
            while stop < end and not lines.plain[stop].startswith(("  \u25cf ", *_JEST_END)):
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


def _jest_ticks(lines: Lines, file: str, index: int, end: int, found: dict[tuple[str, str], Case]) -> int:
    """Suites are told by how far they are indented."""
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
            found.setdefault((name, outcome), Case(name, (*_path(file), *titles), outcome, len(_path(file))))
        index += 1
    return index


def _path(file: str) -> tuple[str, ...]:
    return tuple(part for part in file.replace("\\", "/").split("/") if part)


def _jest_case(lines: Lines, file: str, title: str, begin: int, end: int) -> Case:
    line = next((index for index in range(begin + 1, end) if lines.plain[index].strip()), begin)
    said = lines.plain[line].strip() if line > begin else ""
    error = (line, line + 1)
    path = _path(file)
    if title == _JEST_BROKEN:
        name = f"{file}: {_JEST_BROKEN}"
        return Case(name, path, BROKEN, len(path), begin, end, error, said, kind="build", suite=True)
    outcome = BROKEN if _in_hook(lines, begin, end) else FAILED
    return Case(title, (*path, *title.split(" \u203a ")), outcome, len(path), begin, end, error, said)


def _in_hook(lines: Lines, begin: int, end: int) -> bool:
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


_VITEST_FAIL = re.compile(r" FAIL  (?:\|[^|]*\| )?(\S.*?)(?: \[ .* \])?")
_VITEST_TICK = re.compile(r" (\u2713|\u00d7|\u2193) (?:\|[^|]*\| )?(\S+ > .+?)(?: \[[^\]]*\])?(?: \d+ ?m?s)?")
#: Below a file in which something failed; without the names of suites.
_VITEST_SHORT = re.compile(r" {5,}(\u2713|\u2193) (.+?)(?: \d+ ?m?s)?")
_VITEST_FILE = re.compile(r" \u276f \S+ \(\d+ tests?\b.*\).*")
_VITEST_TICKS = {"\u2713": PASSED, "\u2193": SKIPPED}
_VITEST_PART_END = re.compile(r"\u23af{3,}\[\d+/\d+\]\u23af*")
_VITEST_SUITES = re.compile(r"\u23af+ Failed (Suites|Tests) \d+ \u23af+")
_VITEST_ERRORS = re.compile(r" +Errors  \d+ errors?")


def vitest_cases(lines: Lines, run: Run) -> Cases:
    """The parts below FAIL; several tests may stand above one message. `--reporter=verbose` names the others."""
    end = lines.number(run.end)
    found: list[Case] = []
    waiting: list[tuple[int, str]] = []
    suites = in_file = False
    short: dict[str, set[str]] = {}
    for index in range(end):
        line = lines.plain[index]
        in_file = bool(_VITEST_FILE.fullmatch(line)) or (in_file and line.startswith("     "))
        if in_file and (match := _VITEST_SHORT.fullmatch(line)):
            short.setdefault(match[2], set()).add(_VITEST_TICKS[match[1]])
        elif match := _VITEST_SUITES.fullmatch(line):
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
    told = {PASSED} if any(case.outcome == BROKEN for case in found) else {PASSED, SKIPPED}
    found += [
        Case(title, (title,), outcome)
        for title, outcomes in short.items()
        for outcome in outcomes & told
        if len(outcomes) == 1
    ]
    unhandled = next((line.strip() for line in lines.plain[end : end + 3] if _VITEST_ERRORS.fullmatch(line)), "")
    # What -t leaves out is counted as skipped, and nothing says so.
    return Cases(run.tests, tuple(found), cut=unhandled, counts_filtered=True)


def _vitest_case(name: str, outcome: str) -> Case:
    file, *titles = name.split(" > ")
    return Case(name, (*_path(file), *titles), outcome, len(_path(file)))


def _vitest_part(lines: Lines, waiting: list[tuple[int, str]], end: int, suites: bool) -> list[Case]:
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


_TICKED = re.compile(r" *(?:\u2713|\u2714|\u221a) (.+?)(?: \([\d.]+ ?m?s\))?")


def mocha_cases(lines: Lines, run: Run) -> Cases:
    """Names of failures as they were read, and ticks; parts of the output are not told apart."""
    found = [Case(name, tuple(name.split(" ")), FAILED) for name in run.tests.failing]
    for line in lines.plain[: lines.number(run.end)]:
        if match := _TICKED.fullmatch(line):
            found.append(Case(match[1], (match[1],), PASSED))
    return Cases(run.tests, tuple(found))
