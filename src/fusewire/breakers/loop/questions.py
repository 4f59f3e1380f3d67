"""Find the question that a loop waits for a person to answer, and how often it was asked in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.core.decision import Decision
from fusewire.stores.rows import AuditRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.loop.loop import Loop
    from fusewire.breakers.loop.state import HistoryEntry
    from fusewire.engine.engine import BreakerTransaction

#: What stands before the question in the history.
ON_HUMAN = "blocked on human: "

#: So often in a row the same question is asked before a run ends: the second time nothing else is left to do.
MOST_ASKED = 2

#: The circuit that counts iterations which bring no judgement.
CIRCUIT = "loop/neutral"

#: Characters of a question that are repeated to the agent.
_LONGEST = 300

NEXT = "answer the question in the prompt or in the project's files, then start the run again"

#: The cause of an audit row: a loop ended because only a person can answer.
ASKED = "asked"


def question_of(entry: HistoryEntry) -> str:
    """What the iteration asked instead of working; empty if it asked nothing, or did work as well."""
    asks = entry["kind"] == "neutral" and entry["blocked"].startswith(ON_HUMAN)
    return entry["blocked"].removeprefix(ON_HUMAN) if asks else ""


def times_asked(history: Sequence[HistoryEntry]) -> int:
    """How often the newest question was asked in a row: outages between do not matter, other questions and work do."""
    question = question_of(history[-1]) if history else ""
    times = 0
    for entry in reversed(history if question else ()):
        if entry["kind"] != "neutral" or _words(question_of(entry) or question) != _words(question):
            break
        times += bool(question_of(entry))
    return times


def note_for_agent(question: str) -> str:
    """What an agent is told with its next prompt, after it has asked once."""
    return (
        f"You asked: {question[:_LONGEST]} No person answers while the loop runs. Do what does not depend on the"
        " answer. If nothing is left, ask again: the loop then ends, and a person is told."
    )


def refusal(times: int) -> Decision:
    """Why the run ends: nobody but a person can go on."""
    reason = f"the same question was asked {times} times in a row (limit {MOST_ASKED})"
    return Decision("deny", rule="loop.blocked_on_human", reason=reason, next=(NEXT,))


def record_question(loop: Loop, question: str, times: int) -> None:
    """Write down that the loop ended with a question, so that people are notified."""

    def record(work: BreakerTransaction) -> None:
        phase = work.state(CIRCUIT).phase
        reason = f"blocked on a human, asked {times} times in a row: {question}"
        work.transaction.audit(AuditRow(CIRCUIT, work.now, phase, phase, ASKED, reason, ""))

    loop.engine.run(record)


def _words(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
