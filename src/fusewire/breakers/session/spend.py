"""Hold what a session's own tokens have cost, by the agent's transcript, against what they may cost.

It is checked before a call, because afterwards the money is gone. A session has a limit where a person has set one, or
where nobody can answer. Beside the session, the day (UTC) and the whole project are added up, with what external APIs
cost (see `api_cost`); a person may grant more.
"""

from __future__ import annotations

from fusewire.agents.spending.ledger import read_on
from fusewire.breakers.session.state import SPEND, ProjectSpend
from fusewire.core.events import Noun
from fusewire.scopes.ledger import begin_ledger, moment_of, quarter_of, spent_elsewhere
from fusewire.stores.rows import SpendRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from fusewire.agents.spending.ledger import Booking
    from fusewire.breakers.session.state import SessionMemory
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.stores import Transaction
    from fusewire.util.fast_json import JsonObject

OF_SESSION = "in this session at list price"
OF_RUN = "in this run at list price"
ON_APIS = "on external APIs in this session"

#: How a person lifts a limit of the session.
MORE_DOLLARS = 'a person can say "grant another $5" to the agent, or run: fusewire grant 5 --reason "..."'

#: The agent is warned at this share of the limit.
_NEAR = 0.8

_COME_TO_AN_END = "go on, and come to an end before the limit: from there on every call is refused"


class SessionBudget(Noun):
    """Dollars of one session that a person may add to."""

    is_external: bool
    circuit: str
    limit: float
    setting: str
    #: what it is for
    on: str


def budget_of(state: SessionMemory, settings: Mapping[str, Any]) -> SessionBudget:
    """The budget that a grant to the session is for: the one that is nearer to its end."""
    tokens, api = state.limit(settings), settings["resource_limits.api_cost_block_usd"]
    used, used_of_api = state.usd_of_limit / (tokens + state.granted or 1), state.api_usd / (api + state.api_granted)
    if tokens and (used >= 1 or used >= used_of_api):
        return SessionBudget(False, "tool/spend", tokens, _setting(settings), "at list price")
    return SessionBudget(True, "tool/api_cost", api, "resource_limits.api_cost_block_usd", "on external APIs")


def _setting(settings: Mapping[str, Any]) -> str:
    end = "" if settings["resource_limits.agent_cost_block_usd"] else "_unattended"
    return f"resource_limits.agent_cost_block_usd{end}"


def limits_on_spend(unit: UnitOfWork, *, warns: bool = True) -> Iterator[Decision]:
    """Read on in the transcript, then ask the limits that are near. A warning is for once, and only if it is heard."""
    look(unit)
    state, circuit = unit.state, f"tool/spend/{unit.session}"
    _join_run(unit)
    limit, spent, granted = state.limit(unit.settings), state.usd_of_limit, state.granted
    state.spend_near = limit > 0 and spent >= round(_NEAR * (limit + granted), 6)
    is_full = state.spend_near and spent >= limit + granted
    if state.spend_near:
        unit.signal("note", circuit, "spent", value=max(0.0, round(spent - granted, 4)))
    if is_full or (state.spend_near and warns and not state.spend_warned):
        state.spend_warned = state.spend_warned or not is_full
        words = spent_words(spent, granted, limit, whose(state))
        steps = () if is_full else (_COME_TO_AN_END,)
        by_person = (MORE_DOLLARS, f"a person can set the limit in fusewire.toml: {_setting(unit.settings)}")
        yield unit.decide(circuit, "deny" if is_full else "tell", words, next=steps, by_person=by_person)
    table: ProjectSpend | None = None
    for name, key, words, option in (
        ("day", day_of(unit.now), "today in this project", "--day"),
        ("project", ProjectSpend.PROJECT, "in this project", "--project-total"),
    ):
        limit = unit.settings[f"resource_limits.api_cost_block_usd_per_{name}"]
        if not limit:
            continue
        state.spend_near = True  # other sessions may have spent it
        table = table or ProjectSpend.recall(unit.transaction, SPEND, unit.now)
        elsewhere = spent_elsewhere(unit.root, since_of(key))
        spent, granted = round(table.spent(key) + elsewhere, 6), table.granted(key)
        if spent - granted >= limit:
            unit.signal("note", f"tool/spend_{name}", "spent", value=round(spent - granted, 4))
            decision = unit.signal("ask", f"tool/spend_{name}", "action")
            run = f'a person can run: fusewire grant 5 {option} --reason "..."'
            yield decision.replace(reason=spent_words(spent, granted, limit, words), by_person=(run,))


def whose(state: SessionMemory) -> str:
    """Whose tokens count to the session's limit."""
    return OF_RUN if state.run_usd else OF_SESSION


def _join_run(unit: UnitOfWork) -> None:
    """The limit for where nobody can answer is one of the whole run: its sessions are added up."""
    state, settings = unit.state, unit.settings
    if not unit.run or settings["resource_limits.agent_cost_block_usd"] or state.attended:
        return
    state.task = unit.run
    (usd, *_), *_ = unit.transaction.spent(where={"task": unit.run, "not session": unit.session})
    state.run_usd = round(usd, 6)
    table = ProjectSpend.recalled(unit.transaction, SPEND)
    state.granted = max(state.granted, table.granted(unit.run))


def look(unit: UnitOfWork) -> None:
    """Bring what is known of the session's cost up to date, and what the project has spent with it."""
    transcript = unit.event.transcript
    if not transcript:
        return
    before = unit.state.spend
    found: list[Booking] = []
    now = read_on(before, transcript, unit.rules.prices, unit.state.spend_since, found.append)
    if now is before:
        return
    unit.state.spend = now
    if found:
        open_ledger(unit.transaction)
        unit.transaction.spend([_row(unit, one) for one in found])
        unit.has_spent = True
    _say_unknown(unit, now, known=bool(before.get("files")))
    more = now.get("usd", 0) - before.get("usd", 0)
    if more > 0 or len(now.get("unknown", ())) > len(before.get("unknown", ())):
        table = ProjectSpend.recall(unit.transaction, SPEND, unit.now)
        table.add(unit.session, unit.state, more, day_of(unit.now), unit.now)
        unit.log_doing("spend", value=round(unit.state.usd, 6))
        unit.transaction.remember(SPEND, table.to_data(), unit.now)


def open_ledger(transaction: Transaction) -> None:
    """Let the store take rows for the person's ledger; what it knows of the time before there was one, too."""
    begin_ledger(transaction, lambda: _before_ledger(ProjectSpend.recalled(transaction, SPEND)))


def _before_ledger(table: ProjectSpend) -> dict[str, float]:
    """What version 0.1 has counted by day, and under "" of days that it has forgotten."""
    days = {day: float(usd) for day, usd in table.days.items() if type(usd) in (int, float)}
    return {**days, "": round(table.usd - sum(days.values()), 6)}


def _row(unit: UnitOfWork, one: Booking) -> SpendRow:
    at, agent = quarter_of(one.when, unit.now), unit.event.agent or ""
    return SpendRow(
        unit.session, at, unit.branch, one.model, one.helper, unit.task, agent, one.usd, one.tokens, one.calls
    )


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


def since_of(key: str) -> float:
    """When a day (UTC) began; 0 of the whole project."""
    return moment_of(f"{key}T00:00:00Z") or 0.0


def day_of(now: float) -> str:
    """The date (UTC) under which spend is added up."""
    from time import gmtime

    year, month, day = gmtime(now)[:3]
    return f"{year}-{month:02}-{day:02}"
