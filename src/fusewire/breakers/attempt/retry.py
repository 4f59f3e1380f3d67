"""Reset the counters of a slice (the seed's counter reset protocol): roll its files back, and lose nothing.

For a person, or an orchestrator outside the agent. Where another slice was worked on meanwhile, only the slice's own
files go back, as its scope says which these are; where it does not, nothing happens without `force`.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from fusewire.agents.caller import require_person
from fusewire.breakers.attempt.report import prior_attempts
from fusewire.breakers.attempt.scope.lock import boundary_of
from fusewire.breakers.attempt.scope.sources import NoScope, slice_name
from fusewire.breakers.attempt.state import SliceRecord, Tried, TriedBefore, TriedTest
from fusewire.breakers.attempt.types import SliceRetry
from fusewire.util.errors import FusewireError, InvalidTransition
from fusewire.worktree.checkpoint import Gone
from fusewire.worktree.moves import ChangedSince

if TYPE_CHECKING:
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.worktree.checkpoint import Checkpoint
    from fusewire.worktree.rollback import RolledBack

_UNTOUCHED = "nothing was touched. To start anew all the same: --force"

#: Characters of a person's guidance that are kept.
_GUIDANCE = 4000


def retry(attempts: Attempts, slice_id: str, guidance: str = "", *, force: bool = False) -> SliceRetry:
    """Reset a stopped slice; the result has what a fresh implementer must know."""
    require_person("`fusewire attempt retry`", attempts.root)
    slice_name(slice_id)
    if len(guidance) > _GUIDANCE:
        raise FusewireError(f"the guidance is too long; allowed: up to {_GUIDANCE} characters")
    if not attempts.is_stopped(slice_id):
        raise InvalidTransition(f"Invalid transition from CLOSED: nothing of {slice_id} is stopped")
    before = attempts.record(slice_id)
    failures, first = attempts.failures(slice_id), before.first()
    restored = None
    if first is not None and first.checkpoint is not None:
        restored = _roll_back(attempts, slice_id, before, first.checkpoint, first.began, force)

    def start_over(work: BreakerTransaction, record: SliceRecord) -> str:
        if record.life != before.life:
            raise InvalidTransition(f"Invalid transition from CLOSED: {slice_id} was started anew just now")
        record.prior = [*record.prior, _prior(record, failures, guidance)]
        attempts.restart(work, slice_id, guidance or "retry")
        # What has passed since then went back with the files.
        undone = first.began if first and restored else work.now
        passed = {name: test for name, test in record.tests.items() if test.is_done and test.passed_at < undone}
        record.tests, record.arch_stop, record.infrastructure = passed, None, []
        record.end_life()
        return prior_attempts(record.prior)

    prior = attempts.change(slice_id, start_over)
    attempts.lock.renew()
    return SliceRetry(failures, restored, prior)


def _roll_back(
    attempts: Attempts, slice_id: str, record: SliceRecord, checkpoint: Checkpoint, began: float, force: bool
) -> RolledBack | None:
    """Back to where the failed attempts began: what had passed before stays."""
    since = None if force else record.after
    mine = None
    unsure = "" if force else _other_work(record, checkpoint, attempts.others(slice_id, began))
    if unsure:
        try:
            mine = boundary_of(attempts.lock, slice_id)
        except NoScope:
            raise FusewireError(f"{unsure}, and no scope says which files are whose; {_UNTOUCHED}") from None
    try:
        return attempts.checkpoints.restore(
            checkpoint, since=since, force=force, name=slice_id, only=lambda path: mine is None or mine.allows(path)
        )
    except ChangedSince as error:
        raise FusewireError(f"{error}; {_UNTOUCHED}") from error
    except Gone as error:
        if force:
            return None
        raise FusewireError(f"{error}; {_UNTOUCHED} (without a rollback)") from error


def _other_work(record: SliceRecord, checkpoint: Checkpoint, others: list[str]) -> str:
    """Who else may have changed files since a checkpoint; empty if there is no sign of anyone."""
    if others:
        return f"{', '.join(others)} was worked on meanwhile"
    moved = record.after is not None and record.after.head != checkpoint.head
    return "commits were made since the checkpoint" if moved else ""


def finish(attempts: Attempts, slice_id: str, *, force: bool = False) -> None:
    """The slice is done, every test of it has passed: its scope lock is lifted, its counters stay.

    `force` is for a person: whatever its state, and its counters are reset.
    """
    if force:
        require_person("`fusewire attempt finish --force`", attempts.root)
    attempts.known(slice_id)

    def end(work: BreakerTransaction, record: SliceRecord) -> None:
        open_ones = [name for name, test in record.tests.items() if not test.is_done]
        if not force and (open_ones or attempts.is_stopped(slice_id)):
            what = f"not passed yet: {', '.join(open_ones[:5])}" if open_ones else "it is stopped"
            raise FusewireError(f"{slice_id} is not done ({what}); a person can run: fusewire attempt finish --force")
        if force:
            attempts.restart(work, slice_id, "finished")
            record.tests, record.prior, record.arch_stop, record.infrastructure = {}, [], None, []
        record.finished = True
        record.end_life()

    attempts.change(slice_id, end)
    attempts.lock.deactivate(slice_id)
    shutil.rmtree(os.path.join(attempts.root, attempts.output_folder(slice_id)), ignore_errors=True)


def _prior(record: SliceRecord, failures: int, guidance: str) -> TriedBefore:
    tests: dict[str, TriedTest] = {}
    for name in record.failing():
        entry = record.tests[name]
        log = [
            Tried(attempt=one["attempt"], strategy=one["strategy"], files=one["files"], result=one["result"])
            for one in entry.log
        ]
        tests[name] = {"log": log, "report": entry.report}
    stop = record.arch_stop["reason"] if record.arch_stop else ""
    return {"failures": failures, "guidance": guidance.strip(), "arch_stop": stop, "tests": tests}
