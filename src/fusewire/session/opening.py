"""The store of a project for a process that is started for every tool call: only what is needed is loaded."""

from __future__ import annotations

import os

from fusewire.rules import DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.rules import Rules
    from fusewire.stores.sqlite import SqliteStore

#: Seconds that each of three attempts waits for a locked store: an agent is waiting.
PATIENCE = 0.5


#: Stores that stay open, by project, in a process that answers many events; None where there is but one.
kept: dict[str, SqliteStore] | None = None


def quick_store(root: str, rules: Rules) -> SqliteStore:
    from fusewire.stores.sqlite import SqliteStore

    store = kept.get(root) if kept is not None else None
    if store is None:
        path = os.path.join(root, DATABASE)
        store = SqliteStore(path, backup=_Backup(root, rules), check=_check, patience=PATIENCE)
        if kept is not None:
            store = kept.setdefault(root, store)
    store.after_news = (lambda: tell_people(root)) if rules.notify else None
    return store


def tell_people(root: str) -> None:
    """Something was written that the targets of this project may want to hear of; nobody waits until they do."""
    try:
        from fusewire.notifying.starting import start

        start(root)
    except Exception:
        pass  # what was decided has been written, and stands whether anybody hears of it or not


class _Backup:
    """What a lost database is refilled from; loaded only if it is."""

    def __init__(self, root: str, rules: Rules) -> None:
        self.root, self.rules = root, rules

    def available(self) -> bool:
        available: bool = self._mirror().available()
        return available

    def read(self) -> Any:
        return self._mirror().read()

    def _mirror(self) -> Any:
        import time

        from fusewire.breaker import MirrorBackup

        return MirrorBackup(self.root, self.rules, time.time)


def _check(state: object) -> object:
    from fusewire.state import State

    return State.from_data(state)
