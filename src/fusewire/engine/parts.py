"""Declare what a breaker needs from the layers above, as an interface that they implement.

The engine imports nothing above it. `fusewire.compose` (in the package's root) returns the implementation; its parts
are in `fusewire/breakers/parts.py`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from fusewire.config.rules import Rules
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status
    from fusewire.stores import Backup

    class Parts(Protocol):
        """Who acts, what a lost store is refilled from, what follows a commit, how a status is shown."""

        def require_person(self, act: str, root: str | None) -> str:
            """Return the name of the person who acts; AgentRefused inside an agent."""

        def backup(self, root: str, rules: Rules, clock: Callable[[], float]) -> Backup:
            """Return what a project's lost store is refilled from."""

        def start_delivery(self, root: str) -> None:
            """Start to notify people of what was written, without waiting."""

        def after_commit(self, breaker: Breaker, written: set[str]) -> list[str]:
            """Let the files that mirror these circuits follow the database; return warnings for people."""

        def present(self, breaker: Breaker, statuses: list[Status]) -> list[Status]:
            """Return each status in the unit that people know its circuit by, and whether its session has ended."""


def above() -> Parts:
    """Return the parts that the package's root has put together."""
    from fusewire import compose

    return compose()
