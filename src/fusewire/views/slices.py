"""Slices and the attempts at their tests as a page shows them: counts, what was tried, reports, and the scope."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fusewire.breakers.attempt.report import missing, prior_attempts, reports, yaml_text
from fusewire.breakers.attempt.scope.sources import NoScope
from fusewire.breakers.attempt.scope.state import recall_active
from fusewire.breakers.attempt.state import TestRecord, slice_times
from fusewire.breakers.attempt.tracker import Attempts
from fusewire.core import meters
from fusewire.core.events import identifier
from fusewire.util.durations import show_time
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.attempt.state import SliceRecord
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

_ORDER = {"stopped": 0, "under way": 1, "waiting": 2, "finished": 3}


def attempts_view(breaker: Breaker, limit: int = SHOWN, offset: int = 0) -> dict[str, Any]:
    """Nothing is written; times are ISO 8601 in UTC.

    slices     as `slice_view` has them, without the first `offset`: stopped ones first, then those under way, the
               newest first
    left_out   how many more there are behind these
    counts     how many there are in each state, and `all`
    under_way  those whose scope lock holds, the oldest first, each with its `sessions` (null is every session)
    problem    why the last cannot be told, or null
    """
    attempts = Attempts(breaker)
    rows = _rows(breaker)
    times = slice_times(breaker.store)
    names = {*times, *(name.split("/")[1] for name in rows)}
    states = {name: _state(attempts.record(name), _is_stopped(name, rows)) for name in names}
    counts = Counter(states.values())
    in_order = sorted(names, key=lambda name: (_ORDER[states[name]], -times.get(name, 0.0), name))
    under_way, problem = _under_way(breaker)
    return {
        "slices": [_slice(attempts, name, rows, times.get(name)) for name in in_order[offset : offset + limit]],
        "left_out": max(0, len(in_order) - offset - limit),
        "counts": {"all": len(in_order), **{state.replace(" ", "_"): counts[state] for state in _ORDER}},
        "under_way": under_way,
        "problem": problem,
    }


def slice_view(breaker: Breaker, slice_id: str) -> dict[str, Any]:
    """One slice; NotFound if nothing is known of it. Nothing is written.

    `id`, `at` (when something was last done), `state` (`stopped`, `under way`, `waiting` for a test, `finished`),
    `failures` of `limit`, `retries`, `stops` (decisions as of `check`, strictest first), `arch_stop` (or null), and
    tests           `name`, `state` (`stopped`, `failing`, `passed`, `infra`, `started`), `attempts` of `limit`,
                    `began`, `passed_at`, `description`, `files`, `error` (its end), `log` (`attempt`, `at`, `strategy`,
                    `error`, `files`, `output`), `report` (the fields, or null), `report_text` (YAML, or null),
                    `report_lacks` (fields that are missing in one that was begun)
    infrastructure  errors that were no attempts: `test`, `kind`, `reason`, `evidence`, `at`
    scope           `patterns` (`pattern`, `source`), `explicit`, `problem`; or null where nobody has defined one
    violations      files outside of it: `file`, `justification`; null without a scope
    justifications  `file`, `test`, `reason`, `relationship`, `at`
    prior           what a fresh implementer is told of the attempts before the last retry, or null
    """
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


def _state(record: SliceRecord, stopped: bool) -> str:
    if stopped:
        return "stopped"
    if record.finished:
        return "finished"
    return "under way" if record.tests else "waiting"


def _slice(attempts: Attempts, slice_id: str, rows: dict[str, CircuitRow], at: float | None) -> dict[str, Any]:
    record = attempts.record(slice_id)
    limit_of_test, limit = attempts.limits(slice_id)
    told = _reports(attempts, slice_id, record)
    tests = sorted(record.tests.items(), key=lambda item: item[1].number)
    return {
        "id": slice_id,
        "at": show_time(at),
        "state": _state(record, _is_stopped(slice_id, rows)),
        "failures": _level(attempts, rows, slice_id),
        "limit": limit,
        "retries": record.life,
        "stops": [stop.to_json() for stop in attempts.stops(slice_id)],
        "arch_stop": record.arch_stop["reason"] if record.arch_stop else None,
        "tests": [
            {
                "name": name,
                "state": _test_state(test, rows.get(_circuit(slice_id, name))),
                "attempts": _level(attempts, rows, slice_id, name),
                "limit": limit_of_test,
                **_test(test),
                **told.get(name, _UNTOLD),
            }
            for name, test in tests
        ],
        "infrastructure": [{**one, "at": show_time(one["at"])} for one in record.infrastructure],
        **_scope(attempts, slice_id, [test for _, test in tests]),
        "prior": prior_attempts(record.prior) or None,
    }


def _level(attempts: Attempts, rows: dict[str, CircuitRow], slice_id: str, test: str | None = None) -> int:
    circuit = _circuit(slice_id, test)
    policy = attempts.breaker.rules.policy(circuit)
    state = attempts.engine.state_in(rows.get(circuit), circuit, policy)
    meter = policy.meters[0]
    return int(meters.level(meter, state.meters.get(meter.name, []), attempts.engine.clock()))


def _test_state(test: TestRecord, row: CircuitRow | None) -> str:
    if row is not None and row.phase == "open":
        return "stopped"
    if test.log:
        return "failing"
    return {"pass": "passed", "infra": "infra"}.get(test.last_result, "started")


def _test(test: TestRecord) -> dict[str, Any]:
    return {
        "began": show_time(test.began or None),
        "passed_at": show_time(test.passed_at or None),
        "description": test.description,
        "files": test.files_touched,
        "error": test.last_error[-_ERROR:],
        "log": [
            {
                "attempt": line["attempt"],
                "at": show_time(line.get("at")),
                "strategy": line["strategy"],
                "error": line["result"],
                "files": line["files"],
                "output": line["output"] or None,
            }
            for line in test.log
        ],
    }


# -- reports ----------------------------------------------------------------------------------------------

_UNTOLD: dict[str, Any] = {"report": None, "report_text": None, "report_lacks": []}


def _reports(attempts: Attempts, slice_id: str, record: SliceRecord) -> dict[str, dict[str, Any]]:
    """What there is of the reports of failing tests; one that nobody has begun is none."""
    begun = [name for name in record.failing() if record.tests[name].report][-_REPORTS:]
    lacking = missing(attempts, slice_id, begun) if begun else {}
    complete = [name for name in begun if name not in lacking]
    made = dict(zip(complete, reports(attempts, slice_id, complete), strict=True)) if complete else {}
    told: dict[str, dict[str, Any]] = {
        name: {"report": report, "report_text": yaml_text(report), "report_lacks": []} for name, report in made.items()
    }
    return told | {name: {**_UNTOLD, "report_lacks": fields} for name, fields in lacking.items()}


# -- the scope --------------------------------------------------------------------------------------------


def _scope(attempts: Attempts, slice_id: str, tests: list[TestRecord]) -> dict[str, Any]:
    lock = attempts.lock
    touched = dict.fromkeys(file for test in tests for file in _files(test))
    found: dict[str, Any] = {"scope": None, "violations": None, "justifications": []}
    try:
        found["justifications"] = [{**one, "at": show_time(one["at"])} for one in lock.justifications(slice_id)]
        scope = lock.scope(slice_id)
    except NoScope:
        return found
    except FusewireError as error:
        found["scope"] = {"patterns": [], "explicit": False, "problem": str(error)}
    else:
        patterns = [{"pattern": pattern, "source": source} for pattern, source in scope.entries[:_PATTERNS]]
        found["scope"] = {"patterns": patterns, "explicit": scope.explicit, "problem": None}
        found["violations"] = lock.violations(slice_id, list(touched)[:_FILES])
    return found


def _files(test: TestRecord) -> list[str]:
    return [*(file for line in test.log for file in line["files"]), *test.files_touched]


def _under_way(breaker: Breaker) -> tuple[list[dict[str, Any]], str | None]:
    try:
        active = recall_active(breaker.store)
    except FusewireError as error:
        return [], str(error)
    return [{"slice": name, "sessions": None if None in those else those} for name, those in active.items()], None
