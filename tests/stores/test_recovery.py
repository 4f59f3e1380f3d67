"""Damage of every kind to the state: an open circuit stays open, people are told, and nothing is thrown away.

The circuit `rule` was opened by five violations before each damage; what the damage leaves to rebuild from differs.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.stores import audit_file
from fusewire.stores.rows import AuditRow, DecisionRow
from fusewire.stores.sqlite import SqliteStore
from tests.helpers import TESTS
from tests.helpers.project import Project

WORKERS = TESTS / "helpers" / "workers.py"

EVERY_ONE_COUNTS = "circuit_breaker:\n  dedup_seconds: 0\n"
ACTIONS = [f"git push --force #{number}" for number in range(5)]


def database(project: Project) -> Path:
    return project.root / ".fusewire" / "state.db"


def mirror(project: Project) -> Path:
    return project.root / "docs" / "constraints" / ".circuit-state.json"


def trail(project: Project) -> Path:
    return project.root / ".fusewire" / "audit.jsonl"


@pytest.fixture
def tripped(project: Project) -> Project:
    """A project whose circuit `rule` is open, with a second, closed one beside it; all of it on disk."""
    project.constraint("rule", EVERY_ONE_COUNTS)
    project.constraint("other", EVERY_ONE_COUNTS)
    with Breaker.open(project=project.root) as breaker:
        breaker.record("other", "something small")
        for action in ACTIONS:
            breaker.record("rule", action, session="s1")
    assert json.loads(mirror(project).read_text())["rule"]["state"] == "OPEN"
    return project


def kept_aside(project: Project) -> list[Path]:
    """Damaged databases, without the logs that belong to them."""
    found = database(project).parent.glob("state.db.corrupt-*")
    return sorted(path for path in found if not path.name.endswith(("-wal", "-shm")))


def assert_open_and_told(project: Project, *, damaged: bool = True, history: bool = True) -> None:
    """What decision 21 promises after any damage, seen through the real program."""
    status = project.run("status")
    assert status.returncode == 0, status.stderr
    assert "Traceback" not in status.stderr
    assert "Warning: " in status.stderr
    seen = project.json("status")
    states = {one["id"]: one["state"] for one in seen["circuits"]}
    assert states == {"rule": "OPEN", "other": "CLOSED"}
    assert len(seen["warnings"]) >= 1
    assert bool(kept_aside(project)) == damaged
    with Breaker.open(project=project.root) as breaker:
        assert breaker.store.notices() == seen["warnings"]
        assert breaker.check("rule").verdict == "deny"
        if history:
            counted = [row.text for row in breaker.history("rule") if row.effect == "counted"]
            assert counted == ACTIONS
    doctor = project.run("doctor", "--acknowledge")
    assert "acknowledged by" in doctor.stderr
    assert project.json("status")["warnings"] == []
    with Breaker.open(project=project.root) as breaker:
        assert breaker.check("rule").verdict == "deny", "acknowledging closes nothing"
        breaker.record("other", "goes on")
        assert breaker.status("other").total >= 1


# -- the database file --------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(20_000))


def text(path: Path) -> None:
    path.write_text("<<<<<<< HEAD\nno database\n" * 100)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def cut_to_a_few_bytes(path: Path) -> None:
    os.truncate(path, 10)


def cut_in_the_middle(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def cut_inside_a_page(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 1234)


def zero_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def another_database(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE shopping (item)")
    connection.close()


DAMAGES = [
    garbage,
    text,
    emptied,
    cut_to_a_few_bytes,
    cut_in_the_middle,
    cut_inside_a_page,
    zero_header,
    another_database,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_leaves_the_circuit_open(tripped: Project, damage: Callable[[Path], None]) -> None:
    """With the mirror and the audit trail at hand everything that counts comes back."""
    damage(database(tripped))
    assert_open_and_told(tripped)


@pytest.mark.parametrize("damage", [garbage, emptied, cut_in_the_middle])
@pytest.mark.parametrize("lost", ["mirror", "trail"])
def test_either_the_mirror_or_the_trail_is_enough(tripped: Project, damage: Callable[[Path], None], lost: str) -> None:
    """One of the two text files is gone as well: the other one keeps the circuit open."""
    damage(database(tripped))
    (mirror if lost == "mirror" else trail)(tripped).unlink()
    assert_open_and_told(tripped, history=lost == "trail")


@pytest.mark.parametrize("page", range(1, 17))
def test_a_damaged_page_leaves_the_circuit_open(tripped: Project, page: int) -> None:
    """Whichever page of the file is overwritten, whoever comes first (here: a record) is served and finds it open."""
    path = database(tripped)
    pages = path.stat().st_size // 4096
    assert pages <= 17, "every page has its test"
    if page >= pages:
        page = pages - 1
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xa5" * 4096)
    first = tripped.run("record", "rule", "--action", "the first after the damage")
    assert first.returncode == 0, first.stderr
    assert "Traceback" not in first.stderr
    assert tripped.json("status", "rule")["circuits"][0]["state"] == "OPEN"
    assert tripped.run("check", "rule").returncode == 3
    assert tripped.run("doctor").returncode == 1, "a page that nobody has read yet is found here"
    with Breaker.open(project=tripped.root) as breaker:
        texts = [row.text for row in breaker.store.log_of("rule") if row.effect == "counted"]
    assert texts == [*ACTIONS, "the first after the damage"], "each violation once"


def test_the_hook_refuses_from_a_damaged_database_too(project: Project) -> None:
    """The first to find the damage is an agent's forbidden call: it is refused because the circuit is open."""
    project.constraint("rule", EVERY_ONE_COUNTS + 'match: {command: "git push --force"}\n')
    for _ in range(5):
        assert project.hook(project.bash("git push --force")).returncode == 0
    cut_in_the_middle(database(project))
    refused = project.hook(project.bash("git push --force"))
    assert refused.returncode == 2
    assert b"BLOCKED constraint:rule" in refused.stderr
    assert b"5 violations" in refused.stderr


def test_the_first_violation_after_a_damage_is_counted(project: Project) -> None:
    """Nobody is told to try again: what reported the damage is recorded in the rebuilt database."""
    project.constraint("rule", EVERY_ONE_COUNTS)
    with Breaker.open(project=project.root) as breaker:
        for action in ACTIONS[:4]:
            breaker.record("rule", action)
        breaker.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]
        cut_in_the_middle(database(project))
        assert breaker.record("rule", ACTIONS[4]).tripped


def test_many_circuits_and_a_damaged_page_among_them(project: Project) -> None:
    """A violation whose own page is fine finds the damage only when the mirror is written: it must not hang."""
    names = [f"rule-{number:03}" for number in range(60)]
    for name in names:
        project.constraint(name, EVERY_ONE_COUNTS)
    with Breaker.open(project=project.root) as breaker:
        for name in names:
            for action in ACTIONS:
                breaker.record(name, action * 5)
    path = database(project)
    connection = sqlite3.connect(path)
    pages = [
        page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE name='circuits' AND pagetype='leaf'")
    ]
    connection.close()
    assert len(pages) > 3
    with path.open("r+b") as file:
        file.seek((pages[-1] - 1) * 4096)
        file.write(b"\xa5" * 4096)
    done = subprocess.run(
        [sys.executable, "-m", "fusewire", "record", names[0], "--action", "x"],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {one["state"] for one in project.json("status")["circuits"]} == {"OPEN"}


def test_a_damage_twice_within_a_second_is_no_problem(tripped: Project) -> None:
    """The second damaged file gets a name of its own beside the first."""
    with Breaker.open(project=tripped.root) as breaker:
        for content in (b"first " * 1000, b"second" * 1000):
            breaker.store.close()
            database(tripped).write_bytes(content)
            assert breaker.status("rule").state == "OPEN"
    assert sorted(path.read_bytes()[:6] for path in kept_aside(tripped)) == [b"first ", b"second"]


def test_the_warning_stays_until_a_person_acknowledges_it(tripped: Project) -> None:
    """In status, in its JSON and in the doctor, again and again; an agent cannot acknowledge it."""
    garbage(database(tripped))
    for _ in range(2):
        assert "Warning: " in tripped.run("status").stderr
        assert len(tripped.json("status")["warnings"]) == 1
        assert tripped.run("doctor").returncode == 1
    assert tripped.run("doctor", "--acknowledge", env={"CLAUDECODE": "1"}).returncode == 3
    assert len(tripped.json("status")["warnings"]) == 1
    assert tripped.run("doctor", "--acknowledge").returncode == 0
    assert "Warning: " not in tripped.run("status").stderr
    assert tripped.run("doctor").returncode == 0


def test_the_damaged_file_is_kept_as_it_was(tripped: Project) -> None:
    """Byte for byte, and the warning names it."""
    garbage(database(tripped))
    before = database(tripped).read_bytes()
    (warning,) = tripped.json("status")["warnings"]
    (aside,) = kept_aside(tripped)
    assert aside.read_bytes() == before
    assert aside.name in warning


def test_the_recovered_circuit_still_counts_its_cooldown(tripped: Project) -> None:
    """A rebuild neither prolongs nor shortens it: the moment of the trip is known to the millisecond."""
    with Breaker.open(project=tripped.root) as breaker:
        before = breaker.status("rule")
    for damage in (garbage, emptied):
        damage(database(tripped))
        with Breaker.open(project=tripped.root) as breaker:
            after = breaker.status("rule")
        assert after.opened_at == pytest.approx(before.opened_at, abs=0.002)
        assert after.retry_after == pytest.approx(before.retry_after, abs=10)
        assert after.total == before.total
        assert after.trips == before.trips


def test_circuits_of_every_kind_come_back_from_the_trail(project: Project) -> None:
    """The mirror knows only constraints; an open tool circuit is in the audit trail."""
    with Breaker.open(project=project.root) as breaker:
        for _ in range(3):
            breaker.record("tool/tool_failure/Bash", "it failed")
        assert breaker.status("tool/tool_failure/Bash").state == "OPEN"
    garbage(database(project))
    with Breaker.open(project=project.root) as breaker:
        assert breaker.status("tool/tool_failure/Bash").state == "OPEN"
        assert breaker.store.circuits()[0].kind == "tool"


def test_a_circuit_that_was_reset_stays_closed(tripped: Project) -> None:
    """A rebuild does not bring back what a person has ended."""
    assert tripped.run("reset", "rule", "--reason", "mended").returncode == 0
    garbage(database(tripped))
    status = tripped.json("status", "rule")["circuits"][0]
    assert status["state"] == "CLOSED"
    assert status["level"] == 0
    assert status["last_reset"] is not None


def test_an_override_survives(tripped: Project) -> None:
    """A person's emergency override is part of the state that comes back."""
    assert tripped.run("override", "rule", "--reason", "fire", "--for", "2h").returncode == 0
    garbage(database(tripped))
    assert tripped.json("status", "rule")["circuits"][0]["override_until"] is not None


def test_history_with_a_reset_in_it_comes_back_without_doubles(project: Project) -> None:
    """The circuits' page is lost, the log's page is not: what both the file and the mirror know appears once."""
    project.constraint("rule", EVERY_ONE_COUNTS)
    with Breaker.open(project=project.root) as breaker:
        for action in ACTIONS:
            breaker.record("rule", action)
        breaker.reset("rule", "again")
        for number in range(5, 10):
            breaker.record("rule", f"git push --force #{number}")
    connection = sqlite3.connect(database(project))
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='circuits'").fetchone()
    connection.close()
    with database(project).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    with Breaker.open(project=project.root) as breaker:
        assert breaker.status("rule").state == "OPEN"
        texts = [row.text for row in breaker.store.log_of("rule") if row.kind == "bad"]
    assert sorted(texts) == [f"git push --force #{number}" for number in range(10)]


# -- missing files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["nothing else", "mirror", "trail"])
def test_a_deleted_database_leaves_the_circuit_open(tripped: Project, lost: str) -> None:
    """Deleting the file is no way to close a circuit."""
    database(tripped).unlink()
    if lost == "mirror":
        mirror(tripped).unlink()
    if lost == "trail":
        trail(tripped).unlink()
    assert_open_and_told(tripped, damaged=False, history=lost != "mirror")


def test_a_deleted_folder_leaves_the_circuit_open(tripped: Project) -> None:
    """Nor is deleting all of `.fusewire`."""
    shutil.rmtree(tripped.root / ".fusewire")
    assert_open_and_told(tripped, damaged=False)
    assert (tripped.root / ".fusewire" / ".gitignore").exists()


def test_when_everything_is_deleted_it_starts_empty(tripped: Project) -> None:
    """As the seed says; the program works, and the folder's absence is not an error."""
    shutil.rmtree(tripped.root / ".fusewire")
    mirror(tripped).unlink()
    assert {one["state"] for one in tripped.json("status")["circuits"]} == {"CLOSED"}
    assert tripped.run("record", "rule", "--action", "x").returncode == 0


def test_when_the_damaged_file_was_all_there_was_it_starts_empty_and_says_so(tripped: Project) -> None:
    """Nothing to rebuild from: empty, with a warning that stays."""
    garbage(database(tripped))
    mirror(tripped).unlink()
    trail(tripped).unlink()
    for _ in range(2):
        seen = tripped.json("status")
        assert {one["state"] for one in seen["circuits"]} == {"CLOSED"}
        assert "nothing was left" in seen["warnings"][0]
    assert len(kept_aside(tripped)) == 1


# -- the write-ahead log ------------------------------------------------------------------------------------


def wal_of(folder: Path, statements: list[str]) -> bytes:
    """The write-ahead log of a database that is open elsewhere."""
    folder.mkdir()
    connection = sqlite3.connect(folder / "x.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    for statement in statements:
        connection.execute(statement)
    content = (folder / "x.db-wal").read_bytes()
    connection.close()
    assert len(content) > 4096
    return content


def test_a_stray_write_ahead_log_of_another_database(tripped: Project, tmp_path: Path) -> None:
    """SQLite would replay it over our pages: that is damage like any other."""
    foreign = wal_of(tmp_path / "elsewhere", ["CREATE TABLE shopping (item)", "INSERT INTO shopping VALUES ('milk')"])
    Path(f"{database(tripped)}-wal").write_bytes(foreign)
    assert_open_and_told(tripped)


def test_a_stray_write_ahead_log_beside_a_deleted_database(tripped: Project, tmp_path: Path) -> None:
    """It is set aside and never meets the new database."""
    foreign = wal_of(tmp_path / "elsewhere", ["CREATE TABLE shopping (item)"])
    database(tripped).unlink()
    Path(f"{database(tripped)}-wal").write_bytes(foreign)
    with Breaker.open(project=tripped.root) as breaker:
        assert breaker.status("rule").state == "OPEN"
        assert len(breaker.store.notices()) == 1
        assert breaker.store.verify() == []
    assert [path.read_bytes() for path in database(tripped).parent.glob("*.corrupt-*-wal")] == [foreign]


def test_a_garbage_write_ahead_log_is_ignored(tripped: Project) -> None:
    """What is no log at all cannot harm: the database is as it was, without a warning."""
    Path(f"{database(tripped)}-wal").write_bytes(b"garbage" * 5000)
    seen = tripped.json("status")
    assert {one["id"]: one["state"] for one in seen["circuits"]} == {"rule": "OPEN", "other": "CLOSED"}
    assert seen["warnings"] == []


def trip_in_the_write_ahead_log(project: Project) -> None:
    """Four violations are in the main file; the fifth, which trips, is only in the log: a hook ends without closing."""
    project.constraint("rule", EVERY_ONE_COUNTS + 'match: {command: "git push --force"}\n')
    project.constraint("other", EVERY_ONE_COUNTS)
    with Breaker.open(project=project.root) as breaker:
        breaker.record("other", "something small")
        for action in ACTIONS[:4]:
            breaker.record("rule", action)
    assert project.hook(project.bash(ACTIONS[4])).returncode == 0
    assert json.loads(mirror(project).read_text())["rule"]["state"] == "OPEN"
    assert Path(f"{database(project)}-wal").stat().st_size > 0


def test_an_unfinished_write_ahead_log_is_used(project: Project) -> None:
    """A process that ended without closing its connection has lost nothing."""
    trip_in_the_write_ahead_log(project)
    assert project.run("check", "rule").returncode == 3
    assert project.json("status")["warnings"] == []


def test_an_older_row_does_not_beat_the_audit_trail(project: Project) -> None:
    """The log with the trip is gone and a page is damaged: the salvaged row says closed, the trail says open."""
    trip_in_the_write_ahead_log(project)
    for suffix in ("-wal", "-shm"):
        Path(f"{database(project)}{suffix}").unlink()
    connection = sqlite3.connect(database(project))
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name='log'").fetchone()
    connection.close()
    with database(project).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    project.run("record", "other", "--action", "finds the damage")
    assert project.json("status", "rule")["circuits"][0]["state"] == "OPEN"
    assert project.run("check", "rule").returncode == 3


def test_a_deleted_write_ahead_log_does_not_close_the_circuit(project: Project) -> None:
    """A trip is in the main file as soon as it is told: without its log the database still knows of it."""
    trip_in_the_write_ahead_log(project)
    for suffix in ("-wal", "-shm"):
        Path(f"{database(project)}{suffix}").unlink()
    assert project.run("check", "rule").returncode == 3


# -- one row ------------------------------------------------------------------------------------------------

BAD_STATES = {
    "cut JSON": '{"since": 1.0, "phase": "op',
    "no JSON": "\x00\x01",
    "empty": "",
    "a list": "[]",
    "null": "null",
    "an unknown field": '{"since": 1.0, "colour": "red"}',
    "an unknown phase": '{"since": 1.0, "phase": "ajar"}',
    "a wrong type": '{"since": 1.0, "total": "many"}',
    "no since": '{"phase": "closed"}',
    "a meter that is no list": '{"since": 1.0, "meters": {"violations": 3}}',
    "a meter of texts": '{"since": 1.0, "meters": {"violations": ["x", "y"]}}',
    "a meter of nulls": '{"since": 1.0, "meters": {"violations": [null]}}',
    "a time out of range": '{"since": 1.0, "phase": "open", "opened_at": 1e300, "until": 1e300}',
    "nested deeply": '{"since": 1.0, "meters": ' + "[" * 50_000 + "]" * 50_000 + "}",
}


def spoil(project: Project, state: str | bytes) -> None:
    connection = sqlite3.connect(database(project))
    connection.execute("UPDATE circuits SET state = ? WHERE id = 'rule'", (state,))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("state", BAD_STATES.values(), ids=BAD_STATES)
def test_an_unreadable_state_is_rebuilt_from_the_log(tripped: Project, state: str) -> None:
    """The file is sound, one row is not: the circuit is folded anew from its log and its trail, and stays open."""
    spoil(tripped, state)
    assert_open_and_told(tripped, damaged=False)


def test_a_state_that_is_no_text_is_rebuilt_too(tripped: Project) -> None:
    """SQLite keeps whatever it is given, bytes included."""
    spoil(tripped, b"\xff\xfe")
    assert_open_and_told(tripped, damaged=False)


@pytest.mark.parametrize("state", BAD_STATES.values(), ids=BAD_STATES)
def test_an_unreadable_state_does_not_disturb_other_circuits(tripped: Project, state: str) -> None:
    """Others are recorded, and the mirror that is written then still holds the open circuit."""
    spoil(tripped, state)
    done = tripped.run("record", "other", "--action", "a second one")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(mirror(tripped).read_text())["rule"]["state"] == "OPEN"


@pytest.mark.parametrize("state", BAD_STATES.values(), ids=BAD_STATES)
def test_the_doctor_finds_an_unreadable_state(tripped: Project, state: str) -> None:
    """Although nobody has touched the circuit since: the doctor says that something is wrong, in words."""
    spoil(tripped, state)
    doctor = tripped.run("doctor")
    assert doctor.returncode == 1
    assert "Traceback" not in doctor.stderr
    assert "rule" in doctor.stdout + doctor.stderr


@pytest.mark.parametrize("command", [("archive", "rule"), ("import",), ("reset", "rule", "--reason", "x")])
@pytest.mark.parametrize("state", ["cut JSON", "a list", "an unknown field"])
def test_a_person_may_act_on_an_unreadable_state(tripped: Project, state: str, command: tuple[str, ...]) -> None:
    """Archive, import and reset are ways out of it: they work, and never end in a traceback."""
    spoil(tripped, BAD_STATES[state])
    done = tripped.run(*command)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


# -- several at once ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [garbage, cut_in_the_middle, None], ids=["garbage", "cut", "deleted"])
def test_processes_that_find_the_same_damage_rebuild_once(
    tripped: Project, damage: Callable[[Path], None] | None
) -> None:
    """Six look at the same moment: one warning, one file aside, and all of them see the circuit open."""
    if damage is None:
        database(tripped).unlink()
    else:
        damage(database(tripped))
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKERS), "look", str(tripped.root), "rule"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        out, err = worker.communicate(timeout=45)
        assert worker.returncode == 0, out + err
        found = json.loads(out)
        assert found["state"] == "OPEN"
        assert len(found["notices"]) == 1, found["notices"]
    assert len(kept_aside(tripped)) == (0 if damage is None else 1)


# -- the mirror ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"{ half", b"", b"\xff\xfe\x00", b"[]", b"<<<<<<< HEAD\n{}\n"])
def test_a_corrupt_mirror_is_set_aside_and_written_anew(tripped: Project, content: bytes) -> None:
    """The database is the truth; the bad file is kept, and people are told until they acknowledge it."""
    mirror(tripped).write_bytes(content)
    before = tripped.json("status")
    assert len(before["warnings"]) == 1
    assert ".circuit-state.json" in before["warnings"][0]
    assert tripped.run("record", "other", "--action", "x").returncode == 0
    written = json.loads(mirror(tripped).read_text())
    assert written["rule"]["state"] == "OPEN"
    assert Path(f"{mirror(tripped)}.edited-1").read_bytes() == content
    (warning,) = tripped.json("status")["warnings"]
    assert ".edited-1" in warning
    tripped.run("doctor", "--acknowledge")
    assert tripped.json("status")["warnings"] == []


def test_a_mirror_edited_by_hand_closes_nothing_and_is_kept(tripped: Project) -> None:
    """Writing CLOSED into the file is no reset; each edited version is kept under a number of its own."""
    for number in (1, 2):
        entries = json.loads(mirror(tripped).read_text())
        entries["rule"]["state"] = "CLOSED"
        edited = json.dumps(entries, indent=number)
        mirror(tripped).write_text(edited)
        assert tripped.run("check", "rule").returncode == 3
        assert any("changed by somebody else" in warning for warning in tripped.json("status")["warnings"])
        assert tripped.run("record", "rule", "--action", "x").returncode == 0
        assert json.loads(mirror(tripped).read_text())["rule"]["state"] == "OPEN"
        assert Path(f"{mirror(tripped)}.edited-{number}").read_text() == edited


def test_an_edited_mirror_and_a_deleted_database_do_not_close_it_either(tripped: Project) -> None:
    """Where the file and the audit trail differ, the trail is right."""
    entries = json.loads(mirror(tripped).read_text())
    entries["rule"]["state"] = "CLOSED"
    entries["rule"]["violations"] = []
    mirror(tripped).write_text(json.dumps(entries))
    database(tripped).unlink()
    assert tripped.run("check", "rule").returncode == 3
    assert len(tripped.json("status")["warnings"]) >= 1


def test_a_corrupt_mirror_and_a_deleted_database(tripped: Project) -> None:
    """The audit trail alone keeps the circuit open, and the warnings name the bad file, which is kept."""
    mirror(tripped).write_text("{ half")
    database(tripped).unlink()
    seen = tripped.json("status")
    assert {one["id"]: one["state"] for one in seen["circuits"]} == {"rule": "OPEN", "other": "CLOSED"}
    assert any(".circuit-state.json" in warning for warning in seen["warnings"])
    tripped.run("record", "rule", "--action", "x")
    assert Path(f"{mirror(tripped)}.edited-1").read_text() == "{ half"


def test_a_half_written_temporary_file_is_no_harm(tripped: Project) -> None:
    """A process died while it wrote `.circuit-state.json.tmp`: nobody reads it, the next writer replaces it."""
    left = Path(f"{mirror(tripped)}.tmp")
    left.write_text('{"rule": {"state": "CLO')
    assert tripped.json("status")["warnings"] == []
    assert tripped.run("record", "rule", "--action", "x").returncode == 0
    assert not left.exists()
    assert json.loads(mirror(tripped).read_text())["rule"]["state"] == "OPEN"
    assert list(mirror(tripped).parent.glob("*.edited-*")) == []


def test_two_failed_writes_do_not_make_our_own_file_look_edited(tripped: Project) -> None:
    """Twice the new file cannot be put in place (a full disk, a kill): what is there is still what we wrote."""
    blocked = Path(f"{mirror(tripped)}.tmp")
    blocked.mkdir()
    for number in range(2):
        assert tripped.run("record", "rule", "--action", f"meanwhile {number}").returncode == 0
    blocked.rmdir()
    tripped.run("doctor", "--acknowledge")
    assert tripped.run("record", "rule", "--action", "and now").returncode == 0
    assert tripped.json("status")["warnings"] == []
    assert list(mirror(tripped).parent.glob("*.edited-*")) == []
    assert len(json.loads(mirror(tripped).read_text())["rule"]["violations"]) == 8


def test_a_mirror_that_cannot_be_written_is_told_and_no_violation_is_lost(tripped: Project) -> None:
    """The count is in the database before the file is touched."""
    Path(f"{mirror(tripped)}.tmp").mkdir()
    done = tripped.run("record", "rule", "--action", "x")
    assert done.returncode == 0
    assert any("could not be written" in warning for warning in tripped.json("status")["warnings"])
    assert tripped.json("status", "rule")["circuits"][0]["total"] == 6


# -- the audit trail as text --------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_cut_last_line_of_the_trail_is_left_out(tripped: Project, cut: int) -> None:
    """A writer died in the middle of its line: the lines before it count, and the next line starts afresh."""
    with Breaker.open(project=tripped.root) as breaker:
        breaker.reset("rule", "mended")
        for action in ACTIONS:
            breaker.record("rule", action)
        content = trail(tripped).read_bytes()
        trail(tripped).write_bytes(content + content.splitlines(keepends=True)[-1][:-cut])
        breaker.reset("rule", "mended again")
    lines = trail(tripped).read_text().splitlines()
    assert json.loads(lines[-1])["cause"] == "reset"
    for line in lines[:-2]:
        json.loads(line)
    database(tripped).unlink()
    mirror(tripped).unlink()
    assert tripped.json("status", "rule")["circuits"][0]["state"] == "CLOSED"


def test_a_trail_whose_last_move_is_cut_still_knows_the_earlier_ones(tripped: Project) -> None:
    """The trip is whole, the line after it is not: the circuit comes back open."""
    with trail(tripped).open("ab") as file:
        file.write(b'{"time":"2026-11-15T22:00:00Z","circuit":"rule","from":"open","to":"clo')
    database(tripped).unlink()
    mirror(tripped).unlink()
    assert tripped.run("check", "rule").returncode == 3


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00\n",
        b"null\n",
        b"[1, 2]\n",
        b'{"circuit": 5, "state": {}}\n',
        b'{"circuit": "rule", "state": {}}\n',
    ],
)
def test_a_strange_line_in_the_trail_closes_nothing(tripped: Project, line: bytes) -> None:
    """Whatever somebody appended there, the last line that makes sense is the one that counts."""
    with trail(tripped).open("ab") as file:
        file.write(line)
    database(tripped).unlink()
    mirror(tripped).unlink()
    assert tripped.run("check", "rule").returncode == 3


def move(circuit: str, at: float, target: str, size: int = 0) -> tuple[AuditRow, dict[str, Any]]:
    state: dict[str, Any] = {"since": 1.0, "evidence": "x" * size}
    if target == "open":
        state |= {"phase": "open", "opened_at": at}
    return AuditRow(circuit, at, "closed", target, "tripped", "because", "somebody"), state


def test_the_trail_is_bounded_and_keeps_the_last_word_on_open_circuits(tmp_path: Path) -> None:
    """Many megabytes of moves leave a file near the limit that still knows what was opened long ago."""
    folder = str(tmp_path)
    audit_file.append(folder, [move("long-open", 1.0, "open")])
    audit_file.append(folder, [move("long-closed", 1.0, "open")])
    audit_file.append(folder, [move("long-closed", 2.0, "closed")])
    sizes = []
    for number in range(3000):
        audit_file.append(folder, [move(f"noisy-{number % 3}", 3.0 + number, "closed", 300)])
        sizes.append(os.path.getsize(audit_file.path_of(folder)))
    assert max(sizes) <= audit_file.LIMIT
    states = audit_file.last_states(folder)
    assert states["long-open"] == {"since": 1.0, "evidence": "", "phase": "open", "opened_at": 1.0}
    assert states.get("long-closed", {"phase": "closed"}).get("phase", "closed") == "closed"
    assert states["noisy-2"]["since"] == 1.0
    assert [entry.name for entry in tmp_path.iterdir()] == ["audit.jsonl"]


def test_archived_circuits_do_not_fill_the_trail(tmp_path: Path) -> None:
    """What was removed needs no last word once its earlier lines are gone."""
    folder = str(tmp_path)
    for number in range(1500):
        audit_file.append(
            folder, [move(f"gone-{number}", 1.0, "open"), (move(f"gone-{number}", 2.0, "removed")[0], None)]
        )
    assert os.path.getsize(audit_file.path_of(folder)) <= audit_file.LIMIT
    assert [name for name in audit_file.last_states(folder) if name.startswith("gone")] == []


def test_many_open_circuits_do_not_make_every_move_rewrite_the_trail(tmp_path: Path) -> None:
    """400 open circuits fill the file; after that a move is still an append, not a rewrite of it all."""
    folder = str(tmp_path)
    for number in range(400):
        audit_file.append(folder, [move(f"open-{number}", 1.0, "open", 900)])
    rewrites, inode = 0, os.stat(audit_file.path_of(folder)).st_ino
    for number in range(200):
        audit_file.append(folder, [move("busy", 2.0 + number, "open", 900)])
        now = os.stat(audit_file.path_of(folder)).st_ino
        rewrites += now != inode
        inode = now
    assert rewrites <= 10
    assert len([name for name in audit_file.last_states(folder) if name.startswith("open")]) == 400


def test_a_rebuild_keeps_the_answers_that_can_be_read(tmp_path: Path) -> None:
    """With their numbers and codes, so that a code which somebody was shown is still theirs."""
    path = tmp_path / "state.db"
    store = SqliteStore(str(path))
    with store.transact() as transaction:
        for number in range(5):
            transaction.decided(DecisionRow(float(number), "s", "refused", "guard.rm", {"call": f"rm {number}"}))
    before = store.decisions()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'log'").fetchone()
    store.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    mended = SqliteStore(str(path), verifies=True)
    assert mended.decisions() == before
    with mended.transact() as transaction:
        transaction.decided(DecisionRow(9.0, "s", "refused", "guard.rm", {}))
    assert mended.last_decision() == before[-1][0] + 1
    assert "was damaged" in mended.notices()[0]
    mended.close()
