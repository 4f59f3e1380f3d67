"""Seed 004 by the command line: 3 failures of a test, 7 of a slice, the report, rule 4 first, the counter reset."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers import DATA
from tests.helpers.project import Project

GOLDEN = DATA / "attempt_golden"

#: The tracking state has these fields, in this order.
STATE = (
    "slice_id test_name attempt_count files_touched description last_error checkpoint_tag total_failed_attempts".split()
)

REPORT = (
    "test_expectation actual_error attempt_log cumulative_files_modified scope_violations best_hypothesis"
    " specific_question recovery_options".split()
)

MIND = (
    "--test-expectation",
    "login answers 409 when the email is taken",
    "--best-hypothesis",
    "the contract and the test name different keys",
    "--specific-question",
    "Which key is canonical?",
)


@pytest.fixture
def slice_project(project: Project) -> Project:
    """A repository with one commit and one module."""
    (project.root / "app.py").write_text("def answer():\n    return 1\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    return project


def git(project: Project, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *identity, *arguments], cwd=project.root, capture_output=True, text=True, check=True)
    return done.stdout


def attempt(project: Project, *arguments: str, expect: int = 0, env: dict[str, str] | None = None) -> str:
    result = project.run("attempt", *arguments, env=env)
    assert result.returncode == expect, (arguments, result)
    assert "Traceback" not in result.stderr
    return result.stdout + result.stderr


def fail(project: Project, test: str, slice_id: str = "S-1", expect: int = 0, strategy: str = "") -> str:
    return attempt(project, "record", slice_id, test, "--fail", "--strategy", strategy, expect=expect)


def state(project: Project, test: str, slice_id: str = "S-1") -> dict[str, Any]:
    found = project.json("attempt", "status", slice_id, test)["tests"][0]
    assert list(found) == STATE
    return dict(found)


def run_tests(project: Project, *more: str, test: str = "test_status") -> dict[str, Any]:
    """One `attempt run` of the real pytest, which leaves its results in the tree."""
    command = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=results.xml")
    done = project.run("attempt", "run", "S-1", test, "--json", *more, "--", *command)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def answers(project: Project, code: int) -> None:
    (project.root / "app.py").write_text(f"def status():\n    return {code}\n")


@pytest.fixture
def status_project(slice_project: Project) -> Project:
    """One that answers 200 where its test wants 409."""
    answers(slice_project, 200)
    test = "from app import status\ndef test_status():\n    assert status() == 409\n"
    (slice_project.root / "test_app.py").write_text(test)
    git(slice_project, "add", "-A")
    git(slice_project, "commit", "-q", "-m", "red")
    return slice_project


# -- section 1 and 2: counting ----------------------------------------------------------------------------


def test_a_test_stops_at_its_third_failure_and_not_at_the_second(slice_project: Project) -> None:
    """Then the attempts at it are refused; other tests of the slice may go on."""
    attempt(slice_project, "start", "S-1", "test_a")
    fail(slice_project, "test_a")
    assert "one more failed attempt stops the work on this test" in fail(slice_project, "test_a")
    said = fail(slice_project, "test_a", expect=3)
    assert "3 failed attempts at this test (limit 3)" in said
    assert "fusewire attempt report S-1" in said
    assert "attempt.test:S-1/test_a" in attempt(slice_project, "start", "S-1", "test_a", expect=3)
    attempt(slice_project, "start", "S-1", "test_b")
    assert (
        state(slice_project, "test_a")["attempt_count"],
        state(slice_project, "test_a")["total_failed_attempts"],
    ) == (
        3,
        3,
    )


def test_a_run_on_an_unchanged_tree_is_no_attempt(status_project: Project) -> None:
    """Neither before the first change nor after an attempt, however often; a change and a run are one."""
    attempt(status_project, "start", "S-1", "test_status")
    for code in (200, 500, 501):
        answers(status_project, code)
        for look in range(2):
            found = run_tests(status_project)
            assert (found["result"], found["counted"]) == ("fail", code != 200 and not look), (code, look, found)
    found = state(status_project, "test_status")
    assert (found["attempt_count"], found["total_failed_attempts"]) == (2, 2)
    command = ("run", "S-1", "test_status", "--", "false")
    said = attempt(status_project, *command, expect=1)
    assert "test_status: FAIL (no attempt: no file was changed since the last attempt)" in said
    git(status_project, "stash", "-q", "-u")
    assert "no file was changed since the attempts began" in attempt(status_project, *command, expect=1)
    answers(status_project, 409)
    assert run_tests(status_project)["result"] == "pass"


def test_a_third_change_that_fails_still_stops_the_test(status_project: Project) -> None:
    """Also where a run that could not start, or the pass of another test, came between the change and its run."""
    attempt(status_project, "start", "S-1", "test_status")
    for code in (500, 501, 502):
        answers(status_project, code)
        assert run_tests(status_project, test="test_nowhere")["result"] == "infra"
        attempt(status_project, "record", "S-1", "test_other", "--pass")
        stops = run_tests(status_project)["stops"]
    assert [stop["rule"] for stop in stops] == ["attempt.test:S-1/test_status"]


def test_every_test_that_fails_after_a_change_has_an_attempt(status_project: Project) -> None:
    """A run of one test says nothing of another's."""
    for test in ("test_status", "test_more"):
        attempt(status_project, "start", "S-1", test)
    with open(status_project.root / "test_app.py", "a", encoding="utf-8") as file:
        file.write("def test_more():\n    assert 1 == 2\n")
    assert [run_tests(status_project, test=test)["counted"] for test in ("test_status", "test_more")] == [True, True]
    assert state(status_project, "test_more")["total_failed_attempts"] == 2


def test_the_loop_rules_see_runs_on_an_unchanged_tree(status_project: Project) -> None:
    """They are no attempts, and no way to grind either: a session that repeats one is refused."""
    attempt(status_project, "start", "S-1", "test_status")
    answers(status_project, 500)
    command = f"fusewire attempt run S-1 test_status -- {sys.executable} -m pytest -q"
    for number in range(3):
        asked = status_project.bash(command, tool_use_id=f"toolu_{number}")
        assert status_project.hook(asked).returncode == 0
        done = status_project.run(*command.split()[1:])
        error = f"Exit code {done.returncode}\n{done.stdout}{done.stderr}"
        status_project.hook({**asked, "hook_event_name": "PostToolUseFailure", "error": error})
    refused = status_project.hook(status_project.bash(command, tool_use_id="toolu_4"))
    assert b"BLOCKED tool.tool_failure:Bash" in refused.stdout
    assert state(status_project, "test_status")["attempt_count"] == 1


def test_the_status_as_json_has_the_names_of_the_tracking_state(slice_project: Project) -> None:
    """Those of one test at the top; the total of a slice, and the tests of its errors, under the same names."""
    attempt(slice_project, "start", "S-1", "test_a")
    fail(slice_project, "test_a", strategy="check first")
    attempt(slice_project, "record", "S-1", "test_b", "--infra")
    found = slice_project.json("attempt", "status", "S-1", "test_a")
    assert {name: found[name] for name in STATE} == state(slice_project, "test_a")
    assert (found["attempt_count"], found["description"]) == (1, "check first")
    whole = slice_project.json("attempt", "status", "S-1")
    assert (whole["slice_id"], whole["total_failed_attempts"]) == ("S-1", 1)
    assert [one["test_name"] for one in whole["tests"] + whole["infrastructure_errors"]] == [
        "test_a",
        "test_b",
        "test_b",
    ]
    listed = slice_project.json("attempt", "status")["slices"]
    assert listed == [{"slice_id": "S-1", "total_failed_attempts": 1, "stopped": False, "failing": ["test_a"]}]


def test_fail_fail_pass_fail_fail_stops_nothing_and_counts_four_for_the_slice(slice_project: Project) -> None:
    """Success clears the test's count, never the slice's total."""
    for result in ("--fail", "--fail", "--pass", "--fail", "--fail"):
        attempt(slice_project, "record", "S-1", "test_a", result)
    found = state(slice_project, "test_a")
    assert (found["attempt_count"], found["total_failed_attempts"]) == (2, 4)
    attempt(slice_project, "start", "S-1", "test_a")


def test_two_two_two_one_over_four_tests_stops_the_slice_at_the_seventh(slice_project: Project) -> None:
    """None of the tests has reached its own limit, and yet everything stops."""
    for test, times in (("test_a", 2), ("test_b", 2), ("test_c", 2)):
        for _ in range(times):
            fail(slice_project, test)
    assert state(slice_project, "test_c")["total_failed_attempts"] == 6
    attempt(slice_project, "start", "S-1", "test_d")
    assert "7 failed attempts in this slice (limit 7)" in fail(slice_project, "test_d", expect=3)
    for test in ("test_a", "test_b", "test_c", "test_d", "test_new"):
        assert "attempt.slice:S-1" in attempt(slice_project, "start", "S-1", test, expect=3)
    attempt(slice_project, "start", "S-2", "test_a")  # another slice has counters of its own


def test_where_both_limits_are_reached_the_test_speaks_first(slice_project: Project) -> None:
    """The seed's order: rule 4, then the test, then the slice."""
    for test in ("test_a", "test_a", "test_b", "test_b", "test_c", "test_c"):
        fail(slice_project, test)
    stops = slice_project.json("attempt", "record", "S-1", "test_c", "--fail")["stops"]
    assert [stop["rule"] for stop in stops] == ["attempt.test:S-1/test_c", "attempt.slice:S-1"]
    attempt(slice_project, "arch-stop", "S-1", "--reason", "needs a queue")
    refused = slice_project.json("attempt", "start", "S-1", "test_c")
    assert refused["rule"] == "attempt.arch_stop"
    assert "needs a queue" in refused["reason"]


def test_five_collection_errors_count_nothing_and_are_named(slice_project: Project) -> None:
    """They are no attempts, by hand and by a real run; the report names them."""
    (slice_project.root / "test_a.py").write_text("import nothing_of_this_name\ndef test_a(): pass\n")
    for _ in range(5):
        said = attempt(slice_project, "run", "S-1", "test_a", "--", sys.executable, "-m", "pytest", "-q", expect=1)
        assert "INFRA (build, no attempt)" in said
    assert state(slice_project, "test_a")["attempt_count"] == 0
    assert state(slice_project, "test_a")["total_failed_attempts"] == 0
    attempt(slice_project, "record", "S-1", "test_a", "--infra")
    assert state(slice_project, "test_a")["attempt_count"] == 0
    fail(slice_project, "test_a")
    attempt(slice_project, "report", "S-1", *MIND)
    report = slice_project.json("attempt", "report", "S-1")["reports"][0]
    assert [one["kind"] for one in report["infrastructure_errors"]] == ["build"] * 5 + ["runner"]


def test_the_limits_cannot_be_configured(slice_project: Project) -> None:
    """A setting that names one is refused with a clear line, and the limit holds."""
    (slice_project.root / "fusewire.toml").write_text("[attempt]\ntest_failures = 10\n")
    for number in range(3):
        fail(slice_project, "test_a", expect=3 if number == 2 else 0)
    warned = slice_project.run("attempt", "status", "S-1").stderr
    assert "test_failures" in warned
    assert slice_project.run("reset", "attempt/S-1/test_a", "--reason", "x").returncode == 1


# -- the whole cycle --------------------------------------------------------------------------------------


def test_a_run_judges_records_and_keeps_the_output_word_for_word(slice_project: Project) -> None:
    """Files touched since the checkpoint, the exact output in a file, and the counters."""
    test = "from app import answer\n\ndef test_a():\n    assert answer() == 42\n"
    (slice_project.root / "test_a.py").write_text(test)
    attempt(slice_project, "start", "S-1", "test_a")
    (slice_project.root / "app.py").write_text("def answer():\n    return 41\n")
    (slice_project.root / "new.py").write_text("x = 1\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_a.py"]
    result = slice_project.run("attempt", "run", "S-1", "test_a", "--strategy", "guess", "--", *command)
    assert result.returncode == 1
    assert "assert 41 == 42" in result.stdout
    found = state(slice_project, "test_a")
    assert (found["attempt_count"], found["description"]) == (1, "guess")
    assert {"app.py", "new.py"} <= set(found["files_touched"])
    assert "assert 41 == 42" in found["last_error"]
    assert "[exit code 1]" in found["last_error"]
    whole = (slice_project.root / ".fusewire/attempts/S-1/0001.log").read_text()
    assert whole in result.stdout  # not a word was changed
    (slice_project.root / "app.py").write_text("def answer():\n    return 42\n")
    attempt(slice_project, "run", "S-1", "test_a", "--", *command)
    found = state(slice_project, "test_a")
    assert (found["attempt_count"], found["total_failed_attempts"], found["last_error"]) == (0, 1, "")


def test_a_long_output_is_kept_whole_and_cut_in_the_view(slice_project: Project) -> None:
    """The view says how much is missing and where it is."""
    script = "import sys\nfor n in range(60000): print('line', n)\nsys.exit(1)\n"
    (slice_project.root / "long.py").write_text(script)
    slice_project.run("attempt", "run", "S-1", "test_a", "--", sys.executable, "long.py")
    path = slice_project.root / ".fusewire/attempts/S-1/0001.log"
    assert path.read_text() == "".join(f"line {n}\n" for n in range(60000))
    shown = state(slice_project, "test_a")["last_error"]
    assert len(shown) < 20_000
    assert "line 59999" in shown
    assert ".fusewire/attempts/S-1/0001.log" in shown


def test_a_stopped_test_is_not_even_run(slice_project: Project) -> None:
    """The refusal comes before the command."""
    for number in range(3):
        fail(slice_project, "test_a", expect=3 if number == 2 else 0)
    attempt(slice_project, "run", "S-1", "test_a", "--", "touch", "ran", expect=3)
    assert not (slice_project.root / "ran").exists()


# -- section 4: the report --------------------------------------------------------------------------------


def stopped(project: Project) -> None:
    attempt(project, "start", "S-1", "test_a")
    error = project.root.parent / "error.txt"
    error.write_text("E   AssertionError: assert 'duplicate_email' == 'email_already_exists'\n")
    for number, strategy in enumerate(("check before insert", "check in the repository", "one error factory")):
        (project.root / "app.py").write_text(f"answer = {number}\n")
        arguments = ("--fail", "--error-file", str(error), "--file", "app.py", "--strategy", strategy)
        attempt(project, "record", "S-1", "test_a", *arguments, expect=3 if number == 2 else 0)


JEST = """FAIL ./status.test.js
  \u25cf status \u203a conflict

    expect(received).toBe(expected) // Object.is equality

    Expected: 409
    Received: {0}

      1 | test

      at Object.toBe (status.test.js:4:5)

Tests:       1 failed, 1 total
"""


def test_the_log_says_what_each_attempt_has_changed(status_project: Project) -> None:
    """500, 501 and 502 are three outcomes, and a retry tells them apart; the same one again is said to be that."""
    attempt(status_project, "start", "S-1", "test_status")
    for code, strategy in ((500, "check first"), (501, "check later"), (501, "catch it")):
        answers(status_project, code)
        with open(status_project.root / "app.py", "a", encoding="utf-8") as file:
            file.write(f"# {strategy}\n")
        run_tests(status_project, "--strategy", strategy)
    attempt(status_project, "report", "S-1", *MIND)
    log = status_project.json("attempt", "report", "S-1")["reports"][0]["attempt_log"]
    assert [line["result"] for line in log] == [
        "assert 500 == 409",
        "assert 501 == 409 (before: assert 500 == 409)",
        "no change: assert 501 == 409",
    ]
    tried = status_project.run("attempt", "retry", "S-1").stdout
    assert "1. check first -> assert 500 == 409; 2. check later -> assert 501 == 409 (before" in tried
    assert "3. catch it -> no change: assert 501 == 409\n" in tried


def test_values_on_lines_of_their_own_tell_outcomes_apart(slice_project: Project) -> None:
    """The message of jest is the same for every number."""
    for code in (500, 501):
        (slice_project.root / "out.txt").write_text(JEST.format(code))
        attempt(slice_project, "record", "S-1", "status conflict", "--fail", "--error-file", "out.txt")
    attempt(slice_project, "report", "S-1", *MIND)
    log = slice_project.json("attempt", "report", "S-1")["reports"][0]["attempt_log"]
    first, second = (
        f"expect(received).toBe(expected) // Object.is equality; Expected: 409; Received: {code}" for code in (500, 501)
    )
    assert [line["result"] for line in log] == [first, f"{second} (before: {first})"]


def test_a_report_without_its_three_thoughts_is_refused_by_name(slice_project: Project) -> None:
    """One line with the missing fields; what was given is kept for the next call."""
    stopped(slice_project)
    said = attempt(slice_project, "report", "S-1", expect=1)
    assert "test_a: test_expectation, best_hypothesis, specific_question" in said
    said = attempt(slice_project, "report", "S-1", "--best-hypothesis", "the key differs", expect=1)
    assert "test_a: test_expectation, specific_question." in said
    attempt(slice_project, "report", "S-1", "--test-expectation", "409 for a taken email", expect=1)
    attempt(slice_project, "report", "S-1", "--specific-question", "Which key?")


@pytest.mark.parametrize("value", ["not applicable", "N/A", "n.a.", "none.", "-", "  ", "TODO"])
def test_not_applicable_needs_its_reason(slice_project: Project, value: str) -> None:
    """The bare words are refused, with a reason they are taken."""
    fail(slice_project, "test_a")
    assert "reason" in attempt(slice_project, "report", "S-1", "--best-hypothesis", value, expect=1).lower()
    given = (*MIND[:2], "--best-hypothesis", f"not applicable: the runner is at fault ({value})", *MIND[4:])
    assert "the runner is at fault" in attempt(slice_project, "report", "S-1", *given)


def test_the_report_has_its_eight_fields_as_yaml_and_json(slice_project: Project) -> None:
    """Filled from what was recorded; both say the same, and the YAML is the golden one."""
    stopped(slice_project)
    text = attempt(slice_project, "report", "S-1", *MIND)
    assert text == (GOLDEN / "report.yaml").read_text()
    (from_json,) = slice_project.json("attempt", "report", "S-1")["reports"]
    assert yaml.safe_load(text) == from_json
    assert list(from_json) == ["slice_id", "test_name", *REPORT]


def test_at_the_ceiling_there_is_one_report_for_each_failing_test(slice_project: Project, tmp_path: Path) -> None:
    """Those that pass have none; each needs its own thoughts, which a file may give."""
    for test in ("test_a", "test_a", "test_b", "test_b", "test_c"):
        fail(slice_project, test)
    attempt(slice_project, "record", "S-1", "test_b", "--pass")
    fail(slice_project, "test_c")
    fail(slice_project, "test_d", expect=3)
    said = attempt(slice_project, "report", "S-1", expect=1)
    assert [name for name in ("test_a:", "test_b:", "test_c:", "test_d:") if name in said] == [
        "test_a:",
        "test_c:",
        "test_d:",
    ]
    assert slice_project.run("attempt", "report", "S-1", *MIND).returncode == 2  # of which test?
    thoughts = {"test_expectation": "x works", "best_hypothesis": "y is wrong", "specific_question": "Is it z?"}
    given = tmp_path / "thoughts.yaml"
    given.write_text(yaml.safe_dump(dict.fromkeys(("test_a", "test_c", "test_d"), thoughts)))
    text = attempt(slice_project, "report", "S-1", "--from", str(given))
    assert [one["test_name"] for one in yaml.safe_load_all(text)] == ["test_a", "test_c", "test_d"]
    text = attempt(slice_project, "report", "S-1", "--test", "test_c", "--specific-question", "Is it q?")
    assert yaml.safe_load(text)["specific_question"] == "Is it q?"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[1, 2]", "must be a mapping"),
        ("{", "neither YAML nor JSON"),
        ("actual_error: x", "actual_error is no field that can be given"),
        ("best_hypothesis: 3", "best_hypothesis must be a text"),
        ("recovery_options: []", "list of 1 to 20"),
        ("recovery_options: [{option: x}]", "exactly two keys"),
        ("test_z: {best_hypothesis: x}", "no attempts at test_z"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_one_line(
    slice_project: Project, tmp_path: Path, content: str, complaint: str
) -> None:
    """What, where, what is allowed; and nothing is remembered of it."""
    fail(slice_project, "test_a")
    given = tmp_path / "given"
    given.write_text(content)
    said = attempt(slice_project, "report", "S-1", "--from", str(given), expect=1)
    assert complaint in said
    assert said.count("\n") == 1


# -- section 6 and 7: rule 4 and the counter reset --------------------------------------------------------


def test_arch_stop_stops_at_once_and_burns_no_attempt(slice_project: Project) -> None:
    """Rule 4 goes before the counters: they stay where they are, and the reason is in every refusal."""
    fail(slice_project, "test_a")
    said = attempt(slice_project, "arch-stop", "S-1", "--reason", "needs a new table")
    assert "ARCH-STOP (deviation rule 4): needs a new table" in said
    found = state(slice_project, "test_a")
    assert (found["attempt_count"], found["total_failed_attempts"]) == (1, 1)
    for command in (("start", "S-1", "test_a"), ("start", "S-1", "test_z"), ("run", "S-1", "test_a", "--", "true")):
        assert "needs a new table" in attempt(slice_project, *command, expect=3)
    attempt(slice_project, "arch-stop", "S-1", "--reason", " ", expect=1)
    attempt(slice_project, "retry", "S-1", "--guidance", "use the existing table")
    attempt(slice_project, "start", "S-1", "test_a")


def test_retry_sets_both_counters_to_zero_and_rolls_back_and_tells_what_was_tried(slice_project: Project) -> None:
    """The block is the golden one; the way back brings everything back."""
    stopped(slice_project)
    attempt(slice_project, "report", "S-1", *MIND)
    (slice_project.root / "mine.txt").write_text("left by the agent\n")
    attempt(slice_project, "record", "S-1", "test_b", "--infra")
    result = slice_project.run("attempt", "retry", "S-1", "--guidance", "The key is email_already_exists.")
    assert result.returncode == 0
    assert result.stdout == (GOLDEN / "prior_attempts.txt").read_text()
    assert (slice_project.root / "app.py").read_text() == "def answer():\n    return 1\n"
    assert not (slice_project.root / "mine.txt").exists()
    assert attempt(slice_project, "start", "S-1", "test_a").startswith(result.stdout)
    found = state(slice_project, "test_a")
    assert (found["attempt_count"], found["total_failed_attempts"]) == (0, 0)
    way_back = result.stderr.strip().splitlines()[-1].partition("the way back: fusewire ")[2].split()
    assert slice_project.run(*way_back).returncode == 0
    assert (slice_project.root / "app.py").read_text() == "answer = 2\n"
    assert (slice_project.root / "mine.txt").read_text() == "left by the agent\n"


def test_a_strategy_that_was_tried_is_pointed_out_also_after_a_retry(slice_project: Project) -> None:
    """Other words in another order are the same; a new idea is not."""
    stopped(slice_project)
    attempt(slice_project, "retry", "S-1")
    said = fail(slice_project, "test_a", strategy="Checking in the repository again")
    assert "this strategy repeats one: attempt 2" in said
    assert "repeats" not in fail(slice_project, "test_a", strategy="Read the contract and rename the key")


def test_a_change_since_the_last_attempt_is_not_overwritten_without_force(slice_project: Project) -> None:
    """A person was at work: their file is named, nothing is touched; with --force it is saved first."""
    stopped(slice_project)
    (slice_project.root / "notes.txt").write_text("a person's work\n")
    said = attempt(slice_project, "retry", "S-1", expect=1)
    assert "notes.txt" in said
    assert "nothing was touched" in said
    assert "--force" in said
    assert (slice_project.root / "app.py").read_text() == "answer = 2\n"
    assert state(slice_project, "test_a")["attempt_count"] == 3
    forced = json.loads(slice_project.run("attempt", "retry", "S-1", "--force", "--json").stdout)
    assert forced["restored"]["removed"] == ["notes.txt"]
    assert git(slice_project, "show", f"{forced['restored']['saved']}:notes.txt") == "a person's work\n"


def test_a_retry_of_what_is_not_stopped_is_an_invalid_transition(slice_project: Project) -> None:
    """One failure is no trip; an unknown slice neither."""
    fail(slice_project, "test_a")
    assert "Invalid transition from CLOSED" in attempt(slice_project, "retry", "S-1", expect=1)
    assert "Invalid transition from CLOSED" in attempt(slice_project, "retry", "S-9", expect=1)


def test_an_earlier_test_that_passed_keeps_its_work(slice_project: Project) -> None:
    """The rollback goes to where the failing attempts began, not to the beginning of the slice."""
    attempt(slice_project, "start", "S-1", "test_a")
    (slice_project.root / "done.py").write_text("good = True\n")
    attempt(slice_project, "record", "S-1", "test_a", "--pass")
    attempt(slice_project, "start", "S-1", "test_b")
    (slice_project.root / "bad.py").write_text("bad = True\n")
    for number in range(3):
        fail(slice_project, "test_b", expect=3 if number == 2 else 0)
    attempt(slice_project, "retry", "S-1")
    assert (slice_project.root / "done.py").exists()
    assert not (slice_project.root / "bad.py").exists()


@pytest.mark.parametrize(
    "act", [("retry", "S-1"), ("restore", "refs/fusewire/saved/x/1"), ("finish", "S-1", "--force")]
)
def test_an_agent_cannot_reset_its_own_counters(slice_project: Project, act: tuple[str, ...]) -> None:
    """Refused inside an agent, and by the hook before it is even run."""
    for number in range(3):
        fail(slice_project, "test_a", expect=3 if number == 2 else 0)
    attempt(slice_project, *act, expect=3, env={"CLAUDECODE": "1"})
    assert state(slice_project, "test_a")["attempt_count"] == 3
    for line in (
        f"fusewire attempt {' '.join(act)}",
        f"fusewire attempt run S-9 t -- fusewire attempt {' '.join(act)}",
    ):
        answer = slice_project.hook(slice_project.bash(f"env -i PATH=$PATH {line}"))
        assert b"fusewire.disarm" in answer.stdout + answer.stderr


def test_what_has_no_reset_of_its_own_says_what_to_run(slice_project: Project) -> None:
    """With the slice's own name in it."""
    for number in range(3):
        fail(slice_project, "test_a", expect=3 if number == 2 else 0)
    refused = slice_project.run("reset", "attempt/S-1/test_a", "--reason", "x")
    assert refused.returncode == 1
    assert "fusewire attempt report S-1; a person" in refused.stderr
    assert "fusewire attempt retry S-1" in refused.stderr


def test_a_slice_whose_tests_have_passed_may_be_finished_but_keeps_its_total(slice_project: Project) -> None:
    """An agent may say so; only a person's --force ends the counting."""
    fail(slice_project, "test_a")
    assert "not passed yet: test_a" in attempt(slice_project, "finish", "S-1", expect=1)
    attempt(slice_project, "record", "S-1", "test_a", "--pass")
    attempt(slice_project, "finish", "S-1", env={"CLAUDECODE": "1"})
    assert slice_project.json("attempt", "status") == {"slices": []}
    attempt(slice_project, "start", "S-1", "test_b")
    assert state(slice_project, "test_b")["total_failed_attempts"] == 1
    attempt(slice_project, "finish", "S-1", "--force")
    attempt(slice_project, "start", "S-1", "test_b")
    assert state(slice_project, "test_b")["total_failed_attempts"] == 0
