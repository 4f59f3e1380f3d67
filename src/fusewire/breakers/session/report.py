"""Print the tool seed's dashboard: a session's breakers, memory, resources and incidents in its layout and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fusewire.util.durations import counted, number, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.breakers.session.overview import (
        ActiveCircuit,
        ApiCost,
        IncidentCounts,
        SessionCost,
        SessionOverview,
        SessionResources,
        SpendLimit,
    )

TITLE = "🔒 CIRCUIT BREAKER STATUS"


def dashboard(data: SessionOverview) -> list[str]:
    """What `session.overview` has collected."""
    lines = [TITLE, ""]
    if data["session"] is None:
        lines += ["No session has been heard of yet in this project.", ""]
    lines += ["Active Breakers:", *_breakers(data), ""]
    lines += ["Memory Health:", *_bullets(data["memory"]["report"]), ""]
    lines += ["Resource Usage:", *_bullets(_resources(data["resources"])), ""]
    lines += ["Incidents Last 24h:", *_bullets(_incidents(data["incidents"]))]
    return lines


def _bullets(texts: list[str] | Iterator[str]) -> list[str]:
    return [f"  • {text}" for text in texts]


def _breakers(data: SessionOverview) -> Iterator[str]:
    if data["halted"]:
        until = "grants it more" if data["needs"] == "grant" else "says something to it"
        yield f"  • The agent is halted, until a person {until}: {data['halted']}"
        yield ""
    for one in data["active"]:
        yield f"  • {_name(one)}: {one['state']}{_cooldown(one)}"
        if one["phase"] == "watch":
            yield f"    - Warning: {_reason(one['reason'], one['key'])}"
        trip = one["last_trip"]
        if trip is not None:
            when = trip["at"] if trip["turn"] is None else f"Turn {trip['turn']}"
            yield f"    - Last trip: {when} ({_reason(trip['reason'], one['key'])})"
        attempt = one["next_attempt"]
        if attempt is not None and not data["halted"]:
            when = "now, one call as a probe" if attempt["at"] is None else f"{attempt['at'][11:19]} UTC"
            yield f"    - Next attempt allowed: Turn {attempt['turn']} ({when})"
        yield ""
    yield f"  • {'All others' if data['active'] else 'All'}: CLOSED (normal operation)"


def _name(one: ActiveCircuit) -> str:
    name = f"{one['breaker']} {one['key']}" if one["key"] else str(one["breaker"])
    return f"{name} of agent {one['agent']}" if one["agent"] else name


def _cooldown(one: ActiveCircuit) -> str:
    left = one["cooldown_seconds"]
    if one["phase"] == "open":
        return " (a person must act)" if left is None else f" (cooldown: {_seconds(left)} remaining)"
    if one["phase"] == "probe":
        return " (ready to probe)" if left is None else f" (a probe is under way, for up to {_seconds(left)})"
    return ""


def _seconds(left: float) -> str:
    """23s: whole seconds, rounded up, so that whoever waits so long is not refused again."""
    whole = -int(-left // 1)
    return f"{whole}s" if whole < 600 else show_duration(whole)


def _reason(reason: str, key: str | None) -> str:
    """`pytest failed 3x in 5 turns`: the seed's words for `this tool failed 3 times in 5 turns (limit 3)`."""
    if key:
        shell, _, program = key.removesuffix(")").partition("(")
        reason = re.sub(r"\bthis (tool|hook)\b", lambda _: program or shell, reason)
    return re.sub(r" \(limit [^()]*\)$", "", re.sub(r"(\d+) times\b", r"\1x", reason))


def _resources(resources: SessionResources) -> Iterator[str]:
    agents, calls, cost = resources["agents"], resources["api_calls"], resources["cost"]
    running, most = agents["running"], agents["limit"]
    yield f"Agents: {running}/{most} concurrent ({_share(running, most)} capacity)"
    minute, limit = calls["this_minute"], calls["limit_per_minute"]
    yield f"API calls: {minute}/{limit} this minute ({_share(minute, limit)} rate)"
    if calls["this_session"] >= 0.8 * calls["session_limit"]:
        yield f"API calls: {calls['this_session']}/{calls['session_limit']} this session"
    yield f"API cost: {_api_cost(cost['external'])}"
    if cost["usd"] or cost["unknown_models"] or cost.get("problem"):
        yield f"Tokens of the agent: {_tokens(cost)}"
    for table, words in ((cost["day"], "today"), (cost["project"], "of the project")):
        if table["limit_usd"]:
            allowed = table["limit_usd"] + table["granted_usd"]
            yield f"Cost {words}: ${table['usd']:.2f} / ${allowed:.2f} limit{_granted(table)}"


def _share(part: float, whole: float) -> str:
    return f"{number(round(100 * part / whole))}%" if whole else "100%"


def _api_cost(cost: ApiCost) -> str:
    warn, limit, granted = cost["warn_usd"], cost["limit_usd"], cost["granted_usd"]
    below = cost["usd"] - granted < min(warn, limit)
    against = f"${warn + granted:.2f} warn threshold" if below and warn < limit else f"${limit + granted:.2f} limit"
    full = ": reached, calls of external APIs are refused" if cost["usd"] - granted >= limit else ""
    return f"${cost['usd']:.2f} / {against}{_granted(cost)}{full}"


def _tokens(cost: SessionCost) -> str:
    limit, granted = cost["limit_usd"], cost["granted_usd"]
    against = f" / ${limit + granted:.2f} limit{_granted(cost)}" if limit else ", no limit"
    unknown = cost["unknown_models"]
    more = f", and what {', '.join(unknown)} cost: no price is known" if unknown else ""
    more += f"; not everything could be counted: {cost['problem']}" if cost.get("problem") else ""
    more += ": reached, every call is refused" if limit and cost["usd"] - granted >= limit else ""
    return f"${cost['usd']:.2f} at list price{against}{more}"


def _granted(cost: SpendLimit) -> str:
    return f" (${cost['granted_usd']:.2f} of it granted)" if cost["granted_usd"] else ""


def _incidents(counts: IncidentCounts) -> Iterator[str]:
    by = ", ".join(f"{name} x{count}" for name, count in counts["by_breaker"].items())
    yield counted(counts["circuit_trips"], "circuit trip") + (f" ({by})" if by else "")
    yield counted(counts["memory_cleanups"], "memory cleanup")
    yield counted(counts["resource_exhaustions"], "resource exhaustion")
