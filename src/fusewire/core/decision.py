"""Define the one answer of every rule: the verdict, which rule gave it, why, and what to do next.

Guard, scope, constraints, work in progress, session breakers and halts all return a `Decision`. Text is made from it
at the edge (`core.messages`), once for agents and once for people; nothing parses a message back into fields.
"""

from __future__ import annotations

from fusewire.core.events import Noun
from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

    Verdict = Literal["allow", "tell", "ask", "deny", "halt"]

#: From mild to strict; the strictest decision wins when several rules speak.
VERDICTS = ("allow", "tell", "ask", "deny", "halt")

#: What programs read in JSON (docs/json.md).
PUBLIC_VERDICT = {"allow": "ALLOWED", "tell": "WARN", "ask": "WARN", "deny": "BLOCKED", "halt": "BLOCKED"}

#: What a phase is called in front of people and in the seeds' file formats.
PUBLIC_STATE = {"closed": "CLOSED", "watch": "HALF_OPEN", "open": "OPEN", "probe": "HALF_OPEN"}


class Decision(Noun):
    """May this go on, which rule says so, why, until when, and what to do next."""

    verdict: Verdict
    circuit: str = ""
    #: a stable id, `guard.rm` or `tool.tool_failure:Bash(pytest)`
    rule: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()
    #: seconds until it may be tried again; None if that takes a person
    retry_after: float | None = None
    #: what the agent should do
    next: tuple[str, ...] = ()
    #: how a person can lift it
    by_person: tuple[str, ...] = ()
    phase: str = "closed"
    lease: str | None = None
    tripped: bool = False
    #: a person should look: it tripped again after a recovery, or too often in a row
    alert: bool = False
    #: protected paths that the call would change
    affected: tuple[str, ...] = ()
    #: lines for the person alone; the agent does not see them
    remarks: tuple[str, ...] = ()
    #: the agent was halted and went on: its process is to be ended
    unheeded: bool = False
    #: the milder decisions of other rules on the same event
    also: tuple[Decision, ...] = ()
    #: what rules in `log` mode would have answered
    logged: tuple[Decision, ...] = ()
    #: the message as it was written down before, such as that of a stored halt; else it is made from the other fields
    text: str = ""
    #: by which people ask for it later; empty if it has not been written down
    code: str = ""

    @property
    def allowed(self) -> bool:
        return self.verdict in ("allow", "tell")

    @property
    def state(self) -> str:
        return PUBLIC_STATE[self.phase]

    def to_json(self) -> dict[str, Any]:
        """The fields that other programs rely on (docs/json.md)."""
        return {
            "decision": PUBLIC_VERDICT[self.verdict],
            "id": self.circuit or None,
            "state": self.state,
            "phase": self.phase,
            "rule": self.rule or None,
            "reason": self.reason,
            "evidence": list(self.evidence),
            "retry_after": self.retry_after,
            "next": [*self.next, *self.by_person],
            "lease": self.lease,
            "tripped": self.tripped,
            "alert": self.alert,
        }


class Blocked(FusewireError):
    """A circuit said no; `decision` says why, until when and what to do."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"{decision.rule}: {decision.reason}")
        self.decision = decision


def merge(decisions: list[Decision]) -> Decision:
    """The strictest decision of all; what the others said is kept as evidence."""
    if not decisions:
        return Decision("allow")
    strictest = max(decisions, key=lambda decision: VERDICTS.index(decision.verdict))
    others = tuple(
        f"also {d.rule}: {d.reason}" for d in decisions if d is not strictest and d.verdict != "allow" and d.reason
    )
    return strictest.replace(evidence=strictest.evidence + others) if others else strictest


def strictest(decisions: Iterable[Decision | None]) -> Decision | None:
    """Combine what several rules say of one event: the strictest decision, with the others in `also`.

    A question is moot once something is refused, so it is left out then. None if no rule says anything.
    """
    found = [decision for decision in decisions if decision is not None]
    if len(found) < 2:
        return found[0] if found else None
    winner = max(found, key=lambda decision: (VERDICTS.index(decision.verdict), decision.unheeded))
    others = [*winner.also]
    for decision in found:
        if decision is not winner:
            others += (decision.replace(also=()), *decision.also)
    if winner.verdict in ("deny", "halt"):
        others = [one for one in others if one.verdict != "ask"]
    code = next((one.code for one in found if one.code), "")
    combined: Decision = winner.replace(also=tuple(others), code=code)
    return combined
