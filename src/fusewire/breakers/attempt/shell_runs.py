"""One run of tests in an agent's shell, judged and counted for the slices under way.

Only what the runner itself says counts. A test that the output does not name is judged where there can be no doubt:
the command asked for it alone, or everything is green and nothing was left out.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from fusewire.breakers.attempt.last_attempts import LastAttempts
from fusewire.breakers.attempt.test_commands import asks_for, covers
from fusewire.breakers.attempt.types import Attempt
from fusewire.core.decision import Decision, strictest
from fusewire.testruns.cases import matching
from fusewire.testruns.judge import judge
from fusewire.testruns.runners import read_cases
from fusewire.testruns.text import OutputLines
from fusewire.util.git import GitFailure, git

if TYPE_CHECKING:
    from fusewire.breakers.attempt.test_commands import ShellTestRun
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.breakers.attempt.types import AttemptResult
    from fusewire.testruns.judge import RunVerdict

#: Seconds that git may look for the name of a test.
_SEARCH = 5.0

#: Seconds that it may take to see what was changed; the hook's own deadline is later.
_PATIENT = 5.0


def count_run(attempts: Attempts, slices: list[str], run: ShellTestRun) -> Decision | None:
    """Count one run in the slices; of those in which it failed a test, the newest is the one that is worked on."""
    passed: list[Decision] = []
    for slice_id in slices:
        found = _SliceRun(attempts, slice_id, run)
        passed += found.count_others()
        test = found.worked_on()
        if test:
            return strictest((found.count_failure(test), *passed))
    return strictest(passed)


class _SliceRun:
    """One run of tests in one slice."""

    def __init__(self, attempts: Attempts, slice_id: str, run: ShellTestRun) -> None:
        self.attempts = attempts
        self.slice = slice_id
        self.run = run
        self.record = attempts.record(slice_id)
        self.verdicts = self._judge()

    # -- what the output says -------------------------------------------------------------------------

    def _judge(self) -> dict[str, RunVerdict]:
        """What the output says about each test that is under way and not stopped."""
        under_way = [name for name, entry in self.record.tests.items() if entry.checkpoint]
        if not under_way or self.attempts.stops(self.slice):
            return {}
        cases = read_cases(OutputLines(self.run.output), None)
        if cases is None:
            return {}  # no runner's own words: cut short, quiet, or none that we know
        found = {}
        for test in under_way:
            if self.attempts.stops(self.slice, test):
                continue
            verdict = judge(test, self.run.output, self.run.code)
            named = bool(matching(test, cases.cases))
            alone = cases.tests.total == 1 and asks_for(self.run.commands, test)
            if named or (verdict.result == "fail" and alone) or (verdict.result == "pass" and self._had(test)):
                found[test] = verdict
        return found

    def _had(self, test: str) -> bool:
        """Whether a green run that names no test had this one in it: it is still there, and was not left out."""
        files = _files_with(self.attempts.root, test)
        return bool(files) and covers(self.run.commands, test, files, self.run.here, self.attempts.root)

    def worked_on(self) -> str:
        """The failed test that the agent is working on; empty if none failed.

        That is the one that was asked for, else the one that was started last; of those that were started with nothing
        done in between, the first.
        """
        tests = self.record.tests
        failed = [test for test, verdict in self.verdicts.items() if verdict.result == "fail"]
        asked = [test for test in failed if asks_for(self.run.commands, test)]
        failed = sorted(asked or failed, key=lambda test: tests[test].began)
        if len(failed) < 2 or asked:
            return next(iter(failed), "")
        trees = _trees(self.attempts.root, [found.commit for test in failed if (found := tests[test].checkpoint)])
        return failed[trees.index(trees[-1])]

    # -- what it means --------------------------------------------------------------------------------

    def _record(self, test: str, error: str = "") -> AttemptResult:
        verdict = self.verdicts[test]
        attempt = Attempt(
            verdict.result,
            reason=verdict.reason,
            error=error,
            said=verdict.said,
            kind=verdict.kind,
            evidence=verdict.evidence,
            life=self.record.life,
        )
        return self.attempts.record_attempt(self.slice, test, attempt)

    def count_others(self) -> list[Decision]:
        """Record what passed and what could not run; announce what passed."""
        passed = []
        for test, verdict in self.verdicts.items():
            if verdict.result == "pass":
                self._record(test)
                left = [name for name, entry in self.record.tests.items() if name != test and not entry.is_done]
                step = (
                    "go on with the next" if left else f"when the slice is done: fusewire attempt finish {self.slice}"
                )
                reason = f"fusewire: {self.slice} {test} passed, its attempts are over; {step}."
                passed.append(Decision("tell", reason=reason))
            elif verdict.result == "infra" and self._is_new(test, verdict):
                self._record(test)
        return passed

    def _is_new(self, test: str, verdict: RunVerdict) -> bool:
        """The same error of the surroundings, looked at again, says nothing more."""
        last = next((one for one in reversed(self.record.infrastructure) if one["test"] == test), None)
        return last is None or last["kind"] != verdict.kind or last["evidence"] != verdict.evidence[:2000]

    def count_failure(self, test: str) -> Decision | None:
        """One failed attempt, if something was changed since the last one."""
        seen = LastAttempts(self.attempts, self.slice, self.record.life)
        if seen.given_up:
            return None
        began = time.monotonic()
        with seen:
            if seen.same_as(self.record, test):
                return None
            recorded = self._record(test, f"{self.verdicts[test].error}\n[exit code {self.run.code}]")
            seen.note(test)
        answer = self._answer(test, recorded)
        slow = time.monotonic() - began
        if slow > _PATIENT:
            seen.give_up()
            text = f"fusewire: it took {slow:.0f} s to see what was changed; from now on runs of {self.slice} are not"
            reason = f"{text} counted by themselves: use `fusewire attempt run`."
            return strictest((answer, Decision("tell", reason=reason)))
        return answer

    def _answer(self, test: str, recorded: AttemptResult) -> Decision | None:
        state = recorded.state
        if not recorded.stops:
            of_test, of_slice = self.attempts.limits(self.slice)
            near = f" Warning: {recorded.near}." if recorded.near else ""
            return Decision(
                "tell",
                reason=f"fusewire: {self.slice} {test} failed, and this run was counted: {state['attempt_count']}"
                f" of {of_test} failed attempts for the test, {state['total_failed_attempts']} of {of_slice} for the"
                f" slice. Do not record it again.{near}",
            )
        verdict, means = "tell", f"stop working on {test}; other tests of {self.slice} may go on."
        if any(stop.circuit == f"attempt/{self.slice}" for stop in recorded.stops):
            failing = ", ".join(self.attempts.record(self.slice).failing())
            verdict, means = (
                "halt",
                f"stop all work on {self.slice}. A diagnostic report is due for each of: {failing}.",
            )
        first, *others = recorded.stops
        stopped: Decision = first.replace(verdict=verdict, evidence=(*first.evidence, means), also=tuple(others))
        return stopped


def _trees(root: str, commits: list[str]) -> list[str]:
    """The contents of checkpoints; where git cannot tell, each is another."""
    try:
        return git(root, "rev-parse", *(f"{commit}^{{tree}}" for commit in commits)).decode().split()
    except GitFailure:
        return commits


def _files_with(root: str, test: str) -> list[str]:
    """The sources in which the name of a test stands; none where git cannot tell."""
    name = re.split(r"::| > | \u203a |[.#/]", test.partition("[")[0])[-1].strip()
    try:
        found = git(root, "grep", "--untracked", "-lzwF", "-e", name, limit=_SEARCH) if name else b""
    except GitFailure:
        return []  # git also ends like this if there is none
    paths = found.decode("utf-8", "surrogateescape").split("\0")
    return [path for path in paths if path and not path.endswith((".md", ".txt", ".rst", ".json", ".log", ".xml"))]
