"""The counter reset protocol: both counters to 0, files back to where the failed attempts began, nothing lost.

For a person, or an orchestrator outside the agent. Where somebody else was at work meanwhile, only the slice's own
files go back, as its scope says which these are; where it does not, nothing happens without `force`.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from fusewire.agents.caller import require_person
from fusewire.breakers.attempt.ownership import boundary_of, doubt, owns
from fusewire.breakers.attempt.report_text import prior_attempts
from fusewire.breakers.attempt.scope.types import slice_name
from fusewire.breakers.attempt.state import SliceRecord
from fusewire.breakers.attempt.types import SliceRetry
from fusewire.util.errors import FusewireError, InvalidTransition
from fusewire.worktree.checkpoint import Checkpoint, Gone
from fusewire.worktree.moves import ChangedSince

if TYPE_CHECKING:
    from fusewire.breakers.attempt.state import TestRecord
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.worktree.rollback import RolledBack

_UNTOUCHED = "nothing was touched. To start anew all the same: --force"

#: Characters of a person's guidance that are kept.
_GUIDANCE = 4000


def retry(attempts: Attempts, slice_id: str, guidance: str = "", *, force: bool = False) -> SliceRetry:
    """Start a stopped slice anew, and tell what a fresh implementer must know."""
    require_person("`fusewire attempt retry`", attempts.root)
    slice_name(slice_id)
    if len(guidance) > _GUIDANCE:
        raise FusewireError(f"the guidance is too long; allowed: up to {_GUIDANCE} characters")
    if not attempts.is_stopped(slice_id):
        raise InvalidTransition(f"Invalid transition from CLOSED: nothing of {slice_id} is stopped")
    before = attempts.record(slice_id)
    failures, first = attempts.failures(slice_id), before.first()
    restored = _roll_back(attempts, slice_id, before, first, force) if first else None

    def start_anew(work: BreakerTransaction, record: SliceRecord) -> str:
        if record.life != before.life:
            raise InvalidTransition(f"Invalid transition from CLOSED: {slice_id} was started anew just now")
        record.prior = [*record.prior, _prior(record, failures, guidance)]
        attempts.restart(work, slice_id, guidance or "retry")
        # What has passed since then went back with the files.
        undone = first.began if first and restored else work.now
        passed = {name: test for name, test in record.tests.items() if test.is_done and test.passed_at < undone}
        record.tests, record.arch_stop, record.infrastructure = passed, {}, []
        record.end_life()
        return prior_attempts(record.prior)

    return SliceRetry(failures, restored, attempts.change(slice_id, start_anew))


def _roll_back(
    attempts: Attempts, slice_id: str, record: SliceRecord, first: TestRecord, force: bool
) -> RolledBack | None:
    """Back to where the failed attempts began: what had passed before stays."""
    checkpoint = Checkpoint.from_data(first.checkpoint)
    since = Checkpoint.from_data(record.after) if record.after and not force else None
    mine = None
    unsure = "" if force else doubt(record, checkpoint, attempts.others(slice_id, first.began))
    if unsure:
        mine = boundary_of(attempts.lock, slice_id)
        if mine is None:
            raise FusewireError(f"{unsure}, and no scope says which files are whose; {_UNTOUCHED}")
    try:
        return attempts.checkpoints.restore(
            checkpoint, since=since, force=force, name=slice_id, only=lambda path: mine is None or owns(mine, path)
        )
    except ChangedSince as error:
        raise FusewireError(f"{error}; {_UNTOUCHED}") from error
    except Gone as error:
        if force:
            return None
        raise FusewireError(f"{error}; {_UNTOUCHED} (without a rollback)") from error


def finish(attempts: Attempts, slice_id: str, *, force: bool = False) -> None:
    """The slice is done, every test of it has passed: its scope lock is lifted, its counters stay.

    `force` is for a person: whatever its state, and its counters start anew.
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
            record.tests, record.prior, record.arch_stop, record.infrastructure = {}, [], {}, []
        record.finished = True
        record.end_life()

    attempts.change(slice_id, end)
    attempts.lock.deactivate(slice_id)
    shutil.rmtree(os.path.join(attempts.root, attempts.output_folder(slice_id)), ignore_errors=True)


def _prior(record: SliceRecord, failures: int, guidance: str) -> dict[str, Any]:
    """What a retry keeps of the attempts that it ends."""
    tests = {}
    for name in record.failing():
        entry = record.tests[name]
        log = [{key: line[key] for key in ("attempt", "strategy", "files", "result")} for line in entry.log]
        tests[name] = {"log": log, "report": entry.report}
    return {
        "failures": failures,
        "guidance": guidance.strip(),
        "arch_stop": record.arch_stop.get("reason", ""),
        "tests": tests,
    }
