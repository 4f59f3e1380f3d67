"""Keep the delivery cursor and the health of each target, as two small memories in the store.

The first is written by whoever delivers, the second by a test as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.notify.news import KINDS
from fusewire.util.durations import counted, show_time
from fusewire.util.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.notify.news import Item
    from fusewire.stores import Store, Transaction

#: Messages that may be given up in a row; then the target is left alone for so many seconds, and tried once.
MOST_LOST = 5
PAUSE = 3600.0

#: Seconds. So many messages as are set are tried within them, and no more.
MINUTE = 60.0

#: Seconds after which a message should have gone out, or have been given up.
_LATE = 900.0

#: Things that were told lately and are known again.
_MOST_SAID = 200


@dataclass(slots=True)
class DeliveryCursor:
    """How far a target has been told, and what it was told lately: {key: [when, left out since]}."""

    upto: dict[str, int]
    said: dict[str, list[float]] = field(default_factory=dict)
    #: when messages were tried within the last minute
    tries: list[float] = field(default_factory=list)
    #: when the last move was made that it was told of; and up to which one those are counted that nobody could tell
    at: float = 0.0
    missed_upto: int = 0

    def passed(self, item: Item) -> None:
        if item.kind == "moves" and item.number > self.upto["moves"]:
            self.at = max(self.at, item.at)
        self.upto[item.kind] = item.number

    def room(self, now: float, most: int) -> int:
        """How many messages of `most` within a minute may still be tried."""
        self.tries = [at for at in self.tries if 0 <= now - at < MINUTE]
        return most - len(self.tries)

    def is_known(self, key: str, now: float, dedup: float) -> bool:
        """Whether the same was told within `dedup` seconds."""
        entry = self.said.get(key)
        return entry is not None and 0 <= now - entry[0] < dedup

    def again(self, key: str, now: float, dedup: float) -> bool:
        """The same, and it is counted instead of told."""
        known = self.is_known(key, now, dedup)
        if known:
            self.said[key][1] += 1
        return known

    def left_out(self, key: str) -> tuple[int, float]:
        """How often the same was not told, and since when."""
        when, count = self.said.get(key, (0.0, 0))
        return int(count), when

    def was_told(self, key: str, now: float) -> None:
        self.said.pop(key, None)
        self.said[key] = [now, 0]
        while len(self.said) > _MOST_SAID:
            del self.said[next(iter(self.said))]


@dataclass(slots=True)
class Health:
    """How a target fares."""

    sent: int = 0
    last_sent: float | None = None
    #: messages that were given up: in all, and since one went out
    lost: int = 0
    lost_in_a_row: int = 0
    #: the same, but what was tried together is one, and what was never tried is none
    given_up_in_a_row: int = 0
    failed_at: float | None = None
    problem: str = ""
    paused_until: float | None = None

    def is_paused(self, now: float) -> bool:
        return self.paused_until is not None and now < self.paused_until <= now + PAUSE

    def went_out(self, now: float) -> None:
        self.sent += 1
        self.last_sent = now
        self.lost_in_a_row = self.given_up_in_a_row = 0
        self.paused_until = None

    def was_lost(self, now: float, problem: str, count: int = 1) -> None:
        """A message was given up that told of so many things."""
        self.lost += count
        self.lost_in_a_row += count
        self.given_up_in_a_row += 1
        self.failed_at = now
        self.problem = problem
        if self.given_up_in_a_row >= MOST_LOST and not self.is_paused(now):
            self.paused_until = now + PAUSE

    def was_missed(self, now: float, moves: int) -> None:
        """The store does not have them any more."""
        self.lost += moves
        self.lost_in_a_row += moves
        self.failed_at = now
        self.problem = f"{counted(moves, 'move')} left the audit trail untold"

    def was_left_out(self) -> None:
        """It came while the target is left alone."""
        self.lost += 1
        self.lost_in_a_row += 1


def cursor_of(store: Store, name: str) -> DeliveryCursor | None:
    """None if the target has never been told anything, or nobody knows what."""
    found = _recalled(store, f"notify/{name}/told")
    upto, said = found.get("upto"), found.get("said")
    if not isinstance(upto, dict) or not all(isinstance(upto.get(kind), int) for kind in KINDS):
        return None
    pairs = said.items() if isinstance(said, dict) else ()
    known = {key: value for key, value in pairs if _is_entry(value)}
    tries, at = _numbers(found.get("tries")), sum(_numbers([found.get("at")]))
    missed = found["missed_upto"] if _fits(0, found.get("missed_upto")) else 0
    return DeliveryCursor({kind: upto[kind] for kind in KINDS}, known, tries, at, missed)


def health_of(source: Store | Transaction, name: str) -> Health:
    found = _recalled(source, f"notify/{name}")
    fresh = Health()
    known = {key: value for key, value in found.items() if key in asdict(fresh) and _fits(getattr(fresh, key), value)}
    return Health(**known)


def remember(
    store: Store,
    name: str,
    now: float,
    cursor: DeliveryCursor | None = None,
    change: Callable[[Health], None] | None = None,
) -> Health:
    """Write down how far a target has been told, and what has changed in how it fares."""
    with store.transact() as transaction:
        health = health_of(transaction, name)
        if change is not None:
            change(health)
            transaction.remember(f"notify/{name}", asdict(health), now)
        if cursor is not None:
            transaction.remember(f"notify/{name}/told", asdict(cursor), now)
    return health


def problems(store: Store, names: tuple[str, ...], now: float) -> list[str]:
    """Targets that do not get what they should, a line each."""
    found = []
    for name in names:
        health = health_of(store, name)
        if health.lost_in_a_row:
            lost = f"{counted(health.lost_in_a_row, 'message')} lost"
            found.append(
                f"notifications to {name} fail: {health.problem} (at {show_time(health.failed_at)}, {lost});"
                f" try it: fusewire notify test {quoted(name)}"
            )
        cursor = cursor_of(store, name)
        untold = store.moves(cursor.upto["moves"], limit=1) if cursor is not None else []
        if untold and now - untold[0][1].at > _LATE:
            found.append(
                f"notifications to {name} wait since {show_time(untold[0][1].at)}; send them: fusewire notify deliver"
                " (if that sends none, a process holds .fusewire/notify.lock)"
            )
    return found


def _recalled(source: Store | Transaction, name: str) -> dict[str, Any]:
    try:
        return source.recall(name) or {}
    except ValueError:
        return {}


def _fits(usual: Any, value: Any) -> bool:
    if isinstance(usual, str):
        return isinstance(value, str)
    if usual is None:
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    return isinstance(value, int) and not isinstance(value, bool)


def _is_entry(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and len(_numbers(value)) == 2


def _numbers(value: Any) -> list[float]:
    return [part for part in value if isinstance(part, (int, float))] if isinstance(value, list) else []
