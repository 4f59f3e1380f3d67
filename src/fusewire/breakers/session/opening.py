"""Open the store of a project in a process that is started for every tool call: only what is needed is loaded."""

from __future__ import annotations

import os
import time

from fusewire.config.rules import DATABASE, STATE_FILE, is_shared, shared_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.config.rules import Rules
    from fusewire.stores import Rebuilt
    from fusewire.stores.scoped import ScopedStore
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


#: How many stay open: each has three files, and a process may open a thousand.
MOST_KEPT = 64

#: Stores that stay open, by project, in a process that answers many events; None where there is but one.
kept: dict[str, SqliteStore | ScopedStore] | None = None


def quick_store(root: str, rules: Rules) -> SqliteStore | ScopedStore:
    store = kept.get(root) if kept is not None else None
    if store is None:
        store = _opened(root, rules)
        main = shared_root(root)
        if main is not None:
            from fusewire.stores.scoped import ScopedStore

            store = ScopedStore(store, lambda: _opened(main, rules), is_shared)
        if kept is not None:
            for oldest in list(kept)[: len(kept) - MOST_KEPT + 1] if len(kept) >= MOST_KEPT else ():
                kept.pop(oldest, None)  # closed when the last who uses it lets go of it
            store = kept.setdefault(root, store)
    store.after_news = (lambda: tell_people(root)) if rules.notify else None
    return store


def _opened(root: str, rules: Rules) -> SqliteStore:
    from fusewire.stores.sqlite import SqliteStore

    patience = PATIENCE if kept is not None else max(_LEAST, (_COUNTS_UNTIL - age()) / 3)
    path = os.path.join(root, DATABASE)
    store = SqliteStore(path, backup=MirrorBackup(root, rules), check=_check, patience=patience)
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
    """Start to notify the targets of a project after something was written, without waiting."""
    try:
        from fusewire.breakers.start_delivery import start

        start(root)
    except Exception:
        pass  # the decision is committed, and holds whether it is delivered or not


class MirrorBackup:
    """The constraints' state file as the backup of a project's store; read only when the database is lost."""

    def __init__(self, root: str, rules: Rules, clock: Callable[[], float] = time.time) -> None:
        self.root, self.rules, self.clock = root, rules, clock

    def available(self) -> bool:
        return os.path.exists(os.path.join(self.root, STATE_FILE))

    def read(self) -> tuple[list[Rebuilt], str, list[str]]:
        from fusewire.breakers.constraint.state_file import rebuild

        return rebuild(self.root, self.rules, self.clock())


def _check(state: object) -> object:
    from fusewire.core.state import CircuitState

    return CircuitState.from_data(state)
