"""The phases' state file: lost, edited, broken, made by hand, imported; killed at any moment, eight at once."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.breakers.phase.phases import Phases
from fusewire.breakers.phase.schema import parse, record_of, render
from fusewire.breakers.phase.state import PhaseRecord
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.util.errors import ConfigError
from tests.breakers.phase.test_phase_command import FILE, SESSION, beside, open_green, saved
from tests.helpers.project import Project
from tests.stores.test_sqlite_store import without_rights

#: The example in the seed, made by hand.
SEEDS_SCHEMA: dict[str, Any] = {
    "state": "CLOSED",
    "no_progress_count": 0,
    "same_error_count": 0,
    "last_progress_metric": {
        "RED": {"tests_generated": 0},
        "GREEN": {"tests_passing": 0},
        "REFACTOR": {"patterns_applied": 0},
        "DOCUMENT": {"docs_generated": 0},
    },
    "last_error_hash": None,
    "opened_at": None,
    "open_reason": None,
    "history": [
        {
            "timestamp": "2026-01-13T11:00:00Z",
            "event": "state_change",
            "from_state": "CLOSED",
            "to_state": "HALF_OPEN",
            "reason": "No progress for 2 iterations",
        }
    ],
}

OPEN: dict[str, Any] = {
    **SEEDS_SCHEMA,
    "state": "OPEN",
    "no_progress_count": 3,
    "opened_at": "2026-01-13T11:05:00Z",
    "open_reason": "No progress for 3 iterations",
}


def hand_made(project: Project, data: object) -> Path:
    path = project.root / FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


# -- the file -----------------------------------------------------------------------------------------------------


def test_a_missing_file_is_written_again(project: Project) -> None:
    open_green(project)
    content = (project.root / FILE).read_text()
    shutil.rmtree(project.root / SESSION)
    assert project.run("phase", "begin", "GREEN").returncode == 3
    assert (project.root / FILE).read_text() == content


def test_work_goes_on_from_the_file_when_the_database_is_lost(project: Project) -> None:
    """Open stays open, with its counts, its reason and its marks; and it can be resolved."""
    open_green(project)
    before = saved(project)
    shutil.rmtree(project.root / ".fusewire")
    assert project.run("phase", "status").stdout.startswith("Phases: OPEN in GREEN\n")
    halted = project.run("phase", "begin", "RED")
    assert halted.returncode == 3
    assert "TESTS_PASSING: 3 (no change)\n" in halted.stdout
    assert f"{FILE} was taken over (OPEN in GREEN)" in halted.stderr
    assert saved(project) == before
    assert project.run("phase", "resolve", "reset").returncode == 0
    ended = project.json("phase", "end", "GREEN", "--metric", "tests_passing=3")
    assert ended["progress"] is False
    assert beside(project) == ["circuit-breaker.json"]


def test_counts_go_on_from_the_file_too(project: Project) -> None:
    """Two of five same errors, one of three iterations: the next ones are third and second."""
    for _ in range(2):
        project.run("phase", "end", "RED", "--metric", "tests_generated=1", "--error", "KeyError: 'x'")
    shutil.rmtree(project.root / ".fusewire")
    ended = project.json("phase", "end", "RED", "--metric", "tests_generated=1", "--error", "KeyError: 'x'")
    breaker = ended["circuit_breaker"]
    assert (breaker["no_progress_count"], breaker["same_error_count"], breaker["state"]) == (2, 3, "HALF_OPEN")


def test_a_hand_made_file_without_a_phase_is_not_guessed_at(project: Project) -> None:
    """Never silently closed: nothing goes on until a person says which phase it is about."""
    hand_made(project, OPEN)
    for command in (["begin", "RED"], ["end", "RED", "--metric", "tests_generated=1"]):
        result = project.run("phase", *command)
        assert (result.returncode, result.stdout) == (1, "")
        assert f"fusewire phase import {FILE} --phase RED|GREEN|REFACTOR|DOCUMENT" in result.stderr
    assert project.run("phase", "import", FILE).returncode == 1
    assert project.run("phase", "import", FILE, "--phase", "red").returncode == 0
    halted = project.run("phase", "begin", "GREEN")
    assert halted.stdout.startswith("---CIRCUIT_BREAKER_OPEN---\nPHASE: RED\nREASON: No progress for 3 iterations\n")
    assert (saved(project)["opened_at"], saved(project)["phase"]) == ("2026-01-13T11:05:00Z", "RED")
    assert beside(project) == ["circuit-breaker.json"]


def test_a_hand_made_file_that_says_nothing_yet_is_taken_over(project: Project) -> None:
    """CLOSED and zero needs no phase; its history stays."""
    hand_made(project, SEEDS_SCHEMA)
    assert project.run("phase", "begin", "RED").returncode == 0
    assert [entry["reason"] for entry in saved(project)["history"]] == ["No progress for 2 iterations"]


def test_an_edited_file_does_not_close_a_circuit(project: Project) -> None:
    """What was edited is kept aside, Fusewire's state holds, and a person can take the edit over."""
    open_green(project)
    hand_made(project, {**saved(project), "state": "CLOSED", "no_progress_count": 0, "open_reason": None})
    halted = project.run("phase", "begin", "GREEN")
    assert halted.returncode == 3
    aside = f"{FILE}.edited-1"
    assert f"was changed by somebody else, and is kept as {aside}" in halted.stderr
    assert saved(project)["state"] == "OPEN"
    assert "Warning" not in project.run("phase", "begin", "GREEN").stderr
    imported = project.run("phase", "import", aside)
    assert (imported.returncode, imported.stdout) == (0, f"{aside}: CLOSED\n")
    assert project.run("phase", "begin", "GREEN").returncode == 0


@pytest.mark.parametrize(
    "content", ["{", "", "[]", '{"state": "AJAR"}', "\x00\xff", '{"state": "OPEN", "history": [1]}']
)
def test_a_broken_file_is_set_aside(project: Project, content: str) -> None:
    """With a database it changes nothing; without one the phases start empty, and a notice stays."""
    open_green(project)
    (project.root / FILE).write_bytes(content.encode("latin-1"))
    halted = project.run("phase", "begin", "GREEN")
    assert halted.returncode == 3
    assert f"kept as {FILE}.broken-1" in halted.stderr
    assert saved(project)["state"] == "OPEN"
    shutil.rmtree(project.root / ".fusewire")
    (project.root / FILE).write_bytes(content.encode("latin-1"))
    begun = project.run("phase", "begin", "GREEN")
    assert begun.returncode == 0
    assert f"kept as {FILE}.broken-2" in begun.stderr
    assert (project.root / f"{FILE}.broken-2").read_bytes() == content.encode("latin-1")
    assert "it is set aside, and the phases start with what the database knows" in project.run("status").stderr


def test_what_is_no_file_at_all(project: Project) -> None:
    """A folder or a pipe of that name hangs nothing and closes nothing; a session folder that is a file is told."""
    open_green(project)
    path = project.root / FILE
    path.unlink()
    path.mkdir()
    assert project.run("phase", "begin", "GREEN").returncode == 3
    path.unlink()
    os.mkfifo(path)
    assert project.run("phase", "begin", "GREEN").returncode == 3
    assert saved(project)["state"] == "OPEN"
    shutil.rmtree(project.root / SESSION)
    (project.root / SESSION).write_text("")
    halted = project.run("phase", "begin", "GREEN")
    assert halted.returncode == 3
    assert f"{FILE} could not be written" in halted.stderr


def git_sees(project: Project) -> list[str]:
    """What is new in the project and not ignored."""
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True).stdout.split()


def test_git_does_not_see_the_state(project: Project) -> None:
    """Neither the file nor what is kept beside it; but what others have in that folder."""
    (project.root / SESSION).mkdir()
    (project.root / SESSION / "plan.md").write_text("x")
    open_green(project)
    hand_made(project, "{")
    project.run("phase", "begin", "GREEN")
    project.run("phase", "start")
    assert len(beside(project)) == 4
    assert (project.root / SESSION / ".gitignore").read_text() == "circuit-breaker*\n.gitignore\n"
    assert git_sees(project) == [f"{SESSION}/plan.md"]


@pytest.mark.parametrize("target", ["", "nowhere"])
def test_a_rule_for_git_that_is_there_stays(project: Project, target: str) -> None:
    """Also one that leads nowhere."""
    ignore = project.root / SESSION / ".gitignore"
    ignore.parent.mkdir()
    if target:
        ignore.symlink_to(target)
    else:
        ignore.write_text("")
    open_green(project)
    assert saved(project)["state"] == "OPEN"
    assert ignore.is_symlink() is bool(target)
    assert target or ignore.read_text() == ""


def test_who_keeps_the_state_in_git_is_left_alone(project: Project) -> None:
    """A file that is there already gets no rule, and a rule that was removed does not come back."""
    hand_made(project, SEEDS_SCHEMA)
    open_green(project)
    assert git_sees(project) == [FILE]


@pytest.mark.parametrize("obstacle", ["file", "loop of links"])
def test_a_reset_does_not_fail_for_the_state_file(project: Project, obstacle: str) -> None:
    """The circuit is closed, a warning says that the file is behind, and the next action mends it."""
    open_green(project)
    shutil.rmtree(project.root / SESSION)
    if obstacle == "file":
        (project.root / SESSION).write_text("")
    else:
        (project.root / SESSION).symlink_to(SESSION)
    reset = project.run("reset", "phase/GREEN", "--reason", "x")
    assert (reset.returncode, reset.stdout.splitlines()[0]) == (0, "phase/GREEN: OPEN -> CLOSED")
    assert f"Warning: {FILE} could not be written: " in reset.stderr
    (project.root / SESSION).unlink()
    assert project.run("phase", "begin", "GREEN").returncode == 0
    assert saved(project)["state"] == "CLOSED"


def test_a_reset_does_not_fail_for_a_file_that_may_not_be_read(project: Project) -> None:
    """Somebody else's: the circuit is closed, and a notice says that the file is behind."""

    def reset(root: Path) -> str:
        with Breaker.open(project=root) as breaker:
            return f"{breaker.reset('phase/GREEN', 'x').state} {breaker.store.notices()}"

    open_green(project)
    assert reset(project.root) == "CLOSED []"  # and everything is imported, which the child may not be able to read
    with tempfile.TemporaryDirectory(prefix="fusewire-phases-") as folder:
        root = Path(folder)
        open_green(Project(root))
        for path in (root, *root.rglob("*")):
            path.chmod(0o777)
        (root / FILE).chmod(0)
        said = without_rights(lambda: reset(root))
    problem = f"{FILE} cannot be read: Permission denied"
    assert said == f'CLOSED ["the phases\' state file could not be brought up to date: {problem}"]'


def test_a_busy_database_fails_no_reset_for_the_file(project: Project) -> None:
    """What was written stays written; the next action brings the file up to date."""
    open_green(project)
    with Breaker.open(project=project.root, patience=0.01) as breaker:
        breaker.engine.apply([Signal("reset", "phase/GREEN", "reset", text="x")], "somebody")
        other = sqlite3.connect(project.root / ".fusewire" / "state.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        breaker.mirror({"phase/GREEN"})
        other.close()
        assert saved(project)["state"] == "OPEN"
        breaker.mirror({"phase/GREEN"})
        assert breaker.store.notices() == []
    assert saved(project)["state"] == "CLOSED"


def test_whoever_died_before_the_file_was_written_leaves_it_to_the_next(project: Project) -> None:
    """The old content is known as ours: it is replaced without a word."""
    project.run("phase", "end", "RED", "--metric", "tests_generated=1")
    old = (project.root / FILE).read_bytes()
    project.run("phase", "end", "RED", "--metric", "tests_generated=2")
    new = (project.root / FILE).read_bytes()
    (project.root / FILE).write_bytes(old)
    begun = project.run("phase", "begin", "RED")
    assert (begun.returncode, begun.stderr) == (0, "")
    assert (project.root / FILE).read_bytes() == new
    assert beside(project) == ["circuit-breaker.json"]


def test_an_unreadable_memory_does_not_close_an_open_circuit(project: Project) -> None:
    """The circuits have states of their own, and the file has the rest."""
    open_green(project)
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember("phases", {"marks": 7}, 0.0)
    halted = project.run("phase", "begin", "GREEN")
    assert halted.returncode == 3
    assert saved(project)["last_progress_metric"]["GREEN"]["tests_passing"] == 3


# -- import -------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"state": "open"}, "state = 'open' is refused; allowed: CLOSED, HALF_OPEN, OPEN"),
    ({"state": None}, "state = None is refused"),
    ({"state": ["OPEN"]}, "state = ['OPEN'] is refused"),
    ({"no_progress_count": -1}, "no_progress_count = -1 is refused; allowed: a whole number from 0"),
    ({"no_progress_count": True}, "no_progress_count = True is refused"),
    ({"same_error_count": "2"}, "same_error_count = '2' is refused"),
    ({"last_progress_metric": []}, ""),
    ({"last_progress_metric": 3}, "last_progress_metric = 3 is refused; allowed: an object of RED, GREEN"),
    ({"last_progress_metric": {"RED": 3}}, "last_progress_metric.RED = 3 is refused"),
    ({"last_progress_metric": {"RED": {"tests_generated": "x"}}}, "last_progress_metric.RED.tests_generated = 'x'"),
    (
        {"last_progress_metric": {"GREEN": {"tests_passing": 1.5}}},
        "tests_passing = 1.5 is refused; allowed: a whole number",
    ),
    ({"last_error_hash": "abc"}, "last_error_hash = 'abc' is refused; allowed: 64 hexadecimal digits, or null"),
    ({"opened_at": "yesterday"}, "opened_at = 'yesterday' is refused; allowed: an ISO 8601 time"),
    ({"opened_at": 12}, "opened_at = 12 is refused"),
    ({"open_reason": 12}, "open_reason = 12 is refused; allowed: a text, or null"),
    ({"history": {}}, ""),
    ({"history": "x"}, "history = 'x' is refused; allowed: a list"),
    ({"history": [1]}, "history[0] = 1 is refused"),
    ({"history": [{"timestamp": "x"}]}, "history[0].timestamp = 'x' is refused"),
    ({"history": [{**SEEDS_SCHEMA["history"][0], "event": "party"}]}, "history[0].event = 'party' is refused"),
    ({"history": [{**SEEDS_SCHEMA["history"][0], "to_state": 1}]}, "history[0].to_state = 1 is refused"),
    ({"phase": "BLUE"}, "phase = 'BLUE' is refused; allowed: RED, GREEN, REFACTOR, DOCUMENT"),
]


@pytest.mark.parametrize(("change", "text"), WRONG)
def test_every_field_of_a_file_is_checked(change: dict[str, Any], text: str) -> None:
    """One clear line for the first that is wrong; what is empty is as if it were not there."""
    content = json.dumps({**SEEDS_SCHEMA, **change}).encode()
    if not text:
        parse(content, "x.json")
        return
    with pytest.raises(ConfigError, match="is refused") as refused:
        parse(content, "x.json")
    assert text in str(refused.value)
    assert str(refused.value).startswith("x.json: ")
    assert "\n" not in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.just("OPEN"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SEEDS_SCHEMA, "RED"]), inner),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.dictionaries(st.sampled_from([*SEEDS_SCHEMA, "phase"]), JSON, max_size=3), st.binary(max_size=12), st.booleans()
)
def test_whatever_stands_in_a_file_it_is_a_state_or_refused(changes: dict[str, Any], noise: bytes, cut: bool) -> None:
    """Never a traceback; and what is taken can be written, read and written again as the same."""
    content = json.dumps({**OPEN, "phase": "RED", **changes}).encode()
    content = content[: len(content) // 2] + noise if cut else content
    try:
        taken = parse(content, "x.json")
    except ConfigError:
        return
    rendered = render(record_of(taken, 0.0))
    again = parse(rendered, "x.json")
    assert render(record_of(again, 0.0)) == rendered


def test_a_watched_phase_of_a_hand_made_file_is_warned_of(project: Project) -> None:
    """The schema has a reason only for what is open; the warning says what the count does."""
    state = {"state": "HALF_OPEN", "no_progress_count": 2, "open_reason": None, "phase": "RED"}
    (project.root / "mine.json").write_text(json.dumps(state))
    assert project.run("phase", "import", "mine.json").returncode == 0
    begun = project.run("phase", "begin", "RED")
    assert begun.returncode == 0
    assert "WARNING: RED is HALF_OPEN: No progress for 2 iterations" in begun.stderr


def test_importing_what_cannot_be_used_changes_nothing(project: Project) -> None:
    open_green(project)
    (project.root / "x.json").write_text(json.dumps({**OPEN, "phase": "RED", "history": [1]}))
    for arguments in (["x.json"], ["missing.json"], ["."]):
        refused = project.run("phase", "import", *arguments)
        assert refused.returncode in (1, 2)
        assert "Traceback" not in refused.stderr
    assert (saved(project)["state"], saved(project)["phase"]) == ("OPEN", "GREEN")


def test_an_imported_file_is_the_state(project: Project) -> None:
    """Circuit, counts, error, marks and history; unknown keys are left out, other phases are closed."""
    open_green(project)
    error = "ab" * 32
    made = {
        **SEEDS_SCHEMA,
        "state": "HALF_OPEN",
        "no_progress_count": 4,
        "same_error_count": 4,
        "last_error_hash": error,
        "last_progress_metric": {"RED": {"tests_generated": 9, "criteria_covered": 2, "mood": 3}},
        "phase": "REFACTOR",
        "comment": "by hand",
    }
    (project.root / "x.json").write_text(json.dumps(made))
    assert project.json("phase", "import", "x.json") == {"file": "x.json", "state": "HALF_OPEN", "phase": "REFACTOR"}
    now = saved(project)
    assert {key: now[key] for key in made if key in now and key not in ("last_progress_metric", "history")} == {
        key: made[key] for key in made if key not in ("last_progress_metric", "history", "comment")
    }
    assert now["last_progress_metric"]["RED"] == {"tests_generated": 9, "criteria_covered": 2}
    assert [entry["reason"] for entry in now["history"]] == ["No progress for 2 iterations", "Imported from x.json"]
    assert project.run("phase", "begin", "GREEN").returncode == 0
    ended = project.run("phase", "end", "REFACTOR", "--metric", "pattern_applied=false")
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (
        3,
        "CIRCUIT OPEN: Execution halted after 5 no-progress iterations",
    )


def test_what_is_written_can_be_read_again(project: Project) -> None:
    """The file of a record, taken over, gives the same file; but for how often phases have ended."""
    open_green(project)
    content = (project.root / FILE).read_bytes()
    shutil.rmtree(project.root / ".fusewire")
    shutil.rmtree(project.root / SESSION)
    (project.root / "x.json").write_bytes(content)
    assert project.run("phase", "import", "x.json").returncode == 0
    again = saved(project)
    assert again.pop("history")[:-1] == json.loads(content)["history"]
    expected = {key: value for key, value in json.loads(content).items() if key != "history"}
    assert again == expected


# -- several at once, and killed ----------------------------------------------------------------------------------

#: Ends REFACTOR without progress so many times, and begins it in between; says when it is ready to go.
WORKER = """
import sys
from fusewire.engine.breaker import Breaker
from fusewire.breakers.phase.phases import Phases
breaker = Breaker.open(project=sys.argv[1], patience=10)
phases = Phases(breaker)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    phases.end("REFACTOR", {"patterns_applied": 0}, error="KeyError: 'x'")
    phases.begin("REFACTOR")
print(phases.warnings, flush=True)
"""


def workers(project: Project, count: int, times: int) -> list[subprocess.Popen[str]]:
    """Processes that are ready; each waits for a line."""
    limits = "REFACTOR.no_progress_threshold = 1000\nREFACTOR.same_error_threshold = 1000\n"
    (project.root / "fusewire.toml").write_text(f"[phase]\n{limits}")
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(project.root), str(times)], stdin=pipe, stdout=pipe, text=True
        )
        for _ in range(count)
    ]
    for worker in started:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    return started


def go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def test_eight_processes_lose_no_count(project: Project) -> None:
    """8 x 6 ends: 48 iterations, 48 without progress, 48 times the error, and the file is the newest."""
    racing = workers(project, 8, 6)
    for worker in racing:
        go(worker)
    for worker in racing:
        assert worker.communicate(timeout=50)[0] == "[]\n"
    row = project.json("phase", "status")["phases"][2]
    assert (row["iterations"], row["no_progress_count"], row["same_error_count"]) == (48, 48, 48)
    assert saved(project)["no_progress_count"] == 48
    assert beside(project) == ["circuit-breaker.json"]


def test_killed_anywhere_the_state_is_readable_and_goes_on(project: Project) -> None:
    """A dozen processes killed at different moments: the file is whole, the counts agree, nothing is set aside.

    A move is in the audit trail before its commit: where a process dies between the two, the stricter copy holds, and
    its meter is one ahead of the record.
    """
    before = 0
    for number in range(12):
        (worker,) = workers(project, 1, 1000)
        go(worker)
        time.sleep(0.004 * number)  # whenever: each moment is as good as another
        worker.kill()
        worker.communicate()
        if (project.root / FILE).exists():
            assert saved(project)["state"] in ("CLOSED", "HALF_OPEN")
        with Breaker.open(project=project.root) as breaker:
            phases = Phases(breaker)
            phases.begin("REFACTOR")
            assert phases.warnings == []
            record = PhaseRecord.recalled(breaker.store)
            assert record is not None
            row = phases.view()["phases"][2]
        done = row["iterations"]
        assert before <= done == row["same_error_count"] <= row["no_progress_count"] <= done + 1
        before = row["iterations"]
        assert (project.root / FILE).read_bytes() == render(record)
    assert before > 0
    assert [name for name in beside(project) if not name.endswith(".tmp")] == ["circuit-breaker.json"]


def test_a_record_of_version_0_1_is_read_and_written_alike() -> None:
    """What is stored keeps its shape: faces, errors, events, accepted failures and guidance are objects."""
    face = {"state": "OPEN", "no_progress": 2, "same_error": 1, "opened_at": 5.0, "reason": "No progress"}
    event = {"at": 5.0, "event": "error", "from": "CLOSED", "to": "OPEN", "reason": "x", "phase": "GREEN"}
    old = {
        "phase": "GREEN",
        "faces": {"GREEN": face},
        "errors": {"GREEN": {"hash": "ab", "text": "KeyError"}},
        "history": [event],
        "known": [{"phase": "GREEN", "count": 1, "tests": ["test_x"], "at": 4.0}],
        "guidance": {"text": "smaller", "phase": "GREEN", "given": []},
    }
    record = PhaseRecord.from_data(old)
    assert record.open_phase() == "GREEN"
    assert {name: value for name, value in record.to_data().items() if name in old} == old
