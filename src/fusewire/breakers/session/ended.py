"""Tell which circuits belong to sessions that have ended: they are history, and no part of what is open now.

A session ends with its last hook, or when nothing has been heard of it for a day: some clients say nothing at the end,
and a machine that is switched off says nothing either. One that is heard again has its circuits back as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.spend_limits import LIMITS_ON_ALL, spending_session
from fusewire.breakers.session.state import SessionMemory, session_name

if TYPE_CHECKING:
    from fusewire.stores import Store

#: Seconds without a word after which a session is over.
_SILENCE = 86400

#: Seconds after its end in which what was still under way may report.
_LATE = 60


class EndedSessions:
    """The sessions of a project as they are at one moment; each is looked up once."""

    def __init__(self, store: Store, now: float) -> None:
        self._store, self._now = store, now
        self._sessions = session_ids(store)
        self._ended: dict[str, float | None] = {}

    def of(self, circuit: str) -> float | None:
        """When the session ended that a circuit belongs to; None if it goes on, or the circuit is no session's."""
        if not circuit.startswith("tool/") or circuit in LIMITS_ON_ALL:
            return None
        session = spending_session(self._store, circuit) or session_of(circuit, self._sessions)
        if session is None:  # nothing is remembered of it any more, or it was named by hand
            moves = self._store.audit_of(circuit)
            return self._over(moves[-1].at) if moves else None
        if session not in self._ended:
            state = SessionMemory.recalled(self._store, session_name(session))
            self._ended[session] = over_since(state, self._now)
        return self._ended[session]

    def _over(self, heard: float) -> float | None:
        return heard if self._now - heard >= _SILENCE else None


def over_since(state: SessionMemory, now: float) -> float | None:
    """When a session ended; None if it goes on."""
    if state.ended is not None and (state.at or 0) <= state.ended + _LATE:
        return state.ended
    return state.at if state.at is not None and now - state.at >= _SILENCE else None
