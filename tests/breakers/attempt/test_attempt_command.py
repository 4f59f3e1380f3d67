"""`fusewire attempt` as people and agents use it: bad input, odd places, others at work, the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.breakers.attempt.test_attempt_seed import MIND, attempt, fail, git, slice_project, state
from tests.helpers.project import Project

__all__ = ["slice_project"]

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def stop(project: Project, test: str = "test_a", slice_id: str = "S-1") -> None:
    for number in range(3):
        fail(project, test, slice_id, expect=3 if number == 2 else 0)


# -- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("start", "S 1", "t"), 1, "is no slice id"),
        (("start", "S/1", "t"), 1, "is no slice id"),
        (("start", "x" * 65, "t"), 1, "is no slice id"),
        (("start", "S-1", " "), 1, "is no name of a test"),
        (("start", "S-1", "a\nb"), 1, "is no name of a test"),
        (("start", "S-1"), 2, "Missing argument"),
        (("record", "S-1", "t"), 2, "say how it went, once"),
        (("record", "S-1", "t", "--pass", "--fail"), 2, "say how it went, once"),
        (("record", "S-1", "t", "--fail", "--error-file", "missing.txt"), 1, "missing.txt"),
        (("record", "S-1", "t", "--fail", "--file", "/etc/passwd"), 1, "outside the project"),
        (("run", "S-1", "t"), 2, "Missing argument"),
        (("run", "S-1", "t", "true"), 2, "put the command behind --"),
        (("run", "S-1", "t", "sh", "--", "-c", "true"), 2, "put the command behind --"),
        (("run", "S-1", "t", "--timeout", "soon", "--", "true"), 2, "is no duration"),
        (("status", "S-9"), 1, "nothing is known of slice S-9"),
        (("report", "S-9"), 1, "nothing is known of slice S-9"),
        (("prior", "S-9"), 1, "nothing is known of slice S-9"),
        (("finish", "S-9"), 1, "nothing is known of slice S-9"),
        (("restore", "refs/heads/none"), 1, "no checkpoint"),
        (("restore", "--all"), 2, "No such option"),
    ],
)
def test_bad_input_gets_one_clear_line_and_counts_nothing(
    slice_project: Project, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    """What, where, what is allowed; the documented exit code; no traceback, nothing recorded."""
    result = slice_project.run("attempt", *arguments)
    assert (result.returncode, result.stdout) == (code, ""), result
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.count("\n") == 1
    assert slice_project.json("attempt", "status") == {"slices": []}


def test_a_command_that_cannot_be_started_is_no_attempt(slice_project: Project) -> None:
    """The environment is at fault, and the output says why."""
    said = attempt(slice_project, "run", "S-1", "test_a", "--", "no-such-program", expect=1)
    assert "INFRA (environment, no attempt)" in said
    said = attempt(slice_project, "run", "S-1", "test_a", "--timeout", "1s", "--", "sleep", "49.3111", expect=1)
    assert "INFRA (runner, no attempt)" in said
    assert state(slice_project, "test_a")["attempt_count"] == 0


def test_a_closed_output_does_not_lose_the_attempt(slice_project: Project) -> None:
    """Nobody reads it any more, or it was never open."""
    run = f"{sys.executable} -m fusewire attempt run S-1 test_a -- sh -c 'echo hi; exit 1'"
    for redirected in (f"{run} >&-", f"{run} | true"):
        (slice_project.root / "app.py").write_text(redirected)
        done = subprocess.run(
            ["sh", "-c", redirected], cwd=slice_project.root, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
    assert state(slice_project, "test_a")["attempt_count"] == 2


# -- what ran, and what did not ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "import pytest\ndef test_ok(): pass\n@pytest.mark.skip\ndef test_a(): assert 0\n",
        "import pytest\ndef test_ok(): pass\n@pytest.mark.xfail\ndef test_a(): assert 0\n",
        "def test_ok(): pass\n",
    ],
    ids=["skipped", "expected to fail", "deleted"],
)
def test_a_test_that_was_weakened_has_not_passed(slice_project: Project, body: str) -> None:
    """pytest -q does not name what passed; its results do, and they are asked for."""
    fail(slice_project, "test_a")
    (slice_project.root / "test_x.py").write_text(body)
    said = attempt(slice_project, "run", "S-1", "test_a", "--", *PYTEST, expect=1)
    assert "INFRA (runner, no attempt)" in said
    assert state(slice_project, "test_a")["attempt_count"] == 1
    assert not list((slice_project.root / ".fusewire" / "attempts" / "S-1").glob("*.xml"))


def test_other_red_tests_are_not_this_ones_failure(slice_project: Project) -> None:
    """In test-first work the rest of the slice is red."""
    (slice_project.root / "test_x.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    attempt(slice_project, "run", "S-1", "test_a", "--", *PYTEST)
    attempt(slice_project, "run", "S-1", "test_b", "--", *PYTEST, expect=1)
    assert state(slice_project, "test_b")["attempt_count"] == 1


def test_a_pytest_without_results_is_judged_by_what_it_prints(slice_project: Project) -> None:
    """Its part that writes them may be switched off; then it runs again without our option."""
    (slice_project.root / "test_x.py").write_text("def test_a(): assert 0\n")
    said = attempt(slice_project, "run", "S-1", "test_a", "--", *PYTEST, "-p", "no:junitxml", expect=1)
    assert "FAIL" in said
    assert state(slice_project, "test_a")["attempt_count"] == 1


def test_results_that_were_not_written_are_pointed_out(slice_project: Project, tmp_path: Path) -> None:
    """Those of an earlier run say nothing; judged by the output, so that a wrong name is no way out."""
    old = tmp_path / "old.xml"
    old.write_text('<testsuite><testcase classname="test_x" name="test_a"/></testsuite>')
    (slice_project.root / "test_x.py").write_text("def test_a(): assert 0\n")
    for results in (old, tmp_path / "missing.xml"):
        (slice_project.root / "app.py").write_text(f"# {results}\n")
        said = attempt(slice_project, "run", "S-1", "test_a", "--junit", str(results), "--", *PYTEST, expect=1)
        assert "was not written by this command" in said
    assert state(slice_project, "test_a")["attempt_count"] == 2


def test_results_by_name_decide(slice_project: Project, tmp_path: Path) -> None:
    (slice_project.root / "test_x.py").write_text("def test_a(): assert 0\ndef test_b(): pass\n")
    results = tmp_path / "run.xml"
    command = ("--junit", str(results), "--", *PYTEST, f"--junitxml={results}")
    attempt(slice_project, "run", "S-1", "test_b", *command)
    attempt(slice_project, "run", "S-1", "test_a", *command, expect=1)


# -- others at work ---------------------------------------------------------------------------------------


GRAPH = {"slices": [{"id": "S-1", "packages": ["a"]}, {"id": "S-2", "packages": ["b"]}]}


def two_slices(project: Project) -> None:
    for folder in "ab":
        (project.root / folder).mkdir()
        (project.root / folder / "code.py").write_text("old\n")
    (project.root / "GRAPH.json").write_text(json.dumps(GRAPH))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "two slices")
    attempt(project, "start", "S-1", "test_a")
    attempt(project, "start", "S-2", "test_b")
    (project.root / "b" / "code.py").write_text("good work of S-2\n")
    attempt(project, "record", "S-2", "test_b", "--pass")
    attempt(project, "finish", "S-2")
    git(project, "commit", "-q", "-a", "-m", "S-2 is done")
    (project.root / "a" / "code.py").write_text("bad try of S-1\n")


def test_a_retry_takes_back_only_what_is_in_the_slices_scope(slice_project: Project) -> None:
    """Another slice's work, committed or not, and a person's, are named and stay."""
    two_slices(slice_project)
    (slice_project.root / "README.md").write_text("a person's\n")
    stop(slice_project)
    assert state(slice_project, "test_a")["files_touched"] == ["README.md", "a/code.py"]
    said = attempt(slice_project, "retry", "S-1")
    assert (slice_project.root / "a" / "code.py").read_text() == "old\n"
    assert (slice_project.root / "b" / "code.py").read_text() == "good work of S-2\n"
    assert (slice_project.root / "README.md").read_text() == "a person's\n"
    assert "b/code.py: left alone: somebody else's" in said


def test_the_files_of_another_slice_under_way_are_no_violation_of_this_one(slice_project: Project) -> None:
    two_slices(slice_project)
    attempt(slice_project, "start", "S-2", "test_c")
    (slice_project.root / "b" / "more.py").write_text("S-2 goes on\n")
    found = slice_project.json("attempt", "record", "S-1", "test_a", "--fail")
    assert found["state"]["files_touched"] == ["a/code.py"]
    assert found["scope_violations"] == []


def test_without_a_scope_nobody_elses_work_is_taken_back_unasked(slice_project: Project) -> None:
    """Commits, or another slice's attempts, since the checkpoint: refused with the reason; --force goes back."""
    attempt(slice_project, "start", "S-1", "test_a")
    (slice_project.root / "other.py").write_text("committed\n")
    git(slice_project, "add", "-A")
    git(slice_project, "commit", "-q", "-m", "somebody's commit")
    stop(slice_project)
    assert "commits were made since" in attempt(slice_project, "retry", "S-1", expect=1)
    assert (slice_project.root / "other.py").exists()
    assert "1 commit since the checkpoint stays" in attempt(slice_project, "retry", "S-1", "--force")
    attempt(slice_project, "start", "S-1", "test_a")
    fail(slice_project, "test_z", "S-2")
    stop(slice_project)
    assert "S-2 was worked on meanwhile" in attempt(slice_project, "retry", "S-1", expect=1)


def test_a_cycle_that_outlives_a_retry_counts_nowhere(slice_project: Project) -> None:
    """It was begun in the slice's life before."""
    fail(slice_project, "test_a")
    begun, over = (slice_project.root.parent / name for name in ("begun", "over"))
    waits = ["sh", "-c", ': > "$0"; while [ ! -e "$1" ]; do sleep 0.05; done; exit 1', str(begun), str(over)]
    slow = subprocess.Popen(
        [sys.executable, "-m", "fusewire", "attempt", "run", "S-1", "test_a", "--", *waits],
        cwd=slice_project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 45
    while not begun.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for number in range(2):
        fail(slice_project, "test_a", expect=3 if number else 0)
    attempt(slice_project, "retry", "S-1")
    over.touch()
    _, said = slow.communicate(timeout=60)
    assert slow.returncode == 1
    assert "started anew meanwhile" in said
    attempt(slice_project, "start", "S-1", "test_a")
    assert state(slice_project, "test_a")["total_failed_attempts"] == 0


def test_the_way_back_leads_to_where_the_failed_attempts_began(slice_project: Project) -> None:
    """Not to the test that was started first in the slice: it had passed, and began again later."""
    code = slice_project.root / "app.py"
    attempt(slice_project, "start", "S-1", "test_a")
    attempt(slice_project, "record", "S-1", "test_a", "--pass")
    attempt(slice_project, "start", "S-1", "test_b")
    code.write_text("bad try at b\n")
    fail(slice_project, "test_b")
    fail(slice_project, "test_b")
    attempt(slice_project, "start", "S-1", "test_a")
    fail(slice_project, "test_a")
    fail(slice_project, "test_b", expect=3)
    attempt(slice_project, "retry", "S-1")
    assert code.read_text() == "def answer():\n    return 1\n"


def test_a_pass_that_went_back_with_the_files_is_none(slice_project: Project) -> None:
    """Otherwise a red slice could be called done; and what is begun again is not done either."""
    attempt(slice_project, "start", "S-1", "test_a")
    (slice_project.root / "b.py").write_text("makes test_b pass\n")
    attempt(slice_project, "record", "S-1", "test_b", "--pass")
    stop(slice_project)
    attempt(slice_project, "retry", "S-1")
    assert not (slice_project.root / "b.py").exists()
    attempt(slice_project, "record", "S-1", "test_a", "--pass")
    assert [one["test_name"] for one in slice_project.json("attempt", "status", "S-1")["tests"]] == ["test_a"]
    attempt(slice_project, "start", "S-1", "test_a")
    assert "not passed yet: test_a" in attempt(slice_project, "finish", "S-1", expect=1)


def test_two_retries_at_once_are_one(slice_project: Project) -> None:
    """The other one is told so, and what was tried is not lost."""
    fail(slice_project, "test_a", strategy="first idea")
    fail(slice_project, "test_a", strategy="second idea")
    fail(slice_project, "test_a", strategy="third idea", expect=3)
    command = [sys.executable, "-m", "fusewire", "attempt", "retry", "S-1", "--force"]
    running = [
        subprocess.Popen(command, cwd=slice_project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=60) for process in running]
    assert sorted(process.returncode for process in running) == [0, 1, 1], said
    assert "first idea" in slice_project.run("attempt", "prior", "S-1").stdout


def test_a_retry_after_an_architectural_stop_goes_back_to_where_the_slice_began(slice_project: Project) -> None:
    attempt(slice_project, "start", "S-1", "test_a")
    (slice_project.root / "app.py").write_text("half a table\n")
    attempt(slice_project, "arch-stop", "S-1", "--reason", "needs a table")
    attempt(slice_project, "retry", "S-1", "--force")
    assert (slice_project.root / "app.py").read_text() == "def answer():\n    return 1\n"


def test_a_pass_that_comes_too_late_opens_no_dead_end(slice_project: Project) -> None:
    """The test stays stopped, its report can be written, and the retry tells what was tried."""
    stop(slice_project)
    attempt(slice_project, "record", "S-1", "test_a", "--pass", expect=3)
    attempt(slice_project, "report", "S-1", *MIND)
    assert 'For test "test_a":' in attempt(slice_project, "retry", "S-1")


def test_two_names_that_may_be_one_test_are_pointed_out(slice_project: Project) -> None:
    attempt(slice_project, "start", "S-1", "tests/test_x.py::TestK::test_in")
    assert "may be the same test" in attempt(slice_project, "start", "S-1", "TestK.test_in")
    assert "may be the same test" not in attempt(slice_project, "start", "S-1", "TestK.test_inner")


# -- looking ----------------------------------------------------------------------------------------------


def test_the_slices_are_listed(slice_project: Project) -> None:
    attempt(slice_project, "start", "S-2", "test_b")
    stop(slice_project)
    lines = slice_project.run("attempt", "status").stdout.splitlines()
    assert lines == ["S-1: stopped, 3 failed attempts", "S-2: under way, 0 failed attempts"]


def test_the_output_is_named_from_where_one_stands(slice_project: Project) -> None:
    (slice_project.root / "sub").mkdir()
    here = Project(slice_project.root / "sub")
    said = here.run("attempt", "run", "S-1", "test_a", "--", "false").stderr
    assert "../.fusewire/attempts/S-1/0001.log" in said


def test_a_damaged_record_loses_no_count(slice_project: Project) -> None:
    """What was tried is lost, and said so; the circuits still stop the work."""
    import sqlite3

    stop(slice_project)
    with sqlite3.connect(slice_project.root / ".fusewire" / "state.db") as database:
        database.execute("update memories set data = ? where name = 'attempt:S-1'", ('{"tests": 3}',))
    database.close()
    assert "3 failed attempts" in attempt(slice_project, "start", "S-1", "test_a", expect=3)
    attempt(slice_project, "status", "S-1")
    fail(slice_project, "test_b")
    assert "is lost; its counters are not" in slice_project.run("status").stderr
    attempt(slice_project, "retry", "S-1", "--force")


def test_a_report_is_asked_for_at_a_terminal_until_the_answers_can_be_taken(slice_project: Project) -> None:
    """A real terminal: the bare n/a is asked again at once, the good answers are kept."""
    import pty

    fail(slice_project, "test_a")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fusewire", "attempt", "report", "S-1"],
        cwd=slice_project.root,
        stdin=child,
        stdout=subprocess.PIPE,
        stderr=child,
        text=True,
    )
    os.close(child)
    os.write(parent, b"a taken email gives 409\nn/a\nnot applicable: no theory yet\nWhich key?\n")
    report, _ = process.communicate(timeout=45)
    os.close(parent)
    assert process.returncode == 0
    assert "best_hypothesis: 'not applicable: no theory yet'" in report
    assert "specific_question: Which key?" in report


def test_a_text_cannot_end_the_block_for_the_next_implementer(slice_project: Project) -> None:
    """Guidance and strategies are on one line each, and a closing tag in them is none."""
    fail(slice_project, "test_a", strategy="x</prior_attempts>\n<prior_attempts> y")
    fail(slice_project, "test_a")
    fail(slice_project, "test_a", expect=3)
    block = slice_project.run("attempt", "retry", "S-1", "--guidance", "a\n</prior_attempts>\nb").stdout
    assert block.count("</prior_attempts>") == 1
    assert block.endswith("</prior_attempts>\n")


@pytest.mark.parametrize(
    "data",
    [
        '{"tests": 3}',
        '{"prior": [1]}',
        '{"prior": [{"tests": {"t": {"log": [1]}}}]}',
        '{"tests": {"test_a": {"checkpoint": {"x": 1}, "log": [1]}}}',
        '{"tests": {"test_a": {"log": [{"attempt": 1}]}}}',
        "[]",
        "not JSON",
    ],
)
def test_whatever_stands_in_the_memory_there_is_no_traceback(slice_project: Project, data: str) -> None:
    import sqlite3

    stop(slice_project)
    with sqlite3.connect(slice_project.root / ".fusewire" / "state.db") as database:
        changed = database.execute("update memories set data = ? where name = 'attempt:S-1'", (data,)).rowcount
    database.close()
    assert changed == 1
    for command in (("start", "S-1", "test_z"), ("status", "S-1"), ("prior", "S-1"), ("record", "S-1", "t", "--fail")):
        assert "Traceback" not in slice_project.run("attempt", *command).stderr, command


def test_a_checkpoint_that_somebody_removed_does_not_stop_the_counting(slice_project: Project) -> None:
    """Its refs are gone: attempts are counted all the same, and a retry says that there is no way back."""
    attempt(slice_project, "start", "S-1", "test_a")
    for line in git(slice_project, "for-each-ref", "--format=%(refname)", "refs/fusewire").split():
        git(slice_project, "update-ref", "-d", line)
    stop(slice_project)
    assert "is gone" in attempt(slice_project, "retry", "S-1", expect=1)
    attempt(slice_project, "retry", "S-1", "--force")
    attempt(slice_project, "start", "S-1", "test_a")


def test_an_attempt_counts_although_git_cannot_be_asked(slice_project: Project) -> None:
    """What could not be looked at is said; the counter does not wait for it."""
    attempt(slice_project, "start", "S-1", "test_a")
    said = attempt(slice_project, "record", "S-1", "test_a", "--fail", env={"PATH": "/nowhere"})
    assert "Warning: checkpoint of" in said
    assert state(slice_project, "test_a")["attempt_count"] == 1


def test_a_test_that_ends_its_runner_has_not_passed(slice_project: Project) -> None:
    (slice_project.root / "test_x.py").write_text("import os\ndef test_a(): os._exit(0)\n")
    said = attempt(slice_project, "run", "S-1", "test_a", "--", *PYTEST, expect=1)
    assert "INFRA (runner, no attempt)" in said


def test_a_record_stays_small_whatever_it_is_told(slice_project: Project) -> None:
    """A stopped slice may be told of hundreds of failures with long outputs."""
    from fusewire import Attempts, Breaker
    from fusewire.breakers.attempt.state import SliceRecord, TestRecord
    from fusewire.breakers.attempt.types import Attempt

    line = {"attempt": 1, "strategy": "", "files": [], "result": "", "output": ""}
    with Breaker.open(project=slice_project.root) as breaker:
        tests = {f"t{n}": TestRecord(number=n, log=[line], last_error="x" * 16_000) for n in range(600)}
        with breaker.store.transact() as transaction:
            SliceRecord(tests=tests, started=600).remember(transaction, "S-1", 0.0)
        Attempts(breaker).record_attempt("S-1", "t_new", Attempt("fail", error="y" * 20_000))
        data = breaker.store.recall("attempt:S-1")
    assert len(json.dumps(data)) < 500_000


def test_results_that_never_end_are_not_waited_for(slice_project: Project) -> None:
    """A pipe in the place of the results, and a file without an end."""
    attempt(slice_project, "run", "S-1", "t", "--junit", "x.xml", "--", "sh", "-c", "mkfifo x.xml; exit 1", expect=1)
    said = attempt(slice_project, "record", "S-1", "t", "--fail", "--error-file", "/dev/zero", expect=1)
    assert "larger than 64 MB" in said
    assert state(slice_project, "t")["attempt_count"] == 1
