"""An engine on memory and one on SQLite: the same decisions, the same states, the same logs, for any sequence."""

from __future__ import annotations

import getpass
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fusewire.core.decision import Blocked
from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import AuditRow
from fusewire.util.errors import FusewireError

CIRCUITS = (
    "git-safety",
    "no-secrets",
    "loop/no_progress",
    "loop/rate",
    "phase/RED",
    "phase/GREEN",
    "tool/tool_failure/Bash",
    "tool/external_api/s1",
    "attempt/S-1/test_a",
    "attempt/S-1",
)
SIGNALS = ("success", "progress", "clean", "test_passed")
LEASES = st.sampled_from([None, "A", "B"])
SESSIONS = st.sampled_from([None, "s1", "s2"])
#: Also a long one, and one that is no ASCII.
TEXTS = st.sampled_from(["", "git push --force", "é\n\0 'x' \"y\"", "z" * 700])
TICKS = st.sampled_from(
    [0.0, 0.001, 1.0, 9.5, 10.0, 61.0, 300.0, 600.0, 1800.0, 90000.0, 31 * 86400.0, -5.0, -400000.0]
)


def _without_person(rows: list[AuditRow]) -> list[AuditRow]:
    """Who a person is at a terminal, is told by the terminal; in memory there is none."""
    people = ("person", getpass.getuser())
    return [row.replace(actor="") if row.actor in people else row for row in rows]


class Agreement(RuleBasedStateMachine):
    """Whatever is done to the one is done to the other."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_800_000_000.0
        self.folder = tempfile.mkdtemp(prefix="fusewire-agrees-")
        self.breakers = [
            Breaker.open(url, clock=lambda: self.now) for url in ("memory:", f"sqlite:{self.folder}/state/state.db")
        ]
        self.touched: set[str] = set()

    def teardown(self) -> None:
        for breaker in self.breakers:
            breaker.close()
        shutil.rmtree(self.folder)

    def both(self, circuit: str, act: Callable[[Breaker], Any]) -> None:
        self.touched.add(circuit)
        answers = []
        for breaker in self.breakers:
            try:
                answers.append(act(breaker).to_json())
            except FusewireError as refused:
                answers.append((type(refused), str(refused)))
        assert answers[0] == answers[1]

    @rule(seconds=TICKS)
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @rule(circuit=st.sampled_from(CIRCUITS), session=SESSIONS, lease=LEASES, times=st.sampled_from([1, 1, 1, 3, 120]))
    def check(self, circuit: str, session: str | None, lease: str | None, times: int) -> None:
        for _ in range(times):
            self.both(circuit, lambda breaker: breaker.check(circuit, session=session, lease=lease))

    @rule(circuit=st.sampled_from(CIRCUITS), text=TEXTS, session=SESSIONS, lease=LEASES, times=st.integers(1, 6))
    def record(self, circuit: str, text: str, session: str | None, lease: str | None, times: int) -> None:
        for _ in range(times):
            self.both(circuit, lambda breaker: breaker.record(circuit, text, session=session, lease=lease))

    @rule(circuit=st.sampled_from(CIRCUITS), every=st.sampled_from([300.0, 1000.0]))
    def record_until_open(self, circuit: str, every: float) -> None:
        for _ in range(7):
            self.both(circuit, lambda breaker: breaker.record(circuit, "again"))
            self.now += every

    @rule(circuit=st.sampled_from(CIRCUITS), signal=st.sampled_from(SIGNALS), lease=LEASES)
    def record_success(self, circuit: str, signal: str, lease: str | None) -> None:
        self.both(circuit, lambda breaker: breaker.record_success(circuit, signal=signal, lease=lease))

    @precondition(lambda self: self.touched)
    @rule(circuit=st.sampled_from(CIRCUITS), reason=TEXTS)
    def reset(self, circuit: str, reason: str) -> None:
        self.both(circuit, lambda breaker: breaker.reset(circuit, reason))

    @precondition(lambda self: self.touched)
    @rule(circuit=st.sampled_from(CIRCUITS), reason=TEXTS, seconds=st.sampled_from([0, 0.5, 3600]))
    def override(self, circuit: str, reason: str, seconds: float) -> None:
        self.both(circuit, lambda breaker: breaker.override(circuit, reason, seconds))

    @invariant()
    def they_agree(self) -> None:
        memory, sqlite = (breaker.store for breaker in self.breakers)
        assert memory.circuits() == sqlite.circuits()
        assert _without_person(memory.audit_of(None)) == _without_person(sqlite.audit_of(None))
        for circuit in self.touched:
            assert memory.log_of(circuit) == sqlite.log_of(circuit)
            assert self.breakers[0].status(circuit) == self.breakers[1].status(circuit)


def test_memory_and_sqlite_agree_on_any_sequence() -> None:
    """Checks, records, successes, resets, overrides and a clock that also runs backwards."""
    run_state_machine_as_test(
        Agreement,
        settings=settings(
            max_examples=60,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_memory_and_sqlite_keep_the_same_rings_of_a_long_log(tmp_path: Path) -> None:
    """After hundreds of counted rows and refusals both have dropped the same old ones."""
    now = [1_800_000_000.0]
    breakers = [Breaker.open(url, clock=lambda: now[0]) for url in ("memory:", f"sqlite:{tmp_path}/state.db")]
    for number in range(650):
        now[0] += 301.0
        for breaker in breakers:
            breaker.record("git-safety", f"violation {number}")
            breaker.check("git-safety")
    logs = [breaker.store.log_of("git-safety") for breaker in breakers]
    for breaker in breakers:
        breaker.close()
    assert logs[0] == logs[1]
    assert sum(row.effect == "counted" for row in logs[0]) == 500
    assert sum(row.effect == "refused" for row in logs[0]) == 100


def test_memory_and_sqlite_keep_the_same_text_of_a_lone_surrogate(tmp_path: Path) -> None:
    """A text that JSON may carry and UTF-8 may not is kept alike by both, and breaks neither."""
    breakers = [Breaker.open(url, clock=lambda: 0.0) for url in ("memory:", f"sqlite:{tmp_path}/state.db")]
    for breaker in breakers:
        breaker.record("git-safety", "rm \ud83d", session="\ud83d")
    logs = [breaker.store.log_of("git-safety") for breaker in breakers]
    for breaker in breakers:
        breaker.close()
    assert logs[0] == logs[1]


@pytest.mark.parametrize("circuit", ["loop/no_progress", "attempt/S-1/test_a"])
def test_a_success_through_the_public_face_breaks_a_row_of_failures(circuit: str) -> None:
    """Two guarded failures, a guarded success and a failure are not three failures in a row."""
    with Breaker.open("memory:", clock=lambda: 1_800_000_000.0) as breaker:
        for fails in (True, True, False, True):
            try:
                with breaker.guard(circuit):
                    if fails:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass
            except Blocked:
                raise AssertionError("a circuit without three failures in a row was open") from None
        assert breaker.check(circuit).verdict == "allow"


@pytest.mark.parametrize(
    ("circuit", "allowed"),
    [("loop/rate", 100), ("tool/hook_recursion/h", 5), ("tool/external_api/s1", 10), ("tool/agent_spawn/s1", 5)],
)
def test_a_check_through_the_public_face_is_a_question_to_the_meters(circuit: str, allowed: int) -> None:
    """N checks fill a limit of N, and the next one is refused: `check` is what such circuits are asked with."""
    with Breaker.open("memory:", clock=lambda: 1_800_000_000.0) as breaker:
        for _ in range(allowed):
            assert breaker.check(circuit).allowed
        assert breaker.check(circuit).verdict == "deny"


@pytest.mark.parametrize("fraction", [0.0, 0.0001, 0.0004, 0.0005, 0.0009])
def test_who_waits_as_long_as_told_is_not_refused_again(fraction: float) -> None:
    """After `retry_after` seconds the probe is there, also for a clock that counts microseconds."""
    now = 1_800_000_000.0
    with Breaker.open("memory:", clock=lambda: now) as breaker:
        for _ in range(3):
            breaker.record("loop/no_progress")
        now += 10 + fraction
        refused = breaker.check("loop/no_progress")
        assert refused.verdict == "deny"
        assert refused.retry_after is not None
        now += refused.retry_after
        assert breaker.check("loop/no_progress").phase == "probe"
