"""Test runs in an agent's shell while a slice is under way: real git, real pytest, the real program.

What must count is few: a started test, named by the runner, after a change. Everything else must not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.attempt import in_session as slices
from fusewire.breakers.attempt.test_commands import asks_for, covers, running_tests
from fusewire.breakers.attempt.tracker import Attempts
from fusewire.breakers.phase import in_session as phasing
from fusewire.breakers.session.calls import commands_of
from fusewire.core.events import Event
from fusewire.util.files import FileLock
from tests.helpers.decisions import said
from tests.helpers.project import Project

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"
SUB = "def test_sub():\n    assert sub(2, 1) == 1\n"
TESTS = f"from calc import add, sub\n\n\ndef test_add():\n    assert add(1, 1) == 2\n\n\n{SUB}"
BROKEN = "import pytest\n@pytest.fixture(autouse=True)\ndef server():\n    raise ConnectionRefusedError('no server')\n"


@dataclass
class Agent:
    """One session in a project: it edits, runs tests for real, and its hook is told."""

    project: Project
    session: str = SESSION
    edits: int = 0
    calls: int = 0
    said: list[tuple[str, str]] = field(default_factory=list)

    @property
    def home(self) -> str:
        return str(self.project.root)

    def start(self, *tests: str, slice_id: str = "S-1") -> None:
        for test in tests:
            done = self.project.run("attempt", "start", slice_id, test, env={"CLAUDE_CODE_SESSION_ID": self.session})
            assert done.returncode == 0, done

    def edit(self, text: str = "") -> None:
        """Change the code; by default so that both tests still fail."""
        self.edits += 1
        wrong = f"def add(a, b):\n    return {100 + self.edits}\n\n\ndef sub(a, b):\n    return {200 + self.edits}\n"
        (self.project.root / "calc.py").write_text(text or wrong)

    def event(self, command: str, **more: Any) -> Event:
        self.calls += 1
        given = {"command": command, **more.pop("input", {})}
        return Event(
            more.pop("kind", "after_tool"), hook="PostToolUse", tool="Bash", command=command, session=self.session,
            call=f"toolu_{self.calls}", agent="claude", cwd=more.pop("cwd", self.home), input=given, **more,
        )  # fmt: skip

    def ran(self, command: str, output: str, code: int = 1, **more: Any) -> tuple[str, str]:
        """The hook hears of a run that is over, in Claude's words."""
        text = f"Exit code {code}\n{output}" if code else output
        answer = said(slices.after_call(self.event(command, result=text, failed=code != 0, **more), None, self.home))
        self.said.append(answer)
        return answer

    def pytest(self, arguments: str = "-q", **more: Any) -> tuple[str, str]:
        """Run pytest for real; `more` may say what the agent typed instead."""
        done = run_pytest(self.project.root, *arguments.split())
        return self.ran(more.pop("command", f"pytest {arguments}"), done.stdout, done.returncode, **more)

    def asks(self, command: str) -> tuple[str, str]:
        return said(slices.before_call(self.event(command, kind="before_tool"), None, self.home))

    def counts(self, slice_id: str = "S-1") -> dict[str, int]:
        """Failed attempts of each test, and of the slice."""
        attempts = Attempts.open(self.home)
        found = {name: attempts.state(slice_id, name)["attempt_count"] for name in attempts.record(slice_id).tests}
        return {**found, "": attempts.failures(slice_id)}


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


@pytest.fixture
def agent(project: Project) -> Agent:
    found = Agent(project)
    (project.root / "test_calc.py").write_text(TESTS)
    found.edit()
    return found


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest really prints when both tests fail."""
    folder = tmp_path_factory.mktemp("red")
    (folder / "test_calc.py").write_text(TESTS)
    (folder / "calc.py").write_text("def add(a, b):\n    return 0\n\n\ndef sub(a, b):\n    return 0\n")
    return run_pytest(folder, "-q").stdout


# -- what counts ----------------------------------------------------------------------------------------------------


def test_three_failed_cycles_stop_the_test_and_the_agent_is_told_the_way_on(agent: Agent) -> None:
    """Change, run, fail: the third is the seed's stop; the exact error and the files are on record for the report."""
    agent.start("test_add")
    for number in (1, 2):
        agent.edit()
        action, text = agent.pytest("-q test_calc.py::test_add")
        assert action == "tell"
        assert f"{number} of 3 failed attempts for the test, {number} of 7 for the slice" in text
        assert "Do not record it again" in text
    assert "one more failed attempt stops the work on this test" in agent.said[-1][1]
    agent.edit()
    action, text = agent.pytest("-q test_calc.py::test_add")
    assert action == "tell"
    assert text.startswith("CIRCUIT OPEN attempt.test:S-1/test_add: 3 failed attempts at this test (limit 3).")
    assert "fusewire attempt report S-1" in text
    assert "Stop working on test_add" in text
    state = agent.project.json("attempt", "status", "S-1", "test_add")["tests"][0]
    assert state["attempt_count"] == 3
    assert state["files_touched"] == ["calc.py"]
    assert "assert 104 == 2" in state["last_error"]
    assert state["last_error"].endswith("[exit code 1]")


def test_a_pass_clears_the_count_and_ends_the_attempts_at_the_test(agent: Agent) -> None:
    """Named by -v, or in a green run of everything; the next failure of a test that nobody has begun again is none."""
    agent.start("test_add", "test_sub")
    agent.edit()
    agent.pytest("-q test_calc.py::test_add")
    agent.edit("def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return 0\n")
    action, text = agent.pytest("-v")
    assert action == "tell"
    assert "S-1 test_add passed, its attempts are over; go on with the next" in text
    assert agent.counts() == {"test_add": 0, "test_sub": 1, "": 2}
    agent.edit("def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n")
    assert "S-1 test_sub passed" in agent.pytest("-q")[1]
    assert agent.project.run("attempt", "finish", "S-1").returncode == 0
    agent.edit()
    assert agent.pytest("-q") == ("allow", "")


def test_the_seventh_failure_of_a_slice_halts_and_names_the_reports_that_are_due(agent: Agent, red: str) -> None:
    """Slow progress over many tests: none of them has three, all of them together seven."""
    names = [f"test_{letter}" for letter in "abcd"]
    agent.start(*names)
    for number in range(7):
        agent.edit()
        test = names[number // 2]
        answer = agent.ran(f"pytest -q -k {test}", red.replace("test_add", test))
    assert answer[0] == "halt"
    assert "CIRCUIT OPEN attempt.slice:S-1: 7 failed attempts in this slice (limit 7)" in answer[1]
    assert "A diagnostic report is due for each of: test_a, test_b, test_c, test_d" in answer[1]
    agent.edit()
    assert agent.ran("pytest -q -k test_d", red.replace("test_add", "test_d")) == ("allow", "")
    assert agent.counts()[""] == 7


def test_the_calls_of_one_reply_and_of_a_helper_count_for_the_same_slice(agent: Agent, red: str) -> None:
    """A batch has its calls inside, in the text that the model is shown; a helper has the session's id."""
    agent.start("test_add")
    agent.edit()
    call = agent.event("pytest -q", result=f"Exit code 1\n{red}", failed=True, subagent="a1")
    other = agent.event("ls", result="calc.py", failed=False, subagent="a1")
    batch = Event(
        "after_tool", hook="PostToolBatch", session=SESSION, subagent="a1", command="ls\npytest -q", calls=(other, call)
    )
    assert said(slices.after_call(batch, None, agent.home))[0] == "tell"
    assert agent.counts() == {"test_add": 1, "": 1}


@pytest.mark.parametrize(
    "command",
    [
        "python -m pytest -q",
        "cd . && pytest -q 2>&1 | tail -20",
        "git status && pytest -q",
        ".venv/bin/pytest -x",
        "uv run pytest",
        "make test",
        "npm test",
        "pytest -q || true",
    ],
)
def test_a_test_run_is_seen_however_it_is_typed(agent: Agent, red: str, command: str) -> None:
    """The runner's words decide; the exit status may be another program's."""
    agent.start("test_add")
    agent.edit()
    assert agent.ran(command, red, 0 if "|" in command else 1)[0] == "tell"
    assert agent.counts() == {"test_add": 1, "": 1}


def test_one_test_that_was_asked_for_alone_needs_no_name_in_the_output(agent: Agent) -> None:
    """`| tail -1` hides the name, but there was only one."""
    agent.start("test_add")
    agent.edit()
    last = run_pytest(agent.project.root, "-q", "test_calc.py::test_add").stdout.splitlines()[-1]
    assert "1 failed" in last
    assert agent.ran("pytest -q test_calc.py::test_add | tail -1", last, 0)[0] == "tell"
    agent.edit()
    assert agent.ran("pytest -q test_calc.py | tail -1", last, 0) == ("allow", "")
    assert agent.counts() == {"test_add": 1, "": 1}


# -- what does not --------------------------------------------------------------------------------------------------


def test_a_look_is_no_attempt(agent: Agent, red: str) -> None:
    """The red test before the work, the same again with more output, and the baseline after the work was put aside."""
    agent.start("test_add")
    before = (agent.project.root / "calc.py").read_text()
    assert agent.pytest("-q") == ("allow", "")
    agent.edit()
    assert agent.pytest("-vv --tb=long")[0] == "tell"
    assert agent.pytest("-q") == ("allow", "")
    assert agent.ran("pytest -q --lf", red) == ("allow", "")
    (agent.project.root / "calc.py").write_text(before)
    assert agent.ran("pytest -q", red) == ("allow", "")
    assert agent.counts() == {"test_add": 1, "": 1}


def test_by_products_of_a_run_are_no_change(agent: Agent, red: str) -> None:
    """Where nobody ignores caches and logs, a look would otherwise always come after a change."""
    agent.start("test_add")
    agent.edit()
    agent.ran("pytest -q", red)
    (agent.project.root / "__pycache__").mkdir(exist_ok=True)
    (agent.project.root / "__pycache__" / "calc.cpython-311.pyc").write_bytes(os.urandom(64))
    (agent.project.root / "run.log").write_text("12:00 failed\n")
    assert agent.ran("pytest -q", red) == ("allow", "")
    assert agent.counts() == {"test_add": 1, "": 1}


def test_of_several_tests_that_fail_in_one_run_only_the_one_that_is_worked_on_counts(agent: Agent, red: str) -> None:
    """Started together they are taken in that order; one that is started after work was done is the one now."""
    agent.start("test_add", "test_sub")
    agent.edit()
    agent.ran("pytest -q", red)
    assert agent.counts() == {"test_add": 1, "test_sub": 0, "": 1}
    agent.edit()
    agent.ran("pytest -q -k test_sub", red)
    assert agent.counts() == {"test_add": 1, "test_sub": 1, "": 2}
    agent.edit()
    agent.start("test_add", slice_id="S-2")
    agent.edit()
    agent.ran("pytest -q", red)
    assert agent.counts() == {"test_add": 1, "test_sub": 1, "": 2}, "the newest slice is the one that is worked on"
    assert agent.counts("S-2") == {"test_add": 1, "": 1}


def test_a_test_that_was_started_later_is_the_one_that_is_worked_on(agent: Agent, red: str) -> None:
    """The first was given up for now; it goes on failing in every run of everything."""
    agent.start("test_add")
    agent.edit()
    agent.ran("pytest -q", red)
    agent.start("test_sub")
    for number in (1, 2):
        agent.edit()
        agent.ran("pytest -q", red)
        assert agent.counts() == {"test_add": 1, "test_sub": number, "": 1 + number}


def test_a_test_that_could_not_run_moves_no_counter(agent: Agent) -> None:
    """A syntax error, and the same looked at again: on record once, and no attempt."""
    agent.start("test_add")
    agent.edit("def add(a, b:\n")
    for _ in range(3):
        assert agent.pytest("-q test_calc.py::test_add") == ("allow", "")
    assert agent.counts() == {"test_add": 0, "": 0}


def test_a_broken_fixture_is_an_infrastructure_error_of_the_report(agent: Agent) -> None:
    agent.start("test_add")
    (agent.project.root / "conftest.py").write_text(BROKEN)
    for _ in range(2):
        assert agent.pytest("-q") == ("allow", "")
    found = agent.project.json("attempt", "status", "S-1")["infrastructure_errors"]
    assert [(one["test"], one["kind"]) for one in found] == [("test_add", "network")]
    assert agent.counts() == {"test_add": 0, "": 0}


def test_runs_that_say_nothing_about_a_started_test_count_nowhere(agent: Agent, red: str, tmp_path: Path) -> None:
    """Each of them could be taken for an attempt by whoever reads only a part of it."""
    agent.start("test_add")
    agent.edit()
    cut = red[: red.index("short test summary")]
    for command, output, code in (
        ("cat last_run.txt", red, 0),
        ("grep FAILED last_run.txt", red, 0),
        ("git log -p", red, 0),
        ("ruff check .", "calc.py:1:1: F401 unused\n", 1),
        ("pytest -q", cut, 1),
        ("pytest -q", "", 1),
        ("pytest -q", "2 failed in 0.05s\n", 1),
        ("pytest -q", red.replace("test_add", "test_other"), 1),
        ("pytest -q other.py", "3 passed in 0.01s\n", 0),
        ("pytest -q -m slow", "3 passed, 2 deselected in 0.01s\n", 0),
        ("fusewire attempt run S-1 test_add -- pytest -q", red, 1),
        ("pytest -q > out.txt; fusewire attempt record S-1 test_add --fail --error-file out.txt", red, 0),
        (f"cd {tmp_path} && pytest -q", red, 1),
        ("cd \"$ELSEWHERE\" && pytest -q", red, 1),
        (f"pytest -q {tmp_path}", red, 1),
        (f"pytest -q --rootdir={tmp_path}", red, 1),
    ):  # fmt: skip
        assert agent.ran(command, output, code) == ("allow", ""), command
    assert agent.ran("pytest -q", red, cwd=str(tmp_path)) == ("allow", "")
    assert agent.ran("pytest -q", red, input={"run_in_background": True}) == ("allow", "")
    interrupted = agent.event("pytest -q", result=None, failed=None)
    assert said(slices.after_call(interrupted, None, agent.home)) == ("allow", "")
    refused = agent.event("pytest -q", result=f"PreToolUse:Bash hook error: {red}", failed=None)
    assert said(slices.after_call(refused, None, agent.home)) == ("allow", "")
    assert agent.counts() == {"test_add": 0, "": 0}
    assert agent.ran("pytest -q", red)[0] == "tell", "and the very same output of a real run does count"


def test_a_green_run_is_no_pass_of_a_test_that_was_taken_out(agent: Agent) -> None:
    """Deleting the test is no way to pass it."""
    agent.start("test_add")
    agent.edit()
    agent.pytest("-q")
    agent.edit("def add(a, b):\n    return 0\n\n\ndef sub(a, b):\n    return a - b\n")
    (agent.project.root / "test_calc.py").write_text(f"from calc import sub\n\n\n{SUB}")
    assert agent.pytest("-q") == ("allow", "")
    assert agent.counts() == {"test_add": 1, "": 1}


def test_other_sessions_and_projects_without_a_slice_are_left_alone(agent: Agent, red: str) -> None:
    """A slice of an agent holds for its session; a person's for all; and without one nothing is even looked at."""
    assert agent.ran("pytest -q", red) == ("allow", "")
    assert not (agent.project.root / ".fusewire" / "attempts.lock").exists()
    agent.start("test_add")
    other = Agent(agent.project, "another-session", edits=10)
    other.edit()
    assert other.ran("pytest -q", red) == ("allow", "")
    assert agent.project.run("attempt", "start", "S-1", "test_add").returncode == 0
    assert other.ran("pytest -q", red)[0] == "tell"


def test_two_runs_that_end_together_are_one_attempt(agent: Agent, red: str) -> None:
    """The hook hears of one call twice, alone and in its batch, and of calls at the same time."""
    import threading

    agent.start("test_add")
    agent.edit()
    threads = [threading.Thread(target=agent.ran, args=("pytest -q", red)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agent.counts() == {"test_add": 1, "": 1}
    assert sorted(action for action, _ in agent.said) == ["allow", "allow", "allow", "tell"], agent.said


def test_while_one_run_is_counted_others_wait_and_say_so(
    agent: Agent, red: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "_QUEUE", 0.05)
    agent.start("test_add")
    agent.edit()
    with FileLock(os.path.join(agent.home, ".fusewire", "attempts.lock")):
        action, text = agent.ran("pytest -q", red)
    assert (action, "another process is counting" in text) == ("allow", True)
    assert agent.counts() == {"test_add": 0, "": 0}


def test_a_retry_starts_the_counts_here_anew_as_well(agent: Agent, red: str) -> None:
    """What was counted before the retry says nothing about files that went back with it."""
    agent.start("test_add")
    for _ in range(3):
        agent.edit()
        agent.ran("pytest -q", red)
    assert agent.project.run("attempt", "retry", "S-1", "--guidance", "think").returncode == 0
    agent.start("test_add")
    assert agent.ran("pytest -q", red) == ("allow", "")
    agent.edit()
    assert "1 of 3" in agent.ran("pytest -q", red)[1]


def test_an_attempt_of_the_same_number_before_a_retry_is_another_one(agent: Agent, red: str) -> None:
    """One was counted here; after the retry the first was recorded by hand, and a look is still a look."""
    agent.start("test_add")
    agent.edit()
    agent.ran("pytest -q", red)
    agent.project.run("attempt", "arch-stop", "S-1", "--reason", "needs a table")
    assert agent.project.run("attempt", "retry", "S-1").returncode == 0
    agent.start("test_add")
    agent.edit()
    agent.project.run("attempt", "record", "S-1", "test_add", "--fail")
    assert agent.ran("pytest -q", red) == ("allow", "")
    assert agent.counts() == {"test_add": 1, "": 1}


# -- counted once ---------------------------------------------------------------------------------------------------


def test_what_was_counted_here_is_not_counted_again_by_hand(agent: Agent, red: str) -> None:
    """An agent that reports its attempts dutifully would otherwise have three with two."""
    agent.start("test_add")
    agent.edit()
    agent.ran("pytest -q", red)
    action, text = agent.asks("fusewire attempt record S-1 test_add --fail --strategy 'check first'")
    assert action == "deny"
    assert text.startswith("BLOCKED attempt.counted: ")
    assert agent.asks("fusewire attempt run S-1 test_add -- pytest -q") == ("allow", "")  # it counts by itself
    assert agent.asks("fusewire attempt record S-1 test_add --pass") == ("allow", "")
    assert agent.asks("fusewire attempt record S-1 test_sub --fail") == ("allow", "")
    assert agent.asks("fusewire attempt status S-1") == ("allow", "")
    agent.edit()
    assert agent.asks("fusewire attempt run S-1 test_add -- pytest -q") == ("allow", "")


def test_what_was_counted_by_hand_is_not_counted_again_here(agent: Agent, red: str) -> None:
    """A cycle of `attempt run`, and then a look with the runner itself."""
    agent.start("test_add")
    agent.edit()
    command = (
        "attempt",
        "run",
        "S-1",
        "test_add",
        "--",
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    )
    assert agent.project.run(*command, env={"CLAUDE_CODE_SESSION_ID": SESSION}).returncode == 1
    assert agent.ran("pytest -q", red) == ("allow", "")
    assert agent.counts() == {"test_add": 1, "": 1}
    agent.edit()
    assert "2 of 3" in agent.ran("pytest -q", red)[1]


# -- a stopped test -------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(agent: Agent, red: str) -> Agent:
    agent.start("test_add", "test_sub")
    for _ in range(3):
        agent.edit()
        agent.ran("pytest -q -k test_add", red)
    assert agent.counts() == {"test_add": 3, "test_sub": 0, "": 3}
    return agent


def test_a_stopped_test_is_told_once_and_then_refused_until_a_person_speaks(stopped: Agent) -> None:
    """By its name only: runs of everything, other tests, looks and edits stay free."""
    action, text = stopped.asks("pytest -q test_calc.py::test_add")
    assert action == "tell"
    assert "the next one of this test is refused" in text
    for command in ("pytest -q test_calc.py::test_add", "pytest -k test_add -x", "python -m pytest -q -k 'test_add'"):
        action, text = stopped.asks(command)
        assert action == "deny", command
        assert text.startswith("BLOCKED attempt.test:S-1/test_add: 3 failed attempts at this test (limit 3).")
        assert "fusewire attempt retry S-1" in text
    for command in (
        "pytest -q", "pytest -q test_calc.py", "pytest -q test_calc.py::test_sub", "pytest -k 'not test_add'",
        "grep -n test_add test_calc.py", "git diff", "fusewire attempt report S-1",
    ):  # fmt: skip
        assert stopped.asks(command) == ("allow", ""), command
    slices.spoken(Event("prompt", session="another-session", text="hello"), stopped.home)
    assert stopped.asks("pytest -k test_add")[0] == "deny"
    slices.spoken(Event("prompt", session=SESSION, text="look at it once more"), stopped.home)
    assert [stopped.asks("pytest -k test_add")[0] for _ in range(2)] == ["tell", "deny"]


def test_a_stopped_test_that_goes_on_failing_in_runs_of_everything_moves_nothing(stopped: Agent, red: str) -> None:
    """Or the slice's total would fill up with it; the next test is the one that is worked on."""
    for number in (1, 2):
        stopped.edit()
        action, text = stopped.ran("pytest -q", red)
        assert (action, f"test_sub failed, and this run was counted: {number} of 3" in text) == ("tell", True)
    assert stopped.counts() == {"test_add": 3, "test_sub": 2, "": 5}


def test_another_session_is_not_refused(stopped: Agent) -> None:
    other = Agent(stopped.project, "another-session")
    assert [other.asks("pytest -k test_add")[0] for _ in range(3)] == ["allow"] * 3


# -- when something is wrong ----------------------------------------------------------------------------------------


def test_damaged_memories_start_anew(agent: Agent, red: str) -> None:
    """Nothing raises, and what is counted by the circuits stays."""
    agent.start("test_add")
    agent.edit()
    agent.ran("pytest -q", red)
    attempts = Attempts.open(agent.home)
    for data in ({"tests": [], "life": 0}, {"tests": {"test_add": 3, "x": {}}, "life": 0}, {"life": "x"}):
        with attempts.breaker.store.transact() as transaction:
            transaction.remember("attempt-seen:S-1", data, 1.0)
        assert agent.ran("pytest -q", red) == ("allow", "")
    agent.edit()
    assert "2 of 3" in agent.ran("pytest -q", red)[1]


def test_a_look_that_never_ended_is_not_begun_again(agent: Agent, red: str) -> None:
    """The hook ran out of time once; it must not do so at every test run."""
    agent.start("test_add")
    agent.edit()
    attempts = Attempts.open(agent.home)
    with attempts.breaker.store.transact() as transaction:
        transaction.remember("attempt-seen:S-1", {"life": 0, "tests": {}, "looking": True}, 1.0)
    assert agent.ran("pytest -q", red) == ("allow", "")
    assert agent.counts() == {"test_add": 0, "": 0}


def test_a_project_without_git_counts_too(tmp_path: Path, red: str) -> None:
    found = Agent(Project(tmp_path))
    (tmp_path / "test_calc.py").write_text(TESTS)
    found.edit()
    found.start("test_add", "test_sub")
    assert found.ran("pytest -q", red) == ("allow", "")
    found.edit()
    assert found.ran("pytest -q", red)[0] == "tell"
    assert found.ran("pytest -q", red) == ("allow", "")
    assert found.counts()[""] == 1


# -- words of command lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "test", "asked"),
    [
        ("pytest tests/test_login.py::test_login", "test_login", True),
        ("pytest tests/test_login.py::TestX::test_login", "TestX.test_login", True),
        ("pytest -k test_login", "tests/test_login.py::test_login", True),
        ("pytest -k 'test_login or test_logout'", "test_logout", True),
        ("pytest '-k=test_login'", "test_login", True),
        ("go test -run '^TestLogin$' ./...", "TestLogin", True),
        ("npx jest -t 'returns 409'", "users > returns 409", True),
        ("python -m unittest tests.users.Case.test_login", "test_login", True),
        ("pytest tests/test_login.py", "test_login", False),
        ("pytest tests/test_login", "test_login", False),
        ("pytest -k 'not test_login'", "test_login", False),
        ("pytest -k test_login_twice", "test_login", False),
        ("pytest tests/test_x.py::test_other", "test_login", False),
        ("pytest --junitxml=test_login.xml", "test_login", False),
        ("pytest", "test_login", False),
    ],
)
def test_a_command_asks_for_a_test_by_its_name_and_not_by_its_file(command: str, test: str, asked: bool) -> None:
    event = Event("before_tool", tool="Bash", command=command)
    running = running_tests(event, commands_of(event), "/")
    assert running
    assert asks_for(running, test) is asked


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("pytest -q", True), ("python -m pytest", True), ("pytest tests", True), ("pytest tests/test_a.py", True),
        ("npm test", True), ("make test", True), ("go test ./...", True), ("pytest .", True),
        ("pytest -k test_a", True),
        ("pytest tests/test_b.py", False), ("pytest -m slow", False), ("pytest -k other", False),
        ("pytest --lf", False), ("npx jest login", False), ("pytest tests/test_a.py::test_z", False),
    ],
)  # fmt: skip
def test_a_green_run_covers_a_test_only_if_it_must_have_had_it(tmp_path: Path, command: str, whole: bool) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / "tests" / name).write_text("")
    event = Event("after_tool", tool="Bash", command=command, cwd=str(tmp_path))
    running = running_tests(event, commands_of(event), str(tmp_path))
    assert covers(running, "test_a", ["tests/test_a.py"], str(tmp_path), str(tmp_path)) is whole


# -- phases ---------------------------------------------------------------------------------------------------------


def edit_event(path: str = "calc.py", **more: Any) -> Event:
    return Event("before_tool", tool="Edit", paths=(path,), **{"session": SESSION, **more})


def open_green(project: Project) -> None:
    for _ in range(3):
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=1")
    assert project.json("phase", "status")["state"] == "OPEN"


def begin(agent: Agent, command: str, failed: bool = False) -> None:
    phasing.after_call(agent.event(command, result="", failed=failed), None, agent.home)


def test_an_open_phase_stops_the_edits_of_the_session_that_began_it(agent: Agent) -> None:
    """Told, refused, and free again once a person has decided."""
    assert agent.project.run("phase", "begin", "GREEN").returncode == 0
    begin(agent, "fusewire phase begin green && ls")
    assert said(phasing.before_call(edit_event(), agent.home)) == ("allow", "")
    open_green(agent.project)
    action, text = said(phasing.before_call(edit_event(), agent.home))
    assert action == "tell"
    assert "further ones are refused" in text
    for _ in range(2):
        action, text = said(phasing.before_call(edit_event(), agent.home))
        assert action == "deny"
        assert text.startswith("BLOCKED phase.GREEN: No progress for 2 iterations.")
        assert "fusewire phase resolve" in text
    assert said(phasing.before_call(agent.event("pytest -q", kind="before_tool"), agent.home)) == ("allow", "")
    assert agent.project.run("phase", "resolve", "reset").returncode == 0
    assert said(phasing.before_call(edit_event(), agent.home)) == ("allow", "")


def test_an_open_phase_is_nobody_elses_business(agent: Agent) -> None:
    """Another session, one that only tried to begin, and one whose person has said something since."""
    agent.project.run("phase", "begin", "GREEN")
    begin(agent, "fusewire phase begin GREEN")
    begin(Agent(agent.project, "tried"), "fusewire phase begin GREEN", failed=True)
    begin(Agent(agent.project, "status"), "fusewire phase status")
    open_green(agent.project)
    for session in ("another-session", "tried", "status", None):
        assert said(phasing.before_call(edit_event(session=session), agent.home)) == ("allow", "")
    assert said(phasing.before_call(edit_event(), agent.home))[0] == "tell"
    assert said(phasing.before_call(edit_event(), agent.home))[0] == "deny"
    phasing.spoken(Event("prompt", session=SESSION, text="write the release notes now"), agent.home)
    assert said(phasing.before_call(edit_event(), agent.home)) == ("allow", "")


def test_without_phases_nothing_is_written_or_said(agent: Agent) -> None:
    begin(agent, "fusewire phase begin GREEN")
    assert said(phasing.before_call(edit_event(), agent.home)) == ("allow", "")
    phasing.spoken(Event("prompt", session=SESSION, text="hello"), agent.home)
    assert not (agent.project.root / ".fusewire").exists()
