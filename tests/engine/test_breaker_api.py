"""The public library: `Breaker`, `Blocked`, `testing`, as a program that uses Fusewire sees them."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import fusewire
from fusewire import Blocked, Breaker, Decision, FusewireError, InvalidTransition, NotFound, StoreError
from fusewire.core.events import Event
from fusewire.engine.testing import Clock
from fusewire.util.errors import AgentRefused
from tests.helpers.project import Project

ID = "no-force-push"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory:", "sqlite:"])
def breaker(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[Breaker]:
    url = f"sqlite:{tmp_path}/state.db" if request.param == "sqlite:" else "memory:"
    with Breaker.open(url, clock=clock) as opened:
        yield opened


def trip(breaker: Breaker, clock: Clock, circuit: str = ID) -> None:
    while breaker.status(circuit).state == "CLOSED":
        breaker.record(circuit, "git push --force")
        clock.advance("1h")


# -- names ------------------------------------------------------------------------------------------------


def test_every_public_name_is_there_and_nothing_else_is_promised() -> None:
    """`from fusewire import *` gives exactly `__all__`; an unknown name is an AttributeError."""
    names: dict[str, object] = {}
    exec("from fusewire import *", names)
    assert set(fusewire.__all__) <= set(names)
    for name in fusewire.__all__:
        assert getattr(fusewire, name) is getattr(fusewire, name)
        assert getattr(fusewire, name).__doc__
    with pytest.raises(AttributeError, match="no_such_name"):
        fusewire.no_such_name  # noqa: B018
    assert not hasattr(fusewire, "pytest_plugins")


def test_every_error_is_a_fusewire_error() -> None:
    """One `except` catches them all."""
    for name in ("Blocked", "ConfigError", "InvalidTransition", "NotFound", "StoreError"):
        assert issubclass(getattr(fusewire, name), FusewireError)


# -- the verbs --------------------------------------------------------------------------------------------


def test_check_record_reset_status_history(breaker: Breaker, clock: Clock) -> None:
    """The whole life of one circuit, on either store."""
    assert breaker.check(ID) == Decision("allow", circuit=ID, rule=f"constraint:{ID}")
    recorded = breaker.record(ID, "git push --force", session="s-1")
    assert (recorded.allowed, recorded.state, recorded.circuit) == (True, "CLOSED", ID)
    clock.advance("1h")
    trip(breaker, clock)
    assert not breaker.check(ID).allowed
    status = breaker.status(ID)
    assert (status.id, status.kind, status.state, status.level, status.threshold) == (ID, "constraint", "OPEN", 5, 5)
    assert [one.id for one in breaker.statuses()] == [ID]
    bad = [row for row in breaker.history(ID) if row.kind == "bad"]
    assert len(bad) == 5
    assert (bad[0].text, bad[0].session) == ("git push --force", "s-1")
    assert breaker.history(ID, days=0.1)
    assert breaker.reset(ID, "mended").state == "CLOSED"
    assert [(move.source, move.target, move.cause) for move in breaker.audit(ID)] == [
        ("closed", "open", "tripped"),
        ("open", "closed", "reset"),
    ]
    with pytest.raises(InvalidTransition):
        breaker.reset(ID, "again")


def test_a_decision_is_immutable_and_becomes_json(breaker: Breaker, clock: Clock) -> None:
    """Whoever gets one can pass it on without anybody changing it."""
    trip(breaker, clock)
    decision = breaker.check(ID)
    with pytest.raises(AttributeError):
        decision.verdict = "allow"  # type: ignore[misc]
    data = decision.to_json()
    assert (data["decision"], data["state"], data["phase"]) == ("BLOCKED", "OPEN", "open")
    assert data["retry_after"] == decision.retry_after
    assert "BLOCKED" not in repr(decision)


def test_unknown_circuits_and_stores_are_errors_of_their_own(breaker: Breaker) -> None:
    """An unknown kind is NotFound before anything is written; an unknown URL is a StoreError with what is allowed."""
    for circuit in ("loop/nope", "nope/x", "", "tool/tool_failure/", "phase/GREEN/extra"):
        with pytest.raises(NotFound):
            breaker.check(circuit)
        with pytest.raises(NotFound):
            breaker.record(circuit, "x")
    assert breaker.statuses() == []
    for url in ("redis://localhost", "sqlite:", "nonsense", ""):
        with pytest.raises(StoreError, match="sqlite:PATH"):
            Breaker.open(url)


def test_a_project_knows_only_its_own_constraints(project: Project) -> None:
    """With a project the files decide which ids exist; without one every bare id is a constraint."""
    project.constraint(ID)
    with Breaker.open(project=project.root) as breaker:
        assert breaker.check(ID).allowed
        with pytest.raises(NotFound, match=r"^Constraint not found: other$"):
            breaker.check("other")
    with Breaker.open("memory:") as breaker:
        assert breaker.check("other").allowed


def test_the_default_is_the_project_around_the_current_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Breaker.open()` looks up to the git top level, as the command line does."""
    project.constraint(ID)
    inner = project.root / "src" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    with Breaker.open() as breaker:
        breaker.record(ID, "from deep inside")
    assert project.json("status", ID)["circuits"][0]["level"] == 1
    assert not (inner / ".fusewire").exists()


def test_an_agent_cannot_reset_through_the_library(
    project: Project, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused on the command line is refused in Python, on a store that others use."""
    project.constraint(ID)
    breaker = Breaker.open(project=project.root, clock=clock)
    trip(breaker, clock)
    monkeypatch.setenv("CLAUDECODE", "1")
    with pytest.raises(AgentRefused):
        breaker.reset(ID, "let me")
    with pytest.raises(AgentRefused):
        breaker.override(ID, "let me", 60)
    assert breaker.status(ID).state == "OPEN"


# -- the guard --------------------------------------------------------------------------------------------


def test_the_guard_lets_pass_and_settles_the_probe_well(breaker: Breaker, clock: Clock) -> None:
    """Nothing is recorded for a good action in a closed circuit; a good probe closes it."""
    with breaker.guard(ID) as decision:
        assert decision.allowed
    assert breaker.history(ID) == []
    trip(breaker, clock)
    clock.advance("24h")
    with breaker.guard(ID, action="git push") as decision:
        assert decision.lease is not None
        assert not breaker.check(ID).allowed
    assert breaker.status(ID).state == "CLOSED"


def test_the_guard_records_an_exception_as_bad_and_lets_it_through(breaker: Breaker, clock: Clock) -> None:
    """The user's exception is the user's; the action, or the exception itself, is the evidence."""
    for number in range(4):
        with pytest.raises(ValueError, match="mine"), breaker.guard(ID, session="s-1"):
            raise ValueError(f"mine {number}")
        clock.advance("1h")
    assert breaker.status(ID).level == 4
    assert breaker.history(ID)[-1].text == "ValueError: mine 3"
    with pytest.raises(ZeroDivisionError), breaker.guard(ID, action="git push --force"):
        print(1 / 0)
    assert breaker.status(ID).state == "OPEN"
    assert breaker.status(ID).evidence == "git push --force"


def test_a_blocked_guard_raises_before_the_body_and_carries_the_decision(breaker: Breaker, clock: Clock) -> None:
    """`Blocked.decision` says why, until when and what to do; the body is not reached."""
    trip(breaker, clock)
    reached = False
    with pytest.raises(Blocked) as caught, breaker.guard(ID):
        reached = True
    assert not reached
    decision = caught.value.decision
    assert (decision.verdict, decision.state) == ("deny", "OPEN")
    assert decision.retry_after is not None
    assert decision.retry_after > 0
    assert decision.next
    assert f"constraint:{ID}" in str(caught.value)
    assert "5 violations" in str(caught.value)


def test_a_failed_probe_in_the_guard_reopens(breaker: Breaker, clock: Clock) -> None:
    """An exception inside the one probe opens the circuit again for 24 hours."""
    trip(breaker, clock)
    clock.advance("24h")
    with pytest.raises(RuntimeError), breaker.guard(ID):
        raise RuntimeError
    assert breaker.status(ID).state == "OPEN"
    assert breaker.status(ID).retry_after == 24 * 3600


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupted_guard_gives_its_probe_back(
    breaker: Breaker, clock: Clock, interruption: type[BaseException]
) -> None:
    """Neither good nor bad: the circuit is as before, and the next one may probe at once."""
    trip(breaker, clock)
    clock.advance("24h")
    level = breaker.status(ID).level
    with pytest.raises(interruption), breaker.guard(ID):
        raise interruption
    assert (breaker.status(ID).state, breaker.status(ID).level) == ("HALF_OPEN", level)
    with breaker.guard(ID):
        pass
    assert breaker.status(ID).state == "CLOSED"


def test_a_result_that_comes_too_late_moves_nothing(breaker: Breaker, clock: Clock) -> None:
    """A prober whose lease ran out and went to another one cannot settle the other's probe."""
    trip(breaker, clock)
    clock.advance("24h")
    slow = breaker.check(ID)
    clock.advance("11m")
    quick = breaker.check(ID)
    assert (quick.allowed, quick.lease != slow.lease) == (True, True)
    breaker.record_success(ID, lease=slow.lease)
    assert breaker.status(ID).state == "HALF_OPEN"
    breaker.record(ID, "late failure", lease=slow.lease)
    assert breaker.status(ID).state == "HALF_OPEN"
    breaker.record_success(ID, lease=quick.lease)
    assert breaker.status(ID).state == "CLOSED"


# -- threads ----------------------------------------------------------------------------------------------


def test_threads_share_one_breaker_without_losing_anything(breaker: Breaker, clock: Clock) -> None:
    """8 threads, 25 failures each: all are counted, and the circuit trips exactly once."""
    circuit = "attempt/S-1"
    tripped = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(25):
                if breaker.record(circuit, "x").tripped:
                    tripped.append(1)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (breaker.status(circuit).total, len(tripped)) == (200, 1)


def test_among_many_threads_one_gets_the_probe(breaker: Breaker, clock: Clock) -> None:
    """50 ask at once after the cooldown."""
    trip(breaker, clock)
    clock.advance("24h")
    allowed: list[bool] = []
    barrier = threading.Barrier(50)

    def ask() -> None:
        barrier.wait()
        allowed.append(breaker.check(ID).allowed)

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(allowed) == [False] * 49 + [True]


def test_a_failure_while_writing_leaves_the_store_usable(tmp_path: Path, clock: Clock) -> None:
    """The disk is full: a StoreError, nothing half done, and then on."""
    breaker = Breaker.open(f"sqlite:{tmp_path}/store/state.db", clock=clock, patience=0.01)
    for _ in range(4):
        breaker.record(ID, "x")
        clock.advance("1h")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StoreError):
            breaker.record(ID, "trips, and that must be written down")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert breaker.status(ID).level == 4
    other = Breaker.open(f"sqlite:{tmp_path}/store/state.db", clock=clock, patience=0.01)
    assert other.record(ID, "the fifth").state == "OPEN"
    assert not breaker.check(ID).allowed


# -- the switch for users' own tests ------------------------------------------------------------------------


def program_under_test() -> str:
    """Somebody's program, which opens its breaker as always."""
    breaker = Breaker.open()
    try:
        with breaker.guard(ID, action="git push --force"):
            raise RuntimeError
    except Blocked as blocked:
        return f"blocked for {blocked.decision.retry_after:.0f} s"
    except RuntimeError:
        return "failed"


def test_the_switch_puts_every_breaker_on_memory_and_a_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, no real time, any URL, one shared store for the whole block; afterwards all is as before."""
    monkeypatch.chdir(tmp_path)
    with fusewire.testing() as clock:
        for _ in range(5):
            assert program_under_test() == "failed"
            clock.advance("1h")
        assert program_under_test() == "blocked for 82800 s"
        clock.advance("23h")
        assert program_under_test() == "failed"
        assert Breaker.open("sqlite:/nonexistent/x.db").status(ID).state == "OPEN"
        assert Breaker.open(project="/nonexistent").status(ID).level == 6
    assert list(tmp_path.iterdir()) == []
    with fusewire.testing():
        assert Breaker.open().status(ID).level == 0
    with pytest.raises(StoreError):
        Breaker.open("nonsense:")


def test_the_switch_that_never_blocks(tmp_path: Path) -> None:
    """With block=False nothing is ever refused, whichever verb asks; counting goes on."""
    with fusewire.testing(block=False) as clock:
        breaker = Breaker.open()
        for _ in range(8):
            assert breaker.record(ID, "x").allowed
            clock.advance("1h")
        assert breaker.status(ID).state == "OPEN"
        assert breaker.check(ID).allowed
        with breaker.guard(ID):
            pass
        (decision,) = breaker.enforce([ID], Event("before_tool", tool="Bash", command="git push --force"))
        assert decision.allowed


def test_the_switch_can_be_nested(tmp_path: Path) -> None:
    """The inner one has its own store and clock, and gives way to the outer one, also after an exception."""
    with fusewire.testing() as outer:
        Breaker.open().record(ID, "outer")
        with fusewire.testing(block=False, clock=Clock(5.0)) as inner:
            assert inner is not outer
            assert inner.now == 5.0
            assert Breaker.open().status(ID).level == 0
        with pytest.raises(KeyError), fusewire.testing():
            raise KeyError
        assert Breaker.open().status(ID).level == 1


def test_the_clock_moves_only_by_hand() -> None:
    """Durations as people write them, or seconds."""
    clock = Clock(100.0)
    clock.advance("1h 30m")
    clock.advance(0.5)
    assert (clock(), clock.now) == (5500.5, 5500.5)
    with pytest.raises(ValueError, match="soon"):
        clock.advance("soon")


# -- the example of the README ---------------------------------------------------------------------------------


def test_ten_lines_of_python(project: Project) -> None:
    """What a newcomer types runs as a program of its own, and the state is there for the command line."""
    project.constraint("no-prod-writes", "circuit_breaker:\n  violation_threshold: 2\n  dedup_seconds: 0\n")
    script = """
from fusewire import Blocked, Breaker

breaker = Breaker.open()
for attempt in range(3):
    try:
        with breaker.guard("no-prod-writes", action=f"write {attempt}"):
            raise PermissionError("prod is read-only")
    except PermissionError as error:
        print("failed:", error)
    except Blocked as blocked:
        print("blocked:", blocked, round(blocked.decision.retry_after))
"""
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=project.root, capture_output=True, text=True, check=True
    )
    lines = result.stdout.splitlines()
    assert lines[:2] == ["failed: prod is read-only"] * 2
    assert lines[2].startswith("blocked: constraint:no-prod-writes: 2 violations within 30d (limit 2) 86")
    assert project.run("check", "no-prod-writes").returncode == 3


def test_statuses_list_a_breaker_of_ones_own_before_anything_happened(tmp_path: Path) -> None:
    (tmp_path / "fusewire.toml").write_text("[breakers.payments]\nfailures = 2\n")
    with Breaker.open(project=tmp_path) as breaker:
        assert [(status.id, status.state, status.level) for status in breaker.statuses()] == [
            ("own/payments", "CLOSED", 0)
        ]
