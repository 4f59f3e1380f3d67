"""The result of one test run: its counts, where it ends in the output, and the problems that it reports."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusewire.core.events import fingerprint, plain
from fusewire.testruns.masks import normalised

#: Names that a TestRun keeps, and that a message shows.
NAMES = 200
_SHOWN = 10
_MESSAGE = 600

_TYPE = re.compile(r"([A-Za-z_][\w.$]*(?:Error|Exception|Warning|Failure|Interrupt|Exit|NotFound))(?: \[\w+\])?(?::|$)")


@dataclass(frozen=True)
class TestRun:
    """The counts of one run of a test runner, and the names of the tests that failed."""

    __test__ = False  # pytest must not collect it

    runner: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    #: tests that could not start: collection, import, the runner itself
    broken: int = 0
    #: names of those that failed, sorted, at most 200
    failing: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped + self.broken

    @property
    def failures(self) -> int:
        return self.failed + self.broken


@dataclass(frozen=True)
class Problem:
    """An error that was still there when the agent finished."""

    #: `test`, `build` (compiler, linter, type checker), `exception` (a traceback), `agent` (is_error), `exit`
    source: str
    #: the type of the error: `AssertionError`, `TS2304`, `exit 2`
    type: str
    #: the message as it was printed, shortened
    message: str
    #: `fingerprint(normalised(message), type)`: the same for the same error at another line, time or path
    fingerprint: str

    def __str__(self) -> str:
        """Type and message; many a message names its type already."""
        return self.message if f"{self.type}:" in f"{self.message}:" else f"{self.type}: {self.message}"


@dataclass(frozen=True)
class RunSummary:
    """The counts of a run, where it ends in the text, and what its first failures say."""

    tests: TestRun
    end: int
    #: what the first failing test said, and what the first broken one said
    message: str = ""
    broken: str = ""


def counted(
    runner: str,
    end: int,
    failures: dict[str, str],
    *,
    passed: int = 0,
    failed: int = 0,
    skipped: int = 0,
    broken_count: int = 0,
    broken: str = "",
) -> RunSummary:
    """A run from its counts and {name of a failing test: what it said}."""
    names = sorted(plain(name, 300) for name in failures)[:NAMES]
    first = failures[min(failures)] if failures else ""
    tests = TestRun(runner, passed, failed, skipped, broken_count, tuple(names))
    return RunSummary(tests, end, first.strip(), broken.strip())


def last_summary(pattern: re.Pattern[str], text: str) -> tuple[re.Match[str], int] | None:
    """The summary of the last run in a text, and where the run before it ends."""
    summaries = list(pattern.finditer(text))
    return (summaries[-1], summaries[-2].end() if len(summaries) > 1 else 0) if summaries else None


def type_in(message: str, otherwise: str) -> str:
    """The class that a message starts with: `ValueError: x` is a ValueError."""
    match = _TYPE.match(message)
    if match:
        return match[1].rsplit(".", 1)[-1]
    return "AssertionError" if re.match(r"assert\b|expect\(", message) else otherwise


def problem(source: str, kind: str, message: str) -> Problem:
    """A problem with its fingerprint; white space at the ends and whatever is too long are left out."""
    message = plain(message.strip(), _MESSAGE)
    return Problem(source, kind, message, fingerprint(normalised(message), kind))


def problems_of(run: RunSummary) -> list[Problem]:
    """One problem for all failing tests, so that fewer of them are another error; one for what could not start."""
    tests, found = run.tests, []
    if tests.failed:
        more = f" and {tests.failed - _SHOWN} more" if tests.failed > _SHOWN and len(tests.failing) > _SHOWN else ""
        names = ", ".join(tests.failing[:_SHOWN]) or f"{tests.failed} of {tests.total} tests"
        message = f"{plain(names, 400)}{more}: {plain(run.message, 180)}" if run.message else plain(names, 400) + more
        found.append(problem("test", type_in(run.message, "failed"), message))
    if tests.broken:
        found.append(problem("test", "broken", run.broken or f"{tests.broken} could not start ({tests.runner})"))
    return found
