"""Grant more dollars, by a person's hand: for one session, for a day, or for the whole project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.names import last_session
from fusewire.breakers.session.spend import day_of
from fusewire.breakers.session.state import SPEND, ProjectSpend, SessionMemory, session_name
from fusewire.breakers.session.user_message import MOST
from fusewire.core.events import TEXT_LIMIT, Signal, plain
from fusewire.stores.rows import AuditRow
from fusewire.util.errors import FusewireError, NotFound

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.stores import Transaction

_SETTING = "resource_limits.api_cost_block_usd"


def dollars(text: str) -> float:
    """The amount in `5`, `$5` and `2.50`."""
    digits = text.strip().removeprefix("$")
    plain = digits.isascii() and digits.replace(".", "", 1).isdigit() and len(digits) < 20
    amount = round(float(digits), 2) if plain else 0.0
    if not 0 < amount <= MOST:
        raise FusewireError(
            f"{text!r} is refused as an amount; allowed: dollars above 0, up to {MOST:.0f}, such as 5 or 2.50"
        )
    return amount


def grant(breaker: Breaker, amount: float, whom: str, session: str | None, reason: str, actor: str) -> dict[str, Any]:
    """Add dollars for a `session`, the `day` or the `project`; what is allowed now, and what is spent."""
    setting = _SETTING if whom == "session" else f"{_SETTING}_per_{whom}"
    if whom == "session":
        session = session or last_session(breaker.store)
        if session is None:
            raise NotFound(
                "no session has been heard of in this project yet; allowed: --session ID of one, --day, --project-total"
            )

    def give(transaction: Transaction, now: float) -> dict[str, Any]:
        if session is not None:
            key, circuit = session, f"tool/spend/{session}"
            spent, granted = _to_session(transaction, session, amount, now)
        else:
            key = ProjectSpend.PROJECT if whom == "project" else day_of(now)
            circuit = f"tool/spend_{whom}"
            spent, granted = _to_all(transaction, key, amount, now)
        _note(breaker, transaction, circuit, spent - granted, now)
        words = plain(f"${amount:.2f} more granted: {reason.strip()}", TEXT_LIMIT)
        transaction.audit(AuditRow(circuit, now, "closed", "closed", "overridden", words, actor))
        limit = float(breaker.rules.tool[setting])
        return {
            "for": whom,
            "key": key,
            "amount_usd": amount,
            "granted_usd": granted,
            "limit_usd": limit,
            "allowed_usd": round(limit + granted, 4),
            "spent_usd": round(spent, 4),
            "setting": setting,
            "reason": reason.strip(),
            "by": actor,
            "at": now,
        }

    return breaker.engine.transact(give)


def _note(breaker: Breaker, transaction: Transaction, circuit: str, level: float, now: float) -> None:
    """Let the circuit know at once, if it has ever been near: whoever looks at it sees the room that there is."""
    try:
        policy = breaker.rules.policy(circuit)
    except NotFound:  # there is no such limit
        return
    if breaker.engine.load(transaction, policy, circuit, now) is not None:
        breaker.engine.step(transaction, Signal("note", circuit, "spent", value=max(0.0, round(level, 4))), now)


def _to_session(transaction: Transaction, session: str, amount: float, now: float) -> tuple[float, float]:
    name = session_name(session)
    state = SessionMemory.recall(transaction, name, now)
    if state.is_new:
        raise NotFound(f"no session {session!r} has been heard of in this project; see: fusewire status --session")
    granted = state.grant(amount)
    # Its own time: a grant is no word from the session.
    transaction.remember(name, state.to_data(), now if state.at is None else state.at)
    return state.usd, granted


def _to_all(transaction: Transaction, key: str, amount: float, now: float) -> tuple[float, float]:
    table = ProjectSpend.recall(transaction, SPEND, now)
    table.grant(amount, key)
    transaction.remember(SPEND, table.to_data(), now)
    return table.spent(key), table.granted(key)
