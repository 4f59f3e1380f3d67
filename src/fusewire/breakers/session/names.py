"""List the sessions of a project, and find whose a circuit is."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fusewire.stores import Store

#: Parts of a circuit's id that are compared with the names of sessions: far more than there are where nobody means it.
_PIECES = 100


def session_ids(store: Store) -> list[str]:
    """Every session that is remembered, the one heard of last first.

    What each of its agents remembers goes by its name, a slash and the agent's, which is empty for the main one. An id
    may have slashes, too: then the main agent's name tells it from that of an agent, or that nobody has the beginning.
    """
    names = dict.fromkeys(name.removeprefix("session/") for name, _ in store.remembered("session/"))
    return [
        name
        for name in names
        if name and not name.endswith("/") and (f"{name}/" in names or not any(one in names for one in _above(name)))
    ]


def _above(name: str) -> Iterator[str]:
    """`a/b` and `a` of `a/b/c`."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def last_session(store: Store) -> str | None:
    """The session that was heard of last."""
    return next(iter(session_ids(store)), None)


def is_session(store: Store, session: str) -> bool:
    """Whether it has been heard of."""
    return session in session_ids(store)


def session_of(circuit: str, sessions: Collection[str]) -> str | None:
    """The one of these sessions whose circuit it is, its own or that of one of its agents."""
    return next((name for name in islice(_pieces(circuit), _PIECES) if name in sessions), None)


def _pieces(circuit: str) -> Iterator[str]:
    """What of an id can be a session's, the longest first: a key may stand on either side, an agent behind a colon."""
    parts = circuit.split("/")[2:] if circuit.startswith("tool/") else []
    for first in range(len(parts)):
        for end in range(len(parts), first, -1):
            name = "/".join(parts[first:end])
            yield name
            while ":" in name:
                name = name.rpartition(":")[0]
                yield name
