"""Judge one test by the output of a run: it passed, it ran and failed, or it could not run (seed 004, section 2).

Only a test that ran and failed is an attempt. What decides is the structure of the runner's output: the list of
failing tests, the error at the head of a part, the summary. Words in a diff, in what a test printed or in an
assertion decide nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SPOILED, CaseResult, Cases, matching, nearest
from fusewire.testruns.could_not_run import find_idle, find_start_error, find_unfinished
from fusewire.testruns.infrastructure import BUILD, ENVIRONMENT, PERMISSION, RUNNER, StartError, is_permission, kind_of
from fusewire.testruns.run import TestRun
from fusewire.testruns.runner import NAMING_HINT
from fusewire.testruns.runners import read_cases, refused_by_filesystem, runner_named
from fusewire.testruns.text import OutputLines, beginning, ending

#: Bytes of a verdict's evidence and of its error.
EVIDENCE = 2_000
ERROR = 16_000

#: Exit codes of a shell: a command that cannot be executed, and one that is not there; 124 is that of `timeout`.
_NOT_EXECUTABLE, _NOT_FOUND, _TIMED_OUT = 126, 127, 124
_SIGNALS = range(129, 160)
#: How runners print compared values on lines of their own, and how many of these lines a message takes in.
_VALUE = re.compile(
    r"[\sE|]*((?:(?:left|right|expected|received|actual|got|want)\b[^:]*:|[-+] (?! *where ))\s*\S.*)", re.IGNORECASE
)
_VALUES = 4
#: Parts of the output that are shown of a test which failed more than once.
_PARTS = 20


@dataclass(frozen=True)
class RunVerdict:
    """`pass`, `fail` or `infra` for one test, and what says so."""

    result: str
    #: one line for people
    reason: str
    #: of infra: build, environment, network, permission, runner
    kind: str = ""
    #: the very lines of the output that say so
    evidence: str = ""
    #: of a failure: the part of the output that belongs to this test, exactly as printed
    error: str = ""
    #: of a failure: its message in one line, with the values that it compares
    said: str = ""
    tests: TestRun | None = None


def judge(
    test: str, output: str, exit_code: int | None, *, why: str = "exit", junit: bytes | None = None
) -> RunVerdict:
    """The verdict on `test`; `why` is how the command ended: exit, timeout, signal, launch."""
    lines = OutputLines(output)
    run = read_cases(lines, junit)
    return _Judge(test, lines, exit_code, why, run).verdict()


class _Judge:
    """One test, one run: the rules in the order in which they decide."""

    def __init__(self, test: str, lines: OutputLines, exit_code: int | None, why: str, run: Cases | None) -> None:
        self.test, self.lines, self.exit_code, self.why, self.run = test, lines, exit_code, why, run
        self.tests = run.tests if run else None

    def verdict(self) -> RunVerdict:
        if self.run:
            mine = matching(self.test, self.run.cases)
            if mine:
                return self._of_mine(self.run, mine)
        ended = self._ended_badly()
        if ended:
            return ended
        return self._of_others(self.run) if self.run else self._without_run()

    # -- the test is in the output ----------------------------------------------------------------------------------

    def _of_mine(self, run: Cases, mine: list[CaseResult]) -> RunVerdict:
        failed = [case for case in mine if case.outcome == FAILED]
        real = [case for case in failed if not self._is_refused(run, case)]
        if real:
            return self._failed(run, real)
        if failed:
            return self._infra(PERMISSION, f"the filesystem refused: {_one_line(failed[0].said)}", failed[0])
        broken = next((case for case in mine if case.outcome == BROKEN), None)
        if broken:
            return self._infra(self._kind(broken), f"{self.test} could not run: {_one_line(broken.said)}", broken)
        spoiled = next((case for case in mine if case.outcome == SPOILED), None)
        if spoiled:
            said = _one_line(spoiled.said)
            return self._infra(
                self._kind(spoiled, RUNNER), f"{self.test} passed, but what came after it broke: {said}", spoiled
            )
        if any(case.outcome == PASSED for case in mine):
            return self._ended_badly(finished=True) or self._passed(run, "passed")
        return self._infra(RUNNER, f"{self.test} did not run: it was skipped", evidence=self._summary(mine))

    def _is_refused(self, run: Cases, case: CaseResult) -> bool:
        return refused_by_filesystem(run.tests.runner, case.said, self._section(case))

    def _failed(self, run: Cases, cases: list[CaseResult]) -> RunVerdict:
        """Parametrised tests and subtests fail several times."""
        count, name = run.tests.failed, cases[0].name
        more = f", {name} among them" if count > 1 else f": {name}"
        reason = f"{max(count, 1)} of {max(run.tests.total, 1)} tests failed{more}"
        parts = list(dict.fromkeys(self._part(case) for case in cases[:_PARTS]))
        error = beginning("\n".join(parts), ERROR)
        said = _said(cases[0].said, parts[0])
        return RunVerdict("fail", _one_line(reason), error=error, said=said, tests=self.tests)

    def _part(self, case: CaseResult) -> str:
        if case.text:
            return beginning(case.text, ERROR)
        if case.end <= case.begin:
            return ending("\n".join(self.lines.printed), ERROR)
        whole = self.lines.shown(case.begin, case.end)
        before = self.lines.shown(case.begin, case.error[1])
        # Of a part that is too long, the error is worth more than the code above it.
        if len(before.encode("utf-8", "surrogatepass")) > ERROR and case.begin < case.error[0] < case.end:
            whole = self.lines.shown(case.error[0], case.end)
        return beginning(whole, ERROR)

    def _kind(self, case: CaseResult, otherwise: str = ENVIRONMENT) -> str:
        """By the error itself; a suite that broke without a telling error is what its reader calls it."""
        if case.kind == RUNNER and not is_permission(case.said):
            return RUNNER
        return kind_of(case.said, self._section(case)) or case.kind or otherwise

    def _section(self, case: CaseResult) -> list[str]:
        return case.text.split("\n") if case.text else self.lines.plain[case.begin : case.end]

    # -- the test is not in the output ------------------------------------------------------------------------------

    def _of_others(self, run: Cases) -> RunVerdict:
        tests = run.tests
        if run.may_hide_tests or (run.broken and not tests.passed + tests.failed):
            return self._elsewhere_broken(run)
        if run.cut:
            return self._infra(RUNNER, f"{self.test} is not known to have run: {_one_line(run.cut)}", line=run.cut)
        if not tests.passed + tests.failed:
            return self._infra(RUNNER, f"{self.test} did not run: nothing ran", evidence=self._end())
        if run.listed:
            return self._not_listed(run)
        if self.exit_code == 0 and tests.passed:
            return self._unless_left_out(run)
        if not run.names_failures:
            reason = f"{tests.failed} of {tests.total} tests failed; the output does not name them"
            return RunVerdict("fail", reason, error=ending("\n".join(self.lines.printed), ERROR), tests=tests)
        if tests.passed:
            return self._unless_left_out(run)
        return self._infra(
            RUNNER, f"{self.test} is not known to have run (alone, or with -v, it would tell): {_names(tests)} failed",
            evidence=self._end(),
        )  # fmt: skip

    def _not_listed(self, run: Cases) -> RunVerdict:
        like = nearest(self.test, run.cases)
        more = f"; the nearest is {like}" if like else ""
        return self._infra(
            RUNNER, f"{self.test} did not run: no test of that name is listed{more}", evidence=self._end()
        )

    def _unless_left_out(self, run: Cases) -> RunVerdict:
        """A test that nothing is said of has passed, unless it may be one of those that were left out."""
        if not run.left_out or run.one_passed:
            return self._passed(run)
        runner = runner_named(run.tests.runner)
        hint = runner.naming_hint if runner else NAMING_HINT
        return self._infra(
            RUNNER, f"{self.test} is not known to have run: {hint}; some tests were left out",
            evidence=self._end(),
        )  # fmt: skip

    def _elsewhere_broken(self, run: Cases) -> RunVerdict:
        if not run.broken:
            error = find_start_error(self.lines)
            if error:
                return self._not_started(error)
            return self._infra(BUILD, f"{self.test} is not known to have run: something broke", evidence=self._end())
        first = run.broken[0]
        return self._infra(
            self._kind(first, BUILD),
            f"{self.test} is not known to have run: {first.name}: {_one_line(first.said)}",
            first,
        )

    def _passed(self, run: Cases, how: str = "is not among them") -> RunVerdict:
        """Runners name the tests that fail, and mostly no others."""
        others, total = run.tests.failed + run.tests.broken, run.tests.total
        if others:
            reason = f"{others} of {total} tests failed; {self.test} {how}"
        else:
            reason = (
                f"{self.test} passed" if how == "passed" else f"{run.tests.passed} of {total} tests passed, none failed"
            )
        return RunVerdict("pass", _one_line(reason), tests=self.tests)

    # -- no run was recognised --------------------------------------------------------------------------------------

    def _without_run(self) -> RunVerdict:
        idle = find_idle(self.lines)
        if self.exit_code == 0:
            passed = RunVerdict("pass", f"{_one_line(self.test)}: the command exited with 0")
            return self._not_started(idle) if idle else passed
        error = find_start_error(self.lines) or idle or find_unfinished(self.lines)
        if error:
            return self._not_started(error)
        whole = ending("\n".join(self.lines.printed), ERROR)
        said = next((_one_line(line) for line in reversed(self.lines.plain) if line.strip()), "")
        return RunVerdict("fail", f"the command exited with {self.exit_code}", error=whole, said=said)

    def _ended_badly(self, finished: bool = False) -> RunVerdict | None:
        """The command was not started, or did not end by itself."""
        code = self.exit_code
        if self.why == "launch":
            return self._launch()
        if self.why == "timeout" or (code == _TIMED_OUT and not self.run):
            return self._infra(RUNNER, "the command ran out of time", evidence=self._end())
        if self.why == "signal" or code is None or code < 0 or code in _SIGNALS:
            if finished and self.why == "exit":
                return None
            error = find_start_error(self.lines)
            crash = error.what if error and error.kind == RUNNER else "the command was killed"
            return self._infra(RUNNER, crash, evidence=self._lines(error) if error else self._end())
        if self.run or code not in (_NOT_FOUND, _NOT_EXECUTABLE):
            return None
        if code == _NOT_FOUND:
            return self._infra(ENVIRONMENT, "the command was not found", evidence=self._end(1))
        return self._infra(PERMISSION, "the command could not be executed", evidence=self._end(1))

    def _launch(self) -> RunVerdict:
        text = self.lines.text
        kind = PERMISSION if "[Errno 13]" in text or "Permission denied" in text else ENVIRONMENT
        return self._infra(kind, "the command could not be started", evidence=self._end())

    # -- words and evidence -----------------------------------------------------------------------------------------

    def _infra(
        self, kind: str, reason: str, case: CaseResult | None = None, *, evidence: str = "", line: str = ""
    ) -> RunVerdict:
        if case:
            title = self.lines.shown(case.begin, case.begin + 1) if case.begin < case.error[0] < case.end else ""
            said = self.lines.shown(*case.error)
            evidence = case.text or (f"{title}\n{said}" if title else said)
        elif line:
            evidence = next((shown for shown in reversed(self.lines.printed) if line in shown), line)
        return RunVerdict("infra", _one_line(reason), kind, beginning(evidence, EVIDENCE), tests=self.tests)

    def _not_started(self, error: StartError) -> RunVerdict:
        return self._infra(error.kind, f"{self.test} did not run: {error.what}", evidence=self._lines(error))

    def _lines(self, error: StartError) -> str:
        return self.lines.shown(error.begin, error.end)

    def _end(self, count: int = 5) -> str:
        return ending(self.lines.shown(*self.lines.last(count)), EVIDENCE)

    def _summary(self, mine: list[CaseResult]) -> str:
        """The line in which a skipped test stands, if there is one."""
        last = mine[0].parts[-1] if mine[0].parts else mine[0].name
        words = ("SKIP", "skip", "XFAIL", "expected failure", "ignored", "\u25cb", "\u2193", "\ufe63", "TODO")
        for line, shown in zip(self.lines.plain, self.lines.printed, strict=False):
            if last in line and any(word in line.replace(last, "") for word in words):
                return shown
        return self._end()


def _said(message: str, part: str) -> str:
    """A failure's message and the values below it: `expect(received).toBe(expected)` alone says little."""
    values: list[str] = []
    for line in part[max(0, part.find(message)) :].split("\n")[1:15]:
        if line.startswith("-----"):
            break  # what the test itself printed
        match = _VALUE.fullmatch(line)
        values += [" ".join(match[1].split())] if match else []
    return _one_line("; ".join(filter(None, [message, *values[:_VALUES]])))


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:299] + "\u2026"


def _names(tests: TestRun) -> str:
    shown = ", ".join(tests.failing[:3])
    return shown + (f" and {tests.failed - 3} more" if tests.failed > 3 else "")
