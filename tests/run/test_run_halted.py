"""`fusewire run`, and whatever else starts agents, under a person's halt."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.agents import comes_true, is_running
from tests.helpers.agents.run_stage import IDLE, WORK, Stage, prepared, staged
from tests.helpers.project import Project

#: The agent says who it is and then goes on for longer than any test.
UNDER_WAY = 'echo $$ > "$OUT/pid"; sleep 300'

#: Seconds in which a run is to end: two, and what a busy machine adds.
SOON = 10.0


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("prepared") / "repository")


@pytest.fixture
def stage(tmp_path: Path, repository: Path) -> Iterator[Stage]:
    made = staged(tmp_path, repository)
    yield made
    made.close()


def halted(stage: Stage, *scope: str) -> float:
    ended = stage.call("halt", *scope, "--reason", "the release is being cut")
    assert ended.returncode == 0, ended.stderr
    return time.monotonic()


@pytest.mark.parametrize("scope", [[], ["--all"]])
def test_a_run_ends_at_once_with_the_person_s_reason_and_its_agent_with_it(stage: Stage, scope: list[str]) -> None:
    run = stage.start(f"(sleep 300 &); {UNDER_WAY}")
    assert comes_true(lambda: stage.read("pid")), stage.said()
    began = halted(stage, *scope)
    assert run.wait(60) == 3
    assert time.monotonic() - began < SOON
    assert "HALTED after 1 iteration" in stage.said()
    assert "the release is being cut" in stage.said()
    assert not is_running(int(stage.read("pid")))
    assert stage.left() == []


def test_what_was_halted_is_not_counted_against_the_loop_and_it_goes_on_after_resume(stage: Stage) -> None:
    for _ in range(4):  # more often than the three idle iterations that open its circuit
        (stage.outside / "pid").unlink(missing_ok=True)
        run = stage.start(UNDER_WAY)
        assert comes_true(lambda: stage.read("pid")), stage.said()
        halted(stage)
        assert run.wait(60) == 3
        assert stage.call("resume").returncode == 0
    loop = stage.loop()
    assert (loop["state"], loop["running"]) == ("CLOSED", 0)
    ended = stage.run(WORK, "--max-iterations", "1")
    assert ended.returncode == 4, ended.stderr


def test_a_run_that_waits_for_a_cooldown_is_halted_too(stage: Stage) -> None:
    run = stage.start(IDLE, wait=True)
    assert comes_true(lambda: "waiting" in stage.said()), stage.said()
    began = halted(stage)
    assert run.wait(60) == 3
    assert time.monotonic() - began < SOON
    assert stage.starts() == [1, 2, 3]


def test_a_run_whose_check_is_running_is_halted_and_the_check_says_nothing(stage: Stage) -> None:
    run = stage.start(WORK, "--until", 'echo $$ > "$OUT/pid"; sleep 300')
    assert comes_true(lambda: stage.read("pid")), stage.said()
    halted(stage)
    assert run.wait(60) == 3
    assert stage.loop()["running"] == 0
    assert stage.left() == []


def test_a_halt_of_another_project_does_not_end_a_run(stage: Stage, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "elsewhere")], check=True)
    run = stage.start(UNDER_WAY)
    assert comes_true(lambda: stage.read("pid")), stage.said()
    halted(stage, "--project", str(tmp_path / "elsewhere"))
    time.sleep(1.5)
    assert run.poll() is None
    halted(stage)
    assert run.wait(60) == 3


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--", "touch", "started"],
        ["loop", "begin"],
        ["loop", "begin", "--wait"],
        ["wait", "--at", "00:00", "--", "touch", "started"],
        ["attempt", "run", "S-1", "t", "--", "touch", "started"],
    ],
)
def test_nothing_begins_under_a_halt(project: Project, command: list[str]) -> None:
    """Exit 3, and one message that says who, why, and how it goes on."""
    assert project.run("halt", "--reason", "the release is being cut").returncode == 0
    refused = project.run(*command)
    assert refused.returncode == 3, refused.stderr
    assert "BLOCKED fusewire.halt: a person has halted the agents of this project" in refused.stderr
    assert "the release is being cut" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (project.root / "started").exists()


def test_a_wait_that_has_begun_starts_nothing_once_it_is_halted(project: Project) -> None:
    at = time.strftime("%H:%M", time.localtime(time.time() + 7200))
    command = [sys.executable, "-m", "fusewire", "wait", "--at", at, "--", "touch", "started"]
    with subprocess.Popen(
        command, cwd=project.root, env=dict(os.environ), stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stderr is not None
        assert "waiting" in waiting.stderr.readline()
        assert project.run("halt", "--reason", "going home").returncode == 0
        assert waiting.wait(30) == 3
        assert "going home" in waiting.stderr.read()
    assert not (project.root / "started").exists()
