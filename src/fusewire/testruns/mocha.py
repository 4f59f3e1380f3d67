"""Read the output of mocha: the counts of a run, and how each test ended."""

from __future__ import annotations

import re

from fusewire.testruns.cases import FAILED, PASSED, CaseResult, Cases
from fusewire.testruns.run import RunSummary, counted
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines

_MOCHA_END = re.compile(
    r"^  (\d+) passing \(.*\)\n(?:  (\d+) pending\n)?(?:  (\d+) failing\n)?"
    r"((?:(?!  \d+ passing \()(?:[ \t].*)?\n)*)",
    re.MULTILINE,
)
_MOCHA_FAILURE = re.compile(r"^  \d+\) (.+\n(?:       +\S.*\n)*?)\n((?:      +\S.*\n)+)", re.MULTILINE)


def mocha_run(text: str) -> RunSummary | None:
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


# -- single tests -----------------------------------------------------------------------------------------------------

_TICKED = re.compile(r" *(?:\u2713|\u2714|\u221a) (.+?)(?: \([\d.]+ ?m?s\))?")


def mocha_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """Names of failures as they were read, and ticks; parts of the output are not told apart."""
    found = [CaseResult(name, tuple(name.split(" ")), FAILED) for name in run.tests.failing]
    for line in lines.plain[: lines.number(run.end)]:
        if match := _TICKED.fullmatch(line):
            found.append(CaseResult(match[1], (match[1],), PASSED))
    return Cases(run.tests, tuple(found))


MOCHA = TestRunner(
    "mocha",
    " passing (",
    mocha_run,
    mocha_cases,
    naming_hint="add --reporter=spec, or --junit",
    idle_lines=(r"  0 passing \(.*\)",),
)
