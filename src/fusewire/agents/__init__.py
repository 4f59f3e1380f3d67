"""Coding agents, one package each: reads what its hooks send and renders decisions in its own protocol."""

from __future__ import annotations

import os

from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from fusewire.core.decision import Decision
    from fusewire.core.events import Event

    Answer = tuple[str, str, int]

    class Agent(Protocol):
        """What a module of this package gives. Answers are (stdout, stderr, exit code)."""

        __name__: str
        #: hooks that ask before a call: what cannot be judged there is denied
        GATES: tuple[str, ...]
        #: hooks at which the agent cannot be told anything beside a call that passes
        UNHEARD: tuple[str, ...]

        def started_in(self, payload: Any, environment: Mapping[str, str]) -> str | None:
            """The folder of the project; where the agent has moved to since does not change its rules."""

        def parse(self, payload: Any, root: str) -> Event | None:
            """The event behind a hook's input; None if it asks for no decision; BadPayload if it makes no sense."""

        def allow(self) -> tuple[str, str, int]: ...

        def tell(self, text: str, hook: str = ..., shown: str = ...) -> tuple[str, str, int]:
            """Let the call pass and tell the agent something; `shown` is what the person sees, if that is more."""

        #: whether a person can be asked before a call
        ASKS: bool

        def ask(self, text: str, hook: str = ...) -> tuple[str, str, int]:
            """Let the person decide, in the program's own way; a denial where there is none."""

        def halt(self, text: str, hook: str = ...) -> tuple[str, str, int]:
            """Stop the agent, not only this call; where its program has no way to, at least refuse the call."""

        def deny(self, text: str, hook: str = ...) -> tuple[str, str, int]:
            """Refuse the call, or what a person said."""

        def inform(self, text: str, hook: str = ...) -> tuple[str, str, int]:
            """Let the call pass and tell the person something, not the agent."""

        #: the signal that ends its process in good order
        ENDED_BY: str

        def process(self, environment: Mapping[str, str]) -> int | None:
            """The agent's own process, which is ended if it goes on although it was halted; None if nobody knows."""

        def interrupt(self, payload: Any) -> bool:
            """Stop what it works on in a gentler way, if there is one; whether that was done."""


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


AGENTS = ("claude", "codex", "gemini", "copilot")

#: Set in a process that answers for a hook: the process that has started the hook.
answers_for = 0


def client_process() -> int:
    """The process that has started the hook: the agent's program, or a shell in between."""
    return answers_for or os.getppid()


def speaking(agent: Agent, payload: Any, environment: Mapping[str, str]) -> Agent:
    """Whose words a payload really is: Copilot also runs the hooks that a project has registered for Claude Code."""
    if environment.get("COPILOT_PROJECT_DIR") and isinstance(payload, dict) and "timestamp" in payload:
        return agent_named("copilot") if agent is agent_named("claude") else agent
    return agent


def agent_named(name: str) -> Agent:
    """The `hooks` module of an agent."""
    if name not in AGENTS:
        raise FusewireError(f"no agent named {name!r}; allowed: {', '.join(AGENTS)}")
    agent: Agent = agent_module(name, "hooks")
    return agent


def agent_module(name: str, part: str) -> Any:
    """A module of an agent's package, such as `hooks`, `client`, `usage`."""
    return __import__(f"fusewire.agents.{name}.{part}", fromlist=["*"])


def agent_modules(part: str) -> list[Any]:
    """The modules of this name of all agents that have one."""
    found = []
    for name in AGENTS:
        try:
            found.append(agent_module(name, part))
        except ModuleNotFoundError as error:
            if error.name != f"fusewire.agents.{name}.{part}":
                raise
    return found
