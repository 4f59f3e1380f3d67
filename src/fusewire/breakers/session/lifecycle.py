"""Handle what happens beside tool calls: a person speaks, the agent wants to stop, helpers come and go."""

from __future__ import annotations

from fusewire.breakers.session.calls import LOOK
from fusewire.breakers.session.state import Alarm
from fusewire.breakers.session.unit_of_work import ALLOWED
from fusewire.core.decision import Decision
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.session.unit_of_work import UnitOfWork

#: What is said of a stop at which the agent was kept going, and that was worth something.
PROGRESS = "progress"

#: Seconds after which nothing is remembered of a session that has not been heard of.
_FORGOTTEN = 30 * 86400


def answer(unit: UnitOfWork) -> Decision:
    act = _ACTS.get(unit.event.kind)
    return ALLOWED if act is None else act(unit)


def _on_start(unit: UnitOfWork) -> Decision:
    unit.transaction.forget("session/", unit.now - _FORGOTTEN)
    unit.state.ended = None
    if unit.event.text in ("resume", "fork") and unit.state.since is None:
        # The transcript begins with what another session has paid for.
        unit.state.spend_since = show_time(unit.now) or ""
    if unit.event.text not in ("compact", "clear"):
        _count_start(unit)
    if unit.event.text == "compact":  # the model has forgotten what it saw, and looks again
        unit.lane.past[:] = [call for call in unit.lane.past if call.nature != LOOK]
    return ALLOWED


def _count_start(unit: UnitOfWork) -> None:
    """For the person's ledger; what `fusewire run` starts it counts itself."""
    from fusewire.breakers.session.spend import open_ledger
    from fusewire.scopes.ledger import started

    open_ledger(unit.transaction)
    if not unit.run and not unit.state.budgets_over:
        unit.transaction.spend([started(unit.session, unit.event.agent or "", unit.branch, unit.task, unit.now)])


def _on_end(unit: UnitOfWork) -> Decision:
    from fusewire.breakers.session.spawning import only_running
    from fusewire.breakers.session.spend import look

    look(unit)
    only_running(unit, ())
    unit.state.ended = unit.now
    return ALLOWED


def _on_message(unit: UnitOfWork) -> Decision:
    """A person's message: a new task. It may lift a limit; a limit on spend is held against it as well."""
    from fusewire.breakers.session.user_message import MOST, SUDO, granted_calls, granted_dollars, lifts_agents

    if unit.state.agents or unit.state.burst:
        from fusewire.breakers.session.spawning import person_spoke

        person_spoke(unit)
    unit.reset_windows()
    unit.log_doing("prompt")
    unit.state.sudo = lifts_agents(unit.event.text)
    if unit.state.sudo:
        _audit(unit, f"tool/agents/{unit.session}", f"{SUDO} in a message of a person")
        unit.remarks.append("fusewire: the limits on agents are lifted until your next message")
    amount = granted_dollars(unit.event.text)
    if amount > MOST:
        unit.remarks.append(
            f"fusewire: ${amount:.2f} is more than can be granted at once (${MOST:.2f}); nothing was granted"
        )
    elif amount:
        _grant(unit, amount)
    calls = granted_calls(unit.event.text)
    if calls > MOST:
        unit.remarks.append(f"fusewire: {calls} calls are more than can be granted at once ({MOST:.0f}); none were")
    elif calls:
        _grant_calls(unit, calls)
    return _within_spend(unit)


def _on_relayed_message(unit: UnitOfWork) -> Decision:
    """The agent was told to begin, or to go on, by an agent: what is open or halted stays so."""
    if unit.state.halted is None and not unit.state.alarms:
        unit.reset_windows()
    return _within_spend(unit)


def _within_spend(unit: UnitOfWork) -> Decision:
    from fusewire.breakers.session.spend import over_limit

    refused = over_limit(unit)
    if refused is None:
        return ALLOWED
    from fusewire.breakers.session.messages import refusal_text

    unit.grounds = refused
    return Decision("deny", rule=refused.rule, text=refusal_text(refused, unit, 0))


def _grant(unit: UnitOfWork, amount: float) -> None:
    from fusewire.breakers.session.spend import budget_of

    budget = budget_of(unit.state, unit.settings)
    granted = unit.state.grant(amount, external=budget.is_external)
    _audit(unit, f"{budget.circuit}/{unit.session}", f"${amount:.2f} more granted in a message of a person")
    allowed = budget.limit + granted
    unit.remarks.append(f"fusewire: ${amount:.2f} more granted: this session may spend ${allowed:.2f} {budget.on}")


def _grant_calls(unit: UnitOfWork, calls: int) -> None:
    from fusewire.breakers.session.external import grant_calls

    def send(circuit: str, value: float) -> None:
        if unit.is_on(circuit):
            unit.signal("note", f"{circuit}/{unit.session}", "api_call", value=value)

    granted = grant_calls(unit.state, calls, send)
    _audit(unit, f"tool/api_calls/{unit.session}", f"{calls} more API calls granted in a message of a person")
    allowed = unit.settings["resource_limits.api_session_max"] + granted
    unit.remarks.append(f"fusewire: {calls} more API calls granted: this session may make {allowed}")


def _audit(unit: UnitOfWork, circuit: str, reason: str) -> None:
    unit.transaction.audit(AuditRow(circuit, unit.now, "closed", "closed", "overridden", reason, "person"))


def _on_stop(unit: UnitOfWork) -> Decision:
    """The agent wants to stop. A stop hook that keeps it going again and again is a loop of its own."""
    if unit.event.running is not None and unit.state.agents:
        from fusewire.breakers.session.spawning import only_running

        only_running(unit, unit.event.running)
    unit.next_turn()
    circuit = f"tool/hook_recursion/Stop/{unit.session}"
    if unit.event.text != "again":
        worked = unit.event.text == PROGRESS and unit.has("tool/hook_recursion/{hook}")
        if worked and unit.state.stops > 1:  # it does not only go round
            unit.signal("restart", circuit, "restart", text="the stretch since the last stop brought progress")
            unit.state.alarms.pop(circuit, None)
        unit.state.stops = 1
        return ALLOWED
    if not unit.has("tool/hook_recursion/{hook}"):
        return ALLOWED
    first = 2 if unit.state.stops == 1 else 1  # the first of them was nothing special then
    unit.state.stops = max(unit.state.stops, 1) + 1
    decision: Decision | None = None
    for _ in range(first):
        decision = unit.signal("ask", circuit, "hook_run", text="a stop hook keeps the agent from stopping")
    if decision is None or decision.allowed:
        return ALLOWED
    unit.state.alarms[circuit] = Alarm("", "Stop", ["Stop"])
    from fusewire.breakers.session.halting import halt
    from fusewire.breakers.session.messages import refusal_text

    unit.grounds = decision
    return halt(unit, decision.rule, refusal_text(decision, unit, 1), circuit=circuit)


def _on_helper_start(unit: UnitOfWork) -> Decision:
    from fusewire.breakers.session.spawning import helper_began

    if unit.event.subagent:
        helper_began(unit, unit.event.subagent, unit.event.text)
    return ALLOWED


def _on_helper_end(unit: UnitOfWork) -> Decision:
    from fusewire.breakers.session.spawning import helper_ended

    if unit.event.subagent:
        helper_ended(unit, unit.event.subagent)
    return ALLOWED


def _on_permission(unit: UnitOfWork) -> Decision:
    """For a call that was halted a moment ago and passed only to come here, where the agent can be stopped."""
    if not unit.event.text:
        return ALLOWED
    return Decision("halt", text=unit.state.last_halt or unit.event.text)


_ACTS = {
    "session_start": _on_start,
    "session_end": _on_end,
    "prompt": _on_message,
    "relayed": _on_relayed_message,
    "notice": _on_helper_end,
    "stop": _on_stop,
    "agent_start": _on_helper_start,
    "agent_stop": _on_helper_end,
    "permission": _on_permission,
}
