"""End an iteration of a phase: judge it, send its circuit the signals, remember it, and make the status."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusewire.breakers.phase.action import CLOSING, tagged, threshold
from fusewire.breakers.phase.detect import PHASES, circuit_of, gate, judge
from fusewire.breakers.phase.report import PhaseStatus
from fusewire.breakers.phase.state import NAMES
from fusewire.core.events import NAME_LIMIT, TEXT_LIMIT, plain
from fusewire.testruns.masks import normalised
from fusewire.testruns.run import type_in
from fusewire.testruns.text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.breakers.phase.action import Action
    from fusewire.breakers.phase.detect import Values
    from fusewire.breakers.phase.state import Face, PhaseRecord
    from fusewire.config.rules import Rules
    from fusewire.testruns.run import Problem

#: Characters of an error that are compared.
_COMPARED = 20_000

OPENED = "Circuit breaker opened. Review and provide guidance."

#: What a person can choose when a circuit is open, and where to do it.
CHOICES = ("reset", "skip", "abort", "modify")
RESOLVE = f"a person can run: fusewire phase resolve {'|'.join(CHOICES)}"
START = "a person can start anew: fusewire phase start"


@dataclass
class PhaseEnd:
    """What an iteration was worth, and where the phase stands now."""

    status: PhaseStatus
    progress: bool
    #: the progress in words, and what keeps a phase that was called complete from being so
    reasons: list[str]
    incomplete: str = ""
    log: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)

    @property
    def blocked(self) -> bool:
        return self.status.status == "BLOCKED"


def error_hash(message: str, kind: str = "") -> str:
    """The seed's SHA256(error_message + error_type), of what does not vary between two prints of one error."""
    message = message[:_COMPARED]
    kind = kind or type_in(plain_text(message).strip(), "error")
    return hashlib.sha256((normalised(message) + kind).encode("utf-8", "replace")).hexdigest()


class Ending:
    """One end of a phase, inside an action."""

    def __init__(self, action: Action, rules: Rules, phase: str, metrics: Values, complete: bool) -> None:
        self.action, self.record, self.rules = action, action.record, rules
        self.phase, self.metrics, self.complete = phase, metrics, complete

    def end(self, error: str, error_type: str, failing: Sequence[str] | None, problems: Sequence[Problem]) -> PhaseEnd:
        record, phase = self.record, self.phase
        record.phase = phase
        record.iterations = {**record.iterations, phase: record.iterations.get(phase, 0) + 1}
        judged = judge(phase, record.marks[phase], self.metrics)
        record.before = {**record.before, phase: record.marks[phase]}
        record.marks = {**record.marks, phase: judged.marks}
        if self.metrics:
            record.metrics = {**record.metrics, phase: dict(self.metrics)}
            record.failing = {**record.failing, phase: [plain(name, NAME_LIMIT) for name in failing or ()][:NAMES]}
        missing = gate(phase, judged.marks, self.metrics, _accepted(record, failing))
        reasons = self._with_completion(judged.reasons, missing)
        blocked = record.aborted or record.open_phase()
        self._send_progress(reasons, bool(blocked))
        if problems and not error and self._is_error(reasons, failing):
            error, error_type = "; ".join(one.message for one in problems), problems[0].type
        if error:
            self._send_error(error, error_hash(error, error_type), bool(blocked))
        if phase in record.guidance.get("given", ()):
            record.guidance = {}
        status = self._status(missing)
        steps = [START] if record.aborted else [RESOLVE] if status.blockers else []
        return PhaseEnd(status, bool(reasons), reasons, missing if self.complete else "", self.action.log, steps)

    def _is_error(self, reasons: list[str], failing: Sequence[str] | None) -> bool:
        """Whether failing tests are an error: in RED they are the aim, and those that a person knows of are none."""
        if self.phase == "RED":
            return not reasons
        return failing is None or self.metrics["tests_failing"] > _accepted(self.record, failing)

    def _with_completion(self, reasons: list[str], missing: str) -> list[str]:
        """To be complete is progress, but only once; it must not keep the agent out of the next phase."""
        record, phase = self.record, self.phase
        if reasons:
            record.finished = [name for name in record.finished if name != phase]
        if not self.complete or missing or phase in record.finished:
            return reasons
        record.finished = [*record.finished, phase]
        return reasons or ["phase complete"]

    def _send_progress(self, reasons: list[str], blocked: bool) -> None:
        action, phase = self.action, self.phase
        if reasons:
            state = self.record.face(phase).state
            self.record.add(action.now, "progress", phase, state, state, ", ".join(reasons))
        if blocked:  # it is recorded; but only a person moves a circuit that halts
            return
        if reasons:
            before, after = action.send(phase, "good", "progress", text=", ".join(reasons))
        else:
            given = ", ".join(f"{name} {value}" for name, value in self.metrics.items())
            before, after = action.send(phase, "bad", "no_progress", text=given or "nothing was measured")
        face = self.record.face(phase)
        if (before, after) == ("HALF_OPEN", "CLOSED"):
            action.log.append(CLOSING)
        elif after == "HALF_OPEN" != before:
            action.log.append(f"WARNING: No progress detected for {face.no_progress} iterations")
        elif after == "OPEN" != before:
            limit = threshold(self.rules.policy(circuit_of(phase)), "no_progress")
            action.log.append(f"CIRCUIT OPEN: Execution halted after {limit} no-progress iterations")

    def _send_error(self, message: str, digest: str, blocked: bool) -> None:
        action, record, phase = self.action, self.record, self.phase
        text = plain(" ".join(plain_text(message[:_COMPARED]).split()), TEXT_LIMIT)
        record.errors = {**record.errors, phase: {"hash": digest, "text": text}}
        state = record.face(phase).state
        record.add(action.now, "error", phase, state, state, text)
        if blocked:
            return
        before, after = action.send(phase, "bad", "error", fingerprint=tagged(digest), text=text)
        if after == "OPEN" != before:
            action.log.append(f"CIRCUIT OPEN: Same error repeated {record.face(phase).same_error} times")

    # -- the status -----------------------------------------------------------------------------------

    def _status(self, missing: str) -> PhaseStatus:
        record, metrics = self.record, self.metrics
        halted = record.open_phase()
        face = record.face(halted or self.phase)
        blockers = _blockers(record, halted, self.phase, face)
        can_exit = self.complete and not missing and not blockers
        policy = self.rules.policy(circuit_of(halted or self.phase))
        passing, failing, skipped = (
            metrics.get(name, 0) for name in ("tests_passing", "tests_failing", "tests_skipped")
        )
        total = metrics.get("tests_total", passing + failing + skipped)
        limit = threshold(policy, "no_progress")
        progress = metrics.get("progress_percent", int(100 * passing / total) if total else 0)
        return PhaseStatus(
            at=self.action.now,
            phase=self.phase,
            status="BLOCKED" if blockers else "COMPLETE" if can_exit else "IN_PROGRESS",
            iteration=record.iterations[self.phase],
            progress_percent=100 if can_exit else progress,
            tests=(total, passing, failing, skipped),
            files=(metrics.get("files_created", 0), metrics.get("files_modified", 0), metrics.get("files_deleted", 0)),
            state=face.state,
            no_progress=face.no_progress,
            same_error=face.same_error,
            threshold=limit,
            reason=face.reason,
            gate_1=not missing,
            gate_2=self.complete,
            can_exit=can_exit,
            recommendation=self._recommendation(halted, face, can_exit, limit, policy.next),
            blockers=blockers,
        )

    def _recommendation(self, halted: str, face: Face, can_exit: bool, limit: int, advice: tuple[str, ...]) -> str:
        if self.record.aborted:
            return f"Execution aborted, {START}"
        if halted:
            return f"{OPENED} {advice[0]}" if halted == "GREEN" and advice else OPENED
        if can_exit:
            later = next_phase(self.phase)
            return f"Phase complete. Go on with {later}." if later else "Phase complete."
        if face.state == "HALF_OPEN":
            return f"{face.reason}. Change the approach: the circuit opens at {limit}."
        return "Continue."


def _accepted(record: PhaseRecord, failing: Sequence[str] | None) -> int:
    """How many of the failing tests a person has accepted by a skip: by their names where these are known."""
    if not record.known:
        return 0
    names = {name for entry in record.known for name in entry["tests"]}
    if failing and names:
        return len(names.intersection(failing))
    return int(record.known[-1]["count"])


def _blockers(record: PhaseRecord, halted: str, phase: str, face: Face) -> list[str]:
    found = [record.aborted] if record.aborted else []
    if halted:
        found.append(face.reason if halted == phase else f"{halted} is open: {face.reason}")
    return found


def next_phase(phase: str) -> str:
    """The phase after this one; empty after the last."""
    return (*PHASES, "")[PHASES.index(phase) + 1]
