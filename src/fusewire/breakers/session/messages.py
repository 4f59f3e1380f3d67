"""Word what a session's breakers decide as the seed does: verdict, fact and limit; evidence, a way on, the time."""

from __future__ import annotations

from fusewire.breakers.session.state import KEYED
from fusewire.util.durations import show_duration, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision

LIMIT = "Resource limit reached. Pausing to prevent exhaustion."


def refusal_text(decision: Decision, unit: UnitOfWork, halted_after: int) -> str:
    """Why a call is refused, until when, and what to do instead."""
    verdict = "HALTED" if halted_after or decision.rule.startswith("tool.spend") else "BLOCKED"
    lines = [f"{verdict} {short_rule(decision)}: {_fact(decision)}"]
    if halted_after > 1:
        lines.append(f"Refused {halted_after} times, so the agent is stopped; it {goes_on(decision.rule)}.")
    return "\n".join(lines + _rest(decision, unit))


def question_text(decision: Decision) -> str:
    """What a person is asked before a call that would be refused if nobody were there."""
    evidence = [f"{fact[:1].upper()}{fact[1:]}" for fact in decision.evidence]
    return "\n".join([f"{short_rule(decision)}: {decision.reason}.", *evidence, "Let this call run all the same?"])


def goes_on(rule: str, person: str = "a person speaks") -> str:
    """What lifts a halt: words of a person, but not where money is at an end."""
    return "goes on when a person grants more" if rule.startswith("tool.spend") else f"goes on when {person} to it"


def warning_text(decisions: list[Decision], unit: UnitOfWork) -> str:
    """What an agent is told beside a call that passes, or after it."""
    parts = []
    for decision in decisions:
        head = f"{'CIRCUIT OPEN' if decision.tripped else 'WARNING'} {short_rule(decision)}: "
        head += _fact(decision) if decision.tripped else f"{decision.reason}."
        parts.append("\n".join([head, *_rest(decision, unit)]))
    return "\n".join(parts)


def short_rule(decision: Decision) -> str:
    """The rule without the session in it: `tool.tool_failure:Bash(pytest)`."""
    name, colon, key = decision.rule.partition(":")
    key = key.partition("/")[0]
    return f"{name}:{key}" if colon and decision.circuit.split("/")[1] in KEYED else name


def _fact(decision: Decision) -> str:
    if decision.phase in ("open", "probe"):
        wait = "" if decision.retry_after is None else f" Cooldown: {-int(-decision.retry_after // 1)}s"
        return f"Circuit breaker tripped: {decision.reason}.{wait}"
    return f"{LIMIT} {decision.reason[:1].upper()}{decision.reason[1:]}."


def _rest(decision: Decision, unit: UnitOfWork) -> list[str]:
    lines = [f"{fact[:1].upper()}{fact[1:]}" for fact in decision.evidence]
    policy = unit.rules.policy(decision.circuit)
    steps = decision.next or policy.next
    by_person = list(decision.by_person)
    if steps:
        lines.append(f"Next: {'; '.join(steps)}.")
    if decision.retry_after is not None and (decision.tripped or not decision.allowed):
        clock = (show_time(unit.now + decision.retry_after) or "")[11:19]
        what = (
            "It resets by itself: one call is allowed" if decision.phase in ("open", "probe") else "There is room again"
        )
        lines.append(f"{what} at {clock} UTC (in {show_duration(decision.retry_after)}).")
    if decision.rule.startswith(("tool.agents", "tool.agent_spawn")):
        by_person.append("a person can lift it with the words 'SUDO PARALLEL' in a message to the agent")
    lines += [f"{step[:1].upper()}{step[1:]}" for step in by_person]
    return lines
