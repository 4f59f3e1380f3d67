"""What a session has cost, from the agent's own transcript, against what it may cost.

It is checked before a call, because afterwards the money is gone. Beside the session, the day (UTC) and the whole
project are added up; a person may grant more.
"""

from __future__ import annotations

from fusewire.agents.spending.ledger import read_on
from fusewire.breakers.session.state import SPEND, recall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fusewire.breakers.session.unit_of_work import Moment
    from fusewire.core.decision import Decision

#: How many of them a project's spend is remembered of.
_SESSIONS = 50
_DAYS = 40


def limits_on_spend(moment: Moment, *, warns: bool = True) -> Iterator[Decision]:
    """Read on in the transcript, then ask the limits that are near. A warning is for once, and only if it is heard."""
    look(moment)
    settings, session = moment.settings, f"tool/spend/{moment.session}"
    spent, granted = _usd(moment), moment.record.get("granted", 0)
    was_near = moment.record.pop("spend_near", False)
    if spent - granted >= min(
        settings["resource_limits.api_cost_warn_usd"], settings["resource_limits.api_cost_block_usd"]
    ):
        moment.record["spend_near"] = True
        moment.signal("note", session, "spent", value=round(spent - granted, 4))
        decision = moment.signal("ask", session, "action")
        if decision.allowed and decision.verdict == "tell" and warns:
            decision = _warned_once(moment, decision)
        yield _in_dollars(decision, spent, granted, settings["resource_limits.api_cost_block_usd"], "in this session")
    elif was_near:  # more was granted
        moment.signal("note", session, "spent", value=max(0.0, round(spent - granted, 4)))
    table: dict[str, Any] | None = None
    for name, key, words in (("day", day_of(moment.now), "today in this project"), ("project", "", "in this project")):
        limit = settings[f"resource_limits.api_cost_block_usd_per_{name}"]
        if not limit:
            continue
        moment.record["spend_near"] = True  # other sessions may have spent it
        table = recall(moment.transaction, SPEND, moment.now)[0] if table is None else table
        used = table.get("days", {}).get(key, 0) if key else table.get("usd", 0)
        given = table.get("granted_for", {}).get(key or "project", 0)
        if used - given >= limit:
            moment.signal("note", f"tool/spend_{name}", "spent", value=round(used - given, 4))
            yield _in_dollars(moment.signal("ask", f"tool/spend_{name}", "action"), used, given, limit, words)


def look(moment: Moment) -> None:
    """Bring what is known of the session's cost up to date, and what the project has spent with it."""
    transcript = moment.event.transcript
    if not transcript:
        return
    before = moment.record.get("spend") or {}
    now = read_on(before, transcript, moment.rules.prices, moment.record.get("spend_since", ""))
    if now is before:
        return
    moment.record["spend"] = now
    _say_unknown(moment, now, known=bool(before.get("files")))
    more = now.get("usd", 0) - before.get("usd", 0)
    if more > 0 or len(now.get("unknown", ())) > len(before.get("unknown", ())):
        _add(moment, more)


def _say_unknown(moment: Moment, spend: dict[str, Any], *, known: bool) -> None:
    """What could not be counted is not free: a person is told, once for each model and each problem.

    A transcript that was never there may still come; one that was `known` and is gone is another matter.
    """
    problem = spend.get("problem") or ""
    if problem and known and problem != moment.record.get("spend_problem"):
        moment.record["spend_problem"] = problem
        moment.remarks.append(f"fusewire: what this session costs could not be counted in full: {problem}")
    said = moment.record.setdefault("unpriced", [])
    for model in spend.get("unknown", {}):
        if model not in said:
            said.append(model)
            moment.remarks.append(
                f"fusewire: no price is known for the model {model}, so what it costs is not counted;"
                f' give one in fusewire.toml: [prices."{model}"]'
            )


def over_limit(moment: Moment) -> Decision | None:
    """The refusal of a limit on spend that is reached, if one is."""
    return next((decision for decision in limits_on_spend(moment, warns=False) if not decision.allowed), None)


def grant_session(record: dict[str, Any], amount: float) -> float:
    """More for one session, in what is remembered of it; what is granted in all. It is warned anew."""
    granted: float = round(record.get("granted", 0) + amount, 4)
    record["granted"] = granted
    record.pop("spend_warned", None)
    return granted


def grant(table: dict[str, Any], amount: float, key: str) -> float:
    """More for a day (its date) or the whole project, in the project's table; what is granted in all."""
    granted: dict[str, float] = table.setdefault("granted_for", {})
    granted[key] = round(granted.get(key, 0) + amount, 4)
    for day in sorted(day for day in granted if day != "project")[:-_DAYS]:
        del granted[day]
    return granted[key]


def _usd(moment: Moment) -> float:
    usd: float = (moment.record.get("spend") or {}).get("usd", 0)
    return usd


def _add(moment: Moment, more: float) -> None:
    table = recall(moment.transaction, SPEND, moment.now)[0]
    sessions = table.setdefault("sessions", {})
    sessions.pop(moment.session, None)
    sessions[moment.session] = {"usd": round(_usd(moment), 6), "at": moment.now}
    unknown = sorted((moment.record.get("spend") or {}).get("unknown") or ())
    if unknown:
        sessions[moment.session]["unknown"] = unknown
    days = table.setdefault("days", {})
    day = day_of(moment.now)
    days[day] = round(days.get(day, 0) + more, 6)
    table["usd"] = round(table.get("usd", 0) + more, 6)
    moment.did("spend", value=round(_usd(moment), 6))
    for part, most in ((sessions, _SESSIONS), (days, _DAYS)):
        while len(part) > most:
            del part[next(iter(part))]
    moment.transaction.remember(SPEND, table, moment.now)


def _warned_once(moment: Moment, decision: Decision) -> Decision:
    """A warning is for once; after that the agent has been told."""
    if moment.record.get("spend_warned"):
        passed: Decision = decision.replace(verdict="allow")
        return passed
    moment.record["spend_warned"] = True
    return decision


def _in_dollars(decision: Decision, spent: float, granted: float, limit: float, where: str) -> Decision:
    worded: Decision = decision.replace(reason=spent_words(spent, granted, limit, where))
    return worded


def spent_words(spent: float, granted: float, limit: float, where: str) -> str:
    """What was spent, against what may be."""
    more = f", and ${granted:.2f} granted" if granted else ""
    return f"${spent:.2f} spent {where} (limit ${limit:.2f}{more})"


def day_of(now: float) -> str:
    """The date (UTC) under which spend is added up."""
    from time import gmtime

    year, month, day = gmtime(now)[:3]
    return f"{year}-{month:02}-{day:02}"
