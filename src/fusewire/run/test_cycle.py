"""Run a test command as one attempt: keep its output word for word, judge it and count it.

A cycle that is interrupted is no attempt: nothing is counted before the result is there.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from tempfile import gettempdir
from typing import TYPE_CHECKING

from fusewire.breakers.attempt.last_attempts import LastAttempts
from fusewire.breakers.attempt.types import Attempt, AttemptResult
from fusewire.run.hook_server import RELAYED
from fusewire.run.output_log import OutputLog, prune
from fusewire.run.process import ProcessEnd, run_agent
from fusewire.run.sandbox import entrance_of
from fusewire.run.watchdog import Warden
from fusewire.testruns.judge import RunVerdict, judge
from fusewire.util.environment import children_environment
from fusewire.util.errors import FusewireError
from fusewire.util.files import file_stamp, make_folder, open_file, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusewire.breakers.attempt.tracker import Attempts

#: Up to so many bytes together an output is kept whole; of a longer one its beginning and its end are.
_HEAD, _TAIL = 8 << 20, 24 << 20

#: The end of it, which is judged.
_JUDGED = 8 << 20

#: Outputs of one slice that stay on disk.
_KEPT = 40

#: Merges both streams in the order in which they were written, and is gone before the command runs.
_MERGED = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")


#: Bytes of a file of results that are read.
_LARGEST_RESULTS = 50 << 20

#: What says that pytest could not take our option: its part that writes results is switched off.
_REFUSED = "unrecognized arguments: --junitxml="


@dataclass(frozen=True)
class Cycle:
    """What a cycle brought."""

    verdict: RunVerdict
    recorded: AttemptResult
    exit_code: int | None
    #: the file with the whole output, relative to the project
    output: str
    #: a checkpoint had to be taken now, though code may have been changed before
    late: bool
    #: why the results that were named could not be used
    problem: str
    #: another name in this slice that may stand for the same test
    alike: str


def run_cycle(
    attempts: Attempts,
    slice_id: str,
    test: str,
    command: Sequence[str],
    *,
    strategy: str = "",
    timeout: float | None = None,
    junit: str | None = None,
    session: str | None = None,
    cwd: str | None = None,
    on_output: Callable[[bytes], None] = lambda data: None,
) -> Cycle:
    """Run the test command and record the attempt; raises `Blocked` before it runs if the work is stopped."""
    if not command:
        raise FusewireError("no test command is given; put it behind --: fusewire attempt run S-1 test_x -- pytest")
    started = attempts.start(slice_id, test, session=session, late=True)
    same_as = _same_as(attempts, slice_id, test)
    path = _new_output(attempts, slice_id)
    log = OutputLog(os.path.join(attempts.root, path), _HEAD, _TAIL)

    def keep(data: bytes) -> None:
        log.write(data)
        on_output(data)

    whole = os.path.join(attempts.root, path)
    relayed = bool(os.environ.get(RELAYED))  # then the command is in a sandbox, and cannot write beside its output
    beside = os.path.join(gettempdir(), f"fusewire-{os.urandom(8).hex()}.log") if relayed else whole
    results = Results(junit, beside.removesuffix(".log") + ".xml", command)
    try:
        ended = _run(attempts.root, command, cwd, timeout, results, keep)
        if results.refused(_read_end(whole)):
            ended = _run(attempts.root, command, cwd, timeout, results, keep)
        found = results.read()
    finally:
        log.close()
        results.clear()
    verdict = judge(test, _read_end(whole), ended.code, why=ended.why, junit=found)
    if results.asks and found is None and verdict.result == "pass":  # it ended in the middle, whatever its exit status
        reason = "pytest has written no results: it is not known what ran"
        verdict = RunVerdict("infra", reason, "runner", verdict.evidence, tests=verdict.tests)
    error = f"{verdict.error}\n[exit code {ended.code}]" if verdict.result == "fail" else ""
    recorded = attempts.record_attempt(
        slice_id,
        test,
        Attempt(
            verdict.result,
            reason=verdict.reason,
            error=error,
            said=verdict.said,
            same_as=same_as if verdict.result == "fail" else "",
            kind=verdict.kind,
            evidence=verdict.evidence,
            strategy=strategy,
            output=path,
            life=started.life,
        ),
    )
    if recorded.counted or recorded.same_as:
        LastAttempts(attempts, slice_id, started.life).keep(test)
    return Cycle(verdict, recorded, ended.code, path, started.fresh, results.problem(found), started.alike)


def _same_as(attempts: Attempts, slice_id: str, test: str) -> str:
    """Since when no file was changed; a run that cannot be told from an attempt is one."""
    try:
        record = attempts.record(slice_id)
        entry = record.tests[test]
        if entry.late and not entry.log:
            return ""
        return LastAttempts(attempts, slice_id, record.life).same_as(record, test)
    except FusewireError:
        return ""


def _run(
    root: str,
    command: Sequence[str],
    cwd: str | None,
    timeout: float | None,
    results: Results,
    keep: Callable[[bytes], None],
) -> ProcessEnd:
    with Warden() as warden:
        return run_agent(
            [*_MERGED, *command],
            cwd=cwd or os.getcwd(),
            # the project's own code runs: it counts as the agent's
            environment={**children_environment(), **results.variables(), "FUSEWIRE_AGENT": "attempt"},
            given=b"",
            timeout=timeout,
            idle=None,
            on_output=keep,
            on_error=keep,
            on_tick=lambda: None,
            stop=lambda: False,
            mark=os.urandom(8).hex(),
            warden=warden,
            entrance=entrance_of(root) if os.environ.get(RELAYED) else None,
        )


def _new_output(attempts: Attempts, slice_id: str) -> str:
    """A file of its own for each attempt, also of two at the same time."""
    folder = attempts.output_folder(slice_id)
    prune(make_folder(attempts.root, folder), _KEPT - 1)
    number = attempts.record(slice_id).attempts
    while True:
        number += 1
        path = os.path.join(folder, f"{number:04}.log")
        try:
            os.close(open_file(os.path.join(attempts.root, path), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return path
        except FileExistsError:
            continue


def _read_end(path: str) -> str:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _JUDGED))
        return file.read().decode("utf-8", "replace")


# -- results by name ----------------------------------------------------------------------------------------


class Results:
    """The results of one run of a command: the JUnit file that it was said to write, or one that pytest is asked for.

    What a runner prints often names only the tests that failed; whether the one that matters ran is in the results.
    """

    def __init__(self, given: str | None, own: str, command: Sequence[str]) -> None:
        self._explicit = given is not None
        self._given = given or _named_in(command)
        self._own = own
        self._stale = file_stamp(self._given)
        #: whether we ask pytest for results because the command does not
        self.asks = self._given is None and _is_pytest(command)

    def variables(self) -> dict[str, str]:
        """What the command's environment needs beside its own; options of the command itself go before it."""
        if not self.asks:
            return {}
        before = children_environment().get("PYTEST_ADDOPTS", "")
        return {"PYTEST_ADDOPTS": f"{before} --junitxml={shlex.quote(self._own)}".strip()}

    def refused(self, output: str) -> bool:
        """Whether the command failed because of our option; then it is not asked for again."""
        if self.asks and _REFUSED in output:
            self.asks = False
            return True
        return False

    def read(self) -> bytes | None:
        """The results, if this run has written any; those of an earlier one say nothing about it."""
        path = self._own if self.asks else self._given
        if path is None or file_stamp(path) in (None, self._stale):
            return None
        try:
            return read_regular(path, _LARGEST_RESULTS)
        except OSError:
            return None

    def problem(self, found: bytes | None) -> str:
        """Why the results that were named could not be used; empty if they could."""
        if not self._explicit or found is not None:
            return ""
        return f"{self._given} was not written by this command; it is judged by what it printed"

    def clear(self) -> None:
        try:
            os.unlink(self._own)
        except OSError:
            pass  # pytest was given another file, or is none


def _named_in(command: Sequence[str]) -> str | None:
    """The results that the command makes pytest write anyway."""
    for at, word in enumerate(command):
        name, equals, value = word.partition("=")
        if name in ("--junitxml", "--junit-xml"):
            return value if equals else "".join(command[at + 1 : at + 2]) or None
    return None


def _is_pytest(command: Sequence[str]) -> bool:
    return any(os.path.basename(word) in ("pytest", "py.test") for word in command[:6])
