"""Describe the history of circuits: signals, moves, and which moves belong to a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.state import SessionMemory, session_name
from fusewire.core.decision import PUBLIC_STATE
from fusewire.core.events import identifier
from fusewire.util.durations import format_time, show_time
from fusewire.util.json_types import Count, Time, about

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import AuditRow, LogRow


@dataclass(frozen=True)
class Step:
    """From where to where, why, and who did it."""

    from_: Annotated[str, about("CLOSED, HALF_OPEN or OPEN")]
    to: Annotated[str, about("likewise, or `removed`")]
    from_phase: Annotated[str, about("closed, watch, open or probe")]
    to_phase: Annotated[str, about("likewise, or `removed`")]
    cause: str
    reason: str
    actor: str | None


@dataclass(frozen=True)
class _Moment:
    at: Time
    circuit: str


@dataclass(frozen=True)
class _Number:
    number: Count


@dataclass(frozen=True)
class Move(Step, _Moment):
    """One row of the audit trail. In JSON, fields of the last base come first."""


@dataclass(frozen=True)
class NumberedMove(Move, _Number):
    """The same with its place in the trail."""


@dataclass(frozen=True)
class _Timestamp:
    timestamp: Time


@dataclass(frozen=True)
class HistoryMove(Step, _Timestamp):
    """A move in the history of its circuit."""


@dataclass(frozen=True)
class LoggedSignal:
    """A signal that reached a circuit."""

    timestamp: Time
    kind: str
    signal: str
    action: str
    session: str | None
    effect: str | None
    in_window: bool


@dataclass(frozen=True)
class History:
    """What reached a circuit, and its moves."""

    window_start: Time | None
    entries: Annotated[list[LoggedSignal], about("newest first")]
    transitions: Annotated[list[HistoryMove], about("newest first")]


def history_of(rows: Sequence[LogRow], audit: Sequence[AuditRow], window_start: float | None) -> History:
    entries = [
        LoggedSignal(
            timestamp=format_time(row.at),
            kind=row.kind,
            signal=row.name,
            action=row.text,
            session=row.session,
            effect=row.effect or None,
            in_window=window_start is None or row.at > window_start,
        )
        for row in reversed(rows)
    ]
    moves = [HistoryMove(timestamp=format_time(row.at), **_step(row)) for row in reversed(audit)]
    return History(show_time(window_start), entries, moves)


def move_of(row: AuditRow) -> Move:
    return Move(at=format_time(row.at), circuit=row.circuit, **_step(row))


def numbered_move(number: int, row: AuditRow) -> NumberedMove:
    return NumberedMove(number=number, at=format_time(row.at), circuit=row.circuit, **_step(row))


def _step(row: AuditRow) -> dict[str, Any]:
    """The fields of `Step`."""
    return {
        "from_": PUBLIC_STATE.get(row.source, row.source),
        "to": PUBLIC_STATE.get(row.target, row.target),
        "from_phase": row.source,
        "to_phase": row.target,
        "cause": row.cause,
        "reason": row.reason,
        "actor": row.actor or None,
    }


def moved_in(breaker: Breaker, session: str) -> Callable[[AuditRow], bool]:
    """Whether a move is of a circuit of the session, or was made by it.

    An id that was too long to be stored whole is known by the session's own alarms.
    """
    alarms = {identifier(circuit) for circuit in SessionMemory.recalled(breaker.store, session_name(session)).alarms}
    known = {session, *session_ids(breaker.store)}

    def belongs(row: AuditRow) -> bool:
        return row.actor == session or row.circuit in alarms or session_of(row.circuit, known) == session

    return belongs
