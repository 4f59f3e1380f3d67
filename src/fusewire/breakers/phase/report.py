"""The blocks of a phase as other tools parse them, and its state for people.

Text from outside (an error, guidance, the name of a test) is put on one line and cannot look like the end of a block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusewire.util.durations import counted, number, show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.phase.overview import PhasesOverview, ShownFailures
    from fusewire.breakers.phase.state import KnownFailures
    from fusewire.util.fast_json import JsonObject

#: Characters of a text in a block.
_TEXT = 300

_DELIMITER = re.compile(r"-{3,}(?=\w)|(?<=\w)-{3,}")


def one_line(text: str, limit: int = _TEXT) -> str:
    """Without line ends and control characters, without anything that could be a delimiter, and not endless."""
    text = " ".join(text.split())
    text = _DELIMITER.sub("--", "".join(char for char in text if char.isprintable()))
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


@dataclass
class OpenCircuit:
    """What a person must know to decide about an open phase."""

    phase: str
    reason: str
    iterations: int
    #: the phase's own metric: name, value, total where there is one, and what it was before the last iteration
    metric: str
    value: float
    total: float | None
    before: float
    last_error: str = ""

    def to_json(self) -> JsonObject:
        return {
            "phase": self.phase,
            "reason": self.reason,
            "iterations": self.iterations,
            "metric": {"name": self.metric, "value": self.value, "total": self.total, "before": self.before},
            "last_error": self.last_error or None,
            "options": ["reset", "skip", "abort", "modify"],
        }


def open_block(circuit: OpenCircuit) -> str:
    """The seed's CIRCUIT_BREAKER_OPEN."""
    total = "" if circuit.total is None else f"/{number(circuit.total)}"
    moved = "no change" if circuit.value == circuit.before else f"was {number(circuit.before)}"
    what = "mark tests as known failures" if circuit.phase == "GREEN" else "mark as complete"
    return f"""\
---CIRCUIT_BREAKER_OPEN---
PHASE: {circuit.phase}
REASON: {one_line(circuit.reason)}
ITERATIONS: {circuit.iterations}
{circuit.metric.upper()}: {number(circuit.value)}{total} ({moved})
LAST_ERROR: {one_line(circuit.last_error) or "none"}

OPTIONS:
1. [R]eset and retry with current approach
2. [S]kip {circuit.phase} phase ({what})
3. [A]bort execution
4. [M]odify approach (provide new guidance)

Enter choice:
---END_CIRCUIT_BREAKER_OPEN---"""


@dataclass
class PhaseStatus:
    """One iteration of a phase, after it has ended."""

    at: float
    phase: str
    status: str
    iteration: int
    progress_percent: float
    #: total, passing, failing, skipped; created, modified, deleted
    tests: tuple[float, float, float, float]
    files: tuple[float, float, float]
    state: str
    no_progress: int
    same_error: int
    threshold: int
    reason: str
    gate_1: bool
    gate_2: bool
    can_exit: bool
    recommendation: str
    blockers: list[str] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        return {
            "timestamp": show_time(int(self.at)),
            "phase": self.phase,
            "status": self.status,
            "iteration": self.iteration,
            "progress_percent": self.progress_percent,
            "tests": dict(zip(("total", "passing", "failing", "skipped"), self.tests, strict=True)),
            "files": dict(zip(("created", "modified", "deleted"), self.files, strict=True)),
            "circuit_breaker": {
                "state": self.state,
                "no_progress_count": self.no_progress,
                "same_error_count": self.same_error,
                "threshold": self.threshold,
                "reason": self.reason or None,
            },
            "dual_gate": {"gate_1": self.gate_1, "gate_2": self.gate_2, "can_exit": self.can_exit},
            "blockers": self.blockers,
            "exit_signal": self.can_exit,
            "recommendation": self.recommendation,
        }


def status_block(status: PhaseStatus) -> str:
    """PRP_PHASE_STATUS, as the tools around it parse it."""
    total, passing, failing, skipped = map(number, status.tests)
    created, modified, deleted = map(number, status.files)
    blockers = "\n".join(f"  - {one_line(text)}" for text in status.blockers or ["none"])
    return f"""\
---PRP_PHASE_STATUS---
TIMESTAMP: {show_time(int(status.at))}
PHASE: {status.phase}
STATUS: {status.status}
ITERATION: {status.iteration}
PROGRESS_PERCENT: {number(status.progress_percent)}

TESTS:
  TOTAL: {total}
  PASSING: {passing}
  FAILING: {failing}
  SKIPPED: {skipped}

FILES:
  CREATED: {created}
  MODIFIED: {modified}
  DELETED: {deleted}

CIRCUIT_BREAKER:
  STATE: {status.state}
  NO_PROGRESS_COUNT: {status.no_progress}
  SAME_ERROR_COUNT: {status.same_error}
  THRESHOLD: {status.threshold}
  REASON: {one_line(status.reason) or "none"}

DUAL_GATE:
  GATE_1: {_true_or_false(status.gate_1)}
  GATE_2: {_true_or_false(status.gate_2)}
  CAN_EXIT: {_true_or_false(status.can_exit)}

BLOCKERS:
{blockers}

EXIT_SIGNAL: {_true_or_false(status.can_exit)}
RECOMMENDATION: {one_line(status.recommendation)}
---END_PRP_PHASE_STATUS---"""


def _true_or_false(yes: bool) -> str:
    return "true" if yes else "false"


def known_lines(known: Sequence[KnownFailures | ShownFailures]) -> list[str]:
    """The failures that a person has accepted, for the agent."""
    lines = []
    for skip in known:
        count, names = skip["count"], [one_line(name) for name in skip["tests"]]
        lines.append(f"Known failures, skipped with {skip['phase']}: {count}")
        lines += [f"  - {name}" for name in names]
        if names and count > len(names):
            lines.append(f"  - and {count - len(names)} more")
    return lines


def overview_lines(view: PhasesOverview) -> list[str]:
    """The state of all four phases, for a person."""
    about = f" ({one_line(view.name)})" if view.name else ""
    now = f"{view.state} in {view.phase}" if view.phase else f"{view.state}, nothing has ended yet"
    lines = [f"Phases{about}: {now}"]
    if view.aborted:
        lines.append(f"  aborted: {one_line(view.aborted)}; a person can start anew: fusewire phase start")
    for row in view.phases:
        state = row.state + (", skipped" if row.skipped else "")
        marks = ", ".join(f"{name} {number(value)}" for name, value in row.last_progress_metric.items())
        lines.append(
            f"  {row.phase:<8}  {state}; {counted(row.iterations, 'iteration')};"
            f" no progress {row.no_progress_count} of {row.no_progress_threshold},"
            f" same error {row.same_error_count} of {row.same_error_threshold}; best: {marks}"
        )
        if row.reason:
            lines.append(f"            {one_line(row.reason)}")
        if row.last_error:
            lines.append(f"            last error: {one_line(row.last_error)}")
    lines += known_lines(view.known_failures)
    if view.guidance:
        lines.append(f"Guidance for the next begin: {one_line(view.guidance)}")
    for entry in view.history[-5:]:
        moved = "" if entry["from_state"] == entry["to_state"] else f" {entry['from_state']} -> {entry['to_state']}:"
        lines.append(
            f"{entry['timestamp']}  {entry['phase'] or '-'} {entry['event']}{moved} {one_line(entry['reason'])}"
        )
    return lines
