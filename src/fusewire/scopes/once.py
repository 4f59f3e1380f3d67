"""Offer a person to let one refused call pass once: a code in the message, valid for ten minutes.

The code is no secret: it does nothing until a person types it at a terminal. What was refused is kept in the person's
store, so that the code works from any folder, and whoever types it sees what it allows.
"""

from __future__ import annotations

import secrets

from fusewire.core.events import TEXT_LIMIT, fingerprint, plain
from fusewire.scopes.user import open_user_store
from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.core.events import Event
    from fusewire.stores import Store
    from fusewire.util.fast_json import JsonObject

#: What an offer is remembered under, and for how many seconds it can be taken.
OFFER = "once/"
VALID = 600.0

#: Characters of a code of our own, none of which looks like another, and bytes of a call that a person is shown.
_LETTERS, _LENGTH = "ABCDEFGHJKMNPQRSTVWXYZ23456789", 8
_SHOWN = 4000

#: Offers that are remembered, and those for the same call.
_MOST, _SAME = 100, 5


def call_key(event: Event) -> str:
    """The same for the same call only: its session, agent, tool, arguments and folder."""
    given = dict(event.input or {})
    if event.command is not None:  # words about the call, which a model chooses anew
        given.pop("description", None)
    return fingerprint(event.session or "", event.subagent or "", event.tool, _canonical(given), event.cwd or "")


def _canonical(value: Any) -> str:
    """JSON that does not depend on the order of names."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumps(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    return "[" + ",".join(map(_canonical, value)) + "]" if isinstance(value, list) else dumps(value)


def offer(event: Event, root: str, rule: str, reason: str, now: float, code: str = "") -> str:
    """The code for a refused call: `code`, which is that of the decision, unless it stands for another call."""
    key = call_key(event)
    facts: JsonObject = {
        "key": key,
        "session": event.session,
        "tool": event.tool,
        "root": root,
        "rule": rule,
        "call": plain(event.described(), _SHOWN),
        "cut": len(event.described().encode("utf-8", "replace")) > _SHOWN,
        "reason": plain(reason, TEXT_LIMIT),
        "cwd": event.cwd,
        "at": now,
    }
    store = open_user_store(patience=0.5)
    with store.transact() as transaction:
        transaction.forget(OFFER, now - VALID)
        known = [name for name, _ in store.remembered(OFFER)]
        same = offers_of(store, key, now)
        for name in (*same[_SAME - 1 :], *known[_MOST:]):
            transaction.drop(name)
        if not code or (f"{OFFER}{code}" in known and f"{OFFER}{code}" not in same):
            code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        transaction.remember(f"{OFFER}{code}", facts, now)
    return code


def offers_of(store: Store, key: str, now: float) -> list[str]:
    """The names of all that is offered for one call, the newest first."""
    names = [name for name, _ in store.remembered(OFFER)]
    return [name for name in names if find(store, name.removeprefix(OFFER), now).get("key") == key]


def find(store: Store, code: str, now: float) -> JsonObject:
    """What a code was given for; empty if there is no such code, or it is no longer valid."""
    try:
        facts = store.recall(f"{OFFER}{code}") or {}
    except ValueError:
        return {}
    at = facts.get("at")
    return facts if isinstance(at, (int, float)) and 0 <= now - at < VALID else {}
