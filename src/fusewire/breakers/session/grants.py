"""Grant more dollars or API calls, by a person's hand, and report what an external call has cost."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from fusewire.breakers.attempt.scope.active import slice_of
from fusewire.breakers.session.api_cost import charge
from fusewire.breakers.session.external import grant_calls
from fusewire.breakers.session.names import last_session
from fusewire.breakers.session.spend import budget_of, day_of
from fusewire.breakers.session.state import SPEND, ProjectSpend, SessionMemory, session_name
from fusewire.breakers.session.user_message import MOST
from fusewire.core.budget import BudgetUse, SpendBudget
from fusewire.core.budget import amount as amount_in_words
from fusewire.core.events import TEXT_LIMIT, Signal, plain
from fusewire.scopes.budgets import Spender
from fusewire.scopes.budgets import grant as add_to_budget
from fusewire.scopes.ledger import copy_spend
from fusewire.scopes.user import open_user_store
from fusewire.stores.rows import AuditRow, Doing
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.worktrees import branch_of, project_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusewire.engine.breaker import Breaker
    from fusewire.stores import Transaction

_SETTING = "resource_limits.api_cost_block_usd"


def dollars(text: str, places: int = 2) -> float:
    """The amount in `5`, `$5` and `2.50`."""
    digits = text.strip().removeprefix("$")
    plain = digits.isascii() and digits.replace(".", "", 1).isdigit() and len(digits) < 20
    amount = round(float(digits), places) if plain else 0.0
    if not 0 < amount <= MOST:
        raise FusewireError(
            f"{text!r} is refused as an amount; allowed: dollars above 0, up to {MOST:.0f}, such as 5 or 2.50"
        )
    return amount


def whole_calls(text: str, most: float = MOST, what: str = "calls") -> int:
    """The number in `20`."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    if not 0 < number <= most:
        raise FusewireError(f"{text!r} is refused as a number of {what}; allowed: 1 to {most:.0f}")
    return number


def grant(breaker: Breaker, amount: float, whom: str, session: str | None, reason: str, actor: str) -> dict[str, Any]:
    """Add dollars for a `session`, the `day` or the `project`; what is allowed now, and what is spent.

    Of a session it is for the budget that is nearer to its end: the agent's own tokens, or external APIs.
    """
    rules = breaker.rules.tool

    def of_session(transaction: Transaction, state: SessionMemory, key: str, now: float) -> dict[str, Any]:
        budget = budget_of(state, rules)
        granted = state.grant(amount, external=budget.is_external)
        spent = state.api_usd if budget.is_external else state.usd_of_limit
        if state.task and not budget.is_external:
            table = ProjectSpend.recall(transaction, SPEND, now)
            table.grant(amount, state.task)
            transaction.remember(SPEND, table.to_data(), now)
        found = {"budget": "external" if budget.is_external else "tokens", "setting": budget.setting}
        return {**found, **told(transaction, f"{budget.circuit}/{key}", key, (spent, granted, budget.limit), now)}

    def of_all(transaction: Transaction, now: float) -> dict[str, Any]:
        key = ProjectSpend.PROJECT if whom == "project" else day_of(now)
        table = ProjectSpend.recall(transaction, SPEND, now)
        table.grant(amount, key)
        transaction.remember(SPEND, table.to_data(), now)
        setting = f"{_SETTING}_per_{whom}"
        sums = table.spent(key), table.granted(key), float(rules[setting])
        return {"budget": "all", "setting": setting, **told(transaction, f"tool/spend_{whom}", key, sums, now)}

    def told(
        transaction: Transaction, circuit: str, key: str, sums: tuple[float, float, float], now: float
    ) -> dict[str, Any]:
        spent, granted, limit = sums
        _note(breaker, transaction, circuit, spent - granted, now)
        _audit(transaction, circuit, f"${amount:.2f} more granted", reason, actor, now)
        return {
            "for": whom,
            "key": key,
            "amount_usd": amount,
            "granted_usd": granted,
            "limit_usd": limit,
            "allowed_usd": round(limit + granted, 4),
            "spent_usd": round(spent, 4),
            "reason": reason.strip(),
            "by": actor,
            "at": now,
        }

    return breaker.engine.transact(of_all) if whom != "session" else _in_session(breaker, session, of_session)


def grant_api_calls(breaker: Breaker, number: int, session: str | None, reason: str, actor: str) -> dict[str, Any]:
    """Add calls of external APIs for a session; how many it may make now, and has made."""

    def give(transaction: Transaction, state: SessionMemory, key: str, now: float) -> dict[str, Any]:
        circuit = f"tool/api_calls/{key}"

        def send(breakers: str, value: float) -> None:
            signal = Signal("note", f"{breakers}/{key}", "api_call", value=value, session=key)
            with contextlib.suppress(NotFound):  # switched off
                breaker.engine.step(transaction, signal, now)

        granted = grant_calls(state, number, send)
        _audit(transaction, circuit, f"{number} more API calls granted", reason, actor, now)
        limit = breaker.rules.tool["resource_limits.api_session_max"]
        found = {"for": "session", "key": key, "calls": number, "granted_calls": granted, "limit_calls": limit}
        more = {"allowed_calls": limit + granted, "reason": reason.strip(), "by": actor, "at": now}
        return {**found, **more}

    return _in_session(breaker, session, give)


def grant_budget(
    breaker: Breaker, name: str, amount: float, what: str, session: str | None, reason: str, actor: str
) -> BudgetUse:
    """Add to a budget, of this project, branch and day where it is per one of them; how far it is used now."""
    if breaker.root is None:
        raise NotFound("budgets are for projects")
    key = session or last_session(breaker.store) or ""
    state = SessionMemory.recalled(breaker.store, session_name(key))
    task = state.task or slice_of(breaker.root, key)
    spender = Spender(project_key(breaker.root), key, branch_of(breaker.root), task)
    found = [SpendBudget(*one) for one in breaker.rules.budgets]
    budget = next((one for one in found if one.name == name), None)
    if budget is None:
        known = ", ".join(one.name for one in found) or "none is set; see [budgets.NAME] in docs/spend.md"
        raise NotFound(f"no budget named {name!r}; allowed: {known}")
    if what not in dict(budget.limits):
        raise FusewireError(f"budget {name} has no limit in {what}; allowed: {', '.join(dict(budget.limits))}")
    if missing := [scope for scope in budget.scopes if not getattr(spender, scope)]:
        raise NotFound(f"budget {name} is per {missing[0]}, and there is none here; allowed: --session ID of one")
    now = breaker.engine.clock()
    store = open_user_store()
    try:
        with store.transact() as transaction:
            use = add_to_budget(transaction, budget, spender, what, amount, now)
            words = f"{amount_in_words(what, amount)} more granted"
            _audit(transaction, f"budget/{use.bucket}", words, reason, actor, now)
    finally:
        store.close()
    breaker.engine.transact(lambda transaction, at: _audit(transaction, f"budget/{name}", words, reason, actor, at))
    return use


def add_cost(breaker: Breaker, usd: float, source: str, session: str | None) -> dict[str, Any]:
    """Report what an external call has cost; what the session has spent on them now."""

    def add(transaction: Transaction, state: SessionMemory, key: str, now: float) -> dict[str, Any]:
        first = next(iter(state.api_open), None)
        if first is not None and state.api_open[first]:
            state.api_open[first] -= 1  # it reports its cost in this way, so there is nothing to estimate
        charge(transaction, key, state, usd, now)
        transaction.happened(Doing(key, "", now, "spend", "", f"{source}: ${usd:.4f}", state.usd))
        limit = breaker.rules.tool[_SETTING]
        found = {"session": key, "source": source, "usd": usd, "api_usd": state.api_usd}
        return {**found, "limit_usd": limit, "granted_usd": state.api_granted}

    found = _in_session(breaker, session, add)
    if breaker.root:
        copy_spend(breaker.store, breaker.root, breaker.engine.clock())
    return found


def _in_session(
    breaker: Breaker,
    session: str | None,
    change: Callable[[Transaction, SessionMemory, str, float], dict[str, Any]],
) -> dict[str, Any]:
    """Change what is remembered of a session, of the one heard of last if none is named."""
    key = session or last_session(breaker.store)
    if key is None:
        raise NotFound("no session has been heard of in this project yet; allowed: --session ID of one")

    def work(transaction: Transaction, now: float) -> dict[str, Any]:
        name = session_name(key)
        state = SessionMemory.recall(transaction, name, now)
        if state.is_new:
            raise NotFound(f"no session {key!r} has been heard of in this project; see: fusewire status --session")
        found = change(transaction, state, key, now)
        # Its own time: this is no word from the session.
        transaction.remember(name, state.to_data(), now if state.at is None else state.at)
        return found

    return breaker.engine.transact(work)


def _audit(transaction: Transaction, circuit: str, what: str, reason: str, actor: str, now: float) -> None:
    words = plain(f"{what}: {reason.strip()}", TEXT_LIMIT)
    transaction.audit(AuditRow(circuit, now, "closed", "closed", "overridden", words, actor))


def _note(breaker: Breaker, transaction: Transaction, circuit: str, level: float, now: float) -> None:
    """Let the circuit know at once, if it has ever been near: whoever looks at it sees the room that there is."""
    try:
        policy = breaker.rules.policy(circuit)
    except NotFound:  # there is no such limit
        return
    if breaker.engine.load(transaction, policy, circuit, now) is not None:
        breaker.engine.step(transaction, Signal("note", circuit, "spent", value=max(0.0, round(level, 4))), now)
