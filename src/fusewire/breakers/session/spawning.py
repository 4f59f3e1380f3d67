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
    from fusewire.core.decision import Decision, Verdict
    from fusewire.core.events import Event

#: Seconds without a word from a helper after which it does not count as running.
SILENT = 3600

#: Ended helpers that are known to have ended: the call that started one may tell it again.
_GONE = 32

#: What makes it another command than one that starts an agent.
_OTHER = frozenset(("mcp", "-h", "--help", "help", "-v", "-V", "--version"))

#: Where a person can answer, they are asked from so many times the limits on.
ATTENDED_TIMES = 4

_STORM = "tool/agent_spawn/{session}"

_SINCE = "since the user's last message"

#: What to do, by the limit.
_TOO_MANY_RUN = ("wait for a running agent to end, or do the work yourself",)
_TOO_MANY_AT_ONCE = ("start fewer agents with one command: waiting does not help",)
_SESSION_IS_FULL = ("do the rest yourself: waiting does not help, a message of the user starts the count anew",)
_AFTER_THE_PAUSE = ("start agents together in one reply; until then go on with other work",)
_FEWER = ("start no more agents than the task needs: one of them can do several parts",)


def limits_on_spawning(unit: UnitOfWork, call: Call, lease: str) -> Iterator[Decision]:
    """May one more agent be started? A person's SUDO PARALLEL lifts every limit until that person speaks again.

    Where nobody can answer, the limits refuse. Where somebody can, the first agent beyond one is told of, and the
    person is asked from four times as many on.
    """
    starts = 1 if unit.event.tool in SPAWNING_TOOLS else started_by(call.commands)
    if not starts:
        return
    _drop_silent(unit)
    if not unit.state.sudo:
        yield from _told_or_asked(unit, starts) if unit.is_attended else _refused(unit, call, lease, starts)
        unit.signal("note", _limits(unit), "burst")
        unit.state.burst = [unit.agent, unit.turn]
        for _ in range(starts):
            unit.signal("note", _limits(unit), "spawn", text=call.shown)
    for number in range(starts):
        _begin(unit, lease, number)


def _refused(unit: UnitOfWork, call: Call, lease: str, starts: int) -> Iterator[Decision]:
    """What each limit says, until one refuses."""
    settings = unit.settings
    started, most = int(unit.level(_limits(unit), "started")), settings["resource_limits.max_agents_per_session"]
    if started + starts > most:
        reason = f"{started} {_agents(started)} started in this session"
        yield _decision(unit, _limits(unit), "deny", f"{reason}{_and_more(starts)} (limit {most})", _SESSION_IS_FULL)
    running, most = len(_counted(unit)), settings["resource_limits.max_concurrent_agents"]
    if running + starts > most:
        steps = _TOO_MANY_RUN if starts <= most else _TOO_MANY_AT_ONCE
        reason = f"{running} {_agents(running, 'are')} running"
        yield _decision(unit, _limits(unit), "deny", f"{reason}{_and_more(starts)} (limit {most})", steps)
    if unit.state.burst != [unit.agent, unit.turn]:
        pause = unit.dry_run(_limits(unit), "burst")
        unit.logged += pause.logged
        yield pause if pause.allowed else pause.replace(evidence=_running(unit), next=_AFTER_THE_PAUSE)
    for _ in range(starts if unit.has(_STORM) else 0):
        decision = unit.signal("ask", _storm(unit), "spawn", lease=lease, text=call.shown, turn=_main_turn(unit))
        yield decision if decision.allowed else decision.replace(evidence=(*decision.evidence, *_running(unit)))


def _told_or_asked(unit: UnitOfWork, starts: int) -> Iterator[Decision]:
    """The limit at which the person is asked, or the first that is passed for the first time since they spoke."""
    settings, told = unit.settings, unit.state.agents_told
    limits, storm = _limits(unit), _storm(unit)
    levels = [
        (limits, len(_counted(unit)), settings["resource_limits.max_concurrent_agents"], "at once"),
        (limits, unit.level(limits, "started"), settings["resource_limits.max_agents_per_session"], _SINCE),
    ]
    if unit.has(_STORM):
        turn, turns = _main_turn(unit), settings["agent_spawn.window_turns"]
        recent = unit.level(storm, "spawns", turn)
        levels.append((storm, recent, settings["agent_spawn.threshold"], f"in {turns} turns"))
        for _ in range(starts):
            unit.signal("note", storm, "spawn", turn=turn)
    found: list[Decision] = []
    for circuit, level, usual, span in levels:
        number, most = int(level) + starts, usual * ATTENDED_TIMES
        asks = unit.asks and number > most
        passed = f"{span}: {most if number > most else usual}"
        if asks or (number > usual and passed not in told):
            told += [] if asks else [passed]
            limit = f"usual limit {usual}{f'; above {most} the user is asked' * unit.asks}"
            found.append(
                _decision(unit, circuit, "ask" if asks else "tell", f"{number} agents {span} ({limit})", _FEWER)
            )
    yield from sorted(found, key=lambda decision: decision.verdict)[:1]


def _decision(unit: UnitOfWork, circuit: str, verdict: Verdict, reason: str, steps: tuple[str, ...]) -> Decision:
    person = unit.rules.policy(circuit).by_person
    return unit.decide(circuit, verdict, reason, evidence=_running(unit), next=steps, by_person=person)


def _agents(number: int, verb: str = "were") -> str:
    return f"agents {verb}" if number != 1 else f"agent {({'are': 'is', 'were': 'was'})[verb]}"


def _and_more(starts: int) -> str:
    return f", and this would start {starts} more" if starts > 1 else ""


def _limits(unit: UnitOfWork) -> str:
    return f"tool/agents/{unit.session}"


def _storm(unit: UnitOfWork) -> str:
    return f"tool/agent_spawn/{unit.session}"


def person_spoke(unit: UnitOfWork) -> None:
    """Count anew. Nothing that the agent waits for runs on when a person speaks, unless it is heard of again: it was
    interrupted. What it has left in the background does."""
    state = unit.state
    pending = {lease for agent in {*state.lanes, unit.agent} for lease in unit.lane_of(agent).calls}
    for helper in state.agents.values():
        if helper.lease in pending:
            helper.heard = unit.now - SILENT - 1
    _count(unit)
    unit.signal("note", _limits(unit), "message")
    if unit.has(_STORM):
        unit.signal("restart", _storm(unit), "restart", text="a person spoke to the agent")
    state.burst, state.agents_told = [], []


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
    unit.state.agents[key] = Helper(unit.now, shown[:80], unit.now, lease, unit.state.sudo)
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
        known.heard = unit.now
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
    unit.signal("note", _limits(unit), "agents_running", value=len(_counted(unit)))


def _counted(unit: UnitOfWork) -> list[Helper]:
    """Those that run and were not started under SUDO PARALLEL, the oldest first."""
    found = [helper for helper in unit.state.agents.values() if not helper.lifted and unit.now - helper.heard <= SILENT]
    return sorted(found, key=lambda helper: helper.began)


def _drop_silent(unit: UnitOfWork) -> None:
    for name, helper in list(unit.state.agents.items()):
        if unit.now - helper.heard > SILENT:
            _end(unit, name)


def _running(unit: UnitOfWork) -> tuple[str, ...]:
    helpers = [f"{one.shown} ({show_duration(max(1, unit.now - one.began))})" for one in _counted(unit)]
    return (f"running, the oldest first: {'; '.join(helpers)}",) if helpers else ()
