"""Define what the tracker of a slice takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from fusewire.core.decision import Decision
    from fusewire.worktree.checkpoint import Checkpoint
    from fusewire.worktree.rollback import RolledBack


class TrackingState(TypedDict):
    """The seed's tracking state of one test, field by field."""

    slice_id: str
    test_name: str
    attempt_count: int
    files_touched: list[str]
    description: str
    last_error: str
    checkpoint_tag: str
    total_failed_attempts: int


@dataclass(frozen=True)
class Attempt:
    """One attempt that is over; files are relative to the project."""

    #: "pass", "fail" or "infra"
    result: str
    #: what the runner said, in one line, and exactly
    reason: str = ""
    error: str = ""
    #: of a failure: its message in one line, which the next one is compared with; the reason if it is empty
    said: str = ""
    #: why a failure is no attempt: no file was changed "since the last attempt"; empty if one was
    same_as: str = ""
    #: of an infrastructure error
    kind: str = ""
    evidence: str = ""
    strategy: str = ""
    #: None: whatever differs from the checkpoint
    files: list[str] | None = None
    #: where the whole output is; empty if nowhere
    output: str = ""
    #: of the slice, when the attempt was begun; None if that is unknown
    life: int | None = None


@dataclass(frozen=True)
class AttemptStart:
    """The attempts at a test may go on."""

    checkpoint: Checkpoint
    #: whether the checkpoint was taken now; otherwise the attempts are under way
    fresh: bool
    state: TrackingState
    #: what a fresh implementer must know of the attempts before the last retry; empty if there were none
    prior: str
    #: why the scope lock does not hold, or holds everything; empty if all is well
    unlocked: str
    #: another name in this slice that may stand for the same test; empty if there is none
    alike: str
    life: int


@dataclass(frozen=True)
class AttemptResult:
    """What an attempt has done to the counters."""

    state: TrackingState
    #: what stops the work now, strictest first; empty if nothing does
    stops: tuple[Decision, ...]
    #: an earlier attempt with the same strategy, in words
    repeats: str
    #: files that were touched outside the scope, with their justification
    violations: tuple[dict[str, str], ...]
    #: one failure more and a circuit opens
    near: str
    #: why files could not be looked at
    problem: str
    #: whether it is one more failed attempt; if no file was changed, since when
    counted: bool
    same_as: str


@dataclass(frozen=True)
class SliceRetry:
    """A slice whose counters were reset."""

    failures: int
    #: None where there was no checkpoint to go back to
    restored: RolledBack | None
    prior: str
