"""A decision in words, for the agent and for the person."""

from __future__ import annotations

from fusewire.core.decision import PUBLIC_VERDICT
from fusewire.util.durations import show_duration, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.core.decision import Decision

#: What an open circuit stops, by the kind of its rule.
_STOPPED = {
    "loop": "No iteration runs while it is open.",
    "phase": "No phase begins while it is open.",
    "attempt": "Stop the attempts, and report.",
}


def message(decision: Decision, now: float) -> str:
    """A decision in words: verdict, rule, fact; then evidence, the next step, the time, who may lift it."""
    return "\n".join(message_lines(decision, now))


def message_lines(decision: Decision, now: float) -> list[str]:
    """The same, line by line: what is quoted in one of them may have line ends of its own."""
    lines = [f"{PUBLIC_VERDICT[decision.verdict]} {decision.rule}: {decision.reason}."]
    if decision.tripped:
        stopped = _STOPPED.get(decision.rule.partition(".")[0], "Matching actions are blocked from now on.")
        lines = [f"CIRCUIT OPEN {decision.rule}: {decision.reason}.", stopped]
    lines += [f"{fact[:1].upper()}{fact[1:]}" for fact in decision.evidence]
    by_agent = [step for step in decision.next if not step.startswith("a person")]
    by_person = [step for step in decision.next if step.startswith("a person")]
    if by_agent:
        lines.append(f"Next: {'; '.join(by_agent)}.")
    if decision.retry_after is not None and decision.next:
        clock = (show_time(now + decision.retry_after) or "")[:16].replace("T", " ")
        what = "A probe is allowed" if decision.phase in ("open", "probe") else "There is room again"
        lines.append(f"{what} at {clock} UTC (in {show_duration(decision.retry_after)}).")
    lines += [f"{step[:1].upper()}{step[1:]}" for step in by_person]
    return lines
