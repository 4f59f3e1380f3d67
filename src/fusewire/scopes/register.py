"""Remember in the person's store which projects and sessions there are: for people, for halts, for spend.

A hook writes it down where a session begins, is spoken to, stops or ends, and never on the way of a call. It is a
record, not a count: what cannot be written now is written at the next such moment.
"""

from __future__ import annotations

from fusewire.scopes.user import MOST_PROJECTS, MOST_SESSIONS, PROJECT, SESSION, open_user_store
from fusewire.util.errors import StoreError
from fusewire.util.worktrees import project_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.core.events import Event
    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

#: Seconds that each of three attempts waits for the store: nothing is lost with one that fails.
_PATIENCE = 0.1

#: Characters of a prompt that name its session.
_NAME = 60


def note_event(event: Event, root: str, now: float) -> None:
    """Write down what an event says of its session and project."""
    if not event.session:
        return
    facts: JsonObject = {"root": root, "project": project_key(root), "agent": event.agent or "", "at": now}
    if event.kind == "prompt":
        facts["prompt"] = " ".join(event.text.split())[:_NAME]
    if event.model:
        facts["model"] = event.model[:_NAME]
    facts["ended"] = now if event.kind == "session_end" else None
    facts["stopped"] = now if event.kind == "stop" else None
    try:
        note_session(open_user_store(patience=_PATIENCE), event.session, facts, now)
    except (StoreError, OSError):
        pass


def note_session(store: Store, session: str, facts: JsonObject, now: float) -> None:
    """Add facts of a session (see `sessions`); its first prompt, and when it began, stay."""
    with store.transact() as transaction:
        name = f"{SESSION}{session}"
        known = _recall(transaction, name)
        kept = {"since": known.get("since", now)}
        if known.get("prompt"):
            kept["prompt"] = known["prompt"]
        transaction.remember(name, {**known, **facts, **kept}, now)
        if facts.get("root"):
            transaction.remember(f"{PROJECT}{facts['root']}", {"project": facts["project"], "at": now}, now)
        if not known:
            _forget_oldest(store, transaction)


def _recall(transaction: Transaction, name: str) -> dict[str, Any]:
    try:
        return transaction.recall(name) or {}
    except ValueError:
        return {}


def _forget_oldest(store: Store, transaction: Transaction) -> None:
    for prefix, most in ((PROJECT, MOST_PROJECTS), (SESSION, MOST_SESSIONS)):
        for name, _ in store.remembered(prefix)[most:]:
            transaction.drop(name)


def sessions(store: Store, limit: int = MOST_SESSIONS) -> dict[str, JsonObject]:
    """The sessions of the person by id, the one heard of last first: `root`, `project`, `agent`, `prompt`, `since`,
    `at`, `stopped`, `ended`, and what else was noted."""
    found = {}
    for name, _ in store.remembered(SESSION)[:limit]:
        try:
            found[name.removeprefix(SESSION)] = store.recall(name) or {}
        except ValueError:
            continue
    return found
