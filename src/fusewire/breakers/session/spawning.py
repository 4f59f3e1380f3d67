"""Agents that start agents: how many run at once, how many a session starts, and how quickly.

An agent is running from the moment its start is allowed until somebody says that it has ended. Which event says so
depends on what the agent reports: the end of the call that started it, the end of the helper, a notification, or the
list of those that still run. One that is not heard of for an hour is held to be gone.
"""

from __future__ import annotations

from fusewire.breakers.session.calls import SPAWNING_TOOLS
from fusewire.guard.known_agents import AGENTS_BY_NAME, agent_of_npm_name
from fusewire.guard.shell.wrappers import program
from fusewire.util.durations import show_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fusewire.breakers.session.calls import Call
    from fusewire.breakers.session.unit_of_work import Moment
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event

#: Seconds without a word from a helper after which it does not count as running.
SILENT = 3600

#: Ended helpers that are known to have ended: the call that started one may tell it again.
_GONE = 32

#: What makes it another command than one that starts an agent.
_OTHER = frozenset(("mcp", "-h", "--help", "help", "-v", "-V", "--version"))


def limits_on_spawning(moment: Moment, call: Call, lease: str) -> Iterator[Decision]:
    """May one more agent be started? A person's SUDO PARALLEL lifts every limit until that person speaks again."""
    starts = 1 if moment.event.tool in SPAWNING_TOOLS else started_by(call.commands)
    if not starts:
        return
    _drop_silent(moment)
    limits = f"tool/agents/{moment.session}"
    if moment.record.get("sudo"):
        for number in range(starts):
            moment.signal("note", limits, "spawn")
            _begin(moment, lease, number)
        return
    burst = [moment.agent, moment.turn]
    names = ("burst", "spawn") if moment.record.get("burst") != burst else ("spawn",)
    for name in names:
        foreseen = moment.foresee(limits, name)
        if not foreseen.allowed:
            yield foreseen.replace(evidence=(*foreseen.evidence, *_running(moment)))
            return
        most = moment.settings["resource_limits.max_concurrent_agents"]
        if starts > 1 and len(_agents(moment)) + starts > most:
            reason = f"{starts} agents at once, beside {len(_agents(moment))} that run (limit {most})"
            yield foreseen.replace(verdict="deny", reason=reason, evidence=_running(moment))
            return
    for number in range(starts):
        if moment.has("tool/agent_spawn/{session}"):
            storm = f"tool/agent_spawn/{moment.session}"
            decision = moment.signal("ask", storm, "spawn", lease=lease, text=call.shown, turn=_main_turn(moment))
            yield decision if decision.allowed else decision.replace(evidence=(*decision.evidence, *_running(moment)))
        for name in names if not number else ("spawn",):
            yield moment.signal("ask", limits, name, text=call.shown)
    moment.record["burst"] = burst
    for number in range(starts):
        _begin(moment, lease, number)


def started_by(commands: list[list[str]]) -> int:
    """How many agents a command line starts; one that `fusewire run` starts is listed with it and without."""
    found = 0
    outer: list[str] = []
    for words in commands:
        if starts_agent(words) and not (outer and outer[-len(words) :] == words):
            found += 1
            outer = words if program(words) == "fusewire" else []
    return found


def _main_turn(moment: Moment) -> int:
    """Helpers count turns of their own; what all of them start is counted in the turns of the main agent."""
    turn: int = moment.lane_of("").get("turn", 0) if moment.agent else moment.turn
    return turn


def starts_agent(words: list[str]) -> bool:
    """Whether a command starts another agent that works alone."""
    name = program(words)
    name = name if name in AGENTS_BY_NAME else agent_of_npm_name(name) or name
    if name == "fusewire":
        at = 1
        while at < len(words) and words[at][:1] == "-":
            at += 2 if words[at] == "--project" else 1
        return words[at : at + 1] == ["run"] and _OTHER.isdisjoint(words[at : at + 2])
    agent = AGENTS_BY_NAME.get(name)
    if agent is None or not _OTHER.isdisjoint(words[1:]):
        return False
    return not agent.headless.isdisjoint(word.partition("=")[0] for word in words[1:])


def _begin(moment: Moment, lease: str, number: int) -> None:
    """A helper gets its name later, an agent in a command line never: what began with it ends with it."""
    given = moment.event.input or {}
    words = [str(given.get(field)) for field in ("subagent_type", "description") if given.get(field)]
    by_tool = moment.event.tool in SPAWNING_TOOLS
    shown = (": ".join(words) if by_tool else "") or moment.event.described()
    key = f"call {lease}" if by_tool else f"line {lease} {number}"
    _agents(moment)[key] = [moment.now, shown[:80], moment.now]
    _count(moment)


def call_ended(moment: Moment, event: Event, lease: str) -> None:
    """The call that started an agent is over: so is the agent, unless it was only launched."""
    agents = _agents(moment)
    if event.tool not in SPAWNING_TOOLS:
        for name in [name for name in agents if name.startswith(f"line {lease} ")]:
            _end(moment, name)
        if moment.agent in agents:
            agents[moment.agent][2] = moment.now
        return
    key, helper = f"call {lease}", event.text
    if event.running:
        if helper and helper not in agents and key in agents:
            agents[helper] = [*agents.pop(key)[:3], lease]
        return
    if helper in agents:
        _end(moment, helper)
    elif not helper or helper not in moment.record.get("gone", ()):
        _end(moment, next((name for name, facts in agents.items() if facts[3:] == [lease]), key))


def helper_began(moment: Moment, agent: str, kind: str) -> None:
    """A helper has a name from now on; it is one of those whose start was allowed."""
    agents = _agents(moment)
    if agent in agents:
        agents[agent][2] = moment.now
        return
    if agent in moment.record.get("gone", ()):
        moment.record["gone"].remove(agent)
    waiting = next((name for name in agents if name.startswith("call ")), None)
    if waiting is not None:
        began, shown, _ = agents.pop(waiting)[:3]
        agents[agent] = [began, shown, moment.now, waiting.removeprefix("call ")]
    else:  # started in a way that nobody asked us about
        agents[agent] = [moment.now, kind or "helper", moment.now]
        _count(moment)


def helper_ended(moment: Moment, agent: str) -> None:
    _end(moment, agent)


def only_running(moment: Moment, running: tuple[str, ...]) -> None:
    """The agent says which helpers still run: the others do not."""
    for name in list(_agents(moment)):
        if name not in running:
            _end(moment, name)


def _agents(moment: Moment) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = moment.record.setdefault("agents", {})
    return found


def _end(moment: Moment, name: str) -> None:
    if _agents(moment).pop(name, None) is not None:
        _count(moment)
        moment.record["gone"] = [*moment.record.get("gone", ()), name][-_GONE:]


def _count(moment: Moment) -> None:
    moment.signal("note", f"tool/agents/{moment.session}", "agents_running", value=len(_agents(moment)))


def _drop_silent(moment: Moment) -> None:
    for name, facts in list(_agents(moment).items()):
        if moment.now - facts[2] > SILENT:
            _end(moment, name)


def _running(moment: Moment) -> tuple[str, ...]:
    """Those that run, the oldest first."""
    rows = sorted(_agents(moment).values(), key=lambda facts: facts[0])
    if not rows:
        return ()
    shown = [f"{facts[1]} ({show_duration(max(1, moment.now - facts[0]))})" for facts in rows]
    return (f"running, the oldest first: {'; '.join(shown)}",)
