"""Halts and pauses of the person: one small file that every hook reads, and nothing else of the user's store.

The file is the truth. While something is halted each project keeps a copy of the halts, so that losing the person's
folder lifts none: a copy holds where the file is gone, cannot be read, or was begun anew since the copy was made (its
`epoch` is another one). On the hot path: reading costs two system calls where no order was ever given. Orders are
given in `order_changes`.
"""

from __future__ import annotations

import os

from fusewire.config import user_state_folder
from fusewire.core.events import Noun
from fusewire.util.fast_json import loads
from fusewire.util.files import STATE_FOLDER, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The file in the person's folder, and the copy of the halts in a project.
ORDERS = "orders.json"
COPY = os.path.join(STATE_FOLDER, "halts.json")

#: Bytes of it that are read: more than `order_changes` lets it have.
LARGEST = 1 << 18

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


class OnceAllowed(Noun):
    """One refused call that a person lets pass once: `call` is its fingerprint, `taken` the id of the one that did."""

    call: str
    session: str
    until: float
    code: str
    by: str
    taken: str = ""


class Orders:
    """Everything that a person has ordered and that holds."""

    __slots__ = ("copied", "damage", "epoch", "halts", "once", "pauses")

    def __init__(
        self,
        halts: tuple[HaltOrder, ...] = (),
        pauses: tuple[PauseOrder, ...] = (),
        once: tuple[OnceAllowed, ...] = (),
        epoch: str = "",
    ) -> None:
        self.halts, self.pauses, self.once = halts, pauses, once
        #: which file it is: another one after the person's folder was lost
        self.epoch = epoch
        #: whether some halts come from a project's copy, because the person's file does not know them
        self.copied = False
        #: why the file could not be read
        self.damage = ""

    def halt(self, project: str, session: str | None) -> HaltOrder | None:
        """The widest halt that concerns a session of a project."""
        found = [one for one in self.halts if one.holds(project, session)]
        return min(found, key=lambda one: (ALL, PROJECT, SESSION).index(one.scope), default=None)

    def may_allow(self, session: str | None) -> bool:
        """Whether a person lets some call of a session pass once; which one, is found out elsewhere."""
        if not any(one.session == session for one in self.once):
            return False
        from time import time

        return any(one.session == session and time() < one.until for one in self.once)

    def to_json(self) -> dict[str, Any]:
        return {
            "halts": [dict(vars(one)) for one in self.halts],
            "pauses": [{**vars(one), "rules": list(one.rules)} for one in self.pauses],
            "once": [dict(vars(one)) for one in self.once],
            "epoch": self.epoch,
        }


def halt_of(orders: Orders, root: str, session: str | None) -> HaltOrder | None:
    """The widest halt that concerns a session of the project in a folder, whatever a file `.git` there says."""
    if not orders.halts:
        return None
    from fusewire.util.worktrees import project_key

    return orders.halt(project_key(root), session) or orders.halt(os.path.realpath(root), session)


def paused_rules(orders: Orders, root: str, session: str | None, now: float) -> list[str]:
    """The patterns of the rules that are paused for it."""
    from fusewire.util.worktrees import project_key

    key = project_key(root)
    return [rule for one in orders.pauses if one.holds(key, session, now) for rule in one.rules]


def orders_path() -> str:
    return os.path.join(user_state_folder(), ORDERS)


def read_orders(root: str | None = None) -> Orders:
    """What holds now, for the project in a folder if one is given."""
    folder, orders, damage = user_state_folder(), Orders(), ""
    if folder[:1] == "/":
        try:
            orders = _parsed(read_file(f"{folder}/{ORDERS}", LARGEST))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            damage = f"the orders of the person cannot be read: {folder}/{ORDERS}: {error}"
    if root is not None:
        try:
            copy = _parsed(read_file(f"{root}/{COPY}", LARGEST))
            if not orders.epoch or copy.epoch != orders.epoch:
                lost = tuple(one for one in copy.halts if one not in orders.halts)
                orders.halts, orders.copied = (*orders.halts, *lost), bool(lost)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # a state folder that cannot be entered is said by whatever opens the state
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            damage = damage or f"the copy of the person's halts cannot be read: {root}/{COPY}: {error}"
    orders.damage = damage
    return orders


def _parsed(content: bytes) -> Orders:
    data = loads(content.decode("utf-8"))
    return Orders(
        tuple(HaltOrder(**one) for one in data["halts"]),
        tuple(PauseOrder(**{**one, "rules": tuple(one["rules"])}) for one in data["pauses"]),
        tuple(OnceAllowed(**one) for one in data["once"]),
        data["epoch"],
    )
