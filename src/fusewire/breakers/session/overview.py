"""A session at one moment, for people and programs: breakers that are not closed, memory, limits, incidents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusewire.breakers.session.incident_log import last_trips, recent, summary
from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.spawning import SILENT
from fusewire.breakers.session.spend import day_of, spent_words
from fusewire.breakers.session.spend_limits import LIMITS_ON_ALL, in_dollars, long_over, stops
from fusewire.breakers.session.state import SPEND, lane_name, recalled, session_name
from fusewire.core import circuit as circuits
from fusewire.core import meters
from fusewire.core.events import identifier
from fusewire.engine.engine import read_state
from fusewire.engine.status import status_of
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status

_DAY = 86400

#: Breakers whose circuits have a key of their own in front of the session.
_KEYED = ("hook_recursion", "tool_failure", "sequential_tools")


def overview(breaker: Breaker, session: str | None) -> dict[str, Any]:
    """Everything that the dashboard shows; nothing is written."""
    now = breaker.engine.clock()
    record = recalled(breaker.store, session_name(session)) if session else {}
    lane = recalled(breaker.store, lane_name(session, "")) if session else {}
    turn = int(lane.get("replies", 0))
    incidents = recent(breaker.root or ".", breaker.rules.tool["incidents"], now - _DAY)
    trips = last_trips(incidents)
    whose = session or "none"  # circuits that no session was named for are its own
    found = _not_closed(breaker, whose, record)
    active = [_active(status, whose, record, trips.get(status.id), turn, now) for status in found]
    return {
        "session": session,
        "turn": turn if session else None,
        **standing(record, now, breaker.rules.tool["resource_limits.api_cost_block_usd"]),
        "active": active,
        "memory": _memory(breaker),
        "resources": {
            "agents": _agents(breaker, record, now),
            "api_calls": _api_calls(breaker, session, now),
            "cost": _cost(breaker, record, now),
        },
        "incidents": {"since": show_time(now - _DAY), **summary(incidents)},
    }


def standing(record: dict[str, Any], now: float, limit: float) -> dict[str, Any]:
    """What a session is at, as far as it can be told from outside: `running` or `silent`, `halted`, `ended`.

    One that is halted says why, and what it `needs`: a person's `message`, or a `grant` where it has spent its `limit`.
    It is so for a day after its end, too: whoever looks in the morning must see what was stopped at night.
    """
    heard, ended = record.get("at"), record.get("ended")
    silent = heard is None or now - heard > SILENT
    halted, needs = _halted(record, limit)
    over = ended is not None and (halted is None or long_over(record, now))
    return {
        "state": "ended" if over else "halted" if halted else "silent" if silent else "running",
        "heard": show_time(heard),
        "ended": show_time(ended),
        "halted": halted,
        "needs": needs,
    }


def _halted(record: dict[str, Any], limit: float) -> tuple[str | None, str | None]:
    halted, granted = record.get("halted"), record.get("granted", 0)
    if halted is not None:
        return str(halted.get("text", "")).partition("\n")[0], "message"
    spent = (record.get("spend") or {}).get("usd", 0.0)
    if spent - granted < limit or not stops(record):
        return None, None
    return f"HALTED tool.spend: {spent_words(spent, granted, limit, 'in this session')}.", "grant"


def running_in(record: dict[str, Any], now: float) -> list[list[Any]]:
    """The helpers of a session that run, the oldest first: when each began, its name, when it was last heard."""
    found = [facts for facts in record.get("agents", {}).values() if now - facts[2] <= SILENT]
    return sorted(found, key=lambda facts: float(facts[0]))


def _not_closed(breaker: Breaker, session: str, record: dict[str, Any]) -> Iterator[Status]:
    """From the rows as they are stored: an id that was too long is another one by now."""
    now = breaker.engine.clock()
    own = {identifier(circuit) for circuit in (*record.get("alarms", {}), f"tool/spend/{session}")}
    known = {session, *session_ids(breaker.store)}
    for row in breaker.store.circuits():
        is_limit = row.id.startswith("tool/spend")
        if (row.phase == "closed" and not is_limit) or not row.id.startswith("tool/"):
            continue
        if row.id in own or row.id in LIMITS_ON_ALL or session_of(row.id, known) == session:
            try:
                policy = breaker.rules.policy(row.id)
                state = circuits.view(policy, read_state(policy, row.state), now)
            except NotFound:  # its breaker has been switched off since
                continue
            except ValueError:  # damaged: mended from its log
                state = breaker.engine.state_of(row.id, policy)
            status = in_dollars(breaker, status_of(row.id, policy, state, now))
            if status.phase != "closed":
                yield status


def _active(
    status: Status, session: str, record: dict[str, Any], trip: dict[str, Any] | None, turn: int, now: float
) -> dict[str, Any]:
    name, *parts = status.id.split("/")[1:]
    rest = "/".join(["", *parts])
    front, found, behind = rest.rpartition(f"/{session}")
    agent, tool = behind[1:].partition("/")[0] if behind.startswith(":") else "", ""
    for circuit, told in record.get("alarms", {}).items():
        if identifier(circuit) == status.id:
            agent, tool = str(told[0]), str(told[1])
    in_front = (front if found else rest.rpartition("/")[0]).removeprefix("/")
    key = in_front if name in _KEYED and in_front else tool
    waits = status.retry_after is not None
    return {
        "id": status.id,
        "breaker": name,
        "key": key or None,
        "agent": agent or None,
        "state": status.state,
        "phase": status.phase,
        "reason": status.reason,
        "evidence": status.evidence or None,
        "cooldown_seconds": status.retry_after,
        "trips": status.trips,
        "last_trip": {
            "turn": trip.get("turn") if trip else None,
            "at": show_time(status.last_trip),
            "reason": (trip or {}).get("reason") or status.reason,
        }
        if status.last_trip is not None
        else None,
        "next_attempt": {
            "turn": max(turn, (trip or {}).get("turn") or 0) + 1,
            "at": show_time(now + (status.retry_after or 0)) if waits else None,
        }
        if status.phase in ("open", "probe")
        else None,
    }


def _memory(breaker: Breaker) -> dict[str, Any]:
    from fusewire.janitor.janitor import Janitor
    from fusewire.janitor.limits import Limits

    try:
        return Janitor(breaker.root or ".", Limits.from_settings(breaker.rules.tool)).usage().to_json()
    except (FusewireError, OSError) as error:
        return {"problem": str(error), "report": [f"It cannot be read: {error}"]}


def _agents(breaker: Breaker, record: dict[str, Any], now: float) -> dict[str, Any]:
    running = running_in(record, now)
    settings = breaker.rules.tool
    return {
        "running": len(running),
        "limit": settings["resource_limits.max_concurrent_agents"],
        "session_limit": settings["resource_limits.max_agents_per_session"],
        "names": [str(facts[1]) for facts in running],
    }


def _api_calls(breaker: Breaker, session: str | None, now: float) -> dict[str, Any]:
    circuit = f"tool/api_calls/{session or 'none'}"
    policy, state = breaker.engine.view(circuit)
    levels = {}
    for meter in policy.meters:
        levels[meter.name] = int(meters.level(meter, state.meters.get(meter.name, []), now)) if session else 0
    settings = breaker.rules.tool
    return {
        "this_minute": levels["per_minute"],
        "limit_per_minute": settings["resource_limits.api_rate_limit_per_minute"],
        "this_session": levels["session_calls"],
        "session_limit": settings["resource_limits.api_session_max"],
    }


def _cost(breaker: Breaker, record: dict[str, Any], now: float) -> dict[str, Any]:
    settings, table = breaker.rules.tool, recalled(breaker.store, SPEND)
    spend = record.get("spend") or {}
    day = day_of(now)
    granted = table.get("granted_for", {})
    return {
        "usd": round(spend.get("usd", 0.0), 4),
        "warn_usd": settings["resource_limits.api_cost_warn_usd"],
        "limit_usd": settings["resource_limits.api_cost_block_usd"],
        "granted_usd": record.get("granted", 0),
        "unknown_models": sorted(spend.get("unknown") or {}),
        "problem": spend.get("problem") or None,
        "day": {
            "usd": round(table.get("days", {}).get(day, 0.0), 4),
            "limit_usd": settings["resource_limits.api_cost_block_usd_per_day"],
            "granted_usd": granted.get(day, 0),
        },
        "project": {
            "usd": round(table.get("usd", 0.0), 4),
            "limit_usd": settings["resource_limits.api_cost_block_usd_per_project"],
            "granted_usd": granted.get("project", 0),
        },
    }
