"""Read the output of pytest: the counts of a run, and how each test ended."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SKIPPED, SPOILED, CaseResult, Cases
from fusewire.testruns.infrastructure import (
    BUILD,
    MISUSED,
    PERMISSION,
    RUNNER,
    StartError,
    is_permission,
    kind_of,
    refused_in_python,
)
from fusewire.testruns.run import RunSummary, counted
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines
from fusewire.testruns.tracebacks import last_traceback

_WORDS = r"failed|passed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun|subtests passed"
_PYTEST_END = re.compile(
    rf"^(?:=+ )?((?:\d+ (?:{_WORDS})(?:, )?)+|no tests ran) in \d[\d.:]*(?:s| seconds)?(?: \([\d:]+\))?(?: =+)?$",
    re.MULTILINE,
)
_PYTEST_COUNT = re.compile(r"(\d+) (failed|passed|skipped|xfailed|xpassed|error)")
_PYTEST_START = "= test session starts ="
#: Subtests: `SUBFAILED[one] (i=1) tests/test_x.py::test_y - assert 0`.
_PYTEST_NAME = re.compile(
    r"^(?:SUB)?(FAILED|ERROR)(?:\[[^\]\n]*\])?(?: ?\([^)\n]*\))? (\S.*?)(?: - (.*))?$", re.MULTILINE
)
_PYTEST_VERBOSE = re.compile(r"^(\S+::.+?) FAILED +\[ *\d+%\]$", re.MULTILINE)
_PYTEST_HEADER = re.compile(r"^_{3,} (?!ERROR )(\S.*?) _{3,}$", re.MULTILINE)
_PYTEST_SAID = re.compile(r"^E  +(\S.*)$", re.MULTILINE)
_PYTEST_USAGE = re.compile(r"\n+(ERROR: .+)")


def pytest_run(text: str) -> RunSummary | None:
    """The last summary that counts anything; a run that found no test is none, unless it could not look."""
    begin, last = 0, None
    for summary in _PYTEST_END.finditer(text):
        counts = _pytest_counts(summary[1])
        usage = _PYTEST_USAGE.match(text, summary.end())
        if any(counts.values()):
            last = _pytest_read(text, begin, summary, counts)
        elif usage:
            last = counted("pytest", usage.end(), {}, broken=usage[1], broken_count=1)
        begin = summary.end()
    return last


def _pytest_read(text: str, previous: int, summary: re.Match[str], counts: dict[str, int]) -> RunSummary:
    begin = max(previous, text.rfind(_PYTEST_START, previous, summary.start()))
    body = text[begin : summary.start()]
    names = _PYTEST_NAME.findall(body)
    said = _PYTEST_SAID.findall(body)
    failures = {name: message for kind, name, message in names if kind == "FAILED"}
    if not failures and counts["failed"]:
        listed = _PYTEST_VERBOSE.findall(body) or _PYTEST_HEADER.findall(body)
        failures = dict.fromkeys(listed, said[0] if said else "")
    errors = sorted((name, message) for kind, name, message in names if kind == "ERROR")
    broken = f"{errors[0][0]}: {errors[0][1] or (said[0] if said else '')}" if errors else ""
    return counted(
        "pytest", summary.end(), failures, broken=broken, broken_count=counts["broken"],
        passed=counts["passed"], failed=counts["failed"], skipped=counts["skipped"],
    )  # fmt: skip


def _pytest_counts(summary: str) -> dict[str, int]:
    found = {word: int(number) for number, word in _PYTEST_COUNT.findall(summary)}
    return {
        "passed": found.get("passed", 0) + found.get("xpassed", 0),
        "failed": found.get("failed", 0),
        "skipped": found.get("skipped", 0) + found.get("xfailed", 0),
        "broken": found.get("error", 0),
    }


# -- single tests -----------------------------------------------------------------------------------------------------

_OUTCOMES = {
    "PASSED": PASSED, "XPASS": PASSED, "FAILED": FAILED, "ERROR": BROKEN, "SKIPPED": SKIPPED, "XFAIL": SKIPPED,
}  # fmt: skip
_WORD = "|".join(_OUTCOMES)

_SUMMARY = re.compile(r"={3,} short test summary info ={3,}")
#: A name may hold spaces, and in its parameters also ` - `.
_LISTED = re.compile(rf"({_WORD}) ((?:[^\[\s]|\s(?!- ))+(?:\[.*?\])?)(?: - (.*))?")
#: Subtests have a message, values, or both: `SUBFAILED[one] (i=1) tests/test_x.py::test_y - assert 0`.
_SUBTEST = re.compile(r"^SUB(?=FAILED)(FAILED)(?:\[.*?\])?(?: ?\(.*?\))? (?=\S+::)(.*)")
_SUBTEST_TITLE = re.compile(r"(.+?) (?:\[.*\](?: \(.*\))?|\(.*\))")
#: The first frame of a part, in the long and in the short style.
_FRAME = re.compile(r"    (?:async )?def (\w+)\(.*|\S+:\d+: in (\w+)")
_VERBOSE = re.compile(rf"(?=\S+::)(\S.*?) ({_WORD})(?: \(.*\))? +\[ *\d+%\]")
_XDIST = re.compile(rf"\[gw\d+\] \[ *\d+%\] ({_WORD}) (\S+::.*)")
#: In this order. A test may print the whole output of another run: errors come before all titles, of the failures the
#: first line counts, of what comes below them the last.
_AREA = re.compile(
    r"={3,} (ERRORS|FAILURES|PASSES|XFAILURES|XPASSES|warnings summary|slowest|short test summary info)\b.* ={3,}"
)
_CAPTURED = re.compile(r"-{3,} Captured \S+ (?:setup|call|teardown) -{3,}")
_CUT = re.compile(r"!{3,} (.*) !{3,}")
#: Tests of one name in different files, among which the part of the right one is looked for.
_NAMESAKES = 50
#: In the summary.
_DESELECTED = re.compile(r"\b(\d+) deselected\b")
_CRASHED = re.compile(r"worker '\w+' crashed while running ")


def pytest_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """Names from the short summary, from -v, or from the titles of the failures, whichever there are."""
    end = lines.number(run.end)
    found: dict[str, CaseResult] = {}
    for line in lines.plain[:end]:
        if line.endswith("%]") and (match := _VERBOSE.fullmatch(line)):
            _add(found, match[1], match[2])
        elif line.startswith("[gw") and (match := _XDIST.fullmatch(line)):
            _add(found, match[2].rstrip(), match[1])
    summary = max((index for index in range(end) if _SUMMARY.fullmatch(lines.plain[index])), default=end)
    failures = 0
    for index in range(summary + 1, end):
        line = _SUBTEST.sub(r"\1 \2", lines.plain[index])
        match = _LISTED.fullmatch(line)
        # SKIPPED and folded XFAIL lines name a place and a count, no test
        if match and not match[2].startswith("["):
            _add(found, match[2], match[1], match[3] or "", index)
            failures += match[1] == "FAILED"
    cases = _with_sections(lines, found, end)
    cut = next((match[1] for line in lines.plain[summary:end] if (match := _CUT.fullmatch(line))), "")
    deselected = _DESELECTED.search(lines.plain[end])
    left = int(deselected[1]) if deselected else 0
    return Cases(run.tests, tuple(cases), cut=cut, failures=failures, deselected=left)


def _parts(name: str) -> tuple[tuple[str, ...], int]:
    """`tests/test_x.py::TestA::test_b[a/b]`: slashes and colons in the parameters are no joints."""
    place, bracket, parameters = name.partition("[")
    path, _, inner = place.partition("::")
    folders = [part for part in path.replace("\\", "/").split("/") if part]
    inside = inner.split("::") if inner else []
    parts = [*folders, *inside]
    if bracket and parts:
        parts[-1] += f"[{parameters}"
    return tuple(parts), len(folders)


def _add(found: dict[str, CaseResult], name: str, word: str, said: str = "", line: int = -1) -> None:
    outcome = _OUTCOMES[word]
    known = found.get(name)
    if known and known.outcome == FAILED and (known.said or outcome != FAILED):
        return  # a test that failed, and then broke its teardown, has failed
    kind = ""
    suite = outcome == BROKEN and "::" not in name
    if _CRASHED.match(said):
        outcome, kind, suite = BROKEN, "runner", True
    if known and known.outcome in (PASSED, SPOILED) and outcome == BROKEN and not kind:
        outcome = SPOILED
    parts, folders = _parts(name)
    error = (line, line + 1) if line >= 0 else (0, 0)
    found[name] = CaseResult(name, parts, outcome, folders, error=error, said=said, kind=kind, suite=suite)


def _with_sections(lines: OutputLines, found: dict[str, CaseResult], end: int) -> list[CaseResult]:
    """Each case with the part below its title; a title that no case has is something that a test printed."""
    titles: dict[str, list[int]] = {}
    borders: list[int] = []
    areas: dict[str, int] = {}
    wanted = {title for case in found.values() for title in _titles(case)}
    unnamed = not any(case.outcome in (FAILED, BROKEN, SPOILED) for case in found.values())
    for index in range(end):
        line = lines.plain[index]
        if line.startswith("=") and (match := _AREA.fullmatch(line)):
            if match[1] == "FAILURES" or (match[1] == "ERRORS" and not titles):
                areas.setdefault(match[1], index)
            elif match[1] != "ERRORS":
                areas[match[1]] = index
        elif title := _title(line):
            if title not in wanted and (subtest := _SUBTEST_TITLE.fullmatch(title)):
                title = subtest[1]
            if unnamed or title in wanted:
                titles.setdefault(title, []).append(index)
                borders.append(index)
    borders = sorted({*borders, *areas.values(), end})
    after = dict(zip(borders, borders[1:], strict=False))
    if unnamed:
        found = {**found, **{case.name: case for case in map(_from_title, titles)}}
    return [_with_section(lines, case, titles, after) for case in found.values()]


def _title(line: str) -> str:
    """The name between the underscores of a title; `_ _ _ _` stands between two frames."""
    inner = line.strip("_")
    if not (line.startswith("_") and line.endswith("_") and inner.startswith(" ") and inner.endswith(" ")):
        return ""
    return inner[1:-1] if inner.strip(" _") else ""


def _dotted(case: CaseResult) -> str:
    return ".".join(case.parts[case.folders :])


def _titles(case: CaseResult) -> list[str]:
    inner = _dotted(case)
    if not inner:
        return [f"ERROR collecting {case.name}"]
    return [f"ERROR collecting {case.name}", f"ERROR at setup of {inner}", f"ERROR at teardown of {inner}", inner]


def _from_title(title: str) -> CaseResult:
    place = title.removeprefix("ERROR collecting ")
    if place != title:
        parts, folders = _parts(place)
        return CaseResult(place, parts, BROKEN, folders, suite=True)
    inner = title.removeprefix("ERROR at setup of ")
    outcome = FAILED if inner == title else BROKEN
    if title.startswith("ERROR at teardown of "):
        inner, outcome = title.removeprefix("ERROR at teardown of "), SPOILED
    base, bracket, parameters = inner.partition("[")
    *above, last = base.split(".")
    return CaseResult(inner, (*above, last + bracket + parameters), outcome)


def _with_section(
    lines: OutputLines, case: CaseResult, titles: dict[str, list[int]], after: dict[int, int]
) -> CaseResult:
    if case.outcome not in (FAILED, BROKEN, SPOILED) or case.kind:
        return case
    inner = _dotted(case)
    order = [inner] if case.outcome == FAILED else _titles(case)[:-1] if inner else _titles(case)
    for title in order:
        for begin in titles.get(title, ())[:_NAMESAKES]:
            end = after[begin]
            # Two files may have a test of the same name; the part below the title names its file.
            file = "/".join(case.parts[: case.folders])
            if len(titles[title]) > 1 and file and not any(file in line for line in lines.plain[begin:end]):
                continue
            outcome = SPOILED if title.startswith("ERROR at teardown") else case.outcome
            if outcome == FAILED and _in_set_up(lines, begin, end):
                outcome = BROKEN
            said, error = _said(lines, begin + 1, end)
            return replace(
                case, outcome=outcome, begin=begin, end=end, error=error if said else case.error, said=said or case.said
            )
    return case


def _in_set_up(lines: OutputLines, begin: int, end: int) -> bool:
    """pytest calls it a failure when the `setUp` of a unittest class raises: it is the first frame."""
    for line in lines.plain[begin:end]:
        if match := _FRAME.fullmatch(line):
            return (match[1] or match[2]) in ("setUp", "asyncSetUp")
    return False


def _said(lines: OutputLines, begin: int, end: int) -> tuple[str, tuple[int, int]]:
    """The last exception: the last run of lines that begin with E, above what the test printed."""
    block = (0, 0)
    stop = end
    for index in range(begin, end):
        line = lines.plain[index]
        if line.startswith("---") and _CAPTURED.fullmatch(line):
            stop = index
            break
        if line.startswith(("E ", "E\t")) or line == "E":
            block = (block[0] if block[1] == index else index, index + 1)
    if block[1]:
        first, last = lines.plain[block[0]][1:].strip(), lines.plain[block[1] - 1][1:].strip()
        # A syntax error shows its place first.
        return (last if first.startswith('File "') else first), block
    found = last_traceback(lines, begin, stop)
    return (found.said, (found.line, found.line + 1)) if found else ("", (0, 0))


# -- why no test ran ---------------------------------------------------------------------------------------------------


def _find_start_error(lines: OutputLines) -> StartError | None:
    """A conftest that could not be loaded, or an error of pytest itself."""
    begin, end = lines.near_end()
    for index in range(begin, end):
        line = lines.plain[index]
        if line.startswith("ImportError while loading conftest '"):
            block = [number for number in range(index, end) if lines.plain[number].startswith("E  ")]
            last = block[-1] if block else index
            said = lines.plain[last][1:].strip() if block else ""
            kind = kind_of(said, lines.plain[index : last + 1]) or BUILD
            return StartError(kind, f"conftest could not be loaded: {said or line}", index, last + 1)
        if line.startswith("INTERNALERROR> "):
            last = max(number for number in range(index, end) if lines.plain[number].startswith("INTERNALERROR>"))
            said = lines.plain[last].removeprefix("INTERNALERROR> ")
            kind = PERMISSION if is_permission(said) else RUNNER
            return StartError(kind, f"pytest broke: {said}", max(index, last - 10), last + 1)
    return None


PYTEST = TestRunner(
    "pytest",
    " in ",
    pytest_run,
    pytest_cases,
    first_line=r"===.* test session starts .*",
    idle_lines=(r"(?:=+ )?(?:no tests ran|(?:\d+ (?:deselected|warnings?)(?:, )?)+) in \d[\d.:]*s?.*",),
    start_errors={MISUSED: (r"ERROR: (?:usage|file or directory not found|not found): .*",)},
    find_start_error=_find_start_error,
    packages=("_pytest", "pytest", "pluggy", "xdist", "execnet"),
    is_refusal=refused_in_python,
)
