"""Ask the circuit of the provider behind a loop's agent: one circuit for all loops and sessions of the person.

Where the person's store cannot be used, the loop keeps a circuit of its own in memory, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.agents import agent_named
from fusewire.agents.provider import agent_of_format, agent_of_program, provider_circuit
from fusewire.core.decision import Decision
from fusewire.scopes.providers import Providers, Refusal
from fusewire.stores.memory import MemoryStore
from fusewire.util.environment import children_environment
from fusewire.util.errors import InvalidTransition, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fusewire.agents.output.answer import AgentOutput
    from fusewire.core.pacing import Window
    from fusewire.engine.breaker import Breaker

    Found = TypeVar("Found")


class LoopProvider:
    """The provider of one loop, as far as its agent is known: by its program, or by what it has printed."""

    def __init__(self, breaker: Breaker, agent: str = "") -> None:
        self.agent = agent
        self._root, self._clock = breaker.root or "", breaker.engine.clock
        in_memory = isinstance(breaker.store, MemoryStore)  # as in `fusewire.testing()`: nothing of a person's
        self._providers = Providers(self._clock, store=breaker.store if in_memory else None)
        #: the lease of the probe that the iteration under way is, by its token
        self._leases: dict[str, str] = {}
        #: whether an outage is waited for; a run that waits for nothing tries again at once, until its own cap
        self.waits_for_outages = True
        #: why the person's store cannot be used
        self.problem = ""

    def started_by(self, program: str) -> None:
        """Take the client from the program that is started, if it is one."""
        self.agent = agent_of_program(program) or self.agent

    @property
    def circuit(self) -> str:
        return provider_circuit(self.agent, children_environment())

    def refusal(self) -> Decision | None:
        """Why no agent of this provider should be started now; None if nothing is known against it."""
        circuit = self.circuit
        decision = self._try(lambda providers: providers.look(circuit)) if circuit else None
        return None if decision is None or decision.allowed or self._ignores(circuit) else decision

    def take(self, token: str, owner: str) -> Decision | None:
        """The refusal, or else the right to start; after a reset that is the one probe for one of all that ask."""
        circuit, lease = self.circuit, f"{owner} {token}"
        decision = self._try(lambda providers: providers.ask(circuit, lease)) if circuit else None
        if decision is None or (not decision.allowed and self._ignores(circuit)):
            return None
        if not decision.allowed:
            return decision
        if decision.lease == lease:
            self._leases[token] = lease
        return None

    def is_probe(self, token: str) -> bool:
        return token in self._leases

    def answered(self, token: str) -> None:
        """The model has replied: that settles the probe, however long the iteration lasts."""
        lease, circuit = self._leases.pop(token, None), self.circuit
        self._try(lambda providers: providers.answered(circuit, lease=lease))

    def settle(self, token: str, owner: str, why: str, code: int | None, answer: AgentOutput) -> None:
        """An iteration has ended: what it says of the provider. Who cannot tell gives the probe back."""
        self.agent = agent_of_format(answer.format) or self.agent
        circuit = self.circuit
        if not circuit:
            return
        lease = self._leases.pop(token, None) or f"{owner} {token}"
        self._try(lambda providers: providers.note_windows(circuit, answer.windows))
        if answer.limit is not None or answer.outage:
            kind, resets_at = (answer.limit.kind, answer.limit.resets_at) if answer.limit else (answer.outage, None)
            refusal = Refusal(
                kind, resets_at, answer.limit is None, self.agent, answer.session or "", self._root, self._clock()
            )
            self._try(lambda providers: providers.refused(circuit, refusal))
        elif answer.replied or (why == "exit" and code == 0 and answer.format == "text"):
            self._try(lambda providers: providers.answered(circuit, answer.session or "", lease=lease))
        else:
            self._release(circuit, lease)

    def windows(self) -> tuple[Window, ...]:
        """How far the windows of the provider's limit are used: as the client has noted, or as a session was told."""
        circuit = self.circuit
        if not circuit:
            return ()
        session = None
        if agent_named(self.agent).NOTES_LIMITS:
            from fusewire.agents.last_session import last_session

            session = last_session(self._root, self.agent, children_environment())
        noted = session.windows if session else ()
        return noted or self._try(lambda providers: providers.windows(circuit))

    def release(self, token: str) -> None:
        """The iteration was given up: its probe is free again."""
        if lease := self._leases.pop(token, None):
            self._release(self.circuit, lease)

    def reset(self, reason: str = "a key pressed at the terminal of the run") -> None:
        """What a person's reset of the circuit does."""
        circuit = self.circuit
        try:
            self._try(lambda providers: providers.reset(circuit, reason, "person"))
        except InvalidTransition:  # somebody else was quicker
            pass

    def _ignores(self, circuit: str) -> bool:
        met = (
            None
            if self.waits_for_outages
            else self._try(lambda providers: providers.met(providers.engine.store, circuit))
        )
        return met is not None and met.is_outage

    def _release(self, circuit: str, lease: str) -> None:
        self._try(lambda providers: None if providers.is_empty else providers.release(circuit, lease))

    def _try(self, act: Callable[[Providers], Found]) -> Found:
        try:
            return act(self._providers)
        except (StoreError, OSError) as error:
            self.problem = f"the limits of providers are not shared with other loops: {error}"
            self._providers = Providers(self._clock, store=MemoryStore())
            return act(self._providers)
