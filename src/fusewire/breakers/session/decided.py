"""Write down every answer that was not a plain allow, so that people can ask later what it was, and why.

It is written in the transaction that counts the event, or, where none does (a halt by a person, a refusal that ends the
matter before any rule is asked), in one of its own. Commands are kept as the circuits keep them, cut and on one line.
"""

from __future__ import annotations

import os

from fusewire.config.rules import STATE_FOLDER
from fusewire.core.events import TEXT_LIMIT, plain
from fusewire.core.messages import agent_message
from fusewire.stores.rows import DecisionRow
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event
    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

#: What an answer is called in the record, by its verdict.
KINDS = {"tell": "told", "ask": "asked", "deny": "refused", "halt": "halted"}

#: Bytes of a message, of a path, and of one of the lines of evidence and other rules; and how many of these are kept.
_MESSAGE = 2000
_PATH = 1000
_LINE = 400
_LINES = 5


def is_recorded(decision: Decision) -> bool:
    """Whether people may want to ask for it: notices that are no rule's are not."""
    return decision.verdict in ("deny", "halt") or (decision.verdict != "allow" and bool(decision.rule))


def note(
    transaction: Transaction,
    event: Event,
    now: float,
    decision: Decision | None,
    unit: UnitOfWork | None = None,
) -> str:
    """Write down the answer to an event, and what rules in `log` mode would have answered; the code of the answer.

    The unit of work knows what a circuit has decided, where the answer has only the words that were made of it."""
    for one in unit.logged if unit is not None else ():
        transaction.decided(row_of(event, now, one, kind="logged"))
    if decision is None or not is_recorded(decision):
        return ""
    grounds = unit.grounds if unit is not None else None
    if unit is not None and grounds is not None:
        from fusewire.breakers.session.messages import next_steps

        grounds = grounds.replace(next=next_steps(grounds, unit))
    return transaction.decided(row_of(event, now, decision, grounds))


def note_apart(event: Event, decision: Decision, root: str, store: Callable[[], Store], now: float) -> Decision:
    """The decision with its code, written down in a transaction of its own, if possible: it holds all the same."""
    if decision.code or not is_recorded(decision):
        return decision
    try:
        with store().transact() as transaction:
            code = note(transaction, event, now, decision)
    except (StoreError, OSError):
        return note_later(event, decision, root, now)
    coded: Decision = decision.replace(code=code)
    return coded


def note_later(event: Event, decision: Decision, root: str, now: float) -> Decision:
    """The same where the store cannot be written now: it waits beside it for the next event that can."""
    from fusewire.stores import spool

    if not is_recorded(decision):
        return decision
    row = row_of(event, now, decision).coded()
    try:
        spool.put(os.path.join(root, STATE_FOLDER), {"decision": dict(vars(row))})
    except (OSError, ValueError, TypeError):
        return decision
    coded: Decision = decision.replace(code=row.code)
    return coded


def row_of(
    event: Event, now: float, decision: Decision, grounds: Decision | None = None, *, kind: str = ""
) -> DecisionRow:
    same = [one for one in (grounds, decision, *decision.also) if one is not None and one.rule == decision.rule]
    facts = next((one for one in same if one.reason), decision)
    text = agent_message(decision, now)
    data: JsonObject = {
        "agent": event.agent or "",
        "subagent": event.subagent or "",
        "hook": event.hook,
        "tool": event.tool,
        "call": plain(" ".join(event.described().split()), TEXT_LIMIT),
        "cwd": plain(event.cwd or "", _PATH),
        "circuit": facts.circuit,
        "reason": facts.reason or text.partition("\n")[0],
        "evidence": list(facts.evidence[:_LINES]),
        "next": list(facts.next[:_LINES]),
        "by_person": list(facts.by_person[:_LINES]),
        "until": None if facts.retry_after is None else now + facts.retry_after,
        "verdict": decision.verdict,
        "text": text,
        "also": [
            [one.verdict, one.rule, one.reason or one.text]
            for one in decision.also[:_LINES]
            if one.verdict != "allow" and (one.rule, one.reason) != (facts.rule, facts.reason)
        ],
    }
    return DecisionRow(now, event.session or "", kind or KINDS[decision.verdict], decision.rule, _storable(data))


def _storable(value: JsonObject) -> JsonObject:
    """Without what is empty; texts cut, and of real characters."""

    def stored(one: object, most: int = _MESSAGE) -> object:
        if isinstance(one, str):
            return plain(one, most)
        return [stored(part, _LINE) for part in one] if isinstance(one, list) else one

    return {name: stored(one) for name, one in value.items() if one not in ("", [], None)}
