"""Answer an agent whose budget is used up, and tell one whose budget is nearly.

It is asked before anything else that may be said of a call, and only where budgets are set. Nothing is kept with the
session: the moment a person grants more, or the day is over, it goes on.
"""

from __future__ import annotations

from fusewire.breakers.session.ordered import counted
from fusewire.breakers.session.spend import look
from fusewire.breakers.session.state import LaneMemory, SessionMemory, amend, lane_name, session_name
from fusewire.breakers.session.tool_calls import has_grown
from fusewire.breakers.session.unit_of_work import UnitOfWork
from fusewire.core.budget import BudgetUse, SpendBudget, amount, raise_command
from fusewire.core.decision import Decision
from fusewire.scopes.budgets import HINT, Spender, noting, read_hint, used_up
from fusewire.scopes.ledger import copy_spend, started
from fusewire.util.durations import show_duration
from fusewire.util.errors import StoreError
from fusewire.util.worktrees import project_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.config.rules import Rules
    from fusewire.core.events import Event
    from fusewire.stores import Store

#: When it is asked: at a call, and where people and agents are told.
_ASKED = frozenset(("before_tool", "permission", "prompt", "relayed", "session_start"))

#: Budgets that a session remembers to have been told of.
_TOLD = 20

RULE = "budget"


def answer(event: Event, store: Store, rules: Rules, root: str, branch: str, task: str, now: float) -> Decision | None:
    """What the budgets say of an event; None if there is room."""
    if event.kind not in _ASKED:
        return None
    spender = Spender(project_key(root), event.session or "none", branch, task, event.agent or "")
    found: list[BudgetUse] = []
    try:
        has_spent, remarks = _look(event, store, rules, root, task, now)
    except StoreError as error:  # what is used up already is used up all the same
        has_spent, remarks = False, [f"fusewire: budgets cannot be counted: {error}"]
    if has_spent and not copy_spend(store, root, now, then=noting(rules.budgets, spender, now, found)):
        remarks.append("fusewire: budgets cannot be counted: the person's store cannot be written; it is tried again")
    near = [use for use in found if use.share >= use.budget.warn]
    full = [use for use in (*near, *used_up(rules.budgets, spender, now)) if use.is_reached]
    over = _started_over(event, store, full, task, now) if _limits_starts(rules) else []
    reached = [use for use in full if use.what != "starts" or use.bucket in over]
    if reached:
        return _refused(event, store, rules, max(reached, key=lambda use: use.share), now)
    if damage := read_hint().damage:
        remarks.append(f"fusewire: {damage}; a person can delete {HINT}: it is made again")
    told = _told(event, store, near, now, tuple(remarks))
    return rules.as_set(told) if told is not None else None


def _limits_starts(rules: Rules) -> bool:
    return any(what == "starts" for data in rules.budgets for what, _ in SpendBudget(*data).limits)


def _started_over(event: Event, store: Store, full: list[BudgetUse], task: str, now: float) -> list[str]:
    """The budgets of starts that were used up when this session was started: it is one too many, those before it are
    not. It is counted once it may go on. What `fusewire run` starts it asks for itself."""
    name = session_name(event.session or "none")
    if task.startswith("run-") or event.text in ("compact", "clear"):
        return []
    used = [use.bucket for use in full if use.what == "starts"]
    try:
        if event.kind == "session_start":
            if used:
                amend(store, name, now, budgets_over=used)
            return used
        over = SessionMemory.recalled(store, name).budgets_over
        if event.kind == "before_tool" and over and not set(over) & set(used):
            with store.transact() as transaction:
                state = SessionMemory.recall(transaction, name, now)
                if state.budgets_over:
                    transaction.spend([started(event.session or "none", event.agent or "", "", task, now)])
                    state.budgets_over = []
                    transaction.remember(name, state.to_data(), now)
        return over
    except StoreError:
        return used if event.kind == "session_start" else []


def _look(event: Event, store: Store, rules: Rules, root: str, task: str, now: float) -> tuple[bool, list[str]]:
    """Bring what the session has spent up to date; whether it has spent something, and what a person is told."""
    if event.kind == "session_start":
        return False, []  # only behind it is it known what of the transcript another session has paid for
    lane = LaneMemory.recalled(store, lane_name(event.session or "none", event.subagent or ""))
    if not event.transcript or not has_grown(event, lane):
        return False, []
    with store.transact() as transaction:
        unit = UnitOfWork(transaction, rules, event, now, root=root, task=task)
        before = unit.state.spend
        look(unit)
        if unit.state.spend is not before:
            transaction.remember(session_name(unit.session), unit.state.to_data(), now)
        return unit.has_spent, unit.remarks


def _refused(event: Event, store: Store, rules: Rules, use: BudgetUse, now: float) -> Decision:
    decision = refusal(use, now, "tell" if event.kind == "session_start" else "halt")
    heard = rules.as_set(decision)
    if heard is not decision or event.kind != "before_tool":
        return heard
    return counted(decision, event, lambda: store, use.since, now)


def refusal(use: BudgetUse, now: float, verdict: str = "halt") -> Decision:
    """A budget that is used up, as a decision."""
    name, what = use.budget.name, use.what
    ends = f"; it begins anew in {show_duration(use.until - now // 1)}" if use.until < now + 1e9 else ""
    run = f"a person can run: {raise_command(use)}"
    return Decision(
        verdict,  # type: ignore[arg-type]
        rule=f"{RULE}:{name}",
        reason=use.words(),
        evidence=(
            f"It counts since {_moment(use.since)}{ends}" if use.since else "It counts from the first session on",
        ),
        next=("stop here and report what is done; no call is allowed until a person raises the budget",),
        by_person=(run, f"a person can set the limit: {use.budget.setting(what)}"),
    )


def _moment(moment: float) -> str:
    """Where the person is, with the zone."""
    from time import localtime, strftime

    return strftime("%Y-%m-%d %H:%M %Z", localtime(moment))


def _told(event: Event, store: Store, near: list[BudgetUse], now: float, remarks: tuple[str, ...]) -> Decision | None:
    """A warning, once in a session for each budget and each of its days."""
    name = session_name(event.session or "none")
    try:
        known = SessionMemory.recalled(store, name).budgets_told if near else []
        new = [use for use in near if f"{use.bucket} {use.what}" not in known]
        if new:
            told = [*known, *(f"{use.bucket} {use.what}" for use in new)]
            amend(store, name, now, budgets_told=told[-_TOLD:])
    except StoreError:
        return Decision("allow", remarks=remarks) if remarks else None
    if not new:
        return Decision("allow", remarks=remarks) if remarks else None
    use = max(new, key=lambda one: one.share)
    left = amount(use.what, use.limit + use.granted - use.spent)
    return Decision(
        "tell",
        rule=f"{RULE}:{use.budget.name}",
        reason=f"{use.words()}: {left} left",
        next=("come to an end before the limit: from there on every call is refused",),
        remarks=remarks,
    )
