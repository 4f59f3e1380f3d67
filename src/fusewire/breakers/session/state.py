"""What is remembered of sessions between two events: under which names, and in which shape it must be to be used.

A memory that cannot be read, or a part of it that has another shape, is not used: it starts anew, a person is told,
and the circuits, which are stored by themselves, stay as they are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.stores import Store, Transaction

#: The spend of a project: of its last sessions, its last days, and of all, and what a person has granted beyond.
SPEND = "spend"

#: Which hooks a project's agent has: there is something in it once a batch was reported.
HOOKS = "hooks"

_NUMBER = (int, float)

#: Parts of a session's memory, of one agent's in it, and of the project's spend, with the types that they must have.
_SHAPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("alarms", "watched", "refusals", "agents", "spend", "calls", "halted", "registered"), (dict,)),
    **dict.fromkeys(("sessions", "days", "granted_for"), (dict,)),
    **dict.fromkeys(
        ("lanes", "history", "settled", "unpriced", "row", "burst", "gone", "transcript", "halts"), (list,)
    ),
    **dict.fromkeys(("turn", "replies", "changes", "in_a_row", "stops"), (int,)),
    **dict.fromkeys(("at", "since", "granted", "usd", "refused_at", "settled_began", "ended"), _NUMBER),
    **dict.fromkeys(("spend_since", "untold", "last_halt", "last_told"), (str,)),
}


def session_name(session: str) -> str:
    """The name of what is remembered of a session as a whole."""
    return f"session/{session}"


def lane_name(session: str, agent: str) -> str:
    """The name of what is remembered of one agent in it; the main one has no name of its own."""
    return f"session/{session}/{agent}"


def recall(transaction: Transaction, name: str, now: float) -> tuple[dict[str, Any], bool]:
    """What can be used of a memory, and whether something of it was damaged."""
    memory, damaged = _read(transaction, name)
    if damaged:
        transaction.notice(f"what was remembered as {name} could not be read, and starts anew", now)
    return memory, damaged


def amend(store: Store, name: str, now: float, **parts: Any) -> None:
    """Set parts of a memory, or (None) drop them, in a transaction of its own."""
    with store.transact() as transaction:
        memory, damaged = recall(transaction, name, now)
        if damaged:
            memory.pop("since", None)  # so that the next event looks up what is open
        amended = {key: value for key, value in {**memory, **parts}.items() if value is not None}
        transaction.remember(name, amended, now)
        if "halted" in parts:
            transaction.note_halt(name.partition("/")[2], parts["halted"], now)


def recalled(store: Store, name: str) -> dict[str, Any]:
    """The same for whoever only looks; the session itself will say what is damaged at its next event."""
    return _read(store, name)[0]


def _read(source: Store | Transaction, name: str) -> tuple[dict[str, Any], bool]:
    try:
        found = source.recall(name) or {}
    except ValueError:
        return {}, True
    wrong = [key for key, value in found.items() if key in _SHAPES and type(value) not in _SHAPES[key]]
    for key in wrong:
        del found[key]
    return found, bool(wrong)
