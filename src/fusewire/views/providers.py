"""List the providers that refuse requests now, for all agents of the person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.core.circuit import cooled_at, probe_free_at
from fusewire.core.decision import PUBLIC_STATE
from fusewire.scopes.providers import PREFIX, Providers, explain
from fusewire.scopes.user import open_user_store
from fusewire.util.durations import format_time, seconds_until, show_duration, show_time
from fusewire.util.json_types import Phase, Seconds, State, Time

if TYPE_CHECKING:
    from fusewire.core.state import CircuitState
    from fusewire.scopes.providers import Refusal


@dataclass(frozen=True)
class ProviderLimit:
    """A provider whose circuit is not closed: nobody starts agents of it before the wait is over."""

    id: str
    provider: str
    #: empty where there is only one
    account: str
    state: State
    phase: Phase
    #: the name of the limit, or what the client said of an outage
    kind: str
    is_outage: bool
    since: Time
    #: when the limit ends, where the provider said so
    resets_at: Time | None
    #: until a probe, or another one, is allowed
    retry_after: Seconds | None
    #: the session that met it
    agent: str
    session: str
    project: str
    #: all of it in a line
    text: str


def provider_limits(now: float) -> list[ProviderLimit]:
    """Those that are not closed; StoreError if the person's store cannot be read. Nothing is written."""
    providers = Providers(lambda: now)
    if providers.is_empty:
        return []
    providers = Providers(lambda: now, store=open_user_store(read_only=True))
    return [_limit(providers, now, *found) for found in providers.limits()]


def _limit(providers: Providers, now: float, circuit: str, state: CircuitState, met: Refusal) -> ProviderLimit:
    provider, _, account = circuit.removeprefix(PREFIX).partition("/")
    policy = providers.engine.rules.policy(circuit)
    until = cooled_at(policy, state, now) if state.phase == "open" else None
    if state.phase == "probe" and state.lease is not None:
        until = probe_free_at(policy, state)
    left = None if until is None else seconds_until(until, now)
    what = "a probe is under way" if left else "ready for one probe"
    if state.phase == "open":
        what = f"one probe in {show_duration(left or 0.0)}"
    return ProviderLimit(
        id=circuit,
        provider=provider,
        account=account,
        state=PUBLIC_STATE[state.phase],  # type: ignore[arg-type]
        phase=state.phase,  # type: ignore[arg-type]
        kind=met.kind,
        is_outage=met.is_outage,
        since=format_time(met.at),
        resets_at=show_time(met.resets_at),
        retry_after=left,
        agent=met.agent,
        session=met.session,
        project=met.root,
        text=f"{PUBLIC_STATE[state.phase]} {circuit}: {explain(met, now)}; {what}",
    )
