"""What happens in a session beside tool calls: a person speaks, the agent wants to stop, helpers come and go."""

from __future__ import annotations

from fusewire.breakers.session.unit_of_work import ALLOWED, next_turn
from fusewire.core.decision import Decision
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.session.unit_of_work import Moment

#: What is said of a stop at which the agent was kept going, and that was worth something.
PROGRESS = "progress"

#: Seconds after which nothing is remembered of a session that has not been heard of.
_FORGOTTEN = 30 * 86400


def answer(moment: Moment) -> Decision:
    act = _ACTS.get(moment.event.kind)
    return ALLOWED if act is None else act(moment)


def _begun(moment: Moment) -> Decision:
    moment.transaction.forget("session/", moment.now - _FORGOTTEN)
    moment.record.pop("ended", None)
    if moment.event.text in ("resume", "fork") and "since" not in moment.record:
        # The transcript begins with what another session has paid for.
        moment.record["spend_since"] = show_time(moment.now)
    return ALLOWED


def _ended(moment: Moment) -> Decision:
    from fusewire.breakers.session.spawning import only_running
    from fusewire.breakers.session.spend import look

    look(moment)
    only_running(moment, ())
    moment.record["ended"] = moment.now
    return ALLOWED


def _spoken(moment: Moment) -> Decision:
    """A person's message: a new task. It may lift a limit; a limit on spend is held against it as well."""
    from fusewire.breakers.session.user_message import MOST, SUDO, granted, lifts_agents

    moment.begin_anew()
    moment.did("prompt")
    moment.record.pop("sudo", None)
    if lifts_agents(moment.event.text):
        moment.record["sudo"] = True
        _audit(moment, f"tool/agents/{moment.session}", f"{SUDO} in a message of a person")
        moment.remarks.append("fusewire: the limits on agents are lifted until your next message")
    amount = granted(moment.event.text)
    if amount > MOST:
        moment.remarks.append(
            f"fusewire: ${amount:.2f} is more than can be granted at once (${MOST:.2f}); nothing was granted"
        )
    elif amount:
        _grant(moment, amount)
    return _within_spend(moment)


def _relayed(moment: Moment) -> Decision:
    """The agent was told to begin, or to go on, by an agent: what is open or halted stays so."""
    if "halted" not in moment.record and not moment.alarms:
        moment.begin_anew()
    return _within_spend(moment)


def _within_spend(moment: Moment) -> Decision:
    from fusewire.breakers.session.spend import over_limit

    refused = over_limit(moment)
    if refused is None:
        return ALLOWED
    from fusewire.breakers.session.messages import refusal_text

    return Decision("deny", rule=refused.rule, text=refusal_text(refused, moment, 0))


def _grant(moment: Moment, amount: float) -> None:
    from fusewire.breakers.session.spend import grant_session

    granted = grant_session(moment.record, amount)
    _audit(moment, f"tool/spend/{moment.session}", f"${amount:.2f} more granted in a message of a person")
    allowed = moment.settings["resource_limits.api_cost_block_usd"] + granted
    moment.remarks.append(f"fusewire: ${amount:.2f} more granted: this session may spend ${allowed:.2f}")


def _audit(moment: Moment, circuit: str, reason: str) -> None:
    moment.transaction.audit(AuditRow(circuit, moment.now, "closed", "closed", "overridden", reason, "person"))


def _stopping(moment: Moment) -> Decision:
    """The agent wants to stop. A stop hook that keeps it going again and again is a loop of its own."""
    if moment.event.running is not None and moment.record.get("agents"):
        from fusewire.breakers.session.spawning import only_running

        only_running(moment, moment.event.running)
    next_turn(moment)
    circuit = f"tool/hook_recursion/Stop/{moment.session}"
    if moment.event.text != "again":
        worked = moment.event.text == PROGRESS and moment.has("tool/hook_recursion/{hook}")
        if worked and moment.record.get("stops", 0) > 1:  # it does not only go round
            moment.signal("restart", circuit, "restart", text="the stretch since the last stop brought progress")
            moment.alarms.pop(circuit, None)
        moment.record["stops"] = 1
        return ALLOWED
    if not moment.has("tool/hook_recursion/{hook}"):
        return ALLOWED
    first = 2 if moment.record.get("stops") == 1 else 1  # the first of them was nothing special then
    moment.record["stops"] = moment.record.get("stops", 1) + 1
    decision: Decision | None = None
    for _ in range(first):
        decision = moment.signal("ask", circuit, "hook_run", text="a stop hook keeps the agent from stopping")
    if decision is None or decision.allowed:
        return ALLOWED
    moment.alarms[circuit] = ["", "Stop", ["Stop"]]
    from fusewire.breakers.session.halting import halt
    from fusewire.breakers.session.messages import refusal_text

    return halt(moment, decision.rule, refusal_text(decision, moment, 1), circuit=circuit)


def _helper_began(moment: Moment) -> Decision:
    from fusewire.breakers.session.spawning import helper_began

    if moment.event.subagent:
        helper_began(moment, moment.event.subagent, moment.event.text)
    return ALLOWED


def _helper_ended(moment: Moment) -> Decision:
    from fusewire.breakers.session.spawning import helper_ended

    if moment.event.subagent:
        helper_ended(moment, moment.event.subagent)
    return ALLOWED


def _asked_for_permission(moment: Moment) -> Decision:
    """For a call that was halted a moment ago and passed only to come here, where the agent can be stopped."""
    if not moment.event.text:
        return ALLOWED
    return Decision("halt", text=moment.record.get("last_halt") or moment.event.text)


_ACTS = {
    "session_start": _begun,
    "session_end": _ended,
    "prompt": _spoken,
    "relayed": _relayed,
    "notice": _helper_ended,
    "stop": _stopping,
    "agent_start": _helper_began,
    "agent_stop": _helper_ended,
    "permission": _asked_for_permission,
}
