"""What jest, vitest and mocha print at the end of a run."""

from __future__ import annotations

import re

from fusewire.testruns.run import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.run import Run


def _numbers(summary: str) -> dict[str, int]:
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", summary)}


def _said(text: str, start: int, lines: int, but: str = "\n") -> str:
    """The next lines that say something, in one; not those that begin with `but`."""
    found: list[str] = []
    end = min(start + 2000, len(text))
    while start < end and len(found) < lines:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if not text.startswith(but, start) and (line := text[start:stop].strip()):
            found.append(line)
        start = stop + 1
    return " ".join(found)


_JEST_END = re.compile(r"^Tests: +(?:(\d.*), )?(\d+) total$", re.MULTILINE)
_JEST_FAILURE = re.compile(r"^  \u25cf (.+)$", re.MULTILINE)
_JEST_BROKEN = "Test suite failed to run"


def jest_run(text: str) -> Run | None:
    summaries = list(_JEST_END.finditer(text))
    if not summaries:
        return None
    summary, begin = summaries[-1], summaries[-2].end() if len(summaries) > 1 else 0
    numbers = _numbers(summary[1] or "")
    failures: dict[str, str] = {}
    broken: list[str] = []
    for match in _JEST_FAILURE.finditer(text, begin, summary.start()):
        if match[1] == _JEST_BROKEN:
            broken.append(_said(text, match.end(), 1))
        elif "\u203a" in match[1] or numbers.get("failed"):
            failures.setdefault(match[1], _said(text, match.end(), 3))
    if not int(summary[2]) and not broken:
        return None
    return counted(
        "jest", summary.end(), failures, broken=min(broken, default=""),
        passed=numbers.get("passed", 0), failed=numbers.get("failed", 0),
        skipped=numbers.get("skipped", 0) + numbers.get("todo", 0), broken_count=len(set(broken)),
    )  # fmt: skip


_VITEST_END = re.compile(r"^ +Tests  (?:(\d.*) \(\d+\)|no tests)$", re.MULTILINE)
_VITEST_FAILURE = re.compile(r"^ FAIL  (\S.{0,500}?)(?: \[ .* \])?$", re.MULTILINE)
_VITEST_SUITES = "\u23af Failed Suites "
_VITEST_TESTS = "\u23af Failed Tests "


def vitest_run(text: str) -> Run | None:
    summaries = list(_VITEST_END.finditer(text))
    if not summaries:
        return None
    summary, begin = summaries[-1], summaries[-2].end() if len(summaries) > 1 else 0
    numbers = _numbers(summary[1] or "")
    failures: dict[str, str] = {}
    broken: dict[str, str] = {}
    suites = text.find(_VITEST_SUITES, begin, summary.start())
    tests = text.find(_VITEST_TESTS, suites, summary.start()) if suites >= 0 else begin
    tests = summary.start() if tests < 0 else tests
    for match in _VITEST_FAILURE.finditer(text, begin, summary.start()):
        # Several tests that failed alike are listed above one message.
        # A suite whose hook failed has a name like a test, and stands before the tests.
        in_test = " > " in match[1] and match.start() > tests
        (failures if in_test else broken)[match[1]] = _said(text, match.end(), 1, " FAIL  ")
    if not numbers and not broken:
        return None
    return counted(
        "vitest", summary.end(), failures, broken=": ".join(min(broken.items(), default=("", ""))).strip(": "),
        passed=numbers.get("passed", 0), failed=numbers.get("failed", 0),
        skipped=numbers.get("skipped", 0) + numbers.get("todo", 0), broken_count=len(broken),
    )  # fmt: skip


_MOCHA_END = re.compile(
    r"^  (\d+) passing \(.*\)\n(?:  (\d+) pending\n)?(?:  (\d+) failing\n)?"
    r"((?:(?!  \d+ passing \()(?:[ \t].*)?\n)*)",
    re.MULTILINE,
)
_MOCHA_FAILURE = re.compile(r"^  \d+\) (.+\n(?:       +\S.*\n)*?)\n((?:      +\S.*\n)+)", re.MULTILINE)


def mocha_run(text: str) -> Run | None:
    summaries = list(_MOCHA_END.finditer(text + "\n"))
    if not summaries:
        return None
    last = summaries[-1]
    failures: dict[str, str] = {}
    broken: list[str] = []
    for title, said in _MOCHA_FAILURE.findall(last[4]):
        name = " ".join(title.split()).removesuffix(":")
        if re.search(r'"(?:before|after) (?:all|each)" hook', name):
            broken.append(f"{name}: {said.strip()}")
        else:
            failures[name] = said.split("\n")[0].strip()
    failed = max(int(last[3] or 0) - len(broken), 0)
    if not int(last[1]) + int(last[2] or 0) + failed + len(broken):
        return None
    return counted(
        "mocha", min(last.end(), len(text)), failures, broken=min(broken, default=""),
        passed=int(last[1]), failed=failed, skipped=int(last[2] or 0), broken_count=len(broken),
    )  # fmt: skip
