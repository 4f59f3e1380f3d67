"""Begin and end the phases of one project, and carry out what a person decides when one is stuck.

Every action reads the state file, then the record and the circuits under the write lock, changes them in that one
transaction, and brings the file up to date after the commit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from fusewire.breakers.phase import choices
from fusewire.breakers.phase.action import Action
from fusewire.breakers.phase.detect import PHASES, circuit_of
from fusewire.breakers.phase.end import RESOLVE, START, Ending, PhaseEnd, next_phase
from fusewire.breakers.phase.metrics import require_comparable
from fusewire.breakers.phase.overview import PhasesOverview, open_circuit, overview
from fusewire.breakers.phase.schema import Taken, parse, record_of, render
from fusewire.breakers.phase.state import PhaseRecord
from fusewire.breakers.phase.state_file import FILE, StateFile, digest
from fusewire.engine.breaker import Breaker
from fusewire.util.errors import ConfigError, FusewireError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from fusewire.breakers.phase.detect import Values
    from fusewire.breakers.phase.report import OpenCircuit
    from fusewire.breakers.phase.state import KnownFailures
    from fusewire.engine.engine import BreakerTransaction
    from fusewire.testruns.run import Problem

Found = TypeVar("Found")

#: Bytes of a person's guidance.
GUIDANCE = 4000


@dataclass
class PhaseStart:
    """Whether a phase may be worked on, and what to know before."""

    phase: str
    state: str
    #: why it may not: the circuit that is open, or words; both empty if it may
    halted: OpenCircuit | None = None
    refused: str = ""
    #: what to know: why the circuit is watched, what a person said, what a person accepted
    warning: str = ""
    guidance: str = ""
    known: list[KnownFailures] = field(default_factory=list)
    next: list[str] = field(default_factory=list)

    @property
    def allowed(self) -> bool:
        return self.halted is None and not self.refused


class Phases:
    """The phase breaker of one project. Safe to use from several processes at once."""

    def __init__(self, breaker: Breaker) -> None:
        if breaker.root is None:
            raise FusewireError("phases need a project")
        self.breaker, self.engine, self.rules = breaker, breaker.engine, breaker.rules
        self.file = StateFile(breaker.root)
        #: what a person must know about the state file
        self.warnings: list[str] = []

    @classmethod
    def open(cls, project: str | os.PathLike[str] | None = None) -> Phases:
        """The phases of a project (default: the one around the current folder)."""
        return cls(Breaker.open(project=project))

    # -- around the work ------------------------------------------------------------------------------

    def begin(self, phase: str) -> PhaseStart:
        """May a phase be worked on? Nothing is counted; an open circuit of any phase says no."""
        return self._act(lambda action: self._begin(action.record, phase))

    def end(
        self,
        phase: str,
        metrics: Values,
        *,
        error: str = "",
        error_type: str = "",
        failing: Sequence[str] | None = None,
        problems: Sequence[Problem] = (),
        complete: bool = False,
    ) -> PhaseEnd:
        """One iteration of a phase is over.

        `failing` are the names of its failing tests, where they are known, and `problems` is what its test run failed
        with: that is the error if none is given.
        """
        require_comparable(phase, metrics)
        return self._act(
            lambda action: Ending(action, self.rules, phase, metrics, complete).end(
                error, error_type, failing, problems
            )
        )

    def _begin(self, record: PhaseRecord, phase: str) -> PhaseStart:
        refused = self._refusal(record, phase)
        if refused is not None:
            return refused
        at = PHASES.index(phase)
        # An earlier phase again is a new cycle.
        record.skipped = [name for name in record.skipped if PHASES.index(name) < at]
        record.finished = [name for name in record.finished if PHASES.index(name) <= at]
        guidance, face = record.guidance, record.face(phase)
        if guidance and phase not in guidance["given"]:
            record.guidance = {**guidance, "given": [*guidance["given"], phase]}
        # A file that was taken over has no reason for a state that is not open.
        watched = face.reason or f"No progress for {face.no_progress} iterations"
        warning = watched if face.state == "HALF_OPEN" else ""
        return PhaseStart(phase, face.state, warning=warning, guidance=guidance.get("text", ""), known=record.known)

    def _refusal(self, record: PhaseRecord, phase: str) -> PhaseStart | None:
        state, halted = record.face(phase).state, record.open_phase()
        if record.aborted:
            return PhaseStart(phase, state, refused=record.aborted, next=[START])
        if halted:
            advice = self.rules.policy(circuit_of(halted)).next
            return PhaseStart(phase, "OPEN", halted=open_circuit(record, halted), next=[*advice, RESOLVE])
        if phase in record.skipped:
            later = next_phase(phase)
            steps = [f"go on with {later}"] if later else []
            steps.append("an earlier phase that begins again starts a new cycle")
            return PhaseStart(
                phase, state, refused=f"{phase} was skipped by a person and is marked complete", next=steps
            )
        return None

    # -- acts of a person -----------------------------------------------------------------------------

    def resolve(
        self, choice: str, actor: str, guidance: str = "", *, meant: str = "", reason: str = ""
    ) -> choices.PhaseResolution:
        """One of the seed's four choices about the circuit that is open; a reason goes into the audit trail."""
        guidance = guidance.strip()
        if choice == "modify" and not guidance:
            raise FusewireError("modify needs guidance for the next attempt")
        if len(guidance.encode("utf-8", "replace")) > GUIDANCE:
            raise FusewireError(f"the guidance is too long; allowed: up to {GUIDANCE} bytes")

        def work(action: Action) -> choices.PhaseResolution:
            resolved = choices.resolve(action, choice, actor, guidance, meant)
            if reason:
                action.note(resolved.phase, "resolved", f"{choice}: {reason}", actor)
            return resolved

        return self._act(work)

    def start(self, actor: str, name: str = "") -> str:
        """Start from scratch; where the old state file is kept, if there was one."""
        kept, content = self.file.keep_old(self.engine.clock())
        self._act(lambda action: choices.start(action, actor, name), replacing=content)
        return kept

    def take(self, content: bytes, shown: str, actor: str, phase: str = "") -> str:
        """Take over a file of the seed's schema; the state that it gives."""
        taken = parse(content, shown, phase)
        _require_phase(taken, shown)
        self._act(lambda action: choices.take(action, taken, f"Imported from {shown}", actor), replacing=content)
        return taken.face.state

    def follow(self) -> list[str]:
        """Catch up with a circuit that another command has moved; what a person must know about the state file."""
        if PhaseRecord.recalled(self.breaker.store) is not None:  # else there is nothing yet that would lag behind
            self._act(lambda _: None)
        return self.warnings

    # -- looking --------------------------------------------------------------------------------------

    def view(self) -> dict[str, Any]:
        """The phases as they are now, as JSON; nothing is written."""
        return asdict(overview_of(self))

    def _recorded(self) -> PhaseRecord:
        """What is remembered; before anything is, what the next action would take over from a state file."""
        content, record = self.file.read(), PhaseRecord.recalled(self.breaker.store)
        if record is not None:
            if content is not None and digest(content) not in record.written:
                self.warnings.append(f"{FILE} was changed by somebody else: what Fusewire knows holds")
            return record
        try:
            return PhaseRecord() if content is None else record_of(parse(content, FILE), self.engine.clock())
        except ConfigError as error:
            self.warnings.append(f"{error}; the next action sets it aside")
            return PhaseRecord()

    # -- one action -----------------------------------------------------------------------------------

    def _act(self, work: Callable[[Action], Found], *, replacing: bytes | None = None) -> Found:
        """Do something in one transaction.

        `replacing` is the content of a file whose state a person replaces: no file is read back then, and overwriting
        one with this content loses nothing.
        """
        content = self.file.read()

        def act(transaction: BreakerTransaction) -> tuple[Found, list[str]]:
            stored, now = PhaseRecord.recalled(transaction.transaction), transaction.now
            before = stored and (render(stored), stored.to_data())
            action = Action(stored or PhaseRecord(since=now), transaction)
            warnings = (
                self._take_over(action, content) if stored is None and content is not None and replacing is None else []
            )
            action.follow_all()
            result = work(action)
            record = action.record
            rendered = render(record)
            if (rendered, record.to_data()) != before:
                known = [digest(replacing)] if replacing else []
                record.written = [*record.written, *known, digest(rendered)]
                record.remember(transaction.transaction, now)
            return result, warnings

        result, warnings = self.engine.run(act)
        self.warnings += warnings + self.file.write(self.breaker.store)
        return result

    def _take_over(self, action: Action, content: bytes) -> list[str]:
        """Use the state file, as the database knows nothing: it was deleted, or the file was written by hand."""
        try:
            taken = parse(content, FILE)
        except ConfigError as error:
            text = f"{error}; it is set aside, and the phases start with what the database knows"
            action.transaction.notice(text, action.now)
            return []
        if not any(map(action.is_stored, PHASES)):
            _require_phase(taken, FILE)
            if not taken.is_blank:
                action.put(taken.phase, taken.face, taken.error_hash, FILE, "")
        action.record = record_of(taken, action.now)
        action.record.written = [digest(content)]
        about = f"{taken.face.state} in {taken.phase}" if taken.phase else taken.face.state
        return [f"{FILE} was taken over ({about}): the database knew nothing of the phases"]


def overview_of(phases: Phases) -> PhasesOverview:
    """The phases as they are now; nothing is written."""
    return overview(phases._recorded(), phases.engine)


def _require_phase(taken: Taken, shown: str) -> None:
    if taken.phase or taken.is_blank:
        return
    raise FusewireError(
        f"{shown}: it says {taken.face.state}, but not of which phase; a person can take it over:"
        f" fusewire phase import {shown} --phase {'|'.join(PHASES)}"
    )
