"""Attempts from many processes at once, and from one that is killed: no count is lost, none is invented."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

from tests.helpers.project import Project


def record(project: Project, slice_id: str, test: str, result: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fusewire", "attempt", "record", slice_id, test, result]
    return subprocess.Popen(
        command, cwd=project.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def counts(project: Project, slice_id: str, test: str) -> tuple[int, int]:
    found: dict[str, Any] = project.json("attempt", "status", slice_id, test)["tests"][0]
    return found["attempt_count"], found["total_failed_attempts"]


def under_way(project: Project, seconds: str) -> subprocess.Popen[bytes]:
    """A cycle whose test command sleeps; it has begun."""
    command = [sys.executable, "-m", "fusewire", "attempt", "run", "S-1", "test_a", "--", "sleep", seconds]
    running = subprocess.Popen(command, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 45
    while not _runs(f"sleep {seconds}") and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def _runs(command: str) -> bool:
    return bool(subprocess.run(["pgrep", "-f", f"^{command}$"], check=False, capture_output=True).stdout)


def test_parallel_attempts_on_two_slices_are_all_counted_and_kept_apart(project: Project) -> None:
    """Six tests, two slices, twelve processes at once: each failure counts once, in its own slice."""
    asked = [(f"S-{slice_number}", f"test_{test}") for slice_number in (1, 2) for test in "abc" for _ in range(2)]
    running = [record(project, slice_id, test, "--fail") for slice_id, test in asked]
    for process in running:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    for slice_id, test in set(asked):
        assert counts(project, slice_id, test) == (2, 6)


def test_exactly_one_of_many_failures_at_once_trips(project: Project) -> None:
    """Five failures of one test at the same moment: all counted, the circuit opened once."""
    running = [record(project, "S-1", "test_a", "--fail") for _ in range(5)]
    codes = []
    for process in running:
        process.communicate(timeout=60)
        codes.append(process.returncode)
    assert set(codes) <= {0, 3}
    assert counts(project, "S-1", "test_a") == (5, 5)
    trips = [move for move in project.json("history", "attempt/S-1/test_a")["transitions"] if move["to"] == "OPEN"]
    assert len(trips) == 1


def test_a_cycle_that_is_killed_is_no_attempt_and_the_next_one_goes_on(project: Project) -> None:
    """kill -9 while the test command runs: nothing is counted, the checkpoint stays, the command does not."""
    running = under_way(project, "47.3111")
    os.kill(running.pid, signal.SIGKILL)
    running.wait(45)
    assert counts(project, "S-1", "test_a") == (0, 0)
    before = project.json("attempt", "status", "S-1")["tests"][0]["checkpoint_tag"]
    assert project.run("attempt", "run", "S-1", "test_a", "--", "false").returncode == 1
    assert counts(project, "S-1", "test_a") == (1, 1)
    assert project.json("attempt", "status", "S-1")["tests"][0]["checkpoint_tag"] == before
    deadline = time.monotonic() + 45
    while _runs("sleep 47.3111") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _runs("sleep 47.3111")


def test_an_interrupted_cycle_counts_nothing_and_exits_with_130(project: Project) -> None:
    """Ctrl-C ends the command, too."""
    running = under_way(project, "48.3111")
    running.send_signal(signal.SIGINT)
    assert running.wait(45) == 130
    assert counts(project, "S-1", "test_a") == (0, 0)
    assert not _runs("sleep 48.3111")
