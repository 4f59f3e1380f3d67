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
    "provider": "No loop starts an agent of it while it is open.",
}

#: Characters of a message to an agent, of a line that says what was decided, and of evidence that is cut.
LONGEST = 599
_LONGEST_FACT = 260
_SHORTEST = 30

#: The first word of a message, where it is not that of the JSON.
_HEADS = {**PUBLIC_VERDICT, "ask": "ASK"}


def agent_message(decision: Decision, now: float = 0.0) -> str:
    """What the agent reads: the strictest decision, then the others, each text once; of circuits within the limit."""
    found = [(one, _short(one, now)) for one in _all(decision) if one.reason or one.text]
    if decision.verdict == "halt" or sum(len(text) + 1 for _, text in found) > LONGEST:
        # Of the other circuits only the fact: what to do, and when, is said by the strictest.
        found[1:] = [(one, text.partition("\n")[0] if one.circuit else text) for one, text in found[1:]]
    return "\n".join(dict.fromkeys(text for _, text in found if text))


def within_limit(head: list[str], evidence: list[str], rest: list[str]) -> str:
    """One message to an agent; where it would be too long, its evidence is cut."""
    head = [line if len(line) <= _LONGEST_FACT else f"{line[: _LONGEST_FACT - 3]}..." for line in head]
    room = LONGEST - sum(len(line) + 1 for line in (*head, *rest))
    kept = []
    for line in evidence:
        if len(line) > room and room < _SHORTEST:
            break
        kept.append(line if len(line) <= room else f"{line[: room - 3]}...")
        room -= len(kept[-1]) + 1
    text = "\n".join([*head, *kept, *rest])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _short(decision: Decision, now: float) -> str:
    """A decision in words. What the guard quotes is kept as it is."""
    if decision.text or not decision.circuit:
        return message(decision, now)
    return within_limit(*_parts(decision, now))


def person_message(decision: Decision, now: float = 0.0) -> str:
    """What the person reads: the same, and what is said to the person alone; of a refusal how to ask for it later."""
    remarks = (remark for one in _all(decision) for remark in one.remarks)
    text = "\n".join(dict.fromkeys(filter(None, (agent_message(decision, now), *remarks))))
    why = f"\nWhy: fusewire why {decision.code}"
    is_stopped = decision.code and decision.verdict in ("deny", "halt")
    return f"{text}{why}" if is_stopped and len(text) + len(why) <= LONGEST else text


def _all(decision: Decision) -> Iterator[Decision]:
    yield decision
    yield from decision.also


def message(decision: Decision, now: float = 0.0) -> str:
    """A decision in words: verdict, rule, fact; then evidence, the next step, the time, who may lift it."""
    return decision.text or "\n".join(message_lines(decision, now))


def message_lines(decision: Decision, now: float = 0.0) -> list[str]:
    """The same, line by line: what is quoted in one of them may have line ends of its own."""
    head, evidence, rest = _parts(decision, now)
    return [*head, *evidence, *rest]


def _parts(decision: Decision, now: float) -> tuple[list[str], list[str], list[str]]:
    """What was decided, the evidence, and what to do about it."""
    # What circuits keep as evidence are sentences; elsewhere it may be a path.
    evidence = [_capitalized(one) if decision.circuit else one for one in decision.evidence]
    lines = []
    if decision.next:
        # A step with lines of its own ends with a command; some are sentences.
        stop = "" if "\n" in decision.next[-1] or decision.next[-1].endswith(".") else "."
        lines.append(f"Next: {'; '.join(decision.next)}{stop}")
    # An agent that is halted goes on when a person speaks, not when a time has come.
    if decision.verdict == "halt" and decision.circuit:
        lines.append("The agent is stopped; it goes on when a person speaks to it.")
    elif decision.retry_after is not None and (decision.next or decision.by_person):
        clock = (show_time(now + decision.retry_after) or "")[:16].replace("T", " ")
        what = {"open": "A probe is allowed", "probe": "Another probe is allowed"}.get(decision.phase)
        latest = " at the latest" if decision.phase == "probe" else ""
        wait = show_duration(decision.retry_after)
        lines.append(f"{what or 'There is room again'} at {clock} UTC{latest} (in {wait}).")
    return _head(decision), evidence, lines + [_capitalized(one) for one in decision.by_person]


def _head(decision: Decision) -> list[str]:
    if not decision.rule:  # a plain notice
        return [decision.reason]
    if decision.tripped:
        kind = decision.rule.partition(":")[0].partition(".")[0]
        stopped = _STOPPED.get(kind, "Matching actions are blocked from now on.")
        return [f"CIRCUIT OPEN {decision.rule}: {decision.reason}.", stopped]
    return [f"{_HEADS[decision.verdict]} {decision.rule}: {decision.reason}."]


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
