"""Collect what tool calls, or a plain output, show of tests and errors; a later run replaces an earlier one."""

from __future__ import annotations

import re
from dataclasses import replace

from fusewire.core.events import fingerprint
from fusewire.testruns.cases import BROKEN, FAILED
from fusewire.testruns.errors import LIMIT, problems_in
from fusewire.testruns.junit import read_junit_cases
from fusewire.testruns.masks import without_numbers
from fusewire.testruns.run import Problem, RunSummary, TestRun, problem, problems_of
from fusewire.testruns.runners import last_run
from fusewire.testruns.text import plain_text, without_quotes

#: How much of one output is looked at, from its end: that is where summaries are.
OUTPUT = 262_144

#: Lines that a problem of source `exit` quotes.
_LAST_LINES = 3

#: Programs that show what is in files: what they print is no run.
_READERS = frozenset(
    "awk bat cat cd diff echo egrep export fgrep find git grep head jq less ls more nl printf pwd rg sed set sort tail"
    " tree true type wc which".split()
)
_SEGMENT = re.compile(r"\|\||&&|[|;&\n]")


class RunEvidence:
    """The last test run, and the errors of the last call if that failed."""

    def __init__(self) -> None:
        self._run: RunSummary | None = None
        self._failed = ""
        self._exit: Problem | None = None

    def saw(self, output: str, *, failed: bool) -> None:
        """A command has printed this; `failed` is from its exit status, or assumed for plain output."""
        text = without_quotes(plain_text(output[-OUTPUT:]))
        run = last_run(text)
        if run:
            self._run = run
        # What a test run printed before its summary is spoken for by the run.
        self._failed = text[run.end if run else 0 :] if failed else ""

    def other_call(self, *, failed: bool) -> None:
        """A call of a tool that runs nothing: a session that went on after a failure did not end with it."""
        if not failed:
            self._failed = ""

    def failed_with(self, code: int | None, output: str) -> None:
        """A command that had to succeed has failed: its exit status speaks if nothing better is known."""
        self.saw(output, failed=True)
        self._exit = exit_problem(code, last_lines(output))

    def read_junit(self, data: bytes) -> bool:
        """Take the results of the last run from JUnit XML; whether it could be read."""
        found = read_junit_cases(data)
        if found is None:
            return False
        said = {
            outcome: {case.name: case.said for case in found.cases if case.outcome == outcome}
            for outcome in (FAILED, BROKEN)
        }
        first = {outcome: names[min(names)] if names else "" for outcome, names in said.items()}
        self._run = RunSummary(found.tests, 0, first[FAILED], first[BROKEN])
        return True

    @property
    def tests(self) -> TestRun | None:
        return self._run.tests if self._run else None

    def problems(self) -> list[Problem]:
        """What was not mended."""
        of_tests = problems_of(self._run) if self._run else []
        found = of_tests + problems_in(self._failed)
        return found[:LIMIT] or ([self._exit] if self._exit else [])


def exit_problem(code: int | None, said: str) -> Problem:
    """A failure of which only the exit status and some lines are known, and not which of their numbers matter."""
    known = problem("exit", f"exit {code}", said)
    return replace(known, fingerprint=fingerprint(without_numbers(known.message), known.type))


def last_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])


def runs_something(command: str) -> bool:
    """Whether a command line has a program in it that does more than show files."""
    for segment in _SEGMENT.split(command[:4000]):
        words = segment.split()
        if words and words[0] not in _READERS:
            return True
    return False
