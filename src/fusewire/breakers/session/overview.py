"""Collect a session's state for people and programs: breakers that are not closed, memory, limits, incidents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, cast

from fusewire.breakers.session.ended import over_since
from fusewire.breakers.session.incidents import last_trips, recent, summary
from fusewire.breakers.session.names import session_ids, session_of
from fusewire.breakers.session.spawning import SILENT
from fusewire.breakers.session.spend import day_of, since_of, spent_words, whose
from fusewire.breakers.session.spend_limits import LIMITS_ON_ALL, in_dollars, is_in_dollars, long_over, stops
from fusewire.breakers.session.state import (
    KEYED,
    SPEND,
    LaneMemory,
    ProjectSpend,
    SessionMemory,
    lane_name,
    session_name,
)
from fusewire.core import circuit as circuits
from fusewire.core import meters
from fusewire.core.events import identifier
from fusewire.engine.engine import read_state
from fusewire.engine.status import status_of
from fusewire.scopes.ledger import spent_elsewhere
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError, NotFound
from fusewire.util.json_types import Count, Phase, Seconds, State, Time, Usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.breakers.session.state import Helper
    from fusewire.engine.breaker import Breaker
    from fusewire.engine.status import Status
    from fusewire.util.fast_json import JsonObject

_DAY = 86400


class LastTrip(TypedDict):
    """When a circuit opened last, and why."""

    turn: Count | None
    at: Time | None
    reason: str


class NextAttempt(TypedDict):
    """When a call may pass again."""

    turn: Count
    at: Time | None


class ActiveCircuit(TypedDict):
    """A circuit of a session that is not closed."""

    id: str
    breaker: str
    key: str | None
    agent: str | None
    state: State
    phase: Phase
    reason: str
    evidence: str | None
    cooldown_seconds: Seconds | None
    trips: Count
    last_trip: LastTrip | None
    next_attempt: NextAttempt | None


class UnreadableMemory(TypedDict):
    """Why the memory folder cannot be looked at."""

    problem: str
    report: list[str]


class AgentLimits(TypedDict):
    """Helpers that run, and how many may."""

    running: Count
    limit: Count
    session_limit: Count
    names: list[str]


class CallLimits(TypedDict):
    """Calls of external APIs, and how many there may be: the limit of the session with what was granted."""

    this_minute: Count
    limit_per_minute: Count
    this_session: Count
    session_limit: Count
    granted: Count


class SpendLimit(TypedDict):
    """Dollars of all sessions against their limit."""

    usd: Usd
    limit_usd: Usd
    granted_usd: Usd


class ApiCost(SpendLimit):
    """Dollars that calls of external APIs cost in the session, against their limits."""

    warn_usd: Usd


class SessionCost(SpendLimit):
    """Dollars of the session's own tokens at list price against their limit; 0 is no limit."""

    external: ApiCost
    unknown_models: list[str]
    problem: str | None
    day: SpendLimit
    project: SpendLimit


class SessionResources(TypedDict):
    """What a session uses up."""

    agents: AgentLimits
    api_calls: CallLimits
    cost: SessionCost


class IncidentCounts(TypedDict):
    """Incidents of the last 24 hours, of all sessions."""

    since: Time
    circuit_trips: Count
    by_breaker: dict[str, Count]
    memory_cleanups: Count
    resource_exhaustions: Count


class Standing(TypedDict):
    """What a session is at, as far as it can be told from outside."""

    state: Literal["running", "silent", "halted", "ended"]
    heard: Time | None
    ended: Time | None
    #: why it is halted, and what it needs to go on
    halted: str | None
    needs: Literal["message", "grant"] | None


class SessionOverview(Standing):
    """A session at one moment."""

    session: str | None
    turn: Count | None
    active: list[ActiveCircuit]
    memory: JsonObject | UnreadableMemory
    resources: SessionResources
    incidents: IncidentCounts


def overview(breaker: Breaker, session: str | None) -> SessionOverview:
    """Everything that the dashboard shows; nothing is written."""
    now = breaker.engine.clock()
    state = SessionMemory.recalled(breaker.store, session_name(session)) if session else SessionMemory()
    turn = LaneMemory.recalled(breaker.store, lane_name(session, "")).replies if session else 0
    incidents = recent(breaker.root or ".", breaker.rules.tool["incidents"], now - _DAY)
    trips = last_trips(incidents)
    whose = session or "none"  # circuits that no session was named for are its own
    found = _not_closed(breaker, whose, state)
    active = [_active(status, whose, state, trips.get(status.id), turn, now) for status in found]
    return {
        "session": session,
        "turn": turn if session else None,
        **standing(state, now, state.limit(breaker.rules.tool)),
        "active": active,
        "memory": _memory(breaker),
        "resources": {
            "agents": _agents(breaker, state, now),
            "api_calls": _api_calls(breaker, session, state.calls_granted, now),
            "cost": _cost(breaker, state, now),
        },
        "incidents": cast("IncidentCounts", {"since": show_time(now - _DAY), **summary(incidents)}),
    }


def standing(state: SessionMemory, now: float, limit: float) -> Standing:
    """What a session is at, as far as it can be told from outside: `running` or `silent`, `halted`, `ended`.

    One that is halted says why, and what it `needs`: a person's `message`, or a `grant` where it has spent its `limit`.
    It is so for a day after its end or its last word, too: whoever looks in the morning must see what was stopped at
    night.
    """
    silent = state.at is None or now - state.at > SILENT
    halted, needs = _halted(state, limit)
    over = state.ended is not None and (halted is None or long_over(state, now))
    stands = halted and (state.ended is not None or over_since(state, now) is None)
    return {
        "state": "ended" if over else "halted" if stands else "silent" if silent else "running",
        "heard": show_time(state.at),
        "ended": show_time(state.ended),
        "halted": halted,
        "needs": needs,
    }


def _halted(state: SessionMemory, limit: float) -> tuple[str | None, Literal["message", "grant"] | None]:
    if state.halted is not None:
        return state.halted.text.partition("\n")[0], "message"
    if not limit or state.usd_of_limit - state.granted < limit or not stops(state):
        return None, None
    return f"HALTED tool.spend: {spent_words(state.usd_of_limit, state.granted, limit, whose(state))}.", "grant"


def running_in(state: SessionMemory, now: float) -> list[Helper]:
    """The helpers of a session that run, the oldest first."""
    return sorted(
        (helper for helper in state.agents.values() if now - helper.heard <= SILENT), key=lambda helper: helper.began
    )


def _not_closed(breaker: Breaker, session: str, state: SessionMemory) -> Iterator[Status]:
    """From the rows as they are stored: an id that was too long is another one by now."""
    now = breaker.engine.clock()
    own = {identifier(name) for name in (*state.alarms, f"tool/spend/{session}", f"tool/api_cost/{session}")}
    known = {session, *session_ids(breaker.store)}
    is_over = over_since(state, now) is not None
    for row in breaker.store.circuits():
        is_limit = is_in_dollars(row.id)
        if (row.phase == "closed" and not is_limit) or not row.id.startswith("tool/"):
            continue
        is_own = row.id in own or session_of(row.id, known) == session
        if row.id in LIMITS_ON_ALL or (is_own and not is_over):
            try:
                policy = breaker.rules.policy(row.id)
                circuit = circuits.view(policy, read_state(policy, row.state), now)
            except NotFound:  # its breaker has been switched off since
                continue
            except ValueError:  # damaged: mended from its log
                circuit = breaker.engine.state_of(row.id, policy)
            status = in_dollars(breaker, status_of(row.id, policy, circuit, now))
            if status.phase != "closed":
                yield status


def _active(
    status: Status, session: str, state: SessionMemory, trip: JsonObject | None, turn: int, now: float
) -> ActiveCircuit:
    name, *parts = status.id.split("/")[1:]
    rest = "/".join(["", *parts])
    front, found, behind = rest.rpartition(f"/{session}")
    agent, tool = behind[1:].partition("/")[0] if behind.startswith(":") else "", ""
    for circuit, alarm in state.alarms.items():
        if identifier(circuit) == status.id:
            agent, tool = alarm.agent, alarm.tool
    in_front = (front if found else rest.rpartition("/")[0]).removeprefix("/")
    key = in_front if name in KEYED and in_front else tool
    waits = status.retry_after is not None
    return {
        "id": status.id,
        "breaker": name,
        "key": key or None,
        "agent": agent or None,
        "state": cast("State", status.state),
        "phase": cast("Phase", status.phase),
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


def _memory(breaker: Breaker) -> JsonObject | UnreadableMemory:
    from fusewire.janitor.janitor import Janitor
    from fusewire.janitor.limits import Limits

    try:
        return Janitor(breaker.root or ".", Limits.from_settings(breaker.rules.tool)).usage().to_json()
    except (FusewireError, OSError) as error:
        return {"problem": str(error), "report": [f"It cannot be read: {error}"]}


def _agents(breaker: Breaker, state: SessionMemory, now: float) -> AgentLimits:
    running = running_in(state, now)
    settings = breaker.rules.tool
    return {
        "running": len(running),
        "limit": settings["resource_limits.max_concurrent_agents"],
        "session_limit": settings["resource_limits.max_agents_per_session"],
        "names": [helper.shown for helper in running],
    }


def _api_calls(breaker: Breaker, session: str | None, granted: int, now: float) -> CallLimits:
    circuit = f"tool/api_calls/{session or 'none'}"
    policy, state = breaker.engine.view(circuit)
    levels = {}
    for meter in policy.meters:
        levels[meter.name] = int(meters.level(meter, state.meters.get(meter.name, []), now)) if session else 0
    settings = breaker.rules.tool
    return {
        "this_minute": levels["per_minute"],
        "limit_per_minute": settings["resource_limits.api_rate_limit_per_minute"],
        "this_session": levels["session_calls"] + granted,
        "session_limit": settings["resource_limits.api_session_max"] + granted,
        "granted": granted,
    }


def _cost(breaker: Breaker, state: SessionMemory, now: float) -> SessionCost:
    settings, table = breaker.rules.tool, ProjectSpend.recalled(breaker.store, SPEND)

    def of_all(name: str, key: str) -> SpendLimit:
        limit = settings[f"resource_limits.api_cost_block_usd_per_{name}"]
        elsewhere = spent_elsewhere(breaker.root, since_of(key)) if limit else 0.0
        return {
            "usd": round(table.spent(key) + elsewhere, 4),
            "limit_usd": limit,
            "granted_usd": table.granted(key),
        }

    return {
        "usd": round(state.usd, 4),
        "limit_usd": state.limit(settings),
        "granted_usd": state.granted,
        "external": {
            "usd": round(state.api_usd, 4),
            "warn_usd": settings["resource_limits.api_cost_warn_usd"],
            "limit_usd": settings["resource_limits.api_cost_block_usd"],
            "granted_usd": state.api_granted,
        },
        "unknown_models": sorted(state.spend.get("unknown") or {}),
        "problem": state.spend.get("problem") or None,
        "day": of_all("day", day_of(now)),
        "project": of_all("project", table.PROJECT),
    }
