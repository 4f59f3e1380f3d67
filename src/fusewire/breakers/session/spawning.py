"""Limit agents that start agents: how many run at once, how many a session starts, and how quickly.

An agent is running from the moment its start is allowed until an event says that it has ended. Which one does
depends on what the agent reports: the end of the call that started it, the end of the helper, a notification, or the
list of those that still run. One that is not heard of for an hour is held to be gone.
"""

from __future__ import annotations

from fusewire.breakers.session.calls import SPAWNING_TOOLS
from fusewire.breakers.session.state import Helper
from fusewire.guard.known_agents import AGENTS_BY_NAME, agent_of_npm_name
from fusewire.guard.shell.wrappers import program
from fusewire.util.durations import show_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.breakers.session.calls import Call
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision
    from fusewire.core.events import Event

#: Seconds without a word from a helper after which it does not count as running.
SILENT = 3600

#: Ended helpers that are known to have ended: the call that started one may tell it again.
_GONE = 32

#: What makes it another command than one that starts an agent.
_OTHER = frozenset(("mcp", "-h", "--help", "help", "-v", "-V", "--version"))


def limits_on_spawning(unit: UnitOfWork, call: Call, lease: str) -> Iterator[Decision]:
    """May one more agent be started? A person's SUDO PARALLEL lifts every limit until that person speaks again."""
    starts = 1 if unit.event.tool in SPAWNING_TOOLS else started_by(call.commands)
    if not starts:
        return
    _drop_silent(unit)
    limits = f"tool/agents/{unit.session}"
    if unit.state.sudo:
        for number in range(starts):
            unit.signal("note", limits, "spawn")
            _begin(unit, lease, number)
        return
    burst = [unit.agent, unit.turn]
    names = ("burst", "spawn") if unit.state.burst != burst else ("spawn",)
    for name in names:
        foreseen = unit.dry_run(limits, name)
        if not foreseen.allowed:
            yield foreseen.replace(evidence=(*foreseen.evidence, *_running(unit)))
            return
        most = unit.settings["resource_limits.max_concurrent_agents"]
        if starts > 1 and len(unit.state.agents) + starts > most:
            reason = f"{starts} agents at once, beside {len(unit.state.agents)} that run (limit {most})"
            yield foreseen.replace(verdict="deny", reason=reason, evidence=_running(unit))
            return
    for number in range(starts):
        if unit.has("tool/agent_spawn/{session}"):
            storm = f"tool/agent_spawn/{unit.session}"
            decision = unit.signal("ask", storm, "spawn", lease=lease, text=call.shown, turn=_main_turn(unit))
            yield decision if decision.allowed else decision.replace(evidence=(*decision.evidence, *_running(unit)))
        for name in names if not number else ("spawn",):
            yield unit.signal("ask", limits, name, text=call.shown)
    unit.state.burst = burst
    for number in range(starts):
        _begin(unit, lease, number)


def started_by(commands: list[list[str]]) -> int:
    """How many agents a command line starts; one that `fusewire run` starts is listed with it and without."""
    found = 0
    outer: list[str] = []
    for words in commands:
        if starts_agent(words) and not (outer and outer[-len(words) :] == words):
            found += 1
            outer = words if program(words) == "fusewire" else []
    return found


def _main_turn(unit: UnitOfWork) -> int:
    """Helpers count turns of their own; what all of them start is counted in the turns of the main agent."""
    return unit.lane_of("").turn if unit.agent else unit.turn


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


def _begin(unit: UnitOfWork, lease: str, number: int) -> None:
    """A helper gets its name later, an agent in a command line never: what began with it ends with it."""
    given = unit.event.input or {}
    words = [str(given.get(field)) for field in ("subagent_type", "description") if given.get(field)]
    by_tool = unit.event.tool in SPAWNING_TOOLS
    shown = (": ".join(words) if by_tool else "") or unit.event.described()
    key = f"call {lease}" if by_tool else f"line {lease} {number}"
    unit.state.agents[key] = Helper(unit.now, shown[:80], unit.now)
    _count(unit)


def call_ended(unit: UnitOfWork, event: Event, lease: str) -> None:
    """The call that started an agent is over: so is the agent, unless it was only launched."""
    agents = unit.state.agents
    if event.tool not in SPAWNING_TOOLS:
        for name in [name for name in agents if name.startswith(f"line {lease} ")]:
            _end(unit, name)
        if unit.agent in agents:
            agents[unit.agent].heard = unit.now
        return
    key, helper = f"call {lease}", event.text
    if event.running:
        if helper and helper not in agents and key in agents:
            agents[helper] = agents.pop(key)
            agents[helper].lease = lease
        return
    if helper in agents:
        _end(unit, helper)
    elif not helper or helper not in unit.state.gone:
        _end(unit, next((name for name, known in agents.items() if known.lease == lease), key))


def helper_began(unit: UnitOfWork, agent: str, kind: str) -> None:
    """A helper has a name from now on; it is one of those whose start was allowed."""
    agents = unit.state.agents
    if agent in agents:
        agents[agent].heard = unit.now
        return
    if agent in unit.state.gone:
        unit.state.gone.remove(agent)
    waiting = next((name for name in agents if name.startswith("call ")), None)
    if waiting is not None:
        agents[agent] = known = agents.pop(waiting)
        known.heard, known.lease = unit.now, waiting.removeprefix("call ")
    else:  # started in a way that nobody asked us about
        agents[agent] = Helper(unit.now, kind or "helper", unit.now)
        _count(unit)


def helper_ended(unit: UnitOfWork, agent: str) -> None:
    _end(unit, agent)


def only_running(unit: UnitOfWork, running: tuple[str, ...]) -> None:
    """The agent says which helpers still run: the others do not."""
    for name in list(unit.state.agents):
        if name not in running:
            _end(unit, name)


def _end(unit: UnitOfWork, name: str) -> None:
    if unit.state.agents.pop(name, None) is not None:
        _count(unit)
        unit.state.gone = [*unit.state.gone, name][-_GONE:]


def _count(unit: UnitOfWork) -> None:
    unit.signal("note", f"tool/agents/{unit.session}", "agents_running", value=len(unit.state.agents))


def _drop_silent(unit: UnitOfWork) -> None:
    for name, helper in list(unit.state.agents.items()):
        if unit.now - helper.heard > SILENT:
            _end(unit, name)


def _running(unit: UnitOfWork) -> tuple[str, ...]:
    """Those that run, the oldest first."""
    helpers = sorted(unit.state.agents.values(), key=lambda helper: helper.began)
    if not helpers:
        return ()
    shown = [f"{helper.shown} ({show_duration(max(1, unit.now - helper.began))})" for helper in helpers]
    return (f"running, the oldest first: {'; '.join(shown)}",)
