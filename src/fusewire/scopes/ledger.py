"""Keep what all sessions of the person spend, across projects, agents and days: each piece exactly once.

1. A session adds what it reads in its transcript to rows of its project's store, in the transaction that also remembers
   how far it has read: a row for each quarter of an hour (UTC), model, branch, sub-agent and task. It counts when the
   request was made, not when it was read, so that a session which goes on past midnight belongs to both days.
2. Rows only grow, and each change gives them a number above all others of their store.
3. After the commit the rows behind the last number that the person's store knows of this one are copied there, in one
   transaction with the new number. A copy replaces the one before it: two processes that copy the same row, or one that
   is killed anywhere, neither lose it nor count it twice. What could not be copied is copied with the next piece.
4. A lost store of the person gets the rows of every project again at its next word, as far as they are still there.

Rows older than 14 days become one a day (the day where the person is) and session, those older than 90 days one a day
for all sessions, those older than 400 days one a month; a project keeps its own for 30 days. `calls` are requests to a
model, `starts` are agents that were started.
"""

from __future__ import annotations

import os
import time

from fusewire.scopes.user import open_user_store
from fusewire.stores.rows import SpendRow
from fusewire.util.errors import StoreError
from fusewire.util.files import STATE_FOLDER
from fusewire.util.worktrees import project_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fusewire.stores import Store, Transaction
    from fusewire.stores.sqlite_transaction import SqliteTransaction

QUARTER = 900
DAY = 86400

#: The memory in a project's store with its id, and the one in the person's of how far a store was copied.
_LEDGER, _COPIED, _FOLDED = "ledger", "copied/", "folded"

#: The session of what a project of version 0.1 has spent, and the model of calls that are no model's.
BEFORE, EXTERNAL = "before 0.2", "external APIs"

#: Seconds after which rows become one a day, one a day for all sessions, one a month; and are gone in a project.
_DAILY, _TOGETHER, _MONTHLY, _IN_PROJECT = 14 * DAY, 90 * DAY, 400 * DAY, 30 * DAY

#: Days that are put together at once: an agent waits for it.
_FOLDS = 3

#: What was spent longer ago, when it is read, counts as spent then: older rows are put together already.
_LATEST = 7 * DAY

#: Seconds that each of three attempts waits for the person's store.
_PATIENCE = 0.5

_NOTHING = (0,) * 6


def moment_of(when: str) -> float | None:
    """Seconds since 1970 of a time such as 2026-11-15T21:17:50.149Z; None of any other text."""
    try:
        year, month, day = int(when[:4]), int(when[5:7]), int(when[8:10])
        clock = 3600 * int(when[11:13]) + 60 * int(when[14:16]) + int(when[17:19])
    except ValueError:
        return None
    if when[4:5] + when[7:8] + when[10:11] + when[13:14] + when[16:17] != "--T::" or not when.endswith("Z"):
        return None
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719469
    return DAY * days + clock


def quarter_of(when: str, now: float) -> int:
    """The quarter in which something was spent that is read now: not in the future, and not long ago."""
    moment = moment_of(when)
    moment = now if moment is None else min(now, max(moment, now - _LATEST))
    return int(moment // QUARTER * QUARTER)


def started(session: str, agent: str, branch: str, task: str, now: float) -> SpendRow:
    """An agent was started."""
    return SpendRow(session, quarter_of("", now), branch, "", "", task, agent, 0.0, _NOTHING, starts=1)


def charged(session: str, model: str, usd: float, now: float, *, agent: str = "", task: str = "") -> SpendRow:
    """Dollars of which nothing else is known."""
    return SpendRow(session, quarter_of("", now), "", model, "", task, agent, usd, _NOTHING, calls=1)


def begin_ledger(transaction: Transaction, spend_before: Callable[[], Mapping[str, float]]) -> None:
    """Give a project's store its id; `spend_before` are the days (and "" for the rest) of version 0.1 in it."""
    try:
        if transaction.recall(_LEDGER):
            return
    except ValueError:
        pass
    transaction.remember(_LEDGER, {"id": os.urandom(8).hex()}, time.time())
    if any(transaction.spent()[0]):
        return  # only its id was lost
    days = {day: usd for day, usd in spend_before().items() if usd > 0}
    first = min((moment_of(f"{day}T12:00:00Z") or 0.0 for day in days if day), default=time.time())
    transaction.spend(
        [
            SpendRow(BEFORE, int(moment_of(f"{day}T12:00:00Z") or first - DAY), "", "", "", "", "", usd, _NOTHING)
            for day, usd in days.items()
        ]
    )


def copy_spend(
    store: Store,
    root: str,
    now: float,
    patience: float = _PATIENCE,
    then: Callable[[SqliteTransaction], None] | None = None,
) -> bool:
    """Copy what a project's store has counted to the person's; whether that worked. `then` is called before all of it
    is committed."""
    try:
        own = store.recall(_LEDGER)
        if not own:
            return True
        person = open_user_store(patience=patience)
        try:
            with person.transact() as transaction:
                last = _copy_rows(transaction, store, str(own["id"]), _source_of(root), root, now)
                _fold(transaction, now)
                if then is not None:
                    then(transaction)
        finally:
            person.close()
        if last and any(store.spent(until=now - _IN_PROJECT)[0]):
            with store.transact() as transaction_here:
                transaction_here.forget_spend(int(now - _IN_PROJECT), last)
        return True
    except (StoreError, OSError, ValueError, KeyError):
        return False


def _source_of(root: str) -> str:
    """Names the store of a project: one that is moved keeps it, a rebuilt one has it again."""
    facts = os.stat(os.path.join(root, STATE_FOLDER))
    return f"{facts.st_dev}:{facts.st_ino}"


def spent_elsewhere(root: str | None, since: float = 0.0) -> float:
    """Dollars that the other worktrees of a project have spent; 0 where that is not known."""
    if root is None:
        return 0.0
    try:
        store = open_user_store(read_only=True, patience=_PATIENCE)
        where = {"project": project_key(root), "not source": _source_of(root)}
        rows = store.spent(since=since, where=where)
        store.close()
    except (StoreError, OSError):
        return 0.0
    return round(rows[0][0], 6) if rows else 0.0


def _copy_rows(transaction: SqliteTransaction, store: Store, name: str, source: str, root: str, now: float) -> int:
    """The number up to which all are copied."""
    try:
        last = int((transaction.recall(f"{_COPIED}{name}") or {}).get("version", 0))
    except ValueError:
        last = 0
    if last and not store.spent_after(last - 1):
        last = 0  # the project's store is an older one: from a backup
    rows = store.spent_after(last)
    if not last and rows:
        folded = day_start(now) - _DAILY
        if any(transaction.spent(until=folded, where={"source": source})[0]):
            rows = [row for row in rows if row.at >= folded]  # the others are here, put together
    if rows:
        project = project_key(root)
        transaction.copy_spend([row.replace(source=source, project=project) for row in rows])
        last = rows[-1].version
        transaction.remember(f"{_COPIED}{name}", {"version": last, "root": root}, now)
    return last


def day_start(moment: float, days: int = 0) -> int:
    """Midnight before a moment where the person is, or so many days later."""
    year, month, day = time.localtime(moment)[:3]
    return int(time.mktime((year, month, day + days, 0, 0, 0, 0, 0, -1)))


def month_start(moment: float, months: int = 0) -> int:
    year, month = time.localtime(moment)[:2]
    return int(time.mktime((year, month + months, 1, 0, 0, 0, 0, 0, -1)))


def _fold(transaction: SqliteTransaction, now: float) -> None:
    """Put old rows together, a few days at each call until all are; then once a day."""
    today = day_start(now)
    known = transaction.recall(_FOLDED) or {}
    if known.get("day") == today:
        return
    left, since = _FOLDS, 0
    for until, begin, middle, is_folded in (
        (today - _MONTHLY, month_start, 15 * DAY, {}),
        (today - _TOGETHER, day_start, DAY // 2, {"not session": ""}),
        (today - _DAILY, day_start, DAY // 2, {}),
    ):
        found = transaction.spent(("at",), since, begin(until), is_folded)
        stretches = sorted({begin(at) for at, *_ in found if is_folded or at != begin(at) + middle})
        for first in stretches[:left]:
            # In the middle, so that it is the same day for a person who travels.
            transaction.fold_spend(first, begin(first, 1), first + middle, session=until >= today - _DAILY)
        left, since = left - len(stretches[:left]), begin(until)
    if left > 0:
        transaction.remember(_FOLDED, {"day": today}, now)
