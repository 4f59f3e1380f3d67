"""Hold what a session has cost, by the agent's own transcript, against what it may cost.

It is checked before a call, because afterwards the money is gone. Beside the session, the day (UTC) and the whole
project are added up; a person may grant more.
"""

from __future__ import annotations

from fusewire.agents.spending.ledger import read_on
from fusewire.breakers.session.state import SPEND, ProjectSpend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.util.fast_json import JsonObject


def limits_on_spend(unit: UnitOfWork, *, warns: bool = True) -> Iterator[Decision]:
    """Read on in the transcript, then ask the limits that are near. A warning is for once, and only if it is heard."""
    look(unit)
    state, settings, circuit = unit.state, unit.settings, f"tool/spend/{unit.session}"
    limit = settings["resource_limits.api_cost_block_usd"]
    spent, granted = state.usd, state.granted
    was_near, state.spend_near = state.spend_near, False
    if spent - granted >= min(settings["resource_limits.api_cost_warn_usd"], limit):
        state.spend_near = True
        unit.signal("note", circuit, "spent", value=round(spent - granted, 4))
        decision = unit.signal("ask", circuit, "action")
        if decision.allowed and decision.verdict == "tell" and warns:
            if state.spend_warned:
                decision = decision.replace(verdict="allow")
            state.spend_warned = True
        yield decision.replace(reason=spent_words(spent, granted, limit, "in this session"))
    elif was_near:  # more was granted
        unit.signal("note", circuit, "spent", value=max(0.0, round(spent - granted, 4)))
    table: ProjectSpend | None = None
    for name, key, words in (
        ("day", day_of(unit.now), "today in this project"),
        ("project", ProjectSpend.PROJECT, "in this project"),
    ):
        limit = settings[f"resource_limits.api_cost_block_usd_per_{name}"]
        if not limit:
            continue
        state.spend_near = True  # other sessions may have spent it
        table = table or ProjectSpend.recall(unit.transaction, SPEND, unit.now)
        spent, granted = table.spent(key), table.granted(key)
        if spent - granted >= limit:
            unit.signal("note", f"tool/spend_{name}", "spent", value=round(spent - granted, 4))
            decision = unit.signal("ask", f"tool/spend_{name}", "action")
            yield decision.replace(reason=spent_words(spent, granted, limit, words))


def look(unit: UnitOfWork) -> None:
    """Bring what is known of the session's cost up to date, and what the project has spent with it."""
    transcript = unit.event.transcript
    if not transcript:
        return
    before = unit.state.spend
    now = read_on(before, transcript, unit.rules.prices, unit.state.spend_since)
    if now is before:
        return
    unit.state.spend = now
    _say_unknown(unit, now, known=bool(before.get("files")))
    more = now.get("usd", 0) - before.get("usd", 0)
    if more > 0 or len(now.get("unknown", ())) > len(before.get("unknown", ())):
        table = ProjectSpend.recall(unit.transaction, SPEND, unit.now)
        table.add(unit.session, unit.state, more, day_of(unit.now), unit.now)
        unit.log_doing("spend", value=round(unit.state.usd, 6))
        unit.transaction.remember(SPEND, table.to_data(), unit.now)


def _say_unknown(unit: UnitOfWork, spend: JsonObject, *, known: bool) -> None:
    """What could not be counted is not free: a person is told, once for each model and each problem.

    A transcript that was never there may still come; one that was `known` and is gone is another matter.
    """
    problem = spend.get("problem") or ""
    if problem and known and problem != unit.state.spend_problem:
        unit.state.spend_problem = problem
        unit.remarks.append(f"fusewire: what this session costs could not be counted in full: {problem}")
    for model in spend.get("unknown", {}):
        if model not in unit.state.unpriced:
            unit.state.unpriced.append(model)
            unit.remarks.append(
                f"fusewire: no price is known for the model {model}, so what it costs is not counted;"
                f' give one in fusewire.toml: [prices."{model}"]'
            )


def over_limit(unit: UnitOfWork) -> Decision | None:
    """The refusal of a limit on spend that is reached, if one is."""
    return next((decision for decision in limits_on_spend(unit, warns=False) if not decision.allowed), None)


def spent_words(spent: float, granted: float, limit: float, where: str) -> str:
    """What was spent, against what may be."""
    more = f", and ${granted:.2f} granted" if granted else ""
    return f"${spent:.2f} spent {where} (limit ${limit:.2f}{more})"


def day_of(now: float) -> str:
    """The date (UTC) under which spend is added up."""
    from time import gmtime

    year, month, day = gmtime(now)[:3]
    return f"{year}-{month:02}-{day:02}"
