"""Tell the person's circuits of providers what a hook learns of them, and a person what holds.

Nothing of it is on the way of a call: a turn that has ended with an error of the provider, a stop, and where a session
begins or is spoken to. What fails here changes no decision.
"""

from __future__ import annotations

from fusewire.agents.provider import provider_circuit
from fusewire.core.decision import Decision
from fusewire.scopes.providers import Providers, Refusal, explain
from fusewire.scopes.user import is_any_limited
from fusewire.util.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.agents.last_session import LastSession
    from fusewire.config.rules import Rules
    from fusewire.core.events import Event

#: Seconds that each of three attempts waits for the store: nothing is lost with one that fails.
_PATIENCE = 0.1

#: What an agent's program calls an error of its provider: its limit, or an outage. All others are the session's own.
_LIMITS, _OUTAGES = ("rate_limit",), ("overloaded", "server_error")


def note_error(event: Event, root: str, environment: Mapping[str, str], rules: Rules, now: float) -> None:
    """Open the circuit after a turn that ended because the provider refused a request."""
    if event.text not in (*_LIMITS, *_OUTAGES):
        return
    limit = _end(event).limit
    kind, resets_at = (limit.kind, limit.resets_at) if limit and event.text in _LIMITS else (event.text, None)
    _refused(event, Refusal(kind, resets_at, event.text in _OUTAGES), root, environment, rules, now)


def at_moment(event: Event, root: str, environment: Mapping[str, str], rules: Rules, now: float) -> Decision | None:
    """At a stop take what the session's record says of the provider; else tell a person once of what is limited."""
    try:
        if event.kind == "stop":
            _stopped(event, root, environment, rules, now)
            return None
        if event.kind not in ("session_start", "prompt") or not event.session or not is_any_limited():
            return None
        circuit = provider_circuit(event.agent or "", environment)
        untold = Providers(lambda: now, patience=_PATIENCE, rules=rules).untold(event.session, circuit)
    except (StoreError, OSError) as error:
        return Decision("allow", remarks=(f"fusewire: what is known of the providers cannot be read: {error}",))
    name = circuit.partition("/")[2]
    said = [f"fusewire: {name}: {explain(met, now)}. Loops wait for it; this session may go on." for met in untold]
    return Decision("allow", remarks=tuple(said)) if said else None


def _stopped(event: Event, root: str, environment: Mapping[str, str], rules: Rules, now: float) -> None:
    """The model has answered; some agents record at the end of a turn that the next one will be refused."""
    circuit = provider_circuit(event.agent or "", environment)
    if not circuit:
        return
    end = _end(event)
    providers = Providers(lambda: now, patience=_PATIENCE, rules=rules)
    providers.note_windows(circuit, end.windows)
    limit = end.limit
    if limit is not None and limit.resets_at is not None and limit.resets_at > now:
        _refused(event, Refusal(limit.kind, limit.resets_at), root, environment, rules, now)
    elif limit is None and is_any_limited():
        providers.answered(circuit, event.session or "", at=end.answered_at)


def _end(event: Event) -> LastSession:
    """What the session's record says at its end; nothing where there is none."""
    from fusewire.agents.last_session import LastSession, end_of_session

    agent, path = event.agent or "", event.transcript or ""
    try:
        return end_of_session(agent, path) if path else LastSession(agent, path, 0.0)
    except OSError:
        return LastSession(agent, path, 0.0)


def _refused(
    event: Event, refusal: Refusal, root: str, environment: Mapping[str, str], rules: Rules, now: float
) -> None:
    circuit = provider_circuit(event.agent or "", environment)
    met = refusal.replace(agent=event.agent or "", session=event.session or "", root=root)
    try:
        Providers(lambda: now, patience=_PATIENCE, rules=rules).refused(circuit, met)
    except (StoreError, OSError):
        pass  # whoever is refused next tells it
