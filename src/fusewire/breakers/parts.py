"""Put a project's breaker together: implement `engine.parts.Parts` with the five breakers and the agents."""

from __future__ import annotations

from fusewire.agents.caller import require_person
from fusewire.breakers.session.ended import EndedSessions
from fusewire.breakers.session.opening import MirrorBackup, tell_people
from fusewire.breakers.session.spend_limits import in_dollars
from fusewire.util.errors import FusewireError, StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.config.rules import Rules
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status
    from fusewire.stores import Backup


class BreakerParts:
    """Implements `Parts`; what only some calls need is imported by them."""

    def require_person(self, act: str, root: str | None) -> str:
        return require_person(act, root)

    def backup(self, root: str, rules: Rules, clock: Callable[[], float]) -> Backup:
        return MirrorBackup(root, rules, clock)

    def start_delivery(self, root: str) -> None:
        tell_people(root)

    def after_commit(self, breaker: Breaker, written: set[str]) -> list[str]:
        kinds = {circuit.partition("/")[0] if "/" in circuit else "constraint" for circuit in written}
        return [warning for kind, listener in _LISTENERS.items() if kind in kinds for warning in listener(breaker)]

    def present(self, breaker: Breaker, statuses: list[Status]) -> list[Status]:
        ended = EndedSessions(breaker.store, breaker.engine.clock())
        return [in_dollars(breaker, one).replace(session_ended=ended.of(one.id)) for one in statuses]


def _mirror_constraints(breaker: Breaker) -> list[str]:
    from fusewire.breakers.constraint.state_file import write_mirror

    if breaker.root is None:
        return []
    try:
        warning = write_mirror(breaker.root, breaker.engine)
    except BlockingIOError:  # its lock is held: every command reports that, and the next change catches up
        warning = None
    except OSError as error:
        warning = f"the constraints' state file could not be written: {error}"
    return [] if warning is None else [warning]


def _mirror_phases(breaker: Breaker) -> list[str]:
    from fusewire.breakers.phase.phases import Phases

    try:
        return Phases(breaker).follow()
    except StoreError:  # busy: a warning cannot be written either, and the next action on the phases catches up
        return []
    except FusewireError as error:
        return [f"the phases' state file could not be brought up to date: {error}"]


#: What follows a commit, by the kind of the circuits that were written.
_LISTENERS: dict[str, Callable[[Breaker], list[str]]] = {"constraint": _mirror_constraints, "phase": _mirror_phases}
