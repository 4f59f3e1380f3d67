"""Count the attempts at the tests of a slice, stop them at their limits, and reset them to a checkpoint.

Who goes first is the seed's order: an architectural decision that is needed (deviation rule 4), then the test with its
three failures, then the slice with its seven. Git is asked outside of transactions; what was found is then judged,
counted and remembered in one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from fusewire.breakers.attempt import retry as reset
from fusewire.breakers.attempt.report import prior_attempts
from fusewire.breakers.attempt.scope.lock import ScopeLock, boundary_of
from fusewire.breakers.attempt.scope.sources import NoScope, slice_name
from fusewire.breakers.attempt.state import (
    ArchStop,
    FailedAttempt,
    SliceRecord,
    TestRecord,
    check_test,
    one_line,
    shown,
    slice_times,
    tried_before,
)
from fusewire.breakers.attempt.stops import circuit_of, record_of, stops_of
from fusewire.breakers.attempt.strategies import repeated
from fusewire.breakers.attempt.types import Attempt, AttemptResult, AttemptStart, SliceRetry, TrackingState
from fusewire.config.rules import STATE_FOLDER
from fusewire.core import meters
from fusewire.core.circuit import near
from fusewire.core.decision import Blocked, Decision
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.testruns.cases import same_test
from fusewire.util.errors import FusewireError, NotFound
from fusewire.worktree.checkpoint import Checkpoint, Checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fusewire.breakers.attempt.scope.boundary import Boundary
    from fusewire.breakers.attempt.state import Tried
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.stores.rows import CircuitRow

_RESULTS = ("pass", "fail", "infra")

Found = TypeVar("Found")


class Attempts:
    """The attempts of one project, slice by slice. Safe to use from several processes at once."""

    def __init__(self, breaker: Breaker) -> None:
        if breaker.root is None:
            raise FusewireError("attempts need a project to work in")
        self.breaker = breaker
        self.engine = breaker.engine
        self.root = breaker.root
        self.checkpoints = Checkpoints(self.root)
        self.lock = ScopeLock(breaker)

    @classmethod
    def open(cls, project: str | os.PathLike[str] | None = None) -> Attempts:
        """The attempts of the project around a folder (default: the current one)."""
        return cls(Breaker.open(project=project))

    # -- before ---------------------------------------------------------------------------------------

    def refusal(self, slice_id: str, test: str | None = None) -> Decision | None:
        """What stops the work at a test now, if anything does; the strictest comes first."""
        return next(iter(self.stops(slice_id, test)), None)

    def start(self, slice_id: str, test: str, *, session: str | None = None, late: bool = False) -> AttemptStart:
        """Begin the attempts at a test: everything as it is now becomes their checkpoint. Raises `Blocked`.

        `late`: code may have been changed for this test already.
        """
        slice_name(slice_id)
        test = check_test(test)
        refused = self.refusal(slice_id, test)
        if refused is not None:
            raise Blocked(refused)
        known = self.record(slice_id)
        taken = None
        if test not in known.tests or known.tests[test].checkpoint is None:
            taken = self.checkpoints.take(slice_id, f"{slice_id}: {test}", known.checkpoints())

        def begin(work: BreakerTransaction, record: SliceRecord) -> tuple[SliceRecord, Checkpoint]:
            entry = record.test(test)
            if entry.checkpoint is None:
                if taken is None:
                    raise FusewireError(f"another process ended the attempts at {test} just now; try again")
                entry.checkpoint, entry.began, entry.late, entry.last_result = taken, work.now, late, ""
                record.began = record.began or taken
                record.after = record.after or taken
            record.finished = False
            return record, entry.checkpoint

        record, checkpoint = self.change(slice_id, begin)
        state = self.state(slice_id, test)
        self.lock.activate(slice_id, session)
        unlocked = ""
        try:
            self.lock.scope(slice_id)
        except NoScope as error:
            unlocked = f"the scope lock does not hold: {error}"
        except FusewireError as error:
            unlocked = f"nothing in the project may be changed before a person mends this: {error}"
        alike = next((name for name in record.tests if name != test and same_test(name, test)), "")
        prior = prior_attempts(record.prior)
        return AttemptStart(checkpoint, checkpoint == taken, state, prior, unlocked, alike, record.life)

    # -- after ----------------------------------------------------------------------------------------

    def record_attempt(self, slice_id: str, test: str, attempt: Attempt) -> AttemptResult:
        """Count one complete cycle: code was changed, the test was run, the result is there."""
        slice_name(slice_id)
        test = check_test(test)
        if attempt.result not in _RESULTS:
            raise FusewireError(f"{attempt.result!r} is no result of an attempt; allowed: {', '.join(_RESULTS)}")
        files, after, problem = self._looked_at(slice_id, test, attempt)

        def count(work: BreakerTransaction, record: SliceRecord) -> tuple[list[Decision], str, SliceRecord]:
            if attempt.life not in (None, record.life):
                raise FusewireError(f"{slice_id} was started anew meanwhile; this attempt at {test} counts nowhere")
            entry = record.test(test)
            again = (
                "" if attempt.same_as else _said_again(attempt.strategy, tried_before(record.prior, test), entry.log)
            )
            decisions = [work.send(signal) for signal in _signals(slice_id, test, attempt)]
            record.attempts += 1
            record.after = after or record.after
            late = attempt.result == "pass" and decisions[0].phase == "open"
            _write_down(record, entry, test, attempt, files, late, work.now)
            return decisions, again, record

        decisions, again, record = self.change(slice_id, count)
        tripped = {decision.circuit for decision in decisions if decision.tripped}
        if circuit_of(slice_id) in tripped:
            self.lock.renew()
        stops = [
            stop.replace(tripped=stop.circuit in tripped) for stop in stops_of(self.engine, record, slice_id, test)
        ]
        return AttemptResult(
            self.state(slice_id, test),
            tuple(stops),
            again,
            tuple(self.lock.violations(slice_id, files) or ()),
            "" if stops or attempt.result != "fail" or attempt.same_as else self._near(slice_id, test),
            problem,
            attempt.result == "fail" and not attempt.same_as,
            attempt.same_as,
        )

    def _looked_at(self, slice_id: str, test: str, attempt: Attempt) -> tuple[list[str], Checkpoint | None, str]:
        """What was changed, everything as it is now, and what git had against it: an attempt counts all the same."""
        name, message = f"{slice_id}/after", f"{slice_id}: after an attempt at {test}"
        known = self.record(slice_id).tests.get(test)
        try:
            if attempt.files is not None or known is None or known.checkpoint is None:
                return attempt.files or [], self.checkpoints.take(name, message), ""
            after, files = self.checkpoints.take_since(known.checkpoint, name, message)
        except FusewireError as error:
            return attempt.files or [], None, str(error)
        return self.own_files(slice_id, files, known.began), after, ""

    def arch_stop(self, slice_id: str, reason: str) -> Decision:
        """Deviation rule 4: the slice needs an architectural decision; stop at once, no attempt is burned."""
        slice_name(slice_id)
        if not reason.strip():
            raise FusewireError("an ARCH-STOP needs its reason: which architectural change is needed, and why")
        signal = Signal("bad", circuit_of(slice_id), "arch_stop", text=one_line(reason))

        def halt(work: BreakerTransaction, record: SliceRecord) -> tuple[Decision, SliceRecord]:
            record.arch_stop = ArchStop(reason=one_line(reason), at=work.now)
            return work.send(signal), record

        decision, record = self.change(slice_id, halt)
        self.lock.renew()
        stop: Decision = stops_of(self.engine, record, slice_id)[0].replace(tripped=decision.tripped)
        return stop

    # -- the counter reset protocol -------------------------------------------------------------------

    def retry(self, slice_id: str, guidance: str = "", *, force: bool = False) -> SliceRetry:
        """Both counters to 0, files back to where the failed attempts began; for a person or an orchestrator."""
        return reset.retry(self, slice_id, guidance, force=force)

    def finish(self, slice_id: str, *, force: bool = False) -> None:
        """The slice is done: its scope lock is lifted. `force` is for a person, and ends its counters too."""
        reset.finish(self, slice_id, force=force)

    def restart(self, work: BreakerTransaction, slice_id: str, why: str) -> None:
        """Every counter of the slice to 0, whatever its circuit says."""
        for row in self._circuits(slice_id):
            work.send(Signal("restart", row.id, "restart", text=why))

    # -- looking --------------------------------------------------------------------------------------

    def record(self, slice_id: str) -> SliceRecord:
        return record_of(self.breaker.store, slice_id)

    def known(self, slice_id: str) -> SliceRecord:
        """The record of a slice that has one; NotFound otherwise."""
        record = self.record(slice_name(slice_id))
        if not record.tests and not record.prior and not record.arch_stop and not self.is_stopped(slice_id):
            raise NotFound(
                f"nothing is known of slice {slice_id} in {self.root}; begin: fusewire attempt start {slice_id} TEST"
            )
        return record

    def slices(self) -> list[str]:
        """Every slice that is under way, or stopped."""
        names = {row.id.split("/")[1] for row in self.breaker.store.circuits() if row.kind == "attempt"}
        records = {name: self.record(name) for name in {*names, *slice_times(self.breaker.store)}}
        under_way = (name for name, record in records.items() if record.tests and not record.finished)
        return sorted({*under_way, *(name for name in records if self.is_stopped(name))})

    def others(self, slice_id: str, since: float) -> list[str]:
        """The other slices that were worked on since a moment, finished ones too."""
        times = slice_times(self.breaker.store)
        return sorted(name for name, at in times.items() if name != slice_id and at > since)

    def own_files(self, slice_id: str, files: list[str], since: float) -> list[str]:
        """The files without those that only belong to the scope of another slice that was worked on since a moment.

        A checkpoint is of the whole project, but several slices may be under way in it at once.
        """
        theirs = [found for name in self.others(slice_id, since) if (found := self._boundary(name)) is not None]
        mine = self._boundary(slice_id) if theirs else None
        return [
            path
            for path in files
            if (mine is not None and mine.allows(path)) or not any(one.allows(path) for one in theirs)
        ]

    def _boundary(self, slice_id: str) -> Boundary | None:
        """None where its scope is not defined, or cannot be read: then it takes no file away from another."""
        try:
            return boundary_of(self.lock, slice_id)
        except FusewireError:
            return None

    def is_stopped(self, slice_id: str) -> bool:
        return any(row.phase == "open" for row in self._circuits(slice_id))

    def failures(self, slice_id: str) -> int:
        """The slice's total of failed attempts."""
        return self._level(slice_id)

    def state(self, slice_id: str, test: str) -> TrackingState:
        """The seed's tracking state of one test, field by field."""
        entry = self.record(slice_id).tests.get(test) or TestRecord()
        return {
            "slice_id": slice_id,
            "test_name": test,
            "attempt_count": self._level(slice_id, test),
            "files_touched": list(entry.files_touched),
            "description": entry.description,
            "last_error": entry.last_error,
            "checkpoint_tag": entry.checkpoint.commit if entry.checkpoint else "",
            "total_failed_attempts": self._level(slice_id),
        }

    def limits(self, slice_id: str) -> tuple[int, int]:
        """How many failures stop a test, and how many the slice."""
        policies = (self.breaker.rules.policy(circuit_of(slice_id, test)) for test in ("any", None))
        test, whole = (int(policy.meters[0].trip) for policy in policies)
        return test, whole

    def stops(self, slice_id: str, test: str | None = None) -> list[Decision]:
        """Everything that stops the work at a test (or at the slice) now, strictest first."""
        return stops_of(self.engine, self.record(slice_id), slice_id, test)

    def prior(self, slice_id: str) -> str:
        """The block for a fresh implementer; empty if the slice was never retried."""
        return prior_attempts(self.known(slice_id).prior)

    def files_touched(self, slice_id: str) -> list[str]:
        """What differs now from where the slice, or its last retry, began."""
        began = self.known(slice_id).began
        if began is None:
            raise FusewireError(f"no checkpoint of {slice_id}; take one: fusewire attempt start {slice_id} TEST")
        return self.checkpoints.changed_since(began)

    def output_folder(self, slice_id: str) -> str:
        """Where the whole outputs of its attempts are, relative to the project."""
        return os.path.join(STATE_FOLDER, "attempts", slice_id)

    def change(self, slice_id: str, work: Callable[[BreakerTransaction, SliceRecord], Found]) -> Found:
        """Change the record of a slice, and whatever else, in one transaction."""

        def change_record(work_in: BreakerTransaction) -> Found:
            transaction, now = work_in.transaction, work_in.now
            try:
                record = SliceRecord.recalled(transaction, slice_id)
            except ValueError as error:
                lost = f"what was remembered of slice {slice_id} is lost; its counters are not: {error}"
                transaction.notice(lost, now)
                record = SliceRecord()
            result = work(work_in, record)
            record.remember(transaction, slice_id, now)
            return result

        return self.engine.run(change_record)

    def _circuits(self, slice_id: str) -> list[CircuitRow]:
        mine = circuit_of(slice_id)
        return [row for row in self.breaker.store.circuits() if row.id == mine or row.id.startswith(f"{mine}/")]

    def _level(self, slice_id: str, test: str | None = None) -> int:
        policy, state = self.engine.view(circuit_of(slice_id, test))
        return int(meters.level(policy.meters[0], state.meters.get(policy.meters[0].name, []), self.engine.clock()))

    def _near(self, slice_id: str, test: str) -> str:
        now = self.engine.clock()
        for circuit, what in ((circuit_of(slice_id, test), "this test"), (circuit_of(slice_id), f"slice {slice_id}")):
            policy, state = self.engine.view(circuit)
            if near(policy, state, now):
                return f"one more failed attempt stops the work on {what}"
        return ""


def _signals(slice_id: str, test: str, attempt: Attempt) -> list[Signal]:
    """What the circuits of a test and of its slice are sent after an attempt."""
    if attempt.same_as:
        return []
    circuits = (circuit_of(slice_id, test), circuit_of(slice_id))
    text = one_line(": ".join(filter(None, (test, attempt.reason or attempt.strategy))))
    if attempt.result == "pass":  # the slice's total is never cleared by it
        return [Signal("good", circuits[0], "test_passed", text=text)]
    kind, name = ("bad", "test_failed") if attempt.result == "fail" else ("note", "infrastructure")
    return [Signal(kind, circuit, name, text=text) for circuit in circuits]  # type: ignore[arg-type]


def _write_down(
    record: SliceRecord,
    entry: TestRecord,
    test: str,
    attempt: Attempt,
    files: list[str],
    late: bool,
    now: float,
) -> None:
    entry.description = one_line(attempt.strategy) or entry.description
    if late:  # the work is stopped all the same, and what was learned is wanted for the report
        entry.last_result = "pass"
        return
    if attempt.result == "pass":
        entry.passed(now)
        return
    if attempt.same_as:
        return
    entry.touched(files)
    if attempt.result == "infra":
        entry.last_result = "infra"
        record.add_infrastructure(test, attempt.kind or "runner", attempt.reason, attempt.evidence, now)
        return
    last: Mapping[str, Any] = entry.log[-1] if entry.log else {"attempt": 0}
    said = one_line(attempt.said or attempt.reason)
    failed = FailedAttempt(
        attempt=last["attempt"] + 1,
        strategy=one_line(attempt.strategy),
        files=files[:100],
        result=_changed(said, last.get("said", "")),
        said=said,
        output=attempt.output,
        at=now,
    )
    entry.failed(failed, shown(attempt.error, attempt.output or "not kept"))


def _changed(said: str, before: str) -> str:
    """What an attempt has changed in the outcome."""
    if not said or not before:
        return said
    return f"no change: {said}" if said == before else one_line(f"{said} (before: {before})")


def _said_again(strategy: str, before: Sequence[Tried], log: Sequence[Tried]) -> str:
    """An earlier attempt with the same strategy, in words; empty if there is none."""
    for tried, when in ((log, ""), (before, " before the retry")):
        again = repeated(strategy, tried)
        if again is not None:
            return f"attempt {again['attempt']}{when} has tried this already: {again['strategy']}"
    return ""
