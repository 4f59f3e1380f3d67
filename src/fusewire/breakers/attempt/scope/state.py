"""What the scope lock keeps in the project's store: files given for a slice, justifications, slices under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.stores import Store, Transaction

#: Slices that can be under way at once, and sessions that work on one of them.
SLICES = 64
SESSIONS = 8

_ACTIVE = "scope"

_FIELDS = ("file", "test", "reason", "relationship")


def recall_slice(store: Store | Transaction, slice: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The patterns that were given for a slice, and its justifications; FusewireError if that is damaged."""
    try:
        data = store.recall(f"scope:{slice}") or {}
    except ValueError:
        raise _damaged(f"the scope of {slice}", f"fusewire scope set {slice}") from None
    patterns, records = data.get("patterns", []), data.get("justifications", [])
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        raise _damaged(f"the scope of {slice}", f"fusewire scope set {slice}")
    records = records if isinstance(records, list) else []
    return list(patterns), [one for one in records if _is_record(one)]


def remember_slice(
    transaction: Transaction, slice: str, patterns: list[str], records: list[dict[str, Any]], now: float
) -> None:
    transaction.remember(f"scope:{slice}", {"patterns": patterns, "justifications": records}, now)


def recall_active(store: Store | Transaction) -> dict[str, list[str | None]]:
    """The slices under way, oldest first, and the sessions that each of them holds for; None is every session."""
    try:
        data = (store.recall(_ACTIVE) or {}).get("active", [])
    except ValueError:
        raise _damaged("the list of slices under way", "fusewire attempt start") from None
    found: dict[str, list[str | None]] = {}
    for entry in data if isinstance(data, list) else []:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
            raise _damaged("the list of slices under way", "fusewire attempt start")
        found[entry[0]] = [one for one in entry[1] if one is None or isinstance(one, str)]
    return found


def remember_active(transaction: Transaction, active: dict[str, list[str | None]], now: float) -> None:
    transaction.remember(_ACTIVE, {"active": [[slice, sessions] for slice, sessions in active.items()]}, now)


def _is_record(one: object) -> bool:
    return (
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in _FIELDS)
        and isinstance(one.get("at"), int | float)
    )


def _damaged(what: str, command: str) -> FusewireError:
    return FusewireError(f"{what} is damaged in the project's store; a person can write it anew: {command}")
