"""Hold what is spent against budgets: of a task, session, branch, project, or all projects, in a stretch of time.

What counts is the person's ledger. A budget is asked in the same transaction that brings new spend to the ledger, and
one that is used up is written to a small file before that transaction commits: so whoever asks for a call later, in
any project, finds it there, and needs not open the ledger. The file tells what was spent and granted; a number in it
is never higher than what projects have counted, and where it is higher than the ledger's, it holds.
"""

from __future__ import annotations

import os
import time

from fusewire.config import user_state_folder
from fusewire.core.budget import BudgetUse, SpendBudget
from fusewire.core.burn import windows
from fusewire.core.events import Noun
from fusewire.scopes.ledger import DAY, day_start, month_start
from fusewire.util.fast_json import dumps, loads
from fusewire.util.files import read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from fusewire.stores import Store, Transaction

    #: of a bucket, what was granted of what
    Granted = dict[str, dict[str, float]]

#: The file in the person's folder, its largest size, and how many entries it keeps.
HINT = "budgets.json"
_LARGEST = 1 << 18
_MOST = 500

#: The memory of what was granted in the person's store.
GRANTS = "budget-grants"

_COLUMNS = ("usd", "tokens", "calls", "starts")


class Spender(Noun):
    """Who spends, and for what: it says which buckets of a budget are meant."""

    project: str
    session: str = ""
    branch: str = ""
    task: str = ""
    agent: str = ""


def budgets_for(data: Iterable[tuple[Any, ...]], spender: Spender) -> list[SpendBudget]:
    """The budgets that a spender's calls count to."""
    found = (SpendBudget(*one) for one in data)
    return [
        one
        for one in found
        if all(getattr(spender, scope) for scope in one.scopes) and one.agent in ("", spender.agent)
    ]


def bucket_of(budget: SpendBudget, spender: Spender, now: float) -> str:
    """What is counted together: the budget with its project, branch, day. A window is named by the budget alone."""
    begin = {"day": day_start, "week": week_start, "month": month_start}.get(budget.period)
    whose = [getattr(spender, scope) for scope in budget.scopes]
    return "|".join([budget.name, *whose, *([str(begin(now))] if begin else [])])


def week_start(moment: float, weeks: int = 0) -> int:
    """Monday's midnight where the person is."""
    return day_start(moment, 7 * weeks - time.localtime(moment).tm_wday)


def uses(source: Store | Transaction, budgets: Iterable[SpendBudget], spender: Spender, now: float) -> list[BudgetUse]:
    """How far each limit of the budgets is used, by the ledger and the file."""
    hint, granted = read_hint(), _granted(source)
    return [use for one in budgets for use in _uses(source, one, spender, now, hint, granted)]


def _uses(
    source: Store | Transaction, budget: SpendBudget, spender: Spender, now: float, hint: Hint, granted: Granted
) -> list[BudgetUse]:
    where = {scope: getattr(spender, scope) for scope in budget.scopes}
    if budget.agent:
        where["agent"] = budget.agent
    since, until = stretch(source, budget, where, now)
    sums = source.spent(since=since, where=where) if until else []
    usd, *tokens, calls, starts = sums[0] if sums else (0.0, *(0,) * 8)
    spent = dict(zip(_COLUMNS, (usd, sum(tokens[:5]), calls, starts), strict=True))
    bucket = bucket_of(budget, spender, now)
    more = granted.get(bucket, {})
    known = hint.used.get(bucket) or {}
    if known.get("until", now) < now:
        known = {}
    return [
        BudgetUse(budget, bucket, what, max(spent[what], known.get(what, 0)), limit, more.get(what, 0.0), since, until)
        for what, limit in budget.limits
    ]


def stretch(source: Store | Transaction, budget: SpendBudget, where: dict[str, str], now: float) -> tuple[float, float]:
    """From when until when it counts; (0, 0) for a window that has not begun."""
    if budget.period == "window":
        rows = source.spent(("at",), now - 7 * DAY, where=where)
        last = next(reversed(windows((at, 0.0, 0) for at, *_ in rows)), None)
        return (last.since, last.until) if last and now < last.until else (0.0, 0.0)
    begin = {"day": day_start, "week": week_start, "month": month_start}.get(budget.period)
    return (begin(now), begin(now, 1)) if begin else (0.0, 1e12)


# -- the file ---------------------------------------------------------------------------------------------


class Hint:
    """What the file says: buckets that are used up, with what was spent of what, and until when."""

    __slots__ = ("damage", "used")

    def __init__(self, used: dict[str, dict[str, float]] | None = None, damage: str = "") -> None:
        self.used, self.damage = used or {}, damage


def read_hint() -> Hint:
    folder = user_state_folder()
    if folder[:1] != "/":
        return Hint()
    try:
        data = loads(read_file(f"{folder}/{HINT}", _LARGEST).decode("utf-8"))["used"]
        numbers = {name: {key: float(value) for key, value in told.items()} for name, told in data.items()}
        return Hint(numbers)
    except FileNotFoundError:
        return Hint()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Hint(damage=f"the list of used budgets cannot be read: {folder}/{HINT}: {error}")


def used_up(data: Iterable[tuple[Any, ...]], spender: Spender, now: float) -> list[BudgetUse]:
    """The limits that the file says are reached; nothing else of the person's state is read."""
    hint = read_hint()
    if not hint.used:
        return []
    found = []
    for budget in budgets_for(data, spender):
        bucket = bucket_of(budget, spender, now)
        told = hint.used.get(bucket)
        if told and now < told.get("until", 0.0):
            for what, limit in budget.limits:
                spent, granted = told.get(what, 0.0), told.get(f"granted {what}", 0.0)
                use = BudgetUse(budget, bucket, what, spent, limit, granted, told.get("since", 0.0), told["until"])
                found += [use] if use.is_reached else []
    return found


def note_uses(found: Sequence[BudgetUse], now: float) -> None:
    """Write to the file what is used up, and take out what is not; the caller holds the person's store."""
    hint = read_hint()
    used = {bucket: told for bucket, told in hint.used.items() if told.get("until", 0.0) > now}
    for bucket in {use.bucket for use in found}:
        limits = [use for use in found if use.bucket == bucket]
        if any(use.is_reached for use in limits):
            used[bucket] = {"since": limits[0].since, "until": limits[0].until}
            for use in limits:
                used[bucket] |= {use.what: use.spent, f"granted {use.what}": use.granted}
        else:
            used.pop(bucket, None)
    if used != hint.used or hint.damage:
        content = dumps({"used": dict(list(used.items())[-_MOST:])}).encode()
        replace_file(os.path.join(user_state_folder(), HINT), content, mode=0o600)


def noting(
    data: Iterable[tuple[Any, ...]], spender: Spender, now: float, found: list[BudgetUse] | None = None
) -> Callable[[Transaction], None]:
    """What `copy_spend` does before it commits: ask the spender's budgets, and write down those that are used up."""
    budgets = budgets_for(data, spender)

    def note(transaction: Transaction) -> None:
        if budgets:
            known = uses(transaction, budgets, spender, now)
            note_uses(known, now)
            if found is not None:
                found.extend(known)

    return note


# -- what a person has granted ----------------------------------------------------------------------------


def _granted(source: Store | Transaction) -> Granted:
    try:
        return {name: told for name, told in (source.recall(GRANTS) or {}).items() if isinstance(told, dict)}
    except ValueError:
        return {}


def grant(
    transaction: Transaction, budget: SpendBudget, spender: Spender, what: str, amount: float, now: float
) -> BudgetUse:
    """Allow more of something; how far the limit is used now. The caller commits, and writes the audit trail."""
    granted, bucket = _granted(transaction), bucket_of(budget, spender, now)
    told = granted.pop(bucket, {})
    granted[bucket] = {**told, what: round(told.get(what, 0.0) + amount, 4)}
    transaction.remember(GRANTS, dict(list(granted.items())[-_MOST:]), now)
    found = uses(transaction, [budget], spender, now)
    note_uses(found, now)
    return next(use for use in found if use.what == what)
