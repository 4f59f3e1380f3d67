"""Make the text of a decision, for the agent and for the person."""

from __future__ import annotations

from fusewire.core.decision import PUBLIC_VERDICT
from fusewire.util.durations import show_duration, show_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.core.decision import Decision

#: What an open circuit stops, by the kind of its rule.
_STOPPED = {
    "loop": "No iteration runs while it is open.",
    "phase": "No phase begins while it is open.",
    "attempt": "Stop the attempts, and report.",
}

#: The first word of a message, where it is not that of the JSON.
_HEADS = {**PUBLIC_VERDICT, "ask": "ASK"}


def agent_message(decision: Decision, now: float = 0.0) -> str:
    """What the agent reads: the strictest decision, then the others, each text once."""
    texts = (message(one, now) for one in _all(decision) if one.reason or one.text)
    return "\n".join(dict.fromkeys(filter(None, texts)))


def person_message(decision: Decision, now: float = 0.0) -> str:
    """What the person reads: the same, and what is said to the person alone."""
    remarks = (remark for one in _all(decision) for remark in one.remarks)
    return "\n".join(dict.fromkeys(filter(None, (agent_message(decision, now), *remarks))))


def _all(decision: Decision) -> Iterator[Decision]:
    yield decision
    yield from decision.also


def message(decision: Decision, now: float = 0.0) -> str:
    """A decision in words: verdict, rule, fact; then evidence, the next step, the time, who may lift it."""
    return decision.text or "\n".join(message_lines(decision, now))


def message_lines(decision: Decision, now: float = 0.0) -> list[str]:
    """The same, line by line: what is quoted in one of them may have line ends of its own."""
    lines = _head(decision)
    # What circuits keep as evidence are sentences; elsewhere it may be a path.
    lines += map(_capitalized, decision.evidence) if decision.circuit else decision.evidence
    if decision.next:
        stop = "" if "\n" in decision.next[-1] else "."  # a step with lines of its own ends with a command
        lines.append(f"Next: {'; '.join(decision.next)}{stop}")
    if decision.retry_after is not None and (decision.next or decision.by_person):
        clock = (show_time(now + decision.retry_after) or "")[:16].replace("T", " ")
        what = "A probe is allowed" if decision.phase in ("open", "probe") else "There is room again"
        lines.append(f"{what} at {clock} UTC (in {show_duration(decision.retry_after)}).")
    lines += map(_capitalized, decision.by_person)
    return lines


def _head(decision: Decision) -> list[str]:
    if not decision.rule:  # a plain notice
        return [decision.reason]
    if decision.tripped:
        stopped = _STOPPED.get(decision.rule.partition(".")[0], "Matching actions are blocked from now on.")
        return [f"CIRCUIT OPEN {decision.rule}: {decision.reason}.", stopped]
    return [f"{_HEADS[decision.verdict]} {decision.rule}: {decision.reason}."]


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
