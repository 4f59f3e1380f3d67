"""The store of a project for a process that is started for every tool call: only what is needed is loaded."""

from __future__ import annotations

import os
import time

from fusewire.config.rules import DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.config.rules import Rules
    from fusewire.stores.sqlite import SqliteStore

#: Seconds that each of three attempts waits for a locked store: an agent is waiting.
PATIENCE = 0.5

#: Seconds after its start up to which a hook waits until it can count. What it cannot count then is counted later, so
#: that the answer comes long before the agent's own time-out, which would let the call pass.
_COUNTS_UNTIL = 5.0

#: What three attempts have at least.
_LEAST = 0.1

#: More than a process needs until it can read a clock, however busy the machine is; what says more, is wrong.
_SLOWEST_START = 5.0


#: Stores that stay open, by project, in a process that answers many events; None where there is but one.
kept: dict[str, SqliteStore] | None = None


def quick_store(root: str, rules: Rules) -> SqliteStore:
    from fusewire.stores.sqlite import SqliteStore

    store = kept.get(root) if kept is not None else None
    if store is None:
        path = os.path.join(root, DATABASE)
        patience = PATIENCE if kept is not None else max(_LEAST, (_COUNTS_UNTIL - age()) / 3)
        store = SqliteStore(path, backup=_Backup(root, rules), check=_check, patience=patience)
        if kept is not None:
            store = kept.setdefault(root, store)
    store.after_news = (lambda: tell_people(root)) if rules.notify else None
    return store


def age() -> float:
    """Seconds since this process was started: on a busy machine much of its time is over before its first line runs."""
    global _born
    if not _born:
        _born = time.monotonic() - min(max(0.0, _seconds_until_now()), _SLOWEST_START)
    return time.monotonic() - _born


_born = 0.0


def count_from_now() -> None:
    """In a process that has waited for its event: as if it had been started just now."""
    global _born
    _born = time.monotonic()


def _seconds_until_now() -> float:
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0  # no Linux


def tell_people(root: str) -> None:
    """Something was written that the targets of this project may want to hear of; nobody waits until they do."""
    try:
        from fusewire.notify.spawn import start

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

        from fusewire.engine.breaker import MirrorBackup

        return MirrorBackup(self.root, self.rules, time.time)


def _check(state: object) -> object:
    from fusewire.core.state import State

    return State.from_data(state)
