"""Deliver to every target what it has not been told yet, in order, at least once.

One process at a time does it in a project, and at most one more waits for its turn: whoever finds somebody waiting may
leave, because that one will read what has just been written. A process that is killed leaves no lock; the next goes
on where it stood, and one message may come twice.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusewire.breakers.start_delivery import NEXT_TURN
from fusewire.config.notify_addresses import Unusable, address_of
from fusewire.config.rulebook import read_rulebook
from fusewire.config.rules import STATE_FOLDER
from fusewire.engine.breaker import Breaker
from fusewire.notify.cursor import MINUTE, MOST_LOST, DeliveryCursor, cursor_of, health_of, remember
from fusewire.notify.messages import message_of, message_of_many
from fusewire.notify.news import KINDS, news, openings
from fusewire.notify.send import Undelivered, send
from fusewire.util.errors import StoreError, in_a_line
from fusewire.util.files import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fusewire.config.notify_targets import Target
    from fusewire.notify.cursor import Health
    from fusewire.notify.messages import Message
    from fusewire.notify.news import Item

#: Seconds that pass before the second attempt; before each further one three times as many.
_FIRST_PAUSE = 1.0

#: Seconds after which somebody looks again, while a target has had as many messages as it may get in a minute.
_ROUND = 1.0

#: Seconds. Nobody who has just been named is told what is older, and nobody at all what is as old as that.
_NEWEST = 3600.0
_OLDEST = 86400.0


def deliver_pending(root: str, clock: Callable[[], float] = time.time, turn: int | None = None) -> int:
    """Deliver what waits; how many messages went out. None by us, if somebody else is about to do it.

    `turn` is an open file with the lock of the next turn, if it was handed to us; it is closed before we read.
    """
    folder = os.path.join(root, STATE_FOLDER)
    with ExitStack() as held:
        try:
            with FileLock(os.path.join(folder, NEXT_TURN), wait=0.0) if turn is None else open(turn, "rb"):
                held.enter_context(FileLock(os.path.join(folder, "notify.lock"), wait=None))
        except (BlockingIOError, FileNotFoundError):
            return 0
        return _deliver(root, clock)


def _deliver(root: str, clock: Callable[[], float]) -> int:
    """Round by round, for as long as something waits until a target may be told more; nobody else is kept waiting."""
    sent = 0
    while True:
        deliveries = _round(root, clock)
        sent += sum(delivery.sent for delivery in deliveries)
        wait = max((delivery.wait for delivery in deliveries), default=0.0)
        if wait <= 0:
            return sent
        time.sleep(min(wait, _ROUND))


def _round(root: str, clock: Callable[[], float]) -> list[Delivery]:
    book = read_rulebook(Path(root))
    with Breaker.open(project=root, clock=clock) as breaker:
        deliveries = [Delivery(breaker, target, book.values["notify"].parsed) for target in book.targets.enabled()]
        # Side by side: one that does not answer must not keep the others waiting.
        threads = [threading.Thread(target=delivery.run, daemon=True) for delivery in deliveries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return deliveries


class Delivery:
    """Everything that one target has not been told yet."""

    def __init__(self, breaker: Breaker, target: Target, settings: Mapping[str, Any]) -> None:
        self.breaker, self.store, self.target = breaker, breaker.store, target
        self.dedup, self.attempts, self.most = settings["dedup"], settings["attempts"], settings["per_minute"]
        self.root = breaker.root or "."
        self.sent = 0
        #: seconds until it may be told what could not be told now
        self.wait = 0.0
        self._left_alone = False

    def run(self) -> None:
        try:
            self.cursor = cursor_for(self.breaker, self.target)
            self.health = health_of(self.store, self.target.name)
            while not self.wait and (items := self._news()):
                self._tell_all(items)
                remember(self.store, self.target.name, self._now(), self.cursor)
        except StoreError:
            pass  # nobody is here to be told; the next process goes on where this one stood

    def _news(self) -> list[Item]:
        """What came behind what was told; moves that the audit trail has dropped meanwhile are counted as lost.

        What has opened by one of them and is still open is told nevertheless.
        """
        items = news(self.breaker, self.cursor.upto)
        upto = self.cursor.upto["moves"]
        dropped = next((item.number for item in items if item.kind == "moves"), 0) - 1
        if dropped <= upto:
            return items
        missed = dropped - max(upto, self.cursor.missed_upto)
        if missed > 0:
            now, self.cursor.missed_upto = self._now(), dropped
            self._remember(lambda health: health.was_missed(now, missed))
        return [*openings(self.breaker, self.cursor.at, upto), *items]

    def _now(self) -> float:
        return self.breaker.engine.clock()

    def _tell_all(self, items: list[Item]) -> None:
        """One by one, in order, while there is room; with the last message all that is left, or after a while."""
        self._left_alone = self._is_left_alone(items, self._now())
        for at, item in enumerate(items):
            now = self._now()
            if not self._is_due(item, now):
                self.cursor.passed(item)
                self._leave_out(item, now)
                continue
            room = self._room(now)
            if room < 1:
                self.wait = self.cursor.tries[0] + MINUTE - now
                return
            if room == 1:
                self._tell_rest(items[at:], now)
                return
            self.cursor.passed(item)
            self._settle([item], self._try(partial(self._message, item)))
            self._left_alone = self._is_left_alone(items[at + 1 :], self._now())

    def _is_left_alone(self, items: list[Item], now: float) -> bool:
        """Whether it is, and nothing is so urgent that it is tried nevertheless; with that goes all the rest."""
        return self.health.is_paused(now) and not any(item.is_urgent for item in items if self._is_new(item, now))

    def _is_due(self, item: Item, now: float) -> bool:
        return not self._left_alone and self._is_new(item, now)

    def _is_new(self, item: Item, now: float) -> bool:
        return self._is_meant(item, now) and not self.cursor.is_known(item.key, now, self.dedup)

    def _is_meant(self, item: Item, now: float) -> bool:
        return now - item.at <= _OLDEST and is_wanted(item, self.target)

    def _room(self, now: float) -> int:
        """Who is left alone gets what is urgent in one message: it is not made to fail again and again."""
        room = self.cursor.room(now, self.most)
        return min(room, 1) if self.health.is_paused(now) else room

    def _leave_out(self, item: Item, now: float) -> None:
        """Nobody wants it; or it was told, and is counted; or it is lost, because the target is left alone."""
        if self._is_meant(item, now) and not self.cursor.again(item.key, now, self.dedup):
            self._remember(lambda health: health.was_left_out())

    def _tell_rest(self, items: list[Item], now: float) -> None:
        """In one message, since there is room for one."""
        due = [item for item in items if self._is_due(item, now)]
        others = [item for item in items if not self._is_due(item, now)]
        problem = self._try(partial(self._message_of_all, due))
        for item in items:
            self.cursor.passed(item)
        for item in others:
            self._leave_out(item, now)
        self._settle(due, problem)

    def _settle(self, told: list[Item], problem: str) -> None:
        """What was sent is written down at once, or it would be sent again."""
        now = self._now()
        if problem:
            self._remember(lambda health: health.was_lost(now, problem, len(told)))
            return
        self.sent += 1
        for item in told:
            if not self.cursor.again(item.key, now, self.dedup):
                self.cursor.was_told(item.key, now)
        self._remember(lambda health: health.went_out(now))

    def _remember(self, change: Callable[[Health], None]) -> None:
        self.health = remember(self.store, self.target.name, self._now(), self.cursor, change)

    def _message(self, item: Item) -> Message:
        again, since = self.cursor.left_out(item.key)
        lost = self.health.lost_in_a_row
        return message_of(item, self.breaker, self._now(), again=again, since=since, lost=lost)

    def _message_of_all(self, items: list[Item]) -> Message:
        different = len({item.key for item in items}) if self.dedup else len(items)
        if different == 1:
            return self._message(items[0])
        return message_of_many(items, self.breaker, lost=self.health.lost_in_a_row)

    def _try(self, message: Callable[[], Message]) -> str:
        """What was wrong at the last attempt; empty once one has gone out."""
        now = self._now()
        self.cursor.tries.append(now)
        # One that has lost message after message is tried once, not again and again.
        once = self.health.given_up_in_a_row >= MOST_LOST or self.health.is_paused(now)
        problem = ""
        for attempt in range(1 if once else self.attempts):
            if attempt:
                time.sleep(_FIRST_PAUSE * 3 ** (attempt - 1))
            try:
                send(address_of(self.target, self.root), message())
                return ""
            except Unusable as error:
                return str(error)
            except Undelivered as error:
                problem = str(error)
            except StoreError:
                raise
            except Exception as error:  # a mistake in one message must not keep all others from being told
                problem = in_a_line(error)
        return problem


def is_wanted(item: Item, target: Target) -> bool:
    return bool(item.severity) and target.wants(item.names, item.severity)


def cursor_for(breaker: Breaker, target: Target) -> DeliveryCursor:
    """How far a target has been told. A new one has been told everything that was before its file named it.

    This is no `Trail`: in a rebuilt store a trail leaves out what it may have told, whereas here what may not have been
    told is told again, of three kinds with numbers of their own.
    """
    cursor = cursor_of(breaker.store, target.name)
    if cursor is not None and cursor.upto["moves"] <= breaker.store.last_move():
        return cursor
    since = breaker.engine.clock() - _NEWEST
    try:
        since = max(since, os.stat(os.path.join(breaker.root or ".", target.source)).st_mtime)
    except OSError:
        pass
    upto = dict.fromkeys(KINDS, 0)
    upto["moves"] = next((number - 1 for number, _ in breaker.store.moves(limit=1)), 0)
    while items := news(breaker, upto):
        for item in items:
            if item.at >= since:
                return DeliveryCursor(upto, at=since)
            upto[item.kind] = item.number
    return DeliveryCursor(upto, at=since)
