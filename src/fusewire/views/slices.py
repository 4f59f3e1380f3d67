"""Describe slices and the attempts at their tests: counts, strategies, reports, scope."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, cast

from fusewire.breakers.attempt.report import missing, prior_attempts, reports, yaml_text
from fusewire.breakers.attempt.scope.sources import NoScope
from fusewire.breakers.attempt.scope.state import recall_active
from fusewire.breakers.attempt.state import RecoveryOption, TestRecord, slice_times
from fusewire.breakers.attempt.tracker import Attempts
from fusewire.core import meters
from fusewire.core.events import identifier
from fusewire.util.durations import format_time, show_time
from fusewire.util.errors import FusewireError
from fusewire.util.json_types import Count, Phase, Seconds, State, Time, about

if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.state import Justification
    from fusewire.breakers.attempt.state import FailedAttempt, InfrastructureError, SliceRecord
    from fusewire.engine.breaker import Breaker
    from fusewire.stores.rows import CircuitRow

#: Slices of a page, unless somebody asks for more or fewer.
SHOWN = 20

#: Of each slice its patterns, the files that are held against its scope, and its reports.
_PATTERNS = 200
_FILES = 500
_REPORTS = 10

#: Characters of what a runner said, its end; the rest is in the file that `output` names.
_ERROR = 4000

SliceState = Literal["stopped", "under way", "waiting", "finished"]
TestState = Literal["stopped", "failing", "passed", "infra", "started"]

#: Those that need a person first.
_ORDER: dict[SliceState, int] = {"stopped": 0, "under way": 1, "waiting": 2, "finished": 3}


@dataclass(frozen=True)
class StopDecision:
    """A decision as `check --json` has it."""

    decision: Literal["ALLOWED", "WARN", "BLOCKED"]
    id: str | None
    state: State
    phase: Phase
    rule: str | None
    reason: str
    evidence: list[str]
    retry_after: Seconds | None
    next: list[str]
    lease: str | None
    tripped: bool
    alert: bool


@dataclass(frozen=True)
class OutsideFile:
    """A file that was changed outside of the scope."""

    file: str
    justification: str


class ReportedAttempt(TypedDict):
    """A failed attempt as a report has it."""

    attempt: Count
    strategy: str
    files: list[str]
    result: str


class ReportedError(TypedDict):
    """A run that was no attempt."""

    kind: str
    reason: str


class ReportFields(TypedDict):
    """The fields of the seed's report of one test; a text stands for what does not apply."""

    slice_id: str
    test_name: str
    test_expectation: str
    actual_error: str
    attempt_log: list[ReportedAttempt]
    cumulative_files_modified: list[str] | str
    scope_violations: list[OutsideFile] | str
    best_hypothesis: str
    specific_question: str
    recovery_options: list[RecoveryOption]


class DiagnosticReport(ReportFields, total=False):
    """The same, where tests could not run with the reasons."""

    infrastructure_errors: list[ReportedError]


@dataclass(frozen=True)
class AttemptLine:
    """One failed attempt at a test."""

    attempt: Count
    at: Time | None
    strategy: str
    error: str
    files: list[str]
    output: str | None


@dataclass(frozen=True)
class TestView:
    """One test of a slice."""

    __test__ = False  # no test class, whatever pytest thinks

    name: str
    state: TestState
    attempts: Count
    limit: Count
    began: Time | None
    passed_at: Time | None
    description: str
    files: list[str]
    #: what the runner said last, its end
    error: str
    log: list[AttemptLine]
    report: DiagnosticReport | None
    #: the same as YAML
    report_text: str | None
    #: fields that are missing in a report that was begun
    report_lacks: list[str]


@dataclass(frozen=True)
class FailedRun:
    """An error that was no attempt."""

    test: str
    kind: str
    reason: str
    evidence: str
    at: Time


@dataclass(frozen=True)
class PatternSource:
    """A pattern of a scope, and where it comes from."""

    pattern: str
    source: str


@dataclass(frozen=True)
class ScopeView:
    """The files of a slice, or why they are not known."""

    patterns: list[PatternSource]
    explicit: bool
    problem: str | None


@dataclass(frozen=True)
class JustifiedFile:
    """Why one file outside of the scope has to change."""

    file: str
    test: str
    reason: str
    relationship: str
    at: Time


@dataclass(frozen=True)
class SliceView:
    """One slice of work with the attempts at its tests."""

    id: str
    #: when something was last done
    at: Time | None
    state: SliceState
    failures: Count
    limit: Count
    retries: Count
    #: strictest first
    stops: list[StopDecision]
    arch_stop: str | None
    tests: list[TestView]
    infrastructure: list[FailedRun]
    #: None where nobody has defined one
    scope: ScopeView | None
    violations: list[OutsideFile] | None
    justifications: list[JustifiedFile]
    #: what a fresh implementer is told of the attempts before the last retry
    prior: str | None


@dataclass(frozen=True)
class SliceCounts:
    """Slices by state."""

    all: Count
    stopped: Count
    under_way: Count
    waiting: Count
    finished: Count


@dataclass(frozen=True)
class LockedSlice:
    """A slice whose scope lock holds; in every session if none is named."""

    slice: str
    sessions: list[str] | None


@dataclass(frozen=True)
class AttemptsView:
    """A page of the slices of a project: stopped ones first, then those under way, the newest first."""

    slices: list[SliceView]
    left_out: Annotated[Count, about("how many more there are behind these")]
    counts: Annotated[SliceCounts, about("slices by state")]
    #: the oldest first
    under_way: list[LockedSlice]
    #: why they are not known
    problem: str | None


def attempts_view(breaker: Breaker, limit: int = SHOWN, offset: int = 0) -> AttemptsView:
    """Nothing is written."""
    attempts = Attempts(breaker)
    rows = _rows(breaker)
    times = slice_times(breaker.store)
    names = {*times, *(name.split("/")[1] for name in rows)}
    states = {name: _state(attempts.record(name), _is_stopped(name, rows)) for name in names}
    counts = Counter(states.values())
    in_order = sorted(names, key=lambda name: (_ORDER[states[name]], -times.get(name, 0.0), name))
    under_way, problem = _under_way(breaker)
    return AttemptsView(
        slices=[_slice(attempts, name, rows, times.get(name)) for name in in_order[offset : offset + limit]],
        left_out=max(0, len(in_order) - offset - limit),
        counts=SliceCounts(len(in_order), *(counts[state] for state in _ORDER)),
        under_way=under_way,
        problem=problem,
    )


def slice_view(breaker: Breaker, slice_id: str) -> SliceView:
    """One slice; NotFound if nothing is known of it. Nothing is written."""
    attempts = Attempts(breaker)
    attempts.known(slice_id)
    return _slice(attempts, slice_id, _rows(breaker), slice_times(breaker.store).get(slice_id))


def _rows(breaker: Breaker) -> dict[str, CircuitRow]:
    """All at once: a question for each test would be hundreds."""
    return {row.id: row for row in breaker.store.circuits() if row.kind == "attempt"}


def _circuit(slice_id: str, test: str | None = None) -> str:
    return identifier(f"attempt/{slice_id}/{test}" if test else f"attempt/{slice_id}")


def _is_stopped(slice_id: str, rows: dict[str, CircuitRow]) -> bool:
    mine = f"attempt/{slice_id}"
    return any(row.phase == "open" for row in rows.values() if row.id == mine or row.id.startswith(f"{mine}/"))


def _state(record: SliceRecord, stopped: bool) -> SliceState:
    if stopped:
        return "stopped"
    if record.finished:
        return "finished"
    return "under way" if record.tests else "waiting"


def _slice(attempts: Attempts, slice_id: str, rows: dict[str, CircuitRow], at: float | None) -> SliceView:
    record = attempts.record(slice_id)
    scope, violations, justifications = _scope(attempts, slice_id, record)
    return SliceView(
        id=slice_id,
        at=show_time(at),
        state=_state(record, _is_stopped(slice_id, rows)),
        failures=_level(attempts, rows, slice_id),
        limit=attempts.limits(slice_id)[1],
        retries=record.life,
        stops=[StopDecision(**stop.to_json()) for stop in attempts.stops(slice_id)],
        arch_stop=record.arch_stop["reason"] if record.arch_stop else None,
        tests=_tests(attempts, slice_id, record, rows),
        infrastructure=[_failed_run(one) for one in record.infrastructure],
        scope=scope,
        violations=violations,
        justifications=justifications,
        prior=prior_attempts(record.prior) or None,
    )


def _level(attempts: Attempts, rows: dict[str, CircuitRow], slice_id: str, test: str | None = None) -> int:
    circuit = _circuit(slice_id, test)
    policy = attempts.breaker.rules.policy(circuit)
    state = attempts.engine.state_in(rows.get(circuit), circuit, policy)
    meter = policy.meters[0]
    return int(meters.level(meter, state.meters.get(meter.name, []), attempts.engine.clock()))


def _tests(attempts: Attempts, slice_id: str, record: SliceRecord, rows: dict[str, CircuitRow]) -> list[TestView]:
    """In the order in which they were started."""
    limit, _ = attempts.limits(slice_id)
    begun = [name for name in record.failing() if record.tests[name].report][-_REPORTS:]
    lacking = missing(attempts, slice_id, begun) if begun else {}
    complete = [name for name in begun if name not in lacking]
    made = dict(zip(complete, reports(attempts, slice_id, complete), strict=True)) if complete else {}
    return [
        TestView(
            name=name,
            state=_test_state(test, rows.get(_circuit(slice_id, name))),
            attempts=_level(attempts, rows, slice_id, name),
            limit=limit,
            began=show_time(test.began or None),
            passed_at=show_time(test.passed_at or None),
            description=test.description,
            files=test.files_touched,
            error=test.last_error[-_ERROR:],
            log=[_attempt(one) for one in test.log],
            report=cast("DiagnosticReport | None", made.get(name)),
            report_text=yaml_text(made[name]) if name in made else None,
            report_lacks=lacking.get(name, []),
        )
        for name, test in sorted(record.tests.items(), key=lambda item: item[1].number)
    ]


def _test_state(test: TestRecord, row: CircuitRow | None) -> TestState:
    if row is not None and row.phase == "open":
        return "stopped"
    if test.log:
        return "failing"
    return "passed" if test.last_result == "pass" else "infra" if test.last_result == "infra" else "started"


def _attempt(one: FailedAttempt) -> AttemptLine:
    at = show_time(one.get("at"))
    return AttemptLine(one["attempt"], at, one["strategy"], one["result"], one["files"], one["output"] or None)


def _failed_run(one: InfrastructureError) -> FailedRun:
    return FailedRun(one["test"], one["kind"], one["reason"], one["evidence"], format_time(one["at"]))


def _justified(one: Justification) -> JustifiedFile:
    return JustifiedFile(one["file"], one["test"], one["reason"], one["relationship"], format_time(one["at"]))


def _scope(
    attempts: Attempts, slice_id: str, record: SliceRecord
) -> tuple[ScopeView | None, list[OutsideFile] | None, list[JustifiedFile]]:
    """The scope, the files that were changed outside of it, and those of them that were justified."""
    lock = attempts.lock
    justified: list[JustifiedFile] = []
    try:
        justified = [_justified(one) for one in lock.justifications(slice_id)]
        scope = lock.scope(slice_id)
    except NoScope:
        return None, None, justified
    except FusewireError as error:
        return ScopeView([], False, str(error)), None, justified
    patterns = [PatternSource(pattern, source) for pattern, source in scope.entries[:_PATTERNS]]
    touched = dict.fromkeys(file for test in record.tests.values() for file in _files(test))
    outside = lock.violations(slice_id, list(touched)[:_FILES])
    violations = None if outside is None else [OutsideFile(**one) for one in outside]
    return ScopeView(patterns, scope.explicit, None), violations, justified


def _files(test: TestRecord) -> list[str]:
    return [*(file for line in test.log for file in line["files"]), *test.files_touched]


def _under_way(breaker: Breaker) -> tuple[list[LockedSlice], str | None]:
    try:
        active = recall_active(breaker.store)
    except FusewireError as error:
        return [], str(error)
    return [LockedSlice(name, _named(sessions)) for name, sessions in active.items()], None


def _named(sessions: list[str | None]) -> list[str] | None:
    """The sessions; None if every one is meant."""
    named = [one for one in sessions if one is not None]
    return named if len(named) == len(sessions) else None
