"""Answer the agents of a session that a person has halted, until a person resumes.

It is not kept with the session, as the halts of rules are: the moment the order is gone, the session goes on, and
none of its counts has moved.
"""

from __future__ import annotations

import os
import time

from fusewire.breakers.session.decided import note
from fusewire.core.decision import Decision
from fusewire.scopes.orders import COPY, halt_of, read_orders
from fusewire.stores.rows import Doing
from fusewire.util.durations import show_time
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.core.events import Event
    from fusewire.scopes.orders import HaltOrder, Orders
    from fusewire.stores import Store

RULE = "fusewire.halt"

#: What is stopped; at the others the agent ends, or nothing can be said.
_STOPPED = frozenset(("before_tool", "after_tool", "permission", "prompt", "relayed", "notice"))

#: Refused replies in a row after which the process of an agent that goes on is ended; seconds that a reply takes at
#: least; seconds after which a row is forgotten.
_UNHEEDED, _REPLY, _KEPT = 3, 1.0, 86400.0

#: What a row of refusals of one agent is remembered under.
_MEMORY = "ordered/"

_WHAT = {"all": "all agents", "project": "the agents of this project", "session": "this session"}


def answer(
    event: Event,
    orders: Orders,
    root: str,
    store: Callable[[], Store],
    *,
    clock: Callable[[], float] = time.time,
) -> Decision | None:
    """The halt that concerns an event, or a word on orders that cannot be read; None if neither."""
    halt = halt_of(orders, root, event.session)
    if halt is None:
        is_start = event.kind in ("session_start", "prompt")
        remark = f"fusewire: {orders.damage}; a person can run: fusewire resume"
        return Decision("allow", remarks=(remark,)) if orders.damage and is_start else None
    if not os.path.lexists(os.path.join(root, COPY)):
        from fusewire.scopes.order_changes import keep_copy

        keep_copy(root, orders)
    if event.kind == "session_start":
        return refusal(halt, "tell", copied=orders.copied)
    kept_going = event.kind == "stop" and event.text == "again"  # another program's stop hook would keep it going
    if event.kind not in _STOPPED and not kept_going:
        return None
    decision = refusal(halt, "halt", copied=orders.copied)
    if event.kind != "before_tool":
        return decision
    return counted(decision, event, store, halt.at, clock())


def halt_here(root: str) -> Decision | None:
    """Why no agent may begin in a project, or go on, if a person has halted it."""
    orders = read_orders(root)
    halt = halt_of(orders, root, None)
    return None if halt is None else refusal(halt, "deny", copied=orders.copied)


def refusal(halt: HaltOrder, verdict: str, *, copied: bool = False) -> Decision:
    """A person's halt as a decision."""
    since = f"by {halt.by} since {(show_time(halt.at) or '')[:16].replace('T', ' ')} UTC"
    lost = ("the person's own record of it is gone; this project's copy holds",) if copied else ()
    return Decision(
        verdict,  # type: ignore[arg-type]
        rule=RULE,
        reason=f"a person has halted {_WHAT[halt.scope]} ({since}): {halt.reason}",
        evidence=lost,
        next=("stop here; no call is allowed until a person resumes",),
        by_person=("a person can run: fusewire resume",),
    )


def counted(decision: Decision, event: Event, store: Callable[[], Store], since: float, now: float) -> Decision:
    """The refusal of a call, written down for people who look; unheeded if this agent has been refused often in a row.

    `since` is when what refuses began.
    """
    session, agent = event.session or "none", event.subagent or ""
    name = f"{_MEMORY}{session}/{agent}"
    try:
        with store().transact() as transaction:
            try:
                known = transaction.recall(name) or {}
            except ValueError:
                known = {}
            if (known.get("rule"), known.get("since")) != (decision.rule, since):
                known = {"rule": decision.rule, "since": since, "times": 0, "last": 0.0}
            if not 0 <= now - known["last"] < _REPLY:  # the calls of one reply are one
                known["times"] += 1
                known["last"] = now
                transaction.forget(_MEMORY, now - _KEPT)
                transaction.remember(name, known, now)
            # Nobody is notified of what is refused under a halt: the person who halted the agent knows.
            kind = "refused" if decision.rule == RULE else "halted"
            transaction.happened(Doing(session, agent, now, kind, event.tool, f"{decision.rule}: {event.described()}"))
            code = note(transaction, event, now, decision)
            noted: Decision = decision.replace(unheeded=known["times"] > _UNHEEDED, code=code)
            return noted
    except (StoreError, OSError, KeyError, TypeError):
        return decision  # the call is refused all the same
