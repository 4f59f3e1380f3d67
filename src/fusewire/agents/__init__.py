"""Coding agents, one package each: reads what its hooks send and renders decisions in its own protocol."""

from __future__ import annotations

import os

from fusewire.guard.known_agents import AGENTS_BY_NAME
from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fusewire.agents.protocol import Agent
    from fusewire.core.decision import Decision

    #: standard output, standard error, exit code
    Answer = tuple[str, str, int]


#: Agents cut a text at 10,000 characters.
_ANSWER_LIMIT = 9000


def render(agent: Agent, decision: Decision, hook: str) -> Answer:
    """Render a decision in the protocol of an agent: standard output, standard error, exit code."""
    verdict = decision.verdict
    if verdict == "allow" and not decision.remarks and not decision.also:
        return agent.allow()
    from time import time

    from fusewire.core.messages import agent_message, person_message

    now = time()
    text, shown = agent_message(decision, now)[:_ANSWER_LIMIT], person_message(decision, now)[:_ANSWER_LIMIT]
    if verdict == "allow":
        return agent.inform(shown, hook) if shown else agent.allow()
    if verdict == "tell":
        return agent.tell(text, hook, shown)
    if verdict == "ask":
        return agent.ask(shown, hook)
    return agent.deny(shown, hook) if verdict == "deny" else agent.halt(shown, hook)


class BadPayload(FusewireError):
    """A hook's input that is not what its agent sends."""


#: Each is the name of a package here, and of the agent's program.
AGENTS = tuple(AGENTS_BY_NAME)

#: Set in a process that answers for a hook: the process that has started the hook.
answers_for = 0


def client_process() -> int:
    """The process that has started the hook: the agent's program, or a shell in between."""
    return answers_for or os.getppid()


def agent_named(name: str) -> Agent:
    """An agent as its hooks see it: `AGENT` of its `hooks` module."""
    if name not in AGENTS:
        raise FusewireError(f"no agent named {name!r}; allowed: {', '.join(AGENTS)}")
    agent: Agent = agent_module(name, "hooks").AGENT
    return agent


def agent_module(name: str, part: str) -> Any:
    """A module of an agent's package, such as `hooks`, `client`, `usage`."""
    return __import__(f"fusewire.agents.{name}.{part}", fromlist=["*"])


def agent_modules(part: str) -> Iterator[Any]:
    """The modules of this name of all agents that have one, each imported when it is asked for."""
    for name in AGENTS:
        try:
            yield agent_module(name, part)
        except ModuleNotFoundError as error:
            if error.name != f"fusewire.agents.{name}.{part}":
                raise
