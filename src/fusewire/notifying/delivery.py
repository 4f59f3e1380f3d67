"""Delivering: every target is told what it has not been told yet, in order, at least once.

One process at a time does it in a project, and at most one more waits for its turn: whoever finds somebody waiting may
leave, because that one will read what has just been written. A process that is killed leaves no lock; the next goes
on where it stood, and one message may come twice.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from fusewire.breaker import Breaker
from fusewire.errors import StoreError, in_a_line
from fusewire.notifying.addresses import Unusable, address_of
from fusewire.notifying.ledger import MOST_LOST, Told, health_of, remember, told_of
from fusewire.notifying.messages import message_of
from fusewire.notifying.news import KINDS, news
from fusewire.notifying.sending import Undelivered, send
from fusewire.notifying.starting import NEXT_TURN
from fusewire.policies.rulebook import read_rulebook
from fusewire.rules import STATE_FOLDER
from fusewire.stores.folder import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.notifying.ledger import Health
    from fusewire.notifying.messages import Message
    from fusewire.notifying.news import Item
    from fusewire.notifying.targets import Target

#: Seconds that pass before the second attempt; before each further one three times as many.
_FIRST_PAUSE = 1.0

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
    book = read_rulebook(Path(root))
    settings = book.values["notify"].parsed
    with Breaker.open(project=root, clock=clock) as breaker:
        deliveries = [
            Delivery(breaker, target, settings["dedup"], settings["attempts"]) for target in book.targets.enabled()
        ]
        # Side by side: one that does not answer must not keep the others waiting.
        threads = [threading.Thread(target=delivery.run, daemon=True) for delivery in deliveries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(delivery.sent for delivery in deliveries)


class Delivery:
    """Everything that one target has not been told yet."""

    def __init__(self, breaker: Breaker, target: Target, dedup: float, attempts: int) -> None:
        self.breaker, self.store, self.target = breaker, breaker.store, target
        self.dedup, self.attempts = dedup, attempts
        self.root = breaker.root or "."
        self.sent = 0

    def run(self) -> None:
        try:
            self.told = told_for(self.breaker, self.target)
            self.health = health_of(self.store, self.target.name)
            while items := news(self.breaker, self.told.upto):
                for item in items:
                    self._tell(item)
                remember(self.store, self.target.name, self._now(), self.told)
        except StoreError:
            pass  # nobody is here to be told; the next process goes on where this one stood

    def _now(self) -> float:
        return self.breaker.engine.clock()

    def _tell(self, item: Item) -> None:
        """One item: left out, told, or lost. What was sent is written down at once, or it would be sent again."""
        now = self._now()
        self.told.passed(item.kind, item.number)
        if now - item.at > _OLDEST or not is_wanted(item, self.target):
            return
        if self.told.again(item.key, now, self.dedup):
            return
        if self.health.is_paused(now):
            self._settle(lambda health: health.was_left_out())
            return
        problem = self._try(item)
        now = self._now()
        if problem:
            self._settle(lambda health: health.was_lost(now, problem))
            return
        self.sent += 1
        self.told.was_told(item.key, now)
        self._settle(lambda health: health.went_out(now))

    def _settle(self, change: Callable[[Health], None]) -> None:
        self.health = remember(self.store, self.target.name, self._now(), self.told, change)

    def _message(self, item: Item) -> Message:
        again, since = self.told.left_out(item.key)
        lost = self.health.lost_in_a_row
        return message_of(item, self.breaker, self._now(), again=again, since=since, lost=lost)

    def _try(self, item: Item) -> str:
        """What was wrong at the last attempt; empty once one has gone out."""
        # One that has lost message after message is tried once, not again and again.
        attempts = self.attempts if self.health.lost_in_a_row < MOST_LOST else 1
        problem = ""
        for attempt in range(attempts):
            if attempt:
                time.sleep(_FIRST_PAUSE * 3 ** (attempt - 1))
            try:
                send(address_of(self.target, self.root), self._message(item))
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


def told_for(breaker: Breaker, target: Target) -> Told:
    """How far a target has been told. A new one has been told everything that was before its file named it.

    This is no `Trail`: in a rebuilt store a trail leaves out what it may have told, whereas here what may not have been
    told is told again, of three kinds with numbers of their own.
    """
    told = told_of(breaker.store, target.name)
    if told is not None and told.upto["moves"] <= breaker.store.last_move():
        return told
    since = breaker.engine.clock() - _NEWEST
    try:
        since = max(since, os.stat(os.path.join(breaker.root or ".", target.source)).st_mtime)
    except OSError:
        pass
    upto = dict.fromkeys(KINDS, 0)
    while items := news(breaker, upto):
        for item in items:
            if item.at >= since:
                return Told(upto)
            upto[item.kind] = item.number
    return Told(upto)
