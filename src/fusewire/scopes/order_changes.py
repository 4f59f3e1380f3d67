"""Give orders: halt, resume, pause, allow once. Every change is one write under a lock, and is audited.

What stops agents needs only the file to be written, and a word is said if the audit trail cannot be. What softens a
rule is written into the audit trail first, and does not happen without.
"""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack

from fusewire.config import user_state_folder
from fusewire.core.events import TEXT_LIMIT, plain
from fusewire.scopes.once import OFFER, offers_of
from fusewire.scopes.orders import ALL, COPY, ORDERS, HaltOrder, OnceAllowed, Orders, PauseOrder, read_orders
from fusewire.scopes.user import known_projects, open_user_store
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError, NotFound, StoreError
from fusewire.util.fast_json import dumps
from fusewire.util.files import STATE_FOLDER, FileLock, make_folder, replace_file, set_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Orders of a kind that hold at once: far more than a person gives, and together less than is read.
_MOST = 100

#: The longest pause, in seconds, as that of an override.
LONGEST_PAUSE = 86400.0

#: Seconds for which an allowed call may still be made.
ONCE_FOR = 600.0

#: Seconds to wait for another process that gives an order.
_WAIT, _PATIENCE = 10.0, 3.0


def person_reason(reason: str) -> str:
    """The reason on one line, as long as is kept; FusewireError if it says nothing."""
    text = plain(" ".join(reason.split()), TEXT_LIMIT)
    if not text:
        raise FusewireError("the reason is empty; say why: agents and people are shown it")
    return text


def halt(order: HaltOrder, root: str | None) -> str:
    """Stop the agents in a scope; whatever else went wrong, in a sentence."""

    def add(orders: Orders) -> None:
        others = [one for one in orders.halts if (one.scope, one.key) != (order.scope, order.key)]
        if len(others) >= _MOST:
            raise FusewireError(f"{_MOST} halts hold already; lift some of them first: fusewire resume")
        orders.halts = (*others, order)

    change_orders(add, _projects(root), order.at, wait=_PATIENCE, insists=True)
    return _audited(AuditRow(f"halt/{_name(order)}", order.at, "running", "halted", "halt", order.reason, order.by))


def resume(fits: Callable[[HaltOrder], bool], root: str | None, reason: str, by: str, now: float) -> list[HaltOrder]:
    """Lift the halts that fit; which ones they were."""
    lifted: list[HaltOrder] = []

    def lift(orders: Orders) -> None:
        lifted.extend(one for one in orders.halts if fits(one))
        orders.halts = tuple(one for one in orders.halts if one not in lifted)

    change_orders(lift, _projects(root), now)
    _audited(*(AuditRow(f"halt/{_name(one)}", now, "halted", "running", "resume", reason, by) for one in lifted))
    return lifted


def pause(order: PauseOrder) -> None:
    """Let rules only log until a time."""
    if not 0 < order.until - order.at <= LONGEST_PAUSE:
        raise FusewireError("a pause ends by itself, after 24h at the latest")
    text = f"until {show_time(order.until)}: {order.reason}"
    _require_audit(
        *(AuditRow(f"pause/{rule}", order.at, "enforce", "log", "pause", text, order.by) for rule in order.rules)
    )

    def add(orders: Orders) -> None:
        if len(orders.pauses) >= _MOST:
            raise FusewireError(f"{_MOST} pauses hold already; end some of them first: fusewire pause --end")
        orders.pauses = (*orders.pauses, order)

    change_orders(add, [], order.at)


def end_pauses(rules: Iterable[str], fits: Callable[[PauseOrder], bool], by: str, now: float) -> list[str]:
    """End the pauses of these rules, or all that fit without any; which rules are enforced again."""
    wanted, ended = set(rules), []

    def drop(orders: Orders) -> None:
        kept = []
        for one in orders.pauses:
            gone = [rule for rule in one.rules if fits(one) and (not wanted or rule in wanted)]
            ended.extend(gone)
            left = tuple(rule for rule in one.rules if rule not in gone)
            kept += [one.replace(rules=left)] if left else []
        orders.pauses = tuple(kept)

    change_orders(drop, [], now)
    ended = list(dict.fromkeys(ended))
    _audited(*(AuditRow(f"pause/{rule}", now, "log", "enforce", "resume", "ended by a person", by) for rule in ended))
    return ended


def allow_once(order: OnceAllowed, what: str, now: float) -> None:
    """Let one refused call pass, once; all codes of that call are used up by that."""
    store = open_user_store()
    with store.transact() as transaction:
        if transaction.recall(f"{OFFER}{order.code}") is None:
            raise NotFound(f"the code {order.code} was used already")
        for name in (f"{OFFER}{order.code}", *offers_of(store, order.call, now)):
            transaction.drop(name)
        transaction.audit(AuditRow(f"once/{order.code}", now, "refused", "allowed", "allow-once", what, order.by))

    def add(orders: Orders) -> None:
        orders.once = (*orders.once, order)[-_MOST:]

    change_orders(add, [], now)


def take_once(call: str, call_id: str, now: float) -> bool:
    """Use up what a person allowed for a call; False if another one was faster. The same call, by its id, may be asked
    about twice: a hook can be registered twice."""
    taken: list[OnceAllowed] = []

    def take(orders: Orders) -> None:
        fitting = [one for one in orders.once if one.call == call and one.until > now]
        taken.extend([one for one in fitting if call_id and one.taken == call_id][:1])
        if not taken:
            taken.extend([one for one in fitting if not one.taken][:1])
            used = tuple(one.replace(taken=call_id or "-") for one in taken)
            orders.once = (*(one for one in orders.once if one not in taken), *used)

    change_orders(take, [], now, wait=2.0)
    return bool(taken)


def change_orders(
    change: Callable[[Orders], None], projects: list[str], now: float, *, wait: float = _WAIT, insists: bool = False
) -> Orders:
    """Let `change` edit the orders under a lock, write them, and copy the halts to these projects.

    `insists`: write them also if another process does not let go of the lock. Whatever can read the file can hold it,
    and nobody is to keep a person from stopping agents by that.

    The copies are written first where halts were added and last where some were lifted, so that a process that is
    killed in between leaves too much halted rather than too little.
    """
    folder = user_state_folder()
    if not os.path.isabs(folder):
        raise FusewireError(f"there is no home to keep orders in ({folder}): set HOME or XDG_STATE_HOME to a full path")
    path = os.path.join(folder, ORDERS)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(FileLock(os.path.join(folder, "orders.lock"), wait=wait))
            except BlockingIOError:
                if not insists:
                    raise
            orders = _read_to_change(path, projects)
            before = orders.halts
            change(orders)
            orders.pauses = tuple(one for one in orders.pauses if one.until > now)
            orders.once = tuple(one for one in orders.once if one.until > now)
            lifted = any(one not in orders.halts for one in before)
            if not lifted:
                _copy(orders, projects)
            replace_file(path, _content(orders), mode=0o600)
            if lifted:
                _copy(orders, projects)
    except OSError as error:
        raise StoreError(f"the orders of the person cannot be written: {path}: {error.strerror}") from error
    return orders


def keep_copy(root: str, orders: Orders) -> None:
    """Let a project know the halts that hold for it, if it has begun since they were ordered. Best effort."""
    if not orders.epoch or os.path.lexists(os.path.join(root, COPY)):
        return
    _copy(orders, [root])
    if not read_orders().halts:  # a person has resumed meanwhile
        _remove(os.path.join(root, COPY))


def _read_to_change(path: str, projects: list[str]) -> Orders:
    """The orders, with the halts that only copies in these projects know; a damaged file is set aside."""
    orders = read_orders()
    if orders.damage:
        set_aside(path, "cannot be read")
    orders.epoch = orders.epoch or secrets.token_hex(8)
    for root in projects:
        known = read_orders(root)
        if known.copied:
            orders.halts = tuple(dict.fromkeys((*orders.halts, *known.halts)))
    return orders


def _content(orders: Orders) -> bytes:
    return dumps(orders.to_json()).encode()


def _copy(orders: Orders, projects: list[str]) -> None:
    """Best effort: a project that is gone, or not ours to write, has its halt from the person's file all the same."""
    content = _content(Orders(orders.halts, epoch=orders.epoch))
    for root in projects:
        path = os.path.join(root, COPY)
        try:
            if not orders.halts:
                _remove(path)
            elif os.path.isdir(os.path.join(root, STATE_FOLDER)) or os.path.lexists(os.path.join(root, ".git")):
                make_folder(root, STATE_FOLDER)
                replace_file(path, content)
        except OSError:
            pass


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _projects(root: str | None) -> list[str]:
    """Where copies are kept: every project of the person that is known, and the one that an order is given in."""
    try:
        known = known_projects(open_user_store(read_only=True))
    except (StoreError, OSError):
        known = []
    return list(dict.fromkeys([*([root] if root else []), *(one for one in known if os.path.isdir(one))]))


def _name(order: HaltOrder) -> str:
    return ALL if order.scope == ALL else f"{order.scope}/{order.key}"


def _audited(*rows: AuditRow) -> str:
    try:
        _require_audit(*rows)
    except (StoreError, OSError) as error:
        return f"it could not be written into the audit trail: {error}"
    return ""


def _require_audit(*rows: AuditRow) -> None:
    if rows:
        with open_user_store().transact() as transaction:
            for row in rows:
                transaction.audit(row)
