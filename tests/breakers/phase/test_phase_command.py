"""`fusewire phase` as people, scripts and agents use it: bad input, test runs, the four choices, JSON."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.phase.phases import Phases
from fusewire.cli.app import main
from fusewire.engine.breaker import Breaker
from tests.helpers import ROOT
from tests.helpers.project import Project

SESSION = ".prp-session"
FILE = f"{SESSION}/circuit-breaker.json"


def saved(project: Project) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project.root / FILE).read_text())
    return data


def beside(project: Project) -> list[str]:
    """What is in the session's folder; the rule for git is not looked at here."""
    return sorted(name for name in os.listdir(project.root / SESSION) if name != ".gitignore")


def open_green(project: Project) -> None:
    """Two ends of GREEN without progress; 3 of 10 tests pass."""
    with Breaker.open(project=project.root) as breaker:
        for passing in (3, 3, 3):
            Phases(breaker).end("GREEN", {"tests_passing": passing, "tests_failing": 10 - passing})


def junit(project: Project, passed: int, failed: int, skipped: int = 0, broken: int = 0) -> str:
    cases = [f'<testcase classname="t" name="ok_{n}"/>' for n in range(passed)]
    cases += [f'<testcase classname="t" name="bad_{n}"><failure message="x"/></testcase>' for n in range(failed)]
    cases += [f'<testcase classname="t" name="skip_{n}"><skipped/></testcase>' for n in range(skipped)]
    cases += [f'<testcase name="b_{n}"><error message="collection failure"/></testcase>' for n in range(broken)]
    (project.root / "report.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return "report.xml"


# -- bad input ----------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, list[str], int, str]] = [
    ("GREEN", ["--metric", "tests_passing=-1"], 1, "tests_passing='-1' is refused; allowed: a whole number from 0"),
    ("GREEN", ["--metric", "tests_passing=1.5"], 1, "tests_passing='1.5' is refused"),
    ("GREEN", ["--metric", "tests_passing=three"], 1, "tests_passing='three' is refused"),
    ("GREEN", ["--metric", "tests_passing=\u0663"], 1, "is refused; allowed: a whole number"),
    ("GREEN", ["--metric", "tests_passing=99999999999"], 1, "is refused; allowed: a whole number from 0 to 1000000000"),
    ("GREEN", ["--metric", "tests_passing="], 1, "tests_passing='' is refused"),
    ("GREEN", ["--metric", "tests_passing"], 2, "'tests_passing' is refused; allowed: NAME=VALUE"),
    ("GREEN", ["--metric", "=3"], 2, "'=3' is refused; allowed: NAME=VALUE"),
    ("GREEN", ["--metric", " = 3"], 2, "' = 3' is refused; allowed: NAME=VALUE"),
    ("GREEN", ["--metric", ""], 2, "'' is refused; allowed: NAME=VALUE"),
    ("GREEN", ["--metric", "tests_passing=1=2"], 1, "tests_passing='1=2' is refused; allowed: a whole number"),
    ("GREEN", ["--metric", "coverage=3"], 1, "GREEN has no metric 'coverage'; allowed: tests_passing, tests_failing"),
    ("GREEN", ["--metric", "tests_generated=3"], 1, "GREEN has no metric 'tests_generated'"),
    ("GREEN", ["--metric", "tests_passing=1", "--metric", "tests_passing=2"], 1, "tests_passing is given twice"),
    ("GREEN", ["--metric", "tests_failing=1"], 1, "tests_failing alone is refused"),
    ("GREEN", ["--metric", "tests_passing=9", "--metric", "tests_total=8"], 1, "these tests do not add up"),
    ("REFACTOR", ["--metric", "pattern_applied=yes"], 1, "pattern_applied='yes' is refused; allowed: true or false"),
    (
        "REFACTOR",
        ["--metric", "complexity_score=nan"],
        1,
        "complexity_score='nan' is refused; allowed: a number from 0",
    ),
    ("REFACTOR", ["--metric", "complexity_score=inf"], 1, "complexity_score='inf' is refused"),
    (
        "RED",
        ["--metric", "tests_generated=1", "--metric", "progress_percent=101"],
        1,
        "allowed: a number from 0 to 100",
    ),
    (
        "GREEN",
        ["--from-junit", "missing.xml"],
        1,
        "the test results cannot be read: missing.xml: No such file or directory",
    ),
    ("GREEN", ["--from-junit", "README"], 1, "README: no JUnit XML"),
    ("GREEN", ["--from-junit", "."], 1, "the test results cannot be read: .: Is a directory"),
    ("GREEN", ["--from-output", "README"], 1, "README: no test run in it"),
    ("GREEN", ["--from-junit", "report.xml", "--metric", "tests_passing=9"], 1, "by --metric and by --from-junit"),
    ("GREEN", [], 2, "nothing to judge GREEN by; give --metric with one of tests_passing, tests_failing"),
    ("DOCUMENT", [], 2, "one of docs_generated, diagrams_valid, or --error"),
    ("REFACTOR", ["--from-junit", "report.xml"], 2, "nothing to judge REFACTOR by"),
    ("RED", ["--metric", "files_created=3"], 2, "nothing to judge RED by"),
    ("GREEN", ["--from-junit", "report.xml", "--from-output", "-"], 2, "either --from-junit or --from-output"),
    ("GREEN", ["--error", "  "], 2, "--error must say what failed"),
    ("GREEN", ["--metric", "tests_passing=1", "--error-type", "X"], 2, "--error-type needs --error"),
    ("BLUE", ["--error", "x"], 2, "'BLUE' is not one of 'RED', 'GREEN', 'REFACTOR', 'DOCUMENT'"),
]


@pytest.mark.parametrize(("phase", "options", "code", "text"), REFUSED)
def test_what_cannot_be_judged_is_refused_in_one_line_and_not_counted(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    phase: str,
    options: list[str],
    code: int,
    text: str,
) -> None:
    """Exit 1 or 2, what is allowed, no traceback, no block, no state."""
    (project.root / "README").write_text("Prose about <xml> and 3 passed tests.\n")
    junit(project, 1, 1)
    monkeypatch.chdir(project.root)
    assert main(["phase", "end", phase, *options]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert text in said.err.splitlines()[-1]
    assert not (project.root / FILE).exists()


def test_names_of_phases_in_any_case(project: Project) -> None:
    assert project.run("phase", "begin", "rEd").returncode == 0
    assert project.json("phase", "end", "red", "--metric", "tests_generated=1")["phase"] == "RED"


# -- test runs ----------------------------------------------------------------------------------------------------


def test_metrics_from_junit(project: Project) -> None:
    """Broken tests fail, skipped ones are no part of the total that counts; RED generates as many as there are."""
    tests = project.json("phase", "end", "GREEN", "--from-junit", junit(project, 4, 2, skipped=3, broken=1))["tests"]
    assert tests == {"total": 10, "passing": 4, "failing": 3, "skipped": 3}
    # two failing tests are skipped: fewer fail, of a smaller total
    ended = project.json("phase", "end", "GREEN", "--from-junit", junit(project, 4, 0, skipped=5, broken=1))
    assert (ended["progress"], ended["circuit_breaker"]["no_progress_count"]) == (False, 1)
    # one of the same is mended instead
    ended = project.json("phase", "end", "GREEN", "--from-junit", junit(project, 5, 2, skipped=3))
    assert (ended["progress"], ended["progress_percent"]) == (True, 50)
    ended = project.json("phase", "end", "RED", "--from-junit", junit(project, 0, 6))
    assert ended["reasons"] == ["tests_generated 0 -> 6"]


def test_metrics_from_a_real_run_of_pytest(project: Project) -> None:
    """Its output through a pipe, and its XML; the same counts."""
    (project.root / "test_a.py").write_text("def test_x(): pass\ndef test_y(): assert 1 == 2\n")
    tests = "-m pytest -q -p no:cacheprovider --junitxml=r.xml"
    script = f'"$0" {tests} | "$0" -m fusewire phase end GREEN --from-output - --json'
    command = ["bash", "-c", script, sys.executable]
    piped = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True)
    expected = {"total": 2, "passing": 1, "failing": 1, "skipped": 0}
    assert json.loads(piped.stdout)["tests"] == expected
    ended = project.json("phase", "end", "GREEN", "--from-junit", "r.xml")
    assert (ended["tests"], ended["progress"]) == (expected, False)


def pytest_run(project: Project, source: str, name: str = "test_a.py") -> None:
    """Run the real pytest on one file more; `r.xml` and `out.txt` have what it says."""
    (project.root / name).write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=r.xml"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False)
    (project.root / "out.txt").write_text(done.stdout)


@pytest.mark.parametrize("source", [["--from-junit", "r.xml"], ["--from-output", "out.txt"]])
def test_a_test_run_gives_the_error(project: Project, source: list[str]) -> None:
    """Message, type and count, though every iteration makes one more test pass."""
    failing = "def test_paid():\n    bill = {}\n    bill['sum']\n"
    for number in range(1, 4):
        pytest_run(project, failing + "".join(f"def test_{n}(): pass\n" for n in range(number)) + "\n" * number)
        ended = project.json("phase", "end", "GREEN", *source)
        assert ended["circuit_breaker"]["same_error_count"] == number
    assert ended["circuit_breaker"]["reason"] == "Same error repeated 3 times"
    block = project.run("phase", "begin", "GREEN").stdout
    assert re.search(r"^LAST_ERROR: .*test_paid: KeyError: 'sum'$", block, re.MULTILINE), block
    junit_text = "test_a::test_paid" if source[0] == "--from-junit" else "test_a.py::test_paid"
    digest = hashlib.sha256(f"{junit_text}: KeyError: 'sum'KeyError".encode()).hexdigest()
    assert saved(project)["last_error_hash"] == digest


def test_the_type_of_an_error_is_that_of_the_results(project: Project) -> None:
    """As surefire writes it: the message alone does not say it."""
    failure = (
        '<failure type="org.opentest4j.AssertionFailedError" message="expected: 409 but was: 500">at A.java</failure>'
    )
    case = f'<testcase classname="UserTest" name="conflict">{failure}</testcase>'
    (project.root / "r.xml").write_text(f"<testsuite>{case}</testsuite>")
    for _ in range(2):
        project.run("phase", "end", "GREEN", "--from-junit", "r.xml")
    block = project.run("phase", "begin", "GREEN").stdout
    said = "UserTest::conflict: org.opentest4j.AssertionFailedError: expected: 409 but was: 500"
    assert f"LAST_ERROR: {said}\n" in block
    assert saved(project)["last_error_hash"] == hashlib.sha256(f"{said}AssertionFailedError".encode()).hexdigest()


def test_fewer_failing_tests_are_another_error(project: Project) -> None:
    """Ten honest iterations, each of which makes one test more pass, with the same message in all that fail."""
    for mended in range(10):
        tests = "".join(f"def test_{n}(): assert {n} < {mended} or 0\n" for n in range(10))
        pytest_run(project, tests)
        ended = project.json("phase", "end", "GREEN", "--from-junit", "r.xml")
        assert ended["circuit_breaker"]["same_error_count"] == 1
    assert ended["circuit_breaker"]["state"] == "CLOSED"


def test_red_tests_are_no_error_while_they_grow(project: Project) -> None:
    """Each file imports what is not there yet: eight times the same error, and RED is meant to bring it."""
    for number in range(8):
        pytest_run(project, "import not_yet_written\ndef test_it(): pass\n", f"test_{number}.py")
        ended = project.json("phase", "end", "RED", "--from-output", "out.txt")
        assert (ended["circuit_breaker"]["same_error_count"], ended["progress"]) == (0, True)
    for _ in range(3):
        ended = project.json("phase", "end", "RED", "--from-output", "out.txt")
    assert ended["circuit_breaker"]["state"] == "OPEN"
    begun = project.run("phase", "begin", "RED")
    assert "LAST_ERROR: test_0.py: ModuleNotFoundError: No module named 'not_yet_written'" in begun.stdout


def test_known_failures_are_no_error(project: Project) -> None:
    """A person has skipped GREEN with them; a sixth refactoring must not open a circuit for their sake."""
    pytest_run(project, "def test_ok(): pass\ndef test_known(): assert 1 == 2\n")
    for _ in range(3):
        project.run("phase", "end", "GREEN", "--from-junit", "r.xml")
    project.run("phase", "resolve", "skip")
    for _ in range(7):
        ended = project.json("phase", "end", "REFACTOR", "--from-junit", "r.xml", "--metric", "pattern_applied=true")
        assert ended["circuit_breaker"]["same_error_count"] == 0
    pytest_run(project, "def test_ok(): pass\ndef test_known(): assert 1 == 2\ndef test_new(): assert 3 == 4\n")
    ended = project.json("phase", "end", "REFACTOR", "--from-junit", "r.xml", "--metric", "pattern_applied=true")
    assert ended["circuit_breaker"]["same_error_count"] == 1


def test_a_build_that_breaks_before_any_test_is_an_error(project: Project) -> None:
    """No test ran: an iteration without progress, and its error is the compiler's."""
    rustc = "error[E0425]: cannot find value `x` in this scope\n --> src/main.rs:{0}:5\n  |\n"
    for line in (3, 4):
        (project.root / "out.txt").write_text(rustc.format(line))
        ended = project.json("phase", "end", "GREEN", "--from-output", "out.txt")
    assert (ended["circuit_breaker"]["same_error_count"], ended["status"]) == (2, "BLOCKED")
    block = project.run("phase", "begin", "GREEN").stdout
    assert "LAST_ERROR: src/main.rs: cannot find value `x` in this scope" in block


def test_an_error_that_is_given_goes_before_that_of_the_run(project: Project) -> None:
    pytest_run(project, "def test_x(): assert 1 == 2\n")
    given = ["--error", "timeout of the database", "--error-type", "TimeoutError"]
    project.run("phase", "end", "GREEN", "--from-junit", "r.xml", *given)
    assert saved(project)["last_error_hash"] == hashlib.sha256(b"timeout of the databaseTimeoutError").hexdigest()


def test_phases_are_opened_on_a_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its folder, or on the one around the current folder."""
    (project.root / "src").mkdir()
    Phases.open(project.root).end("GREEN", {"tests_passing": 1, "tests_failing": 2})
    monkeypatch.chdir(project.root / "src")
    assert Phases.open().view()["phase"] == "GREEN"


def test_complete_needs_metrics_that_agree(project: Project) -> None:
    """A phase that is not done stays in progress, and stderr says what is missing."""
    cases = [
        ("GREEN", ["tests_passing=3", "tests_total=4"], "1 of the tests fail"),
        ("GREEN", ["tests_passing=5"], "it is not known how many tests pass and fail"),
        ("REFACTOR", ["pattern_applied=true"], "it is not known how many tests pass and fail"),
        ("DOCUMENT", ["diagrams_valid=2"], "docs_generated is 0"),
    ]
    for phase, metrics, why in cases:
        options = [part for metric in metrics for part in ("--metric", metric)]
        ended = project.run("phase", "end", phase, *options, "--complete")
        assert ended.returncode == 0
        assert "STATUS: IN_PROGRESS\n" in ended.stdout
        assert "  GATE_1: false\n  GATE_2: true\n  CAN_EXIT: false\n" in ended.stdout
        assert ended.stderr == f"{phase} is not complete: {why}.\n"


@pytest.mark.parametrize("skipped", [0, 1])
@pytest.mark.parametrize(("phase", "idle"), [("GREEN", 1), ("REFACTOR", 2)])
def test_what_is_left_of_the_tests_completes_nothing(project: Project, phase: str, idle: int, skipped: int) -> None:
    """One of two passes; then the other is deleted, or skipped: neither complete nor progress. Both pass: it is."""
    metric = ["--metric", "pattern_applied=false"] if phase == "REFACTOR" else []
    end = ["phase", "end", phase, *metric, "--complete", "--from-junit"]
    project.run(*end, junit(project, 1, 1))
    ended = project.run(*end, junit(project, 1, 0, skipped=skipped))
    assert ended.returncode == 0
    assert "STATUS: IN_PROGRESS\n" in ended.stdout
    assert "  GATE_1: false\n  GATE_2: true\n  CAN_EXIT: false\n" in ended.stdout
    assert ended.stderr.endswith(f"{phase} is not complete: fewer tests ran than before (1, were 2).\n")
    assert saved(project)["no_progress_count"] == idle
    assert saved(project)["last_progress_metric"][phase]["tests_run"] == 2
    assert project.json(*end, junit(project, 2, 0, skipped=skipped))["status"] == "COMPLETE"


def test_fewer_tests_are_all_of_them_after_a_new_start(project: Project) -> None:
    """A person may have deleted some for good; and the first end has nothing to be compared with."""
    end = ["phase", "end", "GREEN", "--complete", "--from-junit"]
    assert project.json(*end, junit(project, 3, 0))["status"] == "COMPLETE"
    assert project.json(*end, junit(project, 4, 0))["status"] == "COMPLETE"
    assert project.json(*end, junit(project, 3, 0))["status"] == "IN_PROGRESS"
    assert project.run("phase", "start").returncode == 0
    assert project.json(*end, junit(project, 3, 0))["status"] == "COMPLETE"


#: case -> (what the second start of the agent does, the exit code, how often it was started)
SCRIPTED = {
    "mends": ("echo 'def test_x(): pass' > test_x.py", 0, 2),
    "does nothing": ("true", 3, 2),
    "no test run": ("true", 1, 1),
}


@pytest.mark.parametrize("case", SCRIPTED)
def test_the_script_of_the_page(project: Project, tmp_path: Path, case: str) -> None:
    """It ends when the tests pass, when an agent that changes nothing has opened the circuit, and when nothing can
    be judged; it starts no agent for ever. The guard would let an agent run its tests in the same way."""
    second, code, starts = SCRIPTED[case]
    page = (ROOT / "docs" / "phases.md").read_text()
    tools = tmp_path / "tools"
    tools.mkdir()
    agent = f'echo "$(cat)" >> "{tools}/told"\n[ $(wc -l < "{tools}/told") -lt 2 ] || {second}\n'
    tests = '-c "exit(1)"' if case == "no test run" else '-m pytest -p no:cacheprovider "$@"'
    programs = {"fusewire": '-m fusewire "$@"', "pytest": tests, "claude": agent}
    for name, text in programs.items():
        start = "" if name == "claude" else f'exec "{sys.executable}" '
        (tools / name).write_text(f"#!/bin/bash\n{start}{text}\n")
        (tools / name).chmod(0o755)
    (project.root / "test_x.py").write_text("def test_x(): assert 0\n")
    (project.root / "PROMPT.md").write_text("Go.")
    script = page.split("```bash\n")[1].split("```")[0]
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert (tools / "told").read_text() == "Go.\n" * starts
    halted = "CIRCUIT OPEN: Execution halted after 2 no-progress iterations" in done.stderr
    assert halted is (case == "does nothing")
    measures = "\n".join(line for line in script.splitlines() if "mktemp" in line or "pytest" in line)
    assert project.run("guard", "check", "--command", measures).returncode == 0


# -- the four choices ---------------------------------------------------------------------------------------------


def test_a_choice_without_an_open_circuit_is_an_invalid_transition(project: Project) -> None:
    """In CLOSED and in HALF_OPEN; nothing has changed."""
    nothing = "no phase is open; nothing to resolve"
    for choice in (["reset"], ["r"], ["skip"], ["modify", "--guidance", "x"]):
        result = project.run("phase", "resolve", *choice)
        assert (result.returncode, result.stderr) == (1, f"Error: Invalid transition from CLOSED: {nothing}\n")
    for _ in range(2):
        project.run("phase", "end", "RED", "--metric", "tests_generated=0")
    result = project.run("phase", "resolve", "s")
    assert (result.returncode, result.stderr) == (1, f"Error: Invalid transition from HALF_OPEN: {nothing}\n")
    assert saved(project)["no_progress_count"] == 2


def test_wrong_choices_are_wrong_usage(project: Project) -> None:
    open_green(project)
    for options in (["x"], ["modify"], ["modify", "--guidance", " "], ["reset", "--guidance", "x"], []):
        assert project.run("phase", "resolve", *options).returncode == 2
    assert saved(project)["state"] == "OPEN"


@pytest.mark.parametrize("arguments", [["resolve", "reset"], ["start"], ["import", "x"]])
def test_an_agent_cannot_resolve_its_own_breaker(project: Project, arguments: list[str]) -> None:
    """Exit 3, whatever it says; and `begin` does not ask it."""
    open_green(project)
    refused = project.run("phase", *arguments, env={"CLAUDECODE": "1"})
    assert refused.returncode == 3
    assert "is for a person at a terminal" in refused.stderr
    assert saved(project)["state"] == "OPEN"


def test_skip_marks_the_phase_complete_and_keeps_its_failures(project: Project) -> None:
    """The next begin of any phase names them; the skipped one is refused until a new cycle."""
    for _ in range(3):
        project.run("phase", "end", "GREEN", "--from-junit", junit(project, 1, 2))
    skipped = project.run("phase", "resolve", "s")
    assert skipped.stderr == "Circuit reset by user\nGREEN is marked complete, with 2 known failures.\n"
    begun = project.run("phase", "begin", "GREEN")
    assert (begun.returncode, begun.stdout) == (3, "")
    assert begun.stderr.splitlines()[:2] == [
        "BLOCKED GREEN: GREEN was skipped by a person and is marked complete.",
        "Go on with REFACTOR",
    ]
    begun = project.run("phase", "begin", "REFACTOR")
    assert (begun.returncode, begun.stdout) == (
        0,
        "Known failures, skipped with GREEN: 2\n  - t::bad_0\n  - t::bad_1\n",
    )
    assert project.run("phase", "begin", "GREEN").returncode == 3
    assert project.run("phase", "begin", "RED").returncode == 0
    assert project.run("phase", "begin", "GREEN").returncode == 0
    (known,) = project.json("phase", "status")["known_failures"]
    assert (known["phase"], known["count"], known["tests"]) == ("GREEN", 2, ["t::bad_0", "t::bad_1"])


def test_known_failures_do_not_keep_a_later_phase_from_being_complete(project: Project) -> None:
    """A person has accepted them; another failing test is another matter."""
    for _ in range(3):
        project.run("phase", "end", "GREEN", "--from-junit", junit(project, 1, 2))
    project.run("phase", "resolve", "skip")
    worse = project.run("phase", "end", "REFACTOR", "--from-junit", junit(project, 1, 3), *APPLIED, "--complete")
    assert "3 of the tests fail, and only 2 of these are known failures" in worse.stderr
    assert "STATUS: IN_PROGRESS" in worse.stdout
    done = project.run("phase", "end", "REFACTOR", "--from-junit", junit(project, 2, 2), *APPLIED, "--complete")
    assert "STATUS: COMPLETE" in done.stdout


APPLIED = ("--metric", "pattern_applied=true")


def test_skip_without_names_keeps_the_count(project: Project) -> None:
    open_green(project)
    assert project.json("phase", "resolve", "skip")["known"] == 7
    assert project.run("phase", "begin", "DOCUMENT").stdout == "Known failures, skipped with GREEN: 7\n"


def test_tests_of_red_that_fail_are_no_known_failures(project: Project) -> None:
    """They are meant to fail: skipping RED must not tell GREEN to leave them so."""
    for _ in range(4):
        project.run("phase", "end", "RED", "--from-junit", junit(project, 0, 5))
    assert project.json("phase", "resolve", "skip")["known"] == 0
    begun = project.run("phase", "begin", "GREEN")
    assert (begun.returncode, begun.stdout) == (0, "")


def test_guidance_has_an_end(project: Project) -> None:
    open_green(project)
    refused = project.run("phase", "resolve", "modify", "--guidance", "x" * 4001)
    assert (refused.returncode, refused.stderr) == (1, "Error: the guidance is too long; allowed: up to 4000 bytes\n")
    assert saved(project)["state"] == "OPEN"


def test_modify_gives_its_guidance_with_the_next_begin(project: Project) -> None:
    """Again after an interrupted begin, until the phase that was told has ended."""
    open_green(project)
    modified = project.run("phase", "resolve", "m", "--guidance", "Split the parser.\nFirst the tokens.")
    assert (modified.returncode, modified.stderr) == (0, "Circuit reset by user\n")
    told = "Guidance from a person:\nSplit the parser.\nFirst the tokens.\n"
    assert [project.run("phase", "begin", "GREEN").stdout for _ in range(2)] == [told, told]
    assert project.json("phase", "begin", "GREEN")["guidance"] == "Split the parser.\nFirst the tokens."
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=4")
    assert project.run("phase", "begin", "GREEN").stdout == ""


def test_guidance_that_nobody_was_told_waits(project: Project) -> None:
    """A script that only ends phases does not use it up."""
    open_green(project)
    project.run("phase", "resolve", "modify", "--guidance", "Think.")
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=4")
    assert "Think." in project.run("phase", "begin", "GREEN").stdout


@pytest.mark.parametrize("is_open", [True, False])
def test_abort_refuses_everything_until_a_new_start(project: Project, is_open: bool) -> None:
    """With or without an open circuit; other choices no longer help."""
    if is_open:
        open_green(project)
    aborted = project.run("phase", "resolve", "abort")
    assert aborted.returncode == 0
    assert aborted.stderr.startswith("Execution aborted by user\n")
    for phase in ("RED", "GREEN"):
        refused = project.run("phase", "begin", phase)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert "execution was aborted by" in refused.stderr
        assert "A person can start anew: fusewire phase start\n" in refused.stderr
    ended = project.run("phase", "end", "RED", "--metric", "tests_generated=1")
    assert ended.returncode == 3
    assert "STATUS: BLOCKED\n" in ended.stdout
    assert ended.stderr == "A person can start anew: fusewire phase start\n"
    for choice in ("reset", "abort"):
        assert project.run("phase", "resolve", choice).returncode == 1
    assert project.run("phase", "start").returncode == 0
    assert project.run("phase", "begin", "GREEN").returncode == 0


def test_a_new_start_is_fresh_and_keeps_the_old_file(project: Project) -> None:
    """Open, watched and counting circuits are closed with counters at 0; marks, history and guidance are gone."""
    for phase, metric in (("RED", "tests_generated=0"), ("DOCUMENT", "docs_generated=0")):
        for _ in range(2):
            project.run("phase", "end", phase, "--metric", metric, "--error", "KeyError: 'x'")
    open_green(project)
    old = (project.root / FILE).read_text()
    started = project.run("phase", "start", "--name", "the shop")
    (kept,) = [name for name in beside(project) if name != "circuit-breaker.json"]
    assert started.stderr == f"Started anew; the old state is kept as {SESSION}/{kept}.\n"
    assert (project.root / SESSION / kept).read_text() == old
    view = project.json("phase", "status")
    assert (view["name"], view["state"], view["phase"], view["guidance"]) == ("the shop", "CLOSED", None, "")
    for row in view["phases"]:
        assert (row["state"], row["no_progress_count"], row["same_error_count"], row["iterations"]) == (
            "CLOSED",
            0,
            0,
            0,
        )
    assert {entry["reason"] for entry in view["history"]} == {"New start by user"}
    assert saved(project)["last_progress_metric"]["GREEN"] == {"tests_passing": 0}
    assert project.run("phase", "end", "GREEN", "--metric", "tests_passing=1").returncode == 0


def test_ten_old_files_are_kept(project: Project) -> None:
    with Breaker.open(project=project.root) as breaker:
        phases = Phases(breaker)
        for _ in range(14):
            phases.end("RED", {"tests_generated": 1})
            phases.start("somebody")
        assert phases.warnings == []
    assert len(beside(project)) == 11


# -- looking ------------------------------------------------------------------------------------------------------


def test_json_for_programs(project: Project) -> None:
    """Every command; nothing else is on standard output."""
    assert project.json("phase", "begin", "GREEN") == {
        "decision": "ALLOWED",
        "phase": "GREEN",
        "state": "CLOSED",
        "reason": "",
        "open": None,
        "guidance": None,
        "known_failures": [],
        "next": [],
    }
    open_green(project)
    halted = project.json("phase", "begin", "RED")
    assert (halted["decision"], halted["state"], halted["reason"]) == (
        "BLOCKED",
        "OPEN",
        "No progress for 2 iterations",
    )
    assert halted["open"] == {
        "phase": "GREEN",
        "reason": "No progress for 2 iterations",
        "iterations": 3,
        "metric": {"name": "tests_passing", "value": 3, "total": 10, "before": 3},
        "last_error": None,
        "options": ["reset", "skip", "abort", "modify"],
    }
    ended = project.json("phase", "end", "GREEN", "--error", "x")
    assert (ended["status"], ended["circuit_breaker"]["state"], ended["exit_signal"]) == ("BLOCKED", "OPEN", False)
    assert project.json("phase", "resolve", "reset") == {
        "choice": "reset",
        "phase": "GREEN",
        "log": ["Circuit reset by user"],
        "known": 0,
    }


def test_status_for_a_person(project: Project) -> None:
    """States, counters, marks, known failures, guidance and the end of the history; looking changes nothing."""
    assert project.run("phase", "status").stdout.startswith("Phases: CLOSED, nothing has ended yet\n")
    assert not (project.root / FILE).exists()
    open_green(project)
    project.run("phase", "resolve", "modify", "--guidance", "Split it.")
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=3", "--error", "KeyError: 'x'")
    shown = project.run("phase", "status").stdout
    assert "  GREEN     CLOSED; 4 iterations; no progress 1 of 2, same error 1 of 3; best: tests_passing 3" in shown
    assert "last error: KeyError: 'x'" in shown
    assert "Guidance for the next begin: Split it." in shown
    assert "GREEN state_change OPEN -> CLOSED: Circuit reset by user" in shown


def test_the_thresholds_are_settings(project: Project) -> None:
    """And the blocks and log lines tell the one in force."""
    (project.root / "fusewire.toml").write_text("[phase]\nGREEN.no_progress_threshold = 3\n")
    codes = [project.run("phase", "end", "GREEN", "--metric", "tests_passing=0") for _ in range(3)]
    assert [done.returncode for done in codes] == [0, 0, 3]
    assert codes[1].stderr == "WARNING: No progress detected for 2 iterations\n"
    assert "  THRESHOLD: 3\n" in codes[2].stdout
    assert codes[2].stderr.startswith("CIRCUIT OPEN: Execution halted after 3 no-progress iterations\n")


def test_a_reset_by_the_other_command_is_followed(project: Project) -> None:
    """`fusewire reset phase/GREEN` closes the same circuit; the file and the history learn of it at once."""
    open_green(project)
    assert project.run("reset", "phase/GREEN", "--reason", "x").returncode == 0
    now = saved(project)
    assert [now[key] for key in ("state", "no_progress_count", "open_reason")] == ["CLOSED", 0, None]
    assert now["history"][-1]["reason"] == "Circuit reset by user"
    assert project.run("phase", "begin", "GREEN").returncode == 0
    assert saved(project) == now


def test_a_violation_by_the_other_command_is_followed_too(project: Project) -> None:
    """`fusewire record phase/GREEN` is seen in the file of a project that works in phases, and makes none in others."""
    for _ in range(2):
        project.run("record", "phase/GREEN", "--action", "x")
    assert not (project.root / SESSION).exists()
    assert project.run("phase", "begin", "GREEN").returncode == 3
    project.run("reset", "phase/GREEN")
    assert saved(project)["state"] == "CLOSED"
    project.run("record", "phase/GREEN", "--action", "x")
    project.run("record", "phase/GREEN", "--action", "x")
    assert (saved(project)["state"], saved(project)["phase"]) == ("OPEN", "GREEN")
