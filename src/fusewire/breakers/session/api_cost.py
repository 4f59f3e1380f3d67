"""Hold what calls of external APIs have cost in a session against what they may cost.

The cost of a call is what it reports: a line `cost: $0.12`, a field such as `"cost_usd": 0.12`, or by
`fusewire spend add`. One that reports nothing costs what `external_api.cost_usd_per_call` says.
"""

from __future__ import annotations

from fusewire.breakers.session.spend import MORE_DOLLARS, ON_APIS, day_of, open_ledger, spent_words
from fusewire.breakers.session.state import SPEND, ProjectSpend
from fusewire.scopes.ledger import EXTERNAL, charged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.breakers.session.state import SessionMemory
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.stores import Transaction

_FIELDS = ("cost_usd", "total_cost_usd", "total_cost")

#: Words in front of the amount in a line that reports a cost; a name in square brackets may precede them.
_WORDS = frozenset("api call cost estimated est session usd (usd) total".split())

#: No call costs more: a larger number is about something else.
_MOST = 1000.0

#: Tool calls whose cost is waited for.
_OPEN = 64


def limit_on_cost(unit: UnitOfWork) -> Iterator[Decision]:
    """May another external call be made? From the limit on only such calls are refused."""
    state, settings, circuit = unit.state, unit.settings, f"tool/api_cost/{unit.session}"
    limit, spent, granted = settings["resource_limits.api_cost_block_usd"], state.api_usd, state.api_granted
    if spent - granted < min(settings["resource_limits.api_cost_warn_usd"], limit):
        return
    unit.signal("note", circuit, "spent", value=round(spent - granted, 4))
    decision = unit.signal("ask", circuit, "api_call").replace(
        reason=spent_words(spent, granted, limit, ON_APIS), by_person=(MORE_DOLLARS,)
    )
    if decision.verdict == "tell":
        steps = ("go on; from the limit on calls of external APIs are refused",)
        decision = decision.replace(verdict="allow" if state.api_warned else "tell", next=steps)
        state.api_warned = True
    yield decision


def call_begins(unit: UnitOfWork, lease: str, times: int) -> None:
    """A tool call makes so many external ones; what they cost is known at its end."""
    waiting = unit.state.api_open
    waiting[lease] = times
    while len(waiting) > _OPEN:
        del waiting[next(iter(waiting))]


def call_ended(unit: UnitOfWork, lease: str, text: str) -> None:
    """Charge what the call reports, else the estimate."""
    times = unit.state.api_open.pop(lease, None)
    if times is None:
        return
    usd = reported(text, times)
    usd = times * float(unit.settings["external_api.cost_usd_per_call"]) if usd is None else usd
    unit.has_spent = unit.has_spent or usd > 0
    charge(unit.transaction, unit.session, unit.state, usd, unit.now)


def charge(transaction: Transaction, session: str, state: SessionMemory, usd: float, now: float) -> None:
    """Add what external calls have cost to the session, the day and the project; the caller saves the session."""
    if usd > 0:
        state.api_usd = round(state.api_usd + usd, 6)
        open_ledger(transaction)
        table = ProjectSpend.recall(transaction, SPEND, now)
        table.add(session, state, usd, day_of(now), now)
        transaction.spend([charged(session, EXTERNAL, usd, now)])
        transaction.remember(SPEND, table.to_data(), now)


def reported(text: str, times: int = 1) -> float | None:
    """The dollars that the output of so many external calls reports; None if it reports none.

    A total counts for the single costs before it, the last one for those that only grew. Who reports in both ways
    reports the same cost twice: the larger sum counts.
    """
    text = text.replace("\\n", "\n").replace('\\"', '"')  # results of tools are text inside of JSON
    sums = [
        sum(totals[-max(1, times) :]) if totals else sum(single)
        for single, totals in (_of_lines(text), _of_fields(text))
        if single or totals
    ]
    return max(sums, default=None)


def _of_lines(text: str) -> tuple[list[float], list[float]]:
    """The single costs and the totals in lines such as `cost: $0.12` and `[oracle] total cost = 0.12 USD`."""
    found: tuple[list[float], list[float]] = ([], [])
    for line in text.splitlines() if "ost" in text or "OST" in text else ():
        if len(line) > 200:
            continue
        line = line.strip().lower()
        if line.startswith("["):
            line = line.partition("]")[2]
        key, colon, value = line.partition(":" if ":" in line else "=")
        words = key.replace("_", " ").split()
        amount = value.strip()
        in_dollars = "$" in amount or "usd" in amount or "usd" in key
        if not (colon and in_dollars and "cost" in words and _WORDS.issuperset(words)):
            continue
        usd = _number(amount.replace("usd", "").strip(" $"))
        if usd is not None:
            found["total" in words].append(usd)
    return found


def _of_fields(text: str) -> tuple[list[float], list[float]]:
    """The same in fields of JSON."""
    found: tuple[list[float], list[float]] = ([], [])
    for name in _FIELDS:
        for part in text.split(f'"{name}"')[1:]:
            value = part.lstrip()
            end = next((at for at, char in enumerate(value) if char in ",}]\n"), len(value))
            usd = _number(value[1:end].strip(' \t\r"')) if value[:1] == ":" else None
            if usd is not None:
                found[name.startswith("total")].append(usd)
    return found


def _number(text: str) -> float | None:
    if not (0 < len(text) < 30 and text.isascii() and text[0] in "0123456789." and "_" not in text):
        return None
    try:
        usd = float(text)
    except ValueError:
        return None
    return usd if usd <= _MOST else None
