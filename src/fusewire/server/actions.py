"""Carry out what a person does from a page: reset, grant, resolve; always with a reason and through the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.agents.caller import require_person
from fusewire.core.events import TEXT_LIMIT
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.phase.choices import PhaseResolution
    from fusewire.server.projects import WatchedProject

CHOICES = ("reset", "skip", "abort", "modify")
WHOM = ("session", "day", "project")


def given_reason(reason: str) -> str:
    """The reason without blanks around it; one that says nothing is refused."""
    text = " ".join(reason.split())
    if not text:
        raise FusewireError("a reason is needed: it is kept in the audit trail")
    if len(text) > TEXT_LIMIT:
        raise FusewireError(f"the reason is too long; allowed: up to {TEXT_LIMIT} characters")
    return text


def reset(project: WatchedProject, circuit: str, reason: str, *, whole: bool = False) -> str:
    """End an open circuit as its policy allows (`loop`: all of the loop's that are open); in words, what came of it.

    `whole`: with it whatever is reset together with it. One trip may have opened several.
    """
    reason = given_reason(reason)
    with Breaker.open(project=project.root) as breaker:
        group = breaker.rules.policy(circuit).group if whole else circuit
        members = breaker.rules.group(group)
        decisions = breaker.reset_group(group, members, reason) if members else [breaker.reset(circuit, reason)]
    names = " and ".join(decision.circuit for decision in decisions)
    if all(decision.state == "CLOSED" for decision in decisions):
        return f"{names} {'is' if len(decisions) == 1 else 'are'} closed"
    return f"The cooldown of {names} is over: the next check is the one probe, and it decides"


def grant(project: WatchedProject, amount: str, whom: str, session: str, reason: str) -> str:
    """Allow more spend, for a session, for today or for the project."""
    from fusewire.breakers.session.grants import dollars
    from fusewire.breakers.session.grants import grant as give

    reason = given_reason(reason)
    if whom not in WHOM:
        raise FusewireError(f"{whom!r} is nobody to grant to; allowed: {', '.join(WHOM)}")
    actor = require_person("a grant", project.root)
    with Breaker.open(project=project.root) as breaker:
        named = session if whom == "session" else ""
        granted = give(breaker, dollars(amount), whom, named or None, reason, actor)
    given = f"${granted['amount_usd']:.2f} granted for {granted['key']}"
    if not granted["limit_usd"]:
        return f"{given}. There is no limit for that, so nothing changes: {granted['setting']} is 0"
    given += " on external APIs" if granted["budget"] == "external" else ""
    return f"{given}: ${granted['allowed_usd']:.2f} allowed now, ${granted['spent_usd']:.2f} spent so far"


def resolve(project: WatchedProject, choice: str, guidance: str, reason: str, circuit: str = "") -> str:
    """One of the four choices about an open phase, which must be that of the circuit, if one is named."""
    from fusewire.breakers.phase.phases import Phases

    reason = given_reason(reason)
    if choice not in CHOICES:
        raise FusewireError(f"{choice!r} is no choice; allowed: {', '.join(CHOICES)}")
    if choice == "modify" and not guidance.strip():
        raise FusewireError("to modify, say what should be done differently: the guidance is given to the agent")
    actor = require_person("a choice about a phase", project.root)
    with Breaker.open(project=project.root) as breaker:
        meant = circuit.removeprefix("phase/")
        resolved = Phases(breaker).resolve(choice, actor, guidance.strip(), meant=meant, reason=reason)
    return _resolved_words(resolved)


def _resolved_words(resolved: PhaseResolution) -> str:
    match resolved.choice:
        case "skip":
            return f"{resolved.phase} is marked complete, with {counted(resolved.known, 'known failure')}"
        case "abort":
            return "The execution is aborted: nothing begins until a person runs fusewire phase start"
        case "modify":
            return f"{resolved.phase} is closed; the agent gets the guidance when it begins again"
    return f"{resolved.phase} is closed: its counters are 0, and the phase goes on as before"


def why_not(project_root: str | None) -> str:
    """Why this server changes nothing: it was started from inside an agent. Empty if it was not."""
    try:
        require_person("changing something", project_root)
    except FusewireError as error:
        return str(error)
    return ""
