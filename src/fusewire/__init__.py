"""Fusewire: circuit breakers for autonomous coding agents.

The public names are imported when they are first used, because the hook process pays for every module.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = [
    "AgentRefused",
    "Attempt",
    "AttemptResult",
    "AttemptStart",
    "Attempts",
    "AuditRow",
    "Blocked",
    "Breaker",
    "Checkpoint",
    "Cleanup",
    "Clock",
    "ConfigError",
    "Decision",
    "Event",
    "FolderUsage",
    "FusewireError",
    "Guarded",
    "InvalidTransition",
    "IterationResult",
    "IterationStart",
    "IterationTrace",
    "Janitor",
    "Justification",
    "LogRow",
    "Loop",
    "MemoryFile",
    "NotFound",
    "OwnBreaker",
    "OwnIteration",
    "PhaseEnd",
    "PhaseResolution",
    "PhaseStart",
    "Phases",
    "Scope",
    "ScopeAnswer",
    "ScopeLock",
    "SliceRecord",
    "SliceRetry",
    "Status",
    "StoreError",
    "TestRecord",
    "TrackingState",
    "Transcript",
    "TranscriptStep",
    "testing",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.agents.transcripts.reader import Transcript
    from fusewire.agents.transcripts.step import TranscriptStep
    from fusewire.breakers.attempt.scope.lock import ScopeAnswer, ScopeLock
    from fusewire.breakers.attempt.scope.sources import Scope
    from fusewire.breakers.attempt.scope.state import Justification
    from fusewire.breakers.attempt.state import SliceRecord, TestRecord
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.breakers.attempt.types import Attempt, AttemptResult, AttemptStart, SliceRetry, TrackingState
    from fusewire.breakers.loop.loop import Loop, OwnIteration
    from fusewire.breakers.loop.types import IterationResult, IterationStart, IterationTrace
    from fusewire.breakers.phase.choices import PhaseResolution
    from fusewire.breakers.phase.end import PhaseEnd
    from fusewire.breakers.phase.phases import Phases, PhaseStart
    from fusewire.core.decision import Blocked, Decision
    from fusewire.core.events import Event
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.define import OwnBreaker
    from fusewire.engine.guarded import Guarded
    from fusewire.engine.parts import Parts
    from fusewire.engine.status import Status
    from fusewire.engine.testing import Clock, testing
    from fusewire.janitor.janitor import Janitor
    from fusewire.janitor.report import Cleanup, FolderUsage, MemoryFile
    from fusewire.stores.rows import AuditRow, LogRow
    from fusewire.util.errors import (
        AgentRefused,
        ConfigError,
        FusewireError,
        InvalidTransition,
        NotFound,
        StoreError,
    )
    from fusewire.worktree.checkpoint import Checkpoint

_HOME = {
    "AttemptStart": "breakers.attempt.types",
    "Checkpoint": "worktree.checkpoint",
    "MemoryFile": "janitor.report",
    "TestRecord": "breakers.attempt.state",
    "AttemptResult": "breakers.attempt.types",
    "SliceRetry": "breakers.attempt.types",
    "TrackingState": "breakers.attempt.types",
    "SliceRecord": "breakers.attempt.state",
    "Cleanup": "janitor.report",
    "FolderUsage": "janitor.report",
    "Guarded": "engine.guarded",
    "IterationStart": "breakers.loop.types",
    "IterationTrace": "breakers.loop.types",
    "IterationResult": "breakers.loop.types",
    "OwnIteration": "breakers.loop.loop",
    "PhaseStart": "breakers.phase.phases",
    "PhaseEnd": "breakers.phase.end",
    "PhaseResolution": "breakers.phase.choices",
    "Justification": "breakers.attempt.scope.state",
    "Scope": "breakers.attempt.scope.sources",
    "ScopeAnswer": "breakers.attempt.scope.lock",
    "TranscriptStep": "agents.transcripts.step",
    "Attempt": "breakers.attempt.types",
    "Attempts": "breakers.attempt.tracker",
    "AuditRow": "stores.rows",
    "Blocked": "core.decision",
    "Breaker": "engine.breaker",
    "Clock": "engine.testing",
    "Decision": "core.decision",
    "Event": "core.events",
    "Janitor": "janitor.janitor",
    "LogRow": "stores.rows",
    "Loop": "breakers.loop.loop",
    "OwnBreaker": "engine.define",
    "Phases": "breakers.phase.phases",
    "ScopeLock": "breakers.attempt.scope.lock",
    "Status": "engine.status",
    "Transcript": "agents.transcripts.reader",
    "testing": "engine.testing",
}


def compose() -> Parts:
    """Return what the layers above give to a breaker; the engine asks for it, because it imports nothing above it."""
    from fusewire.breakers.parts import BreakerParts

    return BreakerParts()


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'fusewire' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"fusewire.{_HOME.get(name, 'util.errors')}"), name)
