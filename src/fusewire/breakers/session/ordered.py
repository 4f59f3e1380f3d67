"""Answer the agents of a session that a person has halted, until a person resumes.

It is not kept with the session, as the halts of rules are: the moment the order is gone, the session goes on.
"""

from __future__ import annotations

import time

from fusewire.breakers.session.state import Repeats
from fusewire.breakers.session.tool_calls import begin_turn
from fusewire.breakers.session.unit_of_work import UnitOfWork
from fusewire.core.decision import Decision
from fusewire.scopes.orders import halt_of
from fusewire.util.durations import show_time
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.scopes.orders import HaltOrder, Orders
    from fusewire.stores import Store

RULE = "fusewire.halt"

#: What is stopped; at the others the agent ends, or nothing can be said.
_STOPPED = frozenset(("before_tool", "after_tool", "permission", "prompt", "relayed", "notice"))

#: Refused calls in a row after which the process of an agent that goes on is ended.
_UNHEEDED = 3

_WHAT = {"all": "all agents", "project": "the agents of this project", "session": "this session"}


def answer(
    event: Event,
    orders: Orders,
    root: str,
    store: Callable[[], Store],
    rules: Rules,
    *,
    clock: Callable[[], float] = time.time,
) -> Decision | None:
    """The halt that concerns an event, or a word on orders that cannot be read; None if neither."""
    halt = halt_of(orders, root, event.session)
    if halt is None:
        is_start = event.kind in ("session_start", "prompt")
        remark = f"fusewire: {orders.damage}; a person can run: fusewire resume"
        return Decision("allow", remarks=(remark,)) if orders.damage and is_start else None
    if event.kind == "session_start":
        return refusal(halt, "tell", copied=orders.copied)
    if event.kind not in _STOPPED:
        return None
    decision = refusal(halt, "halt", copied=orders.copied)
    if event.kind != "before_tool":
        return decision
    return counted(decision, event, store, rules, halt.at, clock())


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


def counted(
    decision: Decision, event: Event, store: Callable[[], Store], rules: Rules, since: float, now: float
) -> Decision:
    """The refusal of a call, written down for people who look; unheeded if this agent has been refused often in a row.

    `since` is when what refuses began.
    """
    try:
        with store().transact() as transaction:
            unit = UnitOfWork(transaction, rules, event, now)
            lane = unit.lane
            if lane.halts is None or (lane.refused_at or 0.0) < since:
                lane.halts = Repeats.none()
            begin_turn(unit)
            lane.refused_at = now
            halts = lane.halts
            halts.add(unit.turn, event.call or event.described(), event.call)
            unit.log_doing("halted", event.tool, f"{decision.rule}: {event.described()}")
            unit.save()
            unheeded: Decision = decision.replace(unheeded=halts.times > _UNHEEDED)
            return unheeded
    except StoreError:
        return decision  # the call is refused all the same
