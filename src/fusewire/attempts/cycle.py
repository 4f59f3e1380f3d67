"""One whole cycle: the test command is run, its output kept word for word, judged, and counted.

A cycle that is interrupted is no attempt: nothing is counted before the result is there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.attempts.nouns import Attempt, Recorded
from fusewire.errors import FusewireError
from fusewire.judging.judge import Verdict, judge
from fusewire.runner.outputlog import OutputLog, prune
from fusewire.runner.process import run_agent
from fusewire.runner.warden import Warden
from fusewire.stores.folder import ensure_state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusewire.attempts.tracker import Attempts

#: Bytes of an output that are kept whole; of a longer one its beginning and its end are.
_HEAD, _TAIL = 8 << 20, 24 << 20

#: The end of it, which is judged.
_JUDGED = 8 << 20

#: Outputs of one slice that stay on disk.
_KEPT = 40

#: Merges both streams in the order in which they were written, and is gone before the command runs.
_MERGED = ("sh", "-c", 'exec "$@" 2>&1', "sh")


@dataclass(frozen=True)
class Cycle:
    """What a cycle brought."""

    verdict: Verdict
    recorded: Recorded
    exit_code: int | None
    #: the file with the whole output, relative to the project
    output: str
    #: a checkpoint had to be taken now, though code may have been changed before
    late: bool


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
    started = attempts.start(slice_id, test, session=session)
    path = _new_output(attempts, slice_id)
    log = OutputLog(os.path.join(attempts.root, path), _HEAD, _TAIL)

    def heard(data: bytes) -> None:
        log.write(data)
        on_output(data)

    stale = _stamp(junit)
    try:
        with Warden() as warden:
            ended = run_agent(
                [*_MERGED, *command],
                cwd=cwd or os.getcwd(),
                environment=os.environ,
                given=b"",
                timeout=timeout,
                idle=None,
                on_output=heard,
                on_error=heard,
                on_tick=lambda: None,
                stop=lambda: False,
                mark=os.urandom(8).hex(),
                warden=warden,
            )
    finally:
        log.close()
    output = _read_end(os.path.join(attempts.root, path))
    results = _read_junit(junit, stale)
    verdict = judge(test, output, ended.code, why=ended.why, junit=results)
    error = f"{verdict.error}\n[exit code {ended.code}]" if verdict.result == "fail" else ""
    recorded = attempts.record_attempt(
        slice_id,
        test,
        Attempt(
            verdict.result,
            reason=verdict.reason,
            error=error,
            kind=verdict.kind,
            evidence=verdict.evidence,
            strategy=strategy,
            output=path,
        ),
    )
    return Cycle(verdict, recorded, ended.code, path, started.fresh)


def _new_output(attempts: Attempts, slice_id: str) -> str:
    """A file of its own for each attempt, also of two at the same time."""
    folder = attempts.output_folder(slice_id)
    full = os.path.join(attempts.root, folder)
    ensure_state_folder(os.path.dirname(os.path.dirname(full)))
    os.makedirs(full, exist_ok=True)
    prune(full, _KEPT - 1)
    number = attempts.record(slice_id).attempts
    while True:
        number += 1
        path = os.path.join(folder, f"{number:04}.log")
        try:
            os.close(os.open(os.path.join(attempts.root, path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return path
        except FileExistsError:
            continue


def _read_end(path: str) -> str:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _JUDGED))
        return file.read().decode("utf-8", "replace")


def _stamp(path: str | None) -> tuple[int, int] | None:
    """What tells an old file of results from the one that the command writes."""
    try:
        facts = os.stat(path) if path else None
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_ino) if facts else None


def _read_junit(path: str | None, stale: tuple[int, int] | None) -> bytes | None:
    """The results that the command wrote; those of an earlier run say nothing about this one."""
    if path is None or _stamp(path) in (None, stale):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise FusewireError(f"the test results cannot be read: {path}: {error.strerror}") from error
