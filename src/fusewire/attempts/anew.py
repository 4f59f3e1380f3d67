"""The counter reset protocol: both counters to 0, files back to where the failed attempts began, nothing lost.

For a person, or an orchestrator outside the agent. Only the slice's own files go back, where its scope says which
these are; where it does not, and somebody else was at work, nothing happens without `force`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.attempts.nouns import Retried
from fusewire.attempts.ownership import boundary_of, doubt, owns
from fusewire.attempts.record import SliceRecord, check_slice
from fusewire.checkpoints.checkpoint import Checkpoint
from fusewire.checkpoints.moves import ChangedSince
from fusewire.errors import AgentRefused, FusewireError, InvalidTransition
from fusewire.person import require_person
from fusewire.reports.attempts import prior_attempts

if TYPE_CHECKING:
    from fusewire.attempts.tracker import Attempts
    from fusewire.checkpoints.rollback import Restored

#: Characters of a person's guidance that are kept.
_GUIDANCE = 4000


def retry(attempts: Attempts, slice_id: str, guidance: str = "", *, force: bool = False) -> Retried:
    """Start a stopped slice anew, and tell what a fresh implementer must know."""
    require_person("`fusewire attempt retry`", attempts.root)
    check_slice(slice_id)
    if len(guidance) > _GUIDANCE:
        raise FusewireError(f"the guidance is too long; allowed: up to {_GUIDANCE} characters")
    if not attempts.is_stopped(slice_id):
        raise InvalidTransition(f"Invalid transition from CLOSED: nothing of {slice_id} is stopped")
    restored = _roll_back(attempts, slice_id, attempts.record(slice_id), force)
    with attempts.breaker.store.transact() as transaction:
        now = attempts.engine.clock()
        record = attempts.recall(transaction, slice_id, now)
        failures = attempts.failures(slice_id)
        record.prior = [*record.prior, _prior(record, failures, guidance)]
        attempts.restart(transaction, slice_id, guidance or "retry", now)
        for name in list(record.tests):
            if record.tests[name].log or record.tests[name].last_result != "pass":
                del record.tests[name]
        record.arch_stop, record.began, record.after, record.infrastructure = {}, {}, {}, []
        record.life += 1
        record.remember(transaction, slice_id, now)
    return Retried(failures, restored, prior_attempts(record.prior))


def _roll_back(attempts: Attempts, slice_id: str, record: SliceRecord, force: bool) -> Restored | None:
    """Back to the checkpoint of the first test that fails: what had passed before it stays."""
    begun = [record.tests[name] for name in record.failing() if record.tests[name].checkpoint]
    if not begun:
        return None
    since = Checkpoint.from_data(record.after) if record.after and not force else None
    mine = None if force else boundary_of(attempts.lock, slice_id)
    if not force and mine is None:
        unsure = doubt(slice_id, record, begun[0].began, attempts.others(slice_id))
        if unsure:
            raise FusewireError(f"{unsure}; nothing was touched. To go back all the same: --force")
    try:
        return attempts.checkpoints.restore(
            Checkpoint.from_data(begun[0].checkpoint),
            since=since,
            force=force,
            name=slice_id,
            only=lambda path: mine is None or owns(mine, path),
        )
    except ChangedSince as error:
        raise FusewireError(f"{error}; nothing was touched. To go back all the same: --force") from error


def finish(attempts: Attempts, slice_id: str) -> None:
    """The slice is over: its scope lock is lifted. For a person also its counters; an agent must have passed."""
    record = attempts.known(slice_id)
    failing = [name for name, test in record.tests.items() if test.log or test.last_result != "pass"]
    try:
        require_person("`fusewire attempt finish`", attempts.root)
    except AgentRefused:
        if failing or attempts.is_stopped(slice_id):
            what = f"not passed yet: {', '.join(failing[:5])}" if failing else "it is stopped"
            raise AgentRefused(f"{slice_id} is not done ({what}); a person can finish it all the same") from None
        attempts.lock.deactivate(slice_id)
        return
    with attempts.breaker.store.transact() as transaction:
        now = attempts.engine.clock()
        attempts.restart(transaction, slice_id, "finished", now)
        SliceRecord(life=record.life + 1, attempts=record.attempts).remember(transaction, slice_id, now)
    attempts.lock.deactivate(slice_id)


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
