"""What a slice's tracker tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusewire.core.decision import Decision
    from fusewire.worktree.checkpoint import Checkpoint
    from fusewire.worktree.rollback import RolledBack


@dataclass(frozen=True)
class Attempt:
    """One attempt that is over, as whoever made it tells it; files are relative to the project."""

    #: "pass", "fail" or "infra"
    result: str
    #: what the runner said, in one line, and exactly
    reason: str = ""
    error: str = ""
    #: of an infrastructure error
    kind: str = ""
    evidence: str = ""
    strategy: str = ""
    #: None: whatever differs from the checkpoint
    files: list[str] | None = None
    #: where the whole output is; empty if nowhere
    output: str = ""
    #: of the slice, when the attempt was begun; None if nobody knows
    life: int | None = None


@dataclass(frozen=True)
class AttemptStart:
    """The attempts at a test may go on."""

    checkpoint: Checkpoint
    #: whether the checkpoint was taken now; otherwise the attempts are under way
    fresh: bool
    state: dict[str, Any]
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

    state: dict[str, Any]
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


@dataclass(frozen=True)
class SliceRetry:
    """A slice that starts anew."""

    failures: int
    #: None where there was no checkpoint to go back to
    restored: RolledBack | None
    prior: str
