"""What a decision comes to, as one compares it in a test."""

from __future__ import annotations

from fusewire.core.decision import Decision
from fusewire.core.messages import person_message


def said(decision: Decision | None) -> tuple[str, str]:
    """The verdict and all that is said; `allow` and nothing where no rule speaks."""
    return ("allow", "") if decision is None else (decision.verdict, person_message(decision))
