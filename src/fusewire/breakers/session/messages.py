"""Word what a session's breakers decide as the seed does: verdict, fact and limit; evidence, a way on, the time."""

from __future__ import annotations

from fusewire.breakers.session.calls import SPAWNING_TOOLS
from fusewire.breakers.session.state import KEYED
from fusewire.core.messages import within_limit
from fusewire.util.durations import show_duration, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.session.unit_of_work import UnitOfWork
    from fusewire.core.decision import Decision

LIMIT = "Resource limit reached. Pausing to prevent exhaustion."

#: The seed's way around a tool, for tools that are neither agents nor programs.
_WORKAROUND = "use a scratch script or agent delegation instead"

_PROBING = "a probe is under way after: "

#: What an agent that is stopped does.
STOP = "stop here, and tell the user what you tried and what stands in the way"


def refusal_text(decision: Decision, unit: UnitOfWork, halted_after: int) -> str:
    """Why a call is refused, until when, and what to do instead. A halt is not over when a time has come."""
    halted = bool(halted_after) or decision.rule.startswith("tool.spend")
    lines = [f"{'HALTED' if halted else 'BLOCKED'} {short_rule(decision)}: {_fact(decision, halted)}"]
    if halted:
        why = f"Refused {halted_after} times, so the" if halted_after > 1 else "The"
        lines.append(f"{why} agent is stopped; it {goes_on(decision.rule)}.")
    return within_limit(lines, *_rest(decision, unit, halted))


def question_text(decision: Decision) -> str:
    """What a person is asked before a call that would be refused if nobody were there."""
    evidence = [f"{fact[:1].upper()}{fact[1:]}" for fact in decision.evidence]
    return "\n".join([f"{short_rule(decision)}: {decision.reason}.", *evidence, "Let this call run all the same?"])


def goes_on(rule: str, person: str = "a person speaks") -> str:
    """What lifts a halt: words of a person, but not where money is at an end."""
    return "goes on when a person grants more" if rule.startswith("tool.spend") else f"goes on when {person} to it"


def warning_text(decisions: list[Decision], unit: UnitOfWork) -> str:
    """What an agent is told beside a call that passes, or after it: of several, one in full that has opened."""
    decisions = sorted(decisions, key=lambda decision: not decision.tripped)
    heads = []
    for decision in decisions:
        fact = _fact(decision) if decision.tripped else f"{decision.reason}."
        heads.append(f"{'CIRCUIT OPEN' if decision.tripped else 'WARNING'} {short_rule(decision)}: {fact}")
    evidence, rest = _rest(decisions[0], unit)
    return within_limit(heads[:1], [*heads[1:], *evidence], rest)


def short_rule(decision: Decision) -> str:
    """The rule without the session in it: `tool.tool_failure:Bash(pytest)`."""
    name, colon, key = decision.rule.partition(":")
    key = key.partition("/")[0]
    return f"{name}:{key}" if colon and decision.circuit.split("/")[1] in KEYED else name


def _fact(decision: Decision, halted: bool = False) -> str:
    if decision.phase in ("open", "probe"):
        if decision.reason.startswith(_PROBING):
            return f"a trial call is running, and its result decides. Before it: {decision.reason[len(_PROBING) :]}."
        known = not halted and decision.retry_after is not None
        wait = f" Cooldown: {-int(-(decision.retry_after or 0) // 1)}s" if known else ""
        return f"Circuit breaker tripped: {decision.reason}.{wait}"
    return f"{LIMIT} {decision.reason[:1].upper()}{decision.reason[1:]}."


def _rest(decision: Decision, unit: UnitOfWork, halted: bool = False) -> tuple[list[str], list[str]]:
    """The evidence, and what stands behind it: the next step, the time, who may lift it."""
    evidence = [f"{fact[:1].upper()}{fact[1:]}" for fact in decision.evidence]
    spend = decision.rule.startswith("tool.spend")
    steps = next_steps(decision, unit) if spend or not halted else (STOP,)
    lines = [f"Next: {'; '.join(steps)}."] if steps else []
    if decision.retry_after is not None and not halted and (decision.tripped or not decision.allowed):
        clock = (show_time(unit.now + decision.retry_after) or "")[11:19]
        if decision.reason.startswith(_PROBING):
            what = "Ask again when the trial call has ended,"
            clock = f"{clock} UTC at the latest"
        else:
            opened = decision.phase in ("open", "probe")
            what = "It resets by itself: one call is allowed" if opened else "There is room again"
            clock = f"at {clock} UTC"
        lines.append(f"{what} {clock} (in {show_duration(decision.retry_after)}).")
    by_person = () if halted and not spend else decision.by_person
    return evidence, lines + [f"{step[:1].upper()}{step[1:]}" for step in by_person]


def next_steps(decision: Decision, unit: UnitOfWork) -> tuple[str, ...]:
    """What to do instead; the workaround only for a tool that it can stand in for."""
    steps = decision.next or unit.rules.policy(decision.circuit).next
    tool = short_rule(decision).partition(":")[2]
    replaceable = bool(tool) and "(" not in tool and tool not in SPAWNING_TOOLS
    return steps if replaceable else tuple(step for step in steps if step != _WORKAROUND)
