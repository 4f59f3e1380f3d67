"""What pytest and unittest print at the end of a run."""

from __future__ import annotations

import re

from fusewire.testruns.run import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.run import Run

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


def pytest_run(text: str) -> Run | None:
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


def _pytest_read(text: str, previous: int, summary: re.Match[str], counts: dict[str, int]) -> Run:
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


_UNITTEST_END = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n\n(OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_NAME = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \((.*?)\)", re.MULTILINE)
_UNITTEST_RULE = "=" * 70
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:: .*)?)$", re.MULTILINE)


def unittest_run(text: str) -> Run | None:
    """The last summary, also of Django's runner."""
    summaries = list(_UNITTEST_END.finditer(text))
    if not summaries:
        return None
    summary, begin = summaries[-1], summaries[-2].end() if len(summaries) > 1 else 0
    counts = {name: int(number) for name, number in re.findall(r"([\w ]+)=(\d+)", summary[3] or "")}
    counts = {name.strip(): number for name, number in counts.items()}
    failures: dict[str, str] = {}
    broken: list[str] = []
    headings = unbuilt = 0
    for section in text[begin : summary.start()].split(_UNITTEST_RULE)[1:]:
        header = _UNITTEST_NAME.search(section)
        if not header:
            continue
        headings += 1
        unbuilt += "_FailedTest" in header[3]
        said = _EXCEPTION.findall(section, header.end())
        message = said[-1] if said else ""
        if "_FailedTest" in header[3] or header[2] in ("setUpClass", "setUpModule", "tearDownClass", "tearDownModule"):
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
