"""Fusewire: circuit breakers for autonomous coding agents.

The public names are imported when they are first used, because the hook process pays for every module.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = [
    "AgentRefused",
    "Attempt",
    "Attempts",
    "AuditRow",
    "Blocked",
    "Breaker",
    "Clock",
    "ConfigError",
    "Decision",
    "Event",
    "FusewireError",
    "InvalidTransition",
    "Janitor",
    "LogRow",
    "Loop",
    "NotFound",
    "OwnBreaker",
    "Phases",
    "ScopeLock",
    "Status",
    "StoreError",
    "Transcript",
    "testing",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.agents.transcripts.reader import Transcript
    from fusewire.breakers.attempt.scope.lock import ScopeLock
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.breakers.attempt.types import Attempt
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.phase.phases import Phases
    from fusewire.core.decision import Blocked, Decision
    from fusewire.core.events import Event
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.define import OwnBreaker
    from fusewire.engine.parts import Parts
    from fusewire.engine.status import Status
    from fusewire.engine.testing import Clock, testing
    from fusewire.janitor.janitor import Janitor
    from fusewire.stores.rows import AuditRow, LogRow
    from fusewire.util.errors import (
        AgentRefused,
        ConfigError,
        FusewireError,
        InvalidTransition,
        NotFound,
        StoreError,
    )

_HOME = {
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
