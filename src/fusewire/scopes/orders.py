"""Halts and pauses of the person: one small file that every hook reads, and nothing else of the user's store.

The file is the truth. While something is halted each project that it concerns keeps a copy, so that losing the
person's folder lifts no halt: a copy holds where there is no file. A file that cannot be read is set aside, said, and
leaves the copies in force. On the hot path: reading costs two system calls where no order was ever given.
"""

from __future__ import annotations

import os

from fusewire.config import user_state_folder
from fusewire.core.events import Noun
from fusewire.util.fast_json import dumps, loads
from fusewire.util.files import STATE_FOLDER, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The file in the person's folder, and the copy of the halts in a project.
ORDERS = "orders.json"
COPY = os.path.join(STATE_FOLDER, "halts.json")

#: Bytes of it that are read, and orders of a kind that are kept: far above what a person gives.
_LARGEST = 1 << 18
_MOST = 200

ALL, PROJECT, SESSION = "all", "project", "session"


class HaltOrder(Noun):
    """Agents that a person has stopped: `scope` is `all`, `project` (`key` its folder) or `session` (`key` its id)."""

    scope: str
    key: str
    reason: str
    by: str
    at: float

    def holds(self, project: str, session: str | None) -> bool:
        return self.scope == ALL or self.key == (project if self.scope == PROJECT else session)


class PauseOrder(Noun):
    """Rules that only log until a time: patterns such as `tool.repetition`, `guard.*` or `*`."""

    scope: str
    key: str
    rules: tuple[str, ...]
    until: float
    reason: str
    by: str
    at: float

    def holds(self, project: str, session: str | None, now: float) -> bool:
        if not self.at <= now < self.until:  # a clock that was set back does not make it longer
            return False
        return self.scope == ALL or self.key == (project if self.scope == PROJECT else session)


class Orders:
    """Everything that a person has ordered and that holds."""

    __slots__ = ("copied", "damage", "halts", "pauses")

    def __init__(self, halts: tuple[HaltOrder, ...] = (), pauses: tuple[PauseOrder, ...] = ()) -> None:
        self.halts, self.pauses = halts, pauses
        #: whether they are a project's copy, because the person's file is gone or damaged
        self.copied = False
        #: why the file could not be read
        self.damage = ""

    def __bool__(self) -> bool:
        return bool(self.halts or self.pauses or self.damage)

    def halt(self, project: str, session: str | None) -> HaltOrder | None:
        """The widest halt that concerns a session of a project."""
        found = [one for one in self.halts if one.holds(project, session)]
        return min(found, key=lambda one: (ALL, PROJECT, SESSION).index(one.scope), default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "halts": [dict(vars(one)) for one in self.halts],
            "pauses": [{**vars(one), "rules": list(one.rules)} for one in self.pauses],
        }


def halt_of(orders: Orders, root: str, session: str | None) -> HaltOrder | None:
    """The widest halt that concerns a session of the project in a folder."""
    from fusewire.util.worktrees import project_key

    return orders.halt(project_key(root), session) if orders.halts else None


def paused_rules(orders: Orders, root: str, session: str | None, now: float) -> list[str]:
    """The patterns of the rules that are paused for it."""
    from fusewire.util.worktrees import project_key

    key = project_key(root)
    return [rule for one in orders.pauses if one.holds(key, session, now) for rule in one.rules]


def orders_path() -> str:
    return os.path.join(user_state_folder(), ORDERS)


def read_orders(root: str | None = None) -> Orders:
    """What holds now; of a project's copy only the halts, and only where the person's file is gone or damaged."""
    folder = user_state_folder()
    damage = ""
    if folder[:1] == "/":
        try:
            return _parsed(read_file(f"{folder}/{ORDERS}", _LARGEST))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            damage = f"the orders of the person cannot be read: {folder}/{ORDERS}: {error}"
    orders = Orders()
    if root is not None:
        try:
            orders.halts = _parsed(read_file(f"{root}/{COPY}", _LARGEST)).halts
            orders.copied = bool(orders.halts)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            damage = damage or f"the copy of the person's halts cannot be read: {root}/{COPY}: {error}"
    orders.damage = damage
    return orders


def _parsed(content: bytes) -> Orders:
    data = loads(content.decode("utf-8"))
    halts = tuple(HaltOrder(**one) for one in data["halts"])
    pauses = tuple(PauseOrder(**{**one, "rules": tuple(one["rules"])}) for one in data["pauses"])
    return Orders(halts, pauses)


def change_orders(change: Callable[[Orders], None], projects: list[str], now: float) -> Orders:
    """Let `change` edit the orders under a lock, write them, and copy the halts to these projects.

    The copies are written first where halts were added and last where some were lifted, so that a process that is
    killed in between leaves too much halted rather than too little.
    """
    from fusewire.util.files import FileLock, replace_file

    folder = user_state_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with FileLock(os.path.join(folder, "orders.lock"), wait=10.0):
        orders = _read_to_change(folder, projects)
        before = orders.halts
        change(orders)
        orders.pauses = tuple(one for one in orders.pauses if one.until > now)[-_MOST:]
        orders.halts = orders.halts[-_MOST:]
        content = dumps(orders.to_json()).encode()
        lifted = any(one not in orders.halts for one in before)
        if not lifted:
            _copy(content, projects)
        replace_file(os.path.join(folder, ORDERS), content, mode=0o600)
        if lifted:
            _copy(content, projects)
    return orders


def _read_to_change(folder: str, projects: list[str]) -> Orders:
    """The orders, with what the copies of these projects know where the file is gone; a damaged one is set aside."""
    orders = read_orders()
    if orders.damage:
        from fusewire.util.files import set_aside

        set_aside(os.path.join(folder, ORDERS), "cannot be read")
    if orders.damage or not os.path.lexists(os.path.join(folder, ORDERS)):
        copies = (one for root in projects for one in read_orders(root).halts)
        orders.halts = tuple(dict.fromkeys((*orders.halts, *copies)))
    return orders


def _copy(content: bytes, projects: list[str]) -> None:
    """Best effort: a project that is gone, or not ours to write, has its halt from the person's file all the same."""
    from fusewire.util.files import replace_file

    for root in projects:
        try:
            if os.path.isdir(os.path.join(root, STATE_FOLDER)):
                replace_file(os.path.join(root, COPY), content)
        except OSError:
            pass
