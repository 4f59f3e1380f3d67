"""Moves of circuits as everybody shows them, and which of them belong to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.constraint.report import step_json
from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.state import recalled, session_name
from fusewire.core.events import identifier
from fusewire.util.durations import show_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import AuditRow


def move_json(row: AuditRow) -> dict[str, Any]:
    """One row of the audit trail, with the names that `history --json` has."""
    return {"at": show_time(row.at), "circuit": row.circuit, **step_json(row)}


def numbered_move(number: int, row: AuditRow) -> dict[str, Any]:
    """The same with its place in the trail."""
    return {"number": number, **move_json(row)}


def moved_in(breaker: Breaker, session: str) -> Callable[[AuditRow], bool]:
    """Whether a move is of a circuit of the session, or was made by it.

    An id that was too long to be stored whole is known by the session's own alarms.
    """
    alarms = {identifier(circuit) for circuit in recalled(breaker.store, session_name(session)).get("alarms", {})}
    known = {session, *session_ids(breaker.store)}

    def belongs(row: AuditRow) -> bool:
        return row.actor == session or row.circuit in alarms or session_of(row.circuit, known) == session

    return belongs
