"""`fusewire.testing()` for everything that works on a breaker: Loop, Phases, Attempts, ScopeLock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fusewire
from fusewire import Attempts, Blocked, Breaker, Loop, Phases, ScopeLock
from fusewire.engine.testing import Clock


def test_the_temporary_project_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written where the program runs, and the clock names the project only inside."""
    monkeypatch.chdir(tmp_path)
    with fusewire.testing() as clock:
        root = clock.root
        Breaker.open().record("no-force-push", "git push --force")
        assert os.path.isdir(root)
        with fusewire.testing(clock=Clock(clock.now)) as inner:
            assert inner.root != root
    assert clock.root == ""
    assert not os.path.exists(root)
    assert list(tmp_path.iterdir()) == []


def test_a_loop_opens_and_probes_by_the_clock() -> None:
    with fusewire.testing() as clock:
        loop = Loop.open()
        for _ in range(3):
            with loop.iteration() as iteration:
                iteration.answered("nothing to do", exit_code=0)
        assert loop.root == clock.root
        with pytest.raises(Blocked) as caught:
            Loop.open().begin()
        clock.advance(caught.value.decision.retry_after or 0)
        with Loop.open().iteration() as iteration:
            Path(clock.root, "new.py").write_text("def made() -> int:\n    return 1\n")
            iteration.answered("made it", exit_code=0)
        assert Breaker.open().status("loop/no_progress").state == "CLOSED"


def test_attempts_are_stopped_and_keep_their_scope() -> None:
    with fusewire.testing() as clock:
        Path(clock.root, "login.py").write_text("x = 1\n")
        lock = ScopeLock(Breaker.open())
        lock.set("S-1", ["login.py"])
        assert [answer.allowed for answer in lock.check("S-1", ["login.py", "pay.py"])] == [True, False]
        attempts = Attempts.open()
        attempts.start("S-1", "test_login")
        limit, _ = attempts.limits("S-1")
        for number in range(limit):
            failed = fusewire.Attempt("fail", reason="409 != 500", strategy=f"way {number}")
            recorded = Attempts.open().record_attempt("S-1", "test_login", failed)
        assert recorded.stops
        with pytest.raises(Blocked):
            Attempts.open().start("S-1", "test_login")


def test_phases_share_the_store_as_well() -> None:
    with fusewire.testing():
        assert Phases(Breaker.open()).begin("GREEN").allowed
        for _ in range(20):
            Breaker.open().record("phase/GREEN", "the same error")
        assert not Phases(Breaker.open()).begin("GREEN").allowed
    with fusewire.testing():
        assert Phases(Breaker.open()).begin("GREEN").allowed
