"""What a decision comes to, as one compares it in a test."""

from __future__ import annotations

import re

from fusewire.core.decision import Decision
from fusewire.core.messages import person_message


def said(decision: Decision | None) -> tuple[str, str]:
    """The verdict and all that is said; `allow` and nothing where no rule speaks."""
    return ("allow", "") if decision is None else (decision.verdict, person_message(decision))


def without_code(message: str) -> str:
    """A refusal without its last line, under which it has been written down: another one each time."""
    text, count = re.subn(r"\nWhy: fusewire why [2-9A-Z]{5}$", "", message)
    assert count == 1, message
    return text
