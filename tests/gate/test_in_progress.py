"""Slices, phases and loops of stop hooks through real hook processes, as Claude Code starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.helpers.project import Project
from tests.helpers.session_hook import Said, Session

TESTS = "from calc import add\n\n\ndef test_add():\n    assert add(1, 1) == 2\n"


@pytest.fixture
def session(project: Project) -> Session:
    write_tests(project)
    project.starts_hooks = False
    return Session(project, env={"CLAUDE_PID": str(os.getpid())})


def write_tests(project: Project) -> None:
    (project.root / "test_calc.py").write_text(TESTS)
    write_code(project, 0)


def write_code(project: Project, number: int) -> None:
    (project.root / "calc.py").write_text(f"def add(a, b):\n    return {100 + number}\n")


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of the failing test, in Claude's words."""
    project = Project(tmp_path_factory.mktemp("failing"))
    write_tests(project)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    return f"Exit code {done.returncode}\n{done.stdout}"


def start(session: Session, *arguments: str) -> None:
    done = session.project.run("attempt", "start", *arguments, env={"CLAUDE_CODE_SESSION_ID": session.id})
    assert done.returncode == 0, done


def stop(session: Session, again: bool = True, said: str = "Done.") -> Said:
    return session.send("Stop", stop_hook_active=again, last_assistant_message=said, background_tasks=[])


def edit(session: Session, number: int) -> Said:
    """The code is changed by a tool; what was said before it."""
    path = str(session.project.root / "calc.py")
    given = {"file_path": path, "old_string": "return", "new_string": f"return {number} +"}
    asked, _ = session.tool("Edit", given, response={"filePath": path, "success": number})
    if asked.allowed:
        write_code(session.project, number)
    return asked


def test_attempts_in_the_shell_are_counted_told_and_stopped(session: Session, failing: str) -> None:
    """Told after each failed cycle; stopped at the third; told again when it is run by name, refused, halted."""
    session.project.starts_hooks = True
    start(session, "S-1", "test_add")
    for number in (1, 2, 3):
        assert edit(session, number).silent
        asked, after = session.fails("pytest -q test_calc.py::test_add", failing)
        assert asked.silent
        wanted = f"{number} of 3 failed attempts" if number < 3 else "CIRCUIT OPEN attempt.test:S-1/test_add"
        assert wanted in after.told
    asked, _ = session.before("Bash", {"command": "pytest -q test_calc.py::test_add"})
    assert asked.allowed
    assert "the next one of this test is refused" in asked.told
    answers = [session.before("Bash", {"command": "pytest -q test_calc.py::test_add"})[0] for _ in range(3)]
    assert [answer.code for answer in answers] == [2, 2, 2]
    assert answers[0].reason.startswith("BLOCKED attempt.test:S-1/test_add: 3 failed attempts at this test (limit 3).")
    assert [answer.halted for answer in answers] == [False, False, True]


def test_the_limit_of_the_slice_halts_the_session_until_a_person_speaks(session: Session, failing: str) -> None:
    """Helpers too: whoever asks next is told the same."""
    names = [f"test_{letter}" for letter in "abcd"]
    for name in names:
        start(session, "S-1", name)
    for number in range(7):
        edit(session, number + 1)
        test = names[number // 2]
        _, after = session.fails(f"pytest -q -k {test}", failing.replace("test_add", test), batch=False)
    assert after.halted, after
    assert "CIRCUIT OPEN attempt.slice:S-1: 7 failed attempts in this slice" in after.json["stopReason"]
    asked, _ = session.before("Bash", {"command": "ls"}, agent="a1")
    assert asked.halted
    assert session.says("write the report, then stop").silent
    assert session.before("Bash", {"command": "ls"})[0].silent


def test_a_session_without_anything_under_way_hears_nothing(session: Session, failing: str) -> None:
    for number in range(4):
        assert edit(session, number).silent
        asked, after = session.fails("pytest -q test_calc.py::test_add", failing.replace("100", str(number)))
        assert (asked.silent, "attempt" in after.told) == (True, False)


def test_an_open_phase_that_the_session_began_refuses_its_edits(session: Session) -> None:
    project = session.project
    assert project.run("phase", "begin", "GREEN").returncode == 0
    session.bash("fusewire phase begin GREEN")
    for _ in range(3):
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=1")
    assert "phase.GREEN" in edit(session, 1).told
    refused = edit(session, 2)
    assert refused.code == 2
    assert refused.reason.startswith("BLOCKED phase.GREEN: No progress for 2 iterations.")
    session.says("never mind the phase, fix the typo")
    assert edit(session, 3).silent


def test_a_session_that_starts_is_told_what_holds(session: Session) -> None:
    """In its context; a session of a project where all is well hears nothing."""
    assert "additionalContext" not in session.send("SessionStart", source="startup").json.get("hookSpecificOutput", {})
    start(session, "S-1", "test_add")
    said = session.send("SessionStart", source="resume")
    assert "Slice S-1 is under way: 0 of 7 failed attempts" in said.told


def test_a_stop_hook_that_keeps_an_idle_agent_going_is_halted_by_the_loop(session: Session) -> None:
    """Three stretches without a change: the loop's own words, before the breaker of stop hooks would say anything."""
    assert stop(session, again=False).silent
    for _ in range(3):
        assert stop(session).silent
    halted = stop(session)
    assert halted.halted
    assert halted.json["stopReason"].startswith("CIRCUIT OPEN loop.no_progress: 3 iterations in a row")
    assert session.says("go on, please").silent
    assert stop(session, again=False).silent


def test_a_stop_hook_behind_which_work_is_done_is_no_recursion(session: Session) -> None:
    """Twelve stops in a row, each after a new file."""
    stop(session, again=False)
    for number in range(12):
        (session.project.root / f"part{number}.py").write_text(f"part = {number}\n")
        assert stop(session).silent, number


def test_inside_fusewire_run_stops_are_left_to_the_supervisor(session: Session) -> None:
    session.env["FUSEWIRE_PROJECT"] = str(session.project.root)
    answers: list[Any] = [stop(session, again=number > 0) for number in range(5)]
    assert all(answer.silent for answer in answers)
