"""What the guard says of one command or one tool call."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Verdict:
    """What the guard says, in the words of docs/json.md."""

    __slots__ = ("affected", "decision", "evidence", "kind", "next", "reason", "rule")

    def __init__(
        self,
        decision: str,
        rule: str = "",
        reason: str = "",
        evidence: tuple[str, ...] = (),
        affected: tuple[str, ...] = (),
        next: tuple[str, ...] = (),
    ) -> None:
        self.decision = decision
        self.rule = rule
        self.reason = reason
        self.evidence = evidence
        self.affected = affected
        self.next = next

    @property
    def allowed(self) -> bool:
        return self.decision != "BLOCKED"

    def to_json(self) -> dict[str, Any]:
        return {
            "decision": self.decision,
            "state": "CLOSED",
            "phase": "closed",
            "rule": self.rule or None,
            "reason": self.reason,
            "evidence": list(self.evidence),
            "retry_after": None,
            "next": list(self.next),
            "affected": list(self.affected),
        }

    def message(self) -> str:
        """For the agent: what, why, and what else could be done."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The same, line by line: a reason or a name may have line ends of its own."""
        lines = [f"{self.decision} {self.rule}: {self.reason}.", *self.evidence]
        if self.next:
            lines.append(f"Next: {'; '.join(self.next)}.")
        return lines
