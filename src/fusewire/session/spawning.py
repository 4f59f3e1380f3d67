"""Agents that start agents: how many run at once, how many a session starts, and how quickly.

An agent is running from the moment its start is allowed until somebody says that it has ended. Which event says so
depends on what the agent reports: the end of the call that started it, the end of the helper, a notification, or the
list of those that still run. One that is not heard of for an hour is held to be gone.
"""

from __future__ import annotations

from fusewire.detectors.calls import AGENT_PROGRAMS, SPAWNING_TOOLS
from fusewire.durations import show_duration
from fusewire.wrappers import program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fusewire.events import Decision, Event
    from fusewire.session.moment import Moment
    from fusewire.session.watch import Call

#: Seconds without a word from a helper after which it does not count as running.
SILENT = 3600

#: How an agent is started without a person in front of it.
_ALONE = frozenset(("-p", "--print", "--prompt", "exec", "run", "e"))


def limits_on_spawning(moment: Moment, call: Call, lease: str) -> Iterator[Decision]:
    """May one more agent be started? A person's SUDO PARALLEL lifts every limit until that person speaks again."""
    event = moment.event
    if event.tool not in SPAWNING_TOOLS and not any(starts_agent(words) for words in call.commands):
        return
    _drop_silent(moment)
    limits = f"tool/agents/{moment.session}"
    if moment.record.get("sudo"):
        moment.signal("note", limits, "spawn")
        _begin(moment, lease)
        return
    burst = [moment.agent, moment.turn]
    names = ("burst", "spawn") if moment.record.get("burst") != burst else ("spawn",)
    for name in names:
        foreseen = moment.foresee("ask", limits, name)
        if not foreseen.allowed:
            yield foreseen.replace(evidence=(*foreseen.evidence, *_running(moment)))
            return
    if moment.has("tool/agent_spawn/{session}"):
        decision = moment.signal("ask", f"tool/agent_spawn/{moment.session}", "spawn", lease=lease, text=call.shown)
        yield decision if decision.allowed else decision.replace(evidence=(*decision.evidence, *_running(moment)))
    for name in names:
        yield moment.signal("ask", limits, name, text=call.shown)
    moment.record["burst"] = burst
    _begin(moment, lease)


def starts_agent(words: list[str]) -> bool:
    """Whether a command starts another agent that works alone."""
    name = program(words)
    if name == "fusewire":
        return words[1:2] == ["run"]
    return name in AGENT_PROGRAMS and not _ALONE.isdisjoint(words[1:])


def _begin(moment: Moment, lease: str) -> None:
    given = moment.event.input or {}
    words = [str(given.get(field)) for field in ("subagent_type", "description") if given.get(field)]
    shown = ": ".join(words) or moment.event.described()
    _agents(moment)[f"call {lease}"] = [moment.now, shown[:80], moment.now]
    _count(moment)


def call_ended(moment: Moment, event: Event) -> None:
    """The call that started an agent is over: so is the agent, unless it was only launched."""
    agents = _agents(moment)
    key = f"call {event.call or ''}"
    launched = '"async_launched"' in (event.result or "")
    if event.tool in SPAWNING_TOOLS or key in agents:
        given = next((name for name, facts in agents.items() if facts[3:] == [event.call]), key)
        if not launched:
            _end(moment, given)
        return
    if moment.agent in agents:
        agents[moment.agent][2] = moment.now


def helper_began(moment: Moment, agent: str, kind: str) -> None:
    """A helper has a name from now on; it is one of those whose start was allowed."""
    agents = _agents(moment)
    waiting = next((name for name in agents if name.startswith("call ")), None)
    if waiting is not None:
        began, shown, _ = agents.pop(waiting)[:3]
        agents[agent] = [began, shown, moment.now, waiting.removeprefix("call ")]
    elif agent not in agents:  # started in a way that nobody asked us about
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
