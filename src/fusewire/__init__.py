"""Fusewire: circuit breakers for autonomous coding agents.

The public names are imported when they are first used, because the hook process pays for every module.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = [
    "Attempts",
    "Blocked",
    "Breaker",
    "ConfigError",
    "Decision",
    "FusewireError",
    "InvalidTransition",
    "Loop",
    "NotFound",
    "Phases",
    "ScopeLock",
    "StoreError",
    "testing",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.lock import ScopeLock
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.phase.phases import Phases
    from fusewire.core.decision import Blocked, Decision
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.testing import testing
    from fusewire.util.errors import ConfigError, FusewireError, InvalidTransition, NotFound, StoreError

_HOME = {
    "Attempts": "breakers.attempt.tracker",
    "Blocked": "core.decision",
    "Breaker": "engine.breaker",
    "Decision": "core.decision",
    "Loop": "breakers.loop.loop",
    "Phases": "breakers.phase.phases",
    "ScopeLock": "breakers.attempt.scope.lock",
    "testing": "engine.testing",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'fusewire' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"fusewire.{_HOME.get(name, 'util.errors')}"), name)
