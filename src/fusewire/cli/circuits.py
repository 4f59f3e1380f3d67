"""The constraint seed's commands: status, check, record, reset, history. They work on every circuit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fusewire.agents.caller import require_person
from fusewire.breakers.constraint import report as layout
from fusewire.breakers.loop.report import details, summary
from fusewire.breakers.session.ended import EndedSessions
from fusewire.cli.common import (
    archiving_retired,
    check_days,
    circuit_command,
    orders_told,
    print_json,
    show_result,
)
from fusewire.cli.standing import standing_lines
from fusewire.cli.streams import tell, warn
from fusewire.core.decision import PUBLIC_STATE, Decision, merge
from fusewire.core.events import Signal, identifier
from fusewire.core.messages import message_lines
from fusewire.core.meters import within
from fusewire.util.durations import number, show_time
from fusewire.util.errors import FusewireError, NotFound, StoreError
from fusewire.util.quoting import quoted
from fusewire.views.models import to_json
from fusewire.views.moves import history_of
from fusewire.views.orders import orders_view
from fusewire.views.providers import provider_limits
from fusewire.views.settings import config_json, settings_of
from fusewire.views.standing import standing
from fusewire.views.warnings import warnings

if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker
    from fusewire.views.providers import ProviderLimit


@click.command("status")
@click.argument("circuit", metavar="[ID]", required=False)
@click.option("--all", "everything", is_flag=True, help="List all circuits by state, the closed ones too.")
@click.option(
    "--session",
    metavar="[SESSION]",
    is_flag=False,
    flag_value="",
    help="Show an agent's session: breakers, memory, resources, incidents (default: this one, or the last).",
)
@circuit_command
def status_command(breaker: Breaker, circuit: str | None, everything: bool, session: str | None, as_json: bool) -> int:
    """Is anything stopped, what does it need from you, what did today cost; or everything about one circuit.

    `status --all` lists all circuits by state. `status ID` shows one circuit with its violations, configuration and
    recent activity. `status loop` shows the supervised loop: stagnation risk, score, calls, metrics, lessons.
    `status --session` shows the breakers, memory, resources and incidents of an agent's session.
    """
    if session is not None:
        if circuit is not None or everything:
            raise click.UsageError("--session shows a whole session: give neither ID nor --all with it")
        return _status_of_session(breaker, session, as_json)
    if circuit is not None and circuit != "loop":
        return _status_of(breaker, resolve_ids(breaker, circuit), as_json)
    if circuit is None and not (everything or as_json):
        orders_told()
        tell(*standing_lines(standing(breaker), breaker.engine.clock()))
        return 0
    from fusewire.breakers.loop.overview import overview
    from fusewire.breakers.loop.worktrees import other_loops

    statuses = breaker.statuses()
    loop, limits = overview(breaker), _limits(breaker.engine.clock())
    if as_json:
        print_json(
            {
                "circuits": [one.to_json() for one in statuses],
                "warnings": warnings(breaker),
                "loop": to_json(loop),
                "standing": to_json(standing(breaker)),
                "providers": to_json(limits),
                "orders": to_json(orders_view(breaker.root)),
            }
        )
    elif circuit == "loop":
        others = [f"  {one.line}" for one in other_loops(breaker.root or "")]
        tell(*details(loop), *(["", "LOOPS IN OTHER WORKTREES", *others] if others else []))
    else:
        tell(*layout.groups(statuses))
        tell(*([] if not limits else ["", "PROVIDERS", *(f"  {limit.text}" for limit in limits)]))
        if loop.iterations:
            tell("", *summary(loop))
    return 0


def _limits(now: float) -> list[ProviderLimit]:
    """The providers that refuse requests now; a store that cannot be read is said, and the project is shown."""
    try:
        return provider_limits(now)
    except StoreError as error:
        warn(f"what is known of the providers cannot be read: {error}")
        return []


def _status_of_session(breaker: Breaker, session: str, as_json: bool) -> int:
    from fusewire.breakers.session.names import last_session
    from fusewire.breakers.session.overview import overview
    from fusewire.breakers.session.report import dashboard
    from fusewire.views.session_names import SessionNames

    names = SessionNames.of(breaker)
    own = os.environ.get("CLAUDE_CODE_SESSION_ID")
    named = names.resolve(session) if session else own or last_session(breaker.store)
    data, name = overview(breaker, named), names.name(named) if named else None
    lines = [*dashboard(data), *(["", f"Session: {names.facts(named).line}"] if named else [])]
    return show_result(as_json, {**data, "name": name, "warnings": warnings(breaker)}, *lines)


def _status_of(breaker: Breaker, circuits: list[str], as_json: bool) -> int:
    """One circuit in detail, or the same circuit in several sessions."""
    statuses = [breaker.status(circuit) for circuit in circuits]
    circuit, settings = circuits[0], settings_of(breaker, circuits[0])
    if as_json:
        data = [{**status.to_json(), "config": config_json(settings)} for status in statuses]
        print_json({"circuits": data, "warnings": warnings(breaker)})
    elif len(statuses) > 1:
        tell(*layout.groups(statuses))
    else:
        rows = [(one.key, str(one.value), one.source) for one in settings]
        constraint = breaker.rules.constraints.get(circuit)
        log = breaker.store.log_of(circuit)
        tell(*layout.detail(statuses[0], breaker.rules.policy(circuit), constraint, rows, log))
    return 0


@click.command("check")
@click.argument("circuit", metavar="ID")
@click.option("--session", help="The session that wants to act.")
@circuit_command
@archiving_retired
def check_command(breaker: Breaker, circuit: str, session: str | None, as_json: bool) -> int:
    """May an action go on? ALLOWED (exit 0) or BLOCKED (exit 3), with the reason.

    After a cooldown the first check takes the one probe; report its outcome with `record ID --action ...` or
    `record ID --ok`. A circuit of the loop (`loop` is all of them) is only looked at: its probe is the next iteration.
    So is one of a provider (`provider/anthropic`): its probe is the next start of an agent.
    """
    circuits = resolve_ids(breaker, circuit)
    several = len(circuits) > 1
    looks = several or breaker.rules.policy(circuits[0]).kind in ("loop", "provider")
    status = breaker.status(circuits[0])
    if status.session_ended is not None:
        history = Decision("allow", circuit=circuits[0], rule=status.rule, reason=layout.ended(status))
        return show_result(as_json, history.to_json(), f"ALLOWED {circuits[0]}: {layout.ended(status)}")
    decision = strictest(breaker, circuits) if looks else breaker.check(circuits[0], session=session)
    if as_json:
        print_json({**decision.to_json(), "ids": circuits} if several else decision.to_json())
    elif decision.allowed and several:
        what = "circuits" if breaker.rules.group(circuit) else "sessions"
        tell(f"ALLOWED {circuit}: {decision.state}, the strictest of {len(circuits)} {what}")
        if decision.reason:
            tell(decision.reason)
    elif decision.allowed:
        _say_allowed(breaker, circuits[0], decision)
    else:
        tell(*message_lines(decision, breaker.engine.clock()), fg="red")
    return 0 if decision.allowed else 3


def _say_allowed(breaker: Breaker, circuit: str, decision: Decision) -> None:
    status = breaker.status(circuit)
    window = within(breaker.rules.policy(circuit).meters[0])
    tell(f"ALLOWED {circuit}: {decision.state}, {number(status.level)} of {number(status.threshold)}{window}")
    if decision.reason:
        tell(decision.reason)
    if decision.lease:
        tell(
            f"Now report how it went: fusewire record {quoted(circuit)} --lease {quoted(decision.lease)} --ok,"
            " or --action TEXT instead of --ok if it went wrong."
        )


@click.command("record")
@click.argument("circuit", metavar="ID")
@click.option("--action", help="What was done; required unless --ok is given.")
@click.option("--session", help="The session that did it.")
@click.option("--lease", help="The probe whose outcome this is, as `check` named it (default: the one in progress).")
@click.option("--ok", is_flag=True, help="Record that the checked action went well, which settles a probe.")
@click.option("--signal", help="Which signal, for a circuit that knows several (an unknown one lists them).")
@circuit_command
@archiving_retired
def record_command(
    breaker: Breaker,
    circuit: str,
    action: str | None,
    session: str | None,
    lease: str | None,
    ok: bool,
    signal: str | None,
    as_json: bool,
) -> int:
    """Record a violation with --action, or a success with --ok."""
    if ok == (action is not None):
        raise click.UsageError("give either --action TEXT or --ok")
    if action is not None and not action.strip():
        raise click.UsageError("--action must say what was done")
    if signal is not None:
        _require_signal(breaker, circuit, signal)
    if ok:
        lease = lease or breaker.probe_of(circuit)
        decision = breaker.record_success(circuit, session=session, lease=lease, signal=signal)
    else:
        decision = breaker.record(circuit, action or "", session=session, lease=lease, signal=signal)
    if as_json:
        print_json(decision.to_json())
    elif ok:
        tell(f"{circuit}: {decision.state}")
        if decision.phase in ("open", "probe"):
            tell("Nothing was settled: no probe is under way, or --lease does not name it.", err=True)
    else:
        tell(f"{circuit}: {'recorded; ' * decision.tripped}{decision.reason}; {decision.state}")
        warn_of(breaker, decision)
    return 0


def _require_signal(breaker: Breaker, circuit: str, signal: str) -> None:
    policy = breaker.rules.policy(circuit)
    known = sorted({meter.on for meter in policy.meters} | {n for m in policy.meters for n in m.resets_on})
    if signal not in known:
        raise FusewireError(f"{circuit} knows no signal {signal!r}; allowed: {', '.join(known)}")


def warn_of(breaker: Breaker, decision: Decision) -> None:
    """Print what a person must notice about a recorded violation: a trip, or that one is near."""
    if decision.tripped:
        lines = message_lines(decision, breaker.engine.clock())
        frame = "!" * min(max(map(len, lines)), 100)
        tell(frame, *lines, frame, fg="red", bold=True, err=True)
    elif decision.verdict == "tell":
        warn(*decision.evidence)


@click.command("reset")
@click.argument("circuit", metavar="ID")
@click.option("--reason", default="", help="Why; kept in the audit trail.")
@circuit_command
@archiving_retired
def reset_command(breaker: Breaker, circuit: str, reason: str, as_json: bool) -> int:
    """Reset an open circuit as its policy allows; ID `loop` means all circuits of the loop. Refused inside an agent."""
    actor = require_person("`fusewire reset`", breaker.root)
    circuits = resolve_ids(breaker, circuit)
    kind = breaker.rules.policy(circuits[0]).kind
    if kind in ("loop", "provider") and not reason.strip():
        raise click.UsageError(f'a reset of the {kind} needs a reason: --reason "..."')
    if len(circuits) > 1:
        return _reset_group(breaker, circuit, circuits, reason, as_json)
    (circuit,) = circuits
    before = breaker.status(circuit)
    decision = breaker.reset(circuit, reason)
    move = breaker.store.audit_of(circuit)[-1]
    audit = {
        "timestamp": show_time(move.at),
        "from": PUBLIC_STATE[move.source],
        "to": PUBLIC_STATE[move.target],
        "reason": move.reason or None,
        "actor": move.actor,
    }
    lines = [f"{circuit}: {before.state} -> {decision.state}"]
    if decision.state != "CLOSED":
        probe = "start of an agent" if kind == "provider" else "check"
        lines.append(f"The cooldown is over; the next {probe} is the one probe, and it decides.")
    if before.session_ended is not None:
        lines.append(f"Note: {layout.ended(before)}.")
    trail = f"{audit['timestamp']} {audit['from']} -> {audit['to']} by {actor}: {reason or 'no reason given'}"
    return show_result(as_json, {**decision.to_json(), "audit": audit}, *lines, f"Audit: {trail}")


def _reset_group(breaker: Breaker, group: str, members: list[str], reason: str, as_json: bool) -> int:
    """Everything of the group that is open."""
    decisions = breaker.reset_group(group, members, reason)
    lines = [f"{decision.circuit}: OPEN -> {decision.state}" for decision in decisions]
    if any(decision.state != "CLOSED" for decision in decisions):
        lines.append("The cooldown is over; the next iteration is the one probe, and it decides.")
    return show_result(as_json, {"reset": [decision.to_json() for decision in decisions]}, *lines)


@click.command("history")
@click.argument("circuit", metavar="ID")
@click.option("--days", type=float, default=30, callback=check_days, help="How far back (default: 30).")
@circuit_command
def history_command(breaker: Breaker, circuit: str, days: float, as_json: bool) -> int:
    """Show a circuit's violations, the boundary of its rolling window, and every change of state."""
    circuits = resolve_ids(breaker, circuit, with_ended=True)
    rows = [row for one in circuits for row in breaker.history(one, days=days)]
    audit = [move for one in circuits for move in breaker.audit(one, days=days)]
    if len(circuits) > 1:
        rows.sort(key=lambda row: row.at)
        audit.sort(key=lambda move: move.at)
    meter = breaker.rules.policy(circuits[0]).meters[0]
    rolling = meter.family == "window" and not meter.turns
    window_start = breaker.engine.clock() - meter.span if rolling else None
    data = {"id": circuit, "days": days, **to_json(history_of(rows, audit, window_start))}
    return show_result(as_json, data, *layout.history(circuit, rows, audit, window_start, days))


# -- ids as people write them: without the session that a circuit of a session has in its id --------------


def resolve_ids(breaker: Breaker, circuit: str, *, with_ended: bool = False) -> list[str]:
    """All of a group; the circuit itself if it has a state; else the stored circuits `ID/SESSION`; else the id itself.

    Those of sessions that have ended are left out if there are others, unless they are asked for."""
    if group := breaker.rules.group(circuit):
        return group
    if not circuit.startswith("tool/") or breaker.store.circuit(identifier(circuit)) is not None:
        return [circuit]
    prefix = f"{circuit.rstrip('/')}/"
    found = [row.id for row in breaker.store.circuits() if row.id.startswith(prefix) and is_known(breaker, row.id)]
    if not with_ended:
        ended = EndedSessions(breaker.store, breaker.engine.clock())
        found = [one for one in found if ended.of(one) is None] or found
    return found or [circuit]


def is_known(breaker: Breaker, circuit: str) -> bool:
    try:
        breaker.rules.policy(circuit)
    except NotFound:
        return False
    return True


def strictest(breaker: Breaker, circuits: list[str]) -> Decision:
    """What the strictest of several circuits would decide; nothing is counted, and no probe is taken."""
    decisions = []
    for circuit in circuits:
        name = breaker.rules.policy(circuit).asks()
        decision = breaker.engine.foresee(Signal("ask", circuit, name))
        if decision.lease is not None:
            decision = decision.replace(lease=None, reason=decision.reason.replace("this is the one", "ready for one"))
        decisions.append(decision)
    return merge(decisions)
