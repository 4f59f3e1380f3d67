"""Whether an answer ends with a question to the user: then it waits for a person and is not stuck."""

from __future__ import annotations

import re

from fusewire.agents.output.status_block import without_status
from fusewire.core.events import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.agents.output.answer import StatusBlock

_WAITING = ("BLOCKED", "WAITING", "NEEDS_INPUT")
_SENTENCE = re.compile(r"(?<=[.!?:])[*_\"')\]`]*\s+")
_LONGEST = 500


def question_in(text: str, status: StatusBlock | None) -> str | None:
    """The last sentence if it is a question; else what a block that says it waits recommends."""
    asked = _last_question(without_status(text))
    if asked or status is None or status.status not in _WAITING:
        return asked
    return status.recommendation or status.status


def _last_question(text: str) -> str | None:
    """Rhetorical ones stand in the middle; the last sentence of the last paragraph is meant."""
    text = text[-8000:].rstrip(" \t\r\n*_`~-")
    paragraph = re.split(r"\n[ \t]*\n", text)[-1]
    sentence = _SENTENCE.split(paragraph.strip())[-1].strip()
    if not sentence.rstrip("*_\"')]` ").endswith("?"):
        return None
    return plain(" ".join(sentence.split()), _LONGEST)
