"""The SQLite store with real files: made lazily, migrated, locked, forked, moved about, and never large."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire.core.circuit import Policy
from fusewire.core.events import TEXT_LIMIT, Signal
from fusewire.engine.breaker import Breaker, default_rules
from fusewire.engine.engine import Engine
from fusewire.stores import audit_file, migrations, open_store, recovery, sqlite
from fusewire.stores.rows import KEPT_ROWS, LOG_ROWS, OTHER_ROWS
from fusewire.stores.sqlite import SqliteStore
from fusewire.util import files
from fusewire.util.errors import StoreError
from tests.helpers import TESTS
from tests.helpers.program import UNPRIVILEGED
from tests.helpers.project import Project

WORKERS = TESTS / "helpers" / "workers.py"
YEAR = 365 * 86400
MB = 1_000_000


def breaker_on(path: Path, clock: Callable[[], float] = time.time, patience: float = 2.0) -> Breaker:
    """Every bare id is a constraint with the seed's defaults, except that each violation counts."""
    store = open_store(f"sqlite:{path}", patience=patience)
    return Breaker(store, without_dedup(), clock)


def without_dedup() -> Any:
    rules = default_rules()
    template = rules.policies["{constraint}"]
    rules.policies["{constraint}"] = Policy.from_data(template).replace(dedup=0).to_data()
    return rules


def total(breaker: Breaker, circuit: str) -> int:
    return breaker.status(circuit).total


# -- made when it is needed ---------------------------------------------------------------------------------


def test_opening_and_reading_create_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where something of another project was set aside by this process."""
    monkeypatch.setattr("fusewire.util.files.unwritten", [("/elsewhere/.fusewire/state.db", "was set aside")])
    monkeypatch.setattr("fusewire.stores.sqlite.unwritten", [("/elsewhere/.fusewire/state.db", "was set aside")])
    path = tmp_path / "project" / ".fusewire" / "state.db"
    with breaker_on(path) as breaker:
        assert breaker.status("a").state == "CLOSED"
        assert breaker.history("a") == []
        assert breaker.store.verify() == []
    assert list(tmp_path.iterdir()) == []


def test_a_question_to_a_closed_circuit_writes_no_circuit(tmp_path: Path) -> None:
    """A check of a constraint that was never violated leaves no row."""
    with breaker_on(tmp_path / "state.db") as breaker:
        assert breaker.check("a").verdict == "allow"
        assert breaker.store.circuits() == []


def test_the_first_write_makes_the_folder_and_hides_it_from_git(project: Project) -> None:
    """`.fusewire/.gitignore` says `*`, so git sees nothing of the folder, the ignore file included."""
    with Breaker.open(f"sqlite:{project.root / '.fusewire' / 'state.db'}") as breaker:
        breaker.record("a", "an action")
    assert (project.root / ".fusewire" / ".gitignore").read_text() == "*\n"
    seen = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout == ""


def test_a_folder_that_a_killed_process_left_half_made_is_hidden_from_git_too(project: Project) -> None:
    """The folder is there, its `.gitignore` is not: the next writer must not leave the state open to `git add .`."""
    (project.root / ".fusewire").mkdir()
    with Breaker.open(f"sqlite:{project.root / '.fusewire' / 'state.db'}") as breaker:
        breaker.record("a", "an action")
    assert (project.root / ".fusewire" / ".gitignore").read_text() == "*\n"


def test_a_new_database_is_in_wal_mode_with_the_latest_format(tmp_path: Path) -> None:
    """Readers never wait for writers, and a later program knows the shape."""
    with breaker_on(tmp_path / "state.db") as breaker:
        breaker.record("a", "x")
    connection = sqlite3.connect(tmp_path / "state.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA user_version").fetchone() == (migrations.LATEST,)
    names = [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY applied_to")]
    connection.close()
    assert names == [name for name, _ in migrations.MIGRATIONS]


@pytest.mark.parametrize(
    "name", ["with spaces", "100%25", "what?mode=memory", "a#b", "&cache=shared", "ü 🧯", "%2e%2e"]
)
def test_any_path_is_only_a_path(tmp_path: Path, name: str) -> None:
    """Characters that mean something in a URL name just that file, and nothing else appears beside it."""
    path = tmp_path / name / f"{name}.db"
    with breaker_on(path) as breaker:
        breaker.record("a", "x")
    with breaker_on(path) as breaker:
        assert total(breaker, "a") == 1
    assert path.stat().st_size > 0
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    # and a rebuild finds it too
    path.write_bytes(b"garbage" * 1000)
    with breaker_on(path) as breaker:
        breaker.record("a", "x")
        assert len(breaker.store.notices()) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_relative_path_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later `chdir` does not make a second database."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Breaker.open("sqlite:state.db") as breaker:
        monkeypatch.chdir(tmp_path / "elsewhere")
        breaker.record("a", "x")
        assert total(breaker, "a") == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


# -- migrations ---------------------------------------------------------------------------------------------

SECOND = ("labels", "ALTER TABLE circuits ADD COLUMN label TEXT; CREATE TABLE labels (name TEXT PRIMARY KEY)")


def use_migrations(monkeypatch: pytest.MonkeyPatch, *later: tuple[str, str]) -> None:
    """The program of a later release: it knows more shapes than this one."""
    steps = (*migrations.MIGRATIONS, *later)
    monkeypatch.setattr(recovery, "MIGRATIONS", steps)
    monkeypatch.setattr(sqlite, "LATEST", len(steps))


def columns_of(path: Path, table: str) -> list[str]:
    connection = sqlite3.connect(path)
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    return names


def test_an_older_shape_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later release reads what this one wrote, and says nothing about it: nothing was lost."""
    path = tmp_path / "state.db"
    with breaker_on(path) as breaker:
        for number in range(5):
            breaker.record("a", f"action {number}")
    use_migrations(monkeypatch, SECOND, ("nothing much", "CREATE TABLE more (x)"))
    with breaker_on(path) as breaker:
        assert breaker.status("a").state == "OPEN"
        assert [row.text for row in breaker.history("a")] == [f"action {number}" for number in range(5)]
        assert breaker.store.notices() == []
    assert "label" in columns_of(path, "circuits")
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (migrations.LATEST + 2,)
    assert connection.execute("SELECT count(*) FROM migrations").fetchone() == (migrations.LATEST + 2,)
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps or none: after a broken second step the first is not there either, and this release still works."""
    path = tmp_path / "state.db"
    with breaker_on(path) as breaker:
        breaker.record("a", "x")
    before = columns_of(path, "circuits")
    with monkeypatch.context() as patch:
        use_migrations(patch, SECOND, ("broken", "CREATE TABLE fine (x); ALTER TABLE nowhere ADD COLUMN y"))
        with breaker_on(path) as breaker, pytest.raises(StoreError, match="nowhere") as caught:
            breaker.record("a", "x")
        assert "\n" not in str(caught.value)
    assert columns_of(path, "circuits") == before
    assert columns_of(path, "fine") == []
    with breaker_on(path) as breaker:
        assert total(breaker, "a") == 1
        assert breaker.store.notices() == []


def test_two_processes_migrate_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find the old shape at the same moment; the second finds the work done."""
    path = tmp_path / "state.db"
    with breaker_on(path) as breaker:
        breaker.record("a", "x")
    use_migrations(monkeypatch, SECOND)
    results = in_forks(6, lambda number: total(breaker_on(path), "a"))
    assert results == [1] * 6
    assert columns_of(path, "circuits").count("label") == 1


def test_a_newer_format_is_refused_in_one_line(project: Project) -> None:
    """A database of a later release is neither used nor touched, and the message names both formats."""
    project.constraint("a")
    project.run("record", "a", "--action", "x")
    path = project.root / ".fusewire" / "state.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = path.read_bytes()
    for command in (("status",), ("check", "a"), ("record", "a", "--action", "y")):
        done = project.run(*command)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert f"newer Fusewire (format 99, known {migrations.LATEST})" in done.stderr
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*corrupt*"))


# -- locked -------------------------------------------------------------------------------------------------


@contextmanager
def held_exclusively(root: Path) -> Iterator[None]:
    """Another process holds the write lock."""
    holder = subprocess.Popen(
        [sys.executable, str(WORKERS), "hold", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "ready\n"
        yield
    finally:
        holder.communicate("go\n", timeout=45)


def test_a_locked_database_is_tried_three_times_and_then_said_in_one_line(tmp_path: Path) -> None:
    """Three attempts, each with the given patience, with pauses that grow; nothing is written; then it works."""
    breaker = breaker_on(tmp_path / ".fusewire" / "state.db", patience=0.1)
    breaker.record("a", "before")
    with held_exclusively(tmp_path):
        started = time.monotonic()
        with pytest.raises(StoreError, match=r"locked by another process: .*state\.db \(3 attempts in") as caught:
            breaker.record("a", "meanwhile")
        waited = time.monotonic() - started
        assert "\n" not in str(caught.value)
        assert 3 * 0.1 + 0.05 + 0.2 <= waited < 15
        assert total(breaker, "a") == 1  # reading does not wait for a writer
    breaker.record("a", "after")
    assert [row.text for row in breaker.history("a")] == ["before", "after"]
    breaker.close()


def test_a_lock_that_is_let_go_in_time_is_waited_for(tmp_path: Path) -> None:
    """A writer that ends before the patience does costs nobody an error."""
    breaker = breaker_on(tmp_path / ".fusewire" / "state.db", patience=5)
    breaker.record("a", "before")
    done: list[int] = []
    with held_exclusively(tmp_path):
        writer = threading.Thread(target=lambda: done.append(breaker.record("a", "meanwhile") is not None))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
    writer.join(20)
    assert done == [1]
    assert total(breaker, "a") == 2
    breaker.close()


def test_a_locked_database_makes_the_hook_refuse(project: Project) -> None:
    """A call that a constraint forbids is denied, because it cannot be counted."""
    project.constraint("no-force", 'match: {command: "git push --force"}\n')
    project.run("record", "no-force", "--action", "x")
    with held_exclusively(project.root):
        hook = project.hook(project.bash("git push --force"))
        assert hook.returncode == 2
        assert b"BLOCKED constraint:no-force" in hook.stderr
        assert b"locked by another process" in hook.stderr


def hold(lock: Path) -> int:
    """Hold a lock as somebody does who may only read it."""
    descriptor = os.open(lock, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def test_locks_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Whoever can read a file can hold its lock; those of older versions are narrowed."""
    made, old = tmp_path / "made.lock", tmp_path / "old.lock"
    old.touch()
    old.chmod(0o664)
    for path in (made, old):
        with files.FileLock(str(path)):
            assert path.stat().st_mode & 0o777 == 0o600
    mode = tmp_path.stat().st_mode
    with files.FolderLock(str(tmp_path)):
        assert tmp_path.stat().st_mode == mode, "a folder is locked as it is"


def test_a_lock_that_is_held_while_nothing_is_rebuilt_keeps_nobody_out(tmp_path: Path) -> None:
    """It says that the files may move, and no new database lies beside: it is a stranger's, or an agent's."""
    path = tmp_path / "state.db"
    breaker_on(path).record("a", "before")
    held = hold(tmp_path / "recovery.lock")
    started = time.monotonic()
    breaker = breaker_on(path)
    breaker.record("a", "meanwhile")
    assert total(breaker_on(path), "a") == 2
    assert time.monotonic() - started < 10
    os.close(held)


def test_a_database_that_is_lost_while_the_lock_is_held_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that rebuild at once would take each other's files."""
    monkeypatch.setattr(sqlite, "_REBUILD_PATIENCE", 0.2)
    path = tmp_path / "state.db"
    breaker_on(path).record("a", "before")
    path.write_bytes(b"")
    held = hold(tmp_path / "recovery.lock")
    with pytest.raises(StoreError, match="another process holds the lock"):
        breaker_on(path).record("a", "meanwhile")
    os.close(held)
    breaker_on(path).record("a", "after")


def test_nobody_opens_a_database_in_the_middle_of_a_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: what is written between the old log and the new file would damage the new one."""
    monkeypatch.setattr(sqlite, "_LOCK_PATIENCE", 0.05)
    path = tmp_path / "state.db"
    breaker_on(path).record("a", "before")
    data = bytearray(path.read_bytes())
    data[:16] = b"no SQLite format"
    path.write_bytes(data)
    (tmp_path / "state.db-wal").unlink(missing_ok=True)
    other = breaker_on(path)
    writer = threading.Thread(target=other.record, args=("a", "meanwhile"))
    link = os.link

    def slow_link(source: str, target: str) -> None:
        monkeypatch.setattr(os, "link", link)
        writer.start()
        writer.join(0.5)
        assert writer.is_alive(), "it waits"
        assert not (tmp_path / "state.db-wal").exists(), "and has opened nothing"
        link(source, target)

    monkeypatch.setattr(os, "link", slow_link)
    breaker = breaker_on(path)
    breaker.record("a", "mine")
    writer.join(30)
    assert sorted(row.text for row in breaker.history("a"))[-2:] == ["meanwhile", "mine"]
    assert breaker.verify() == []


# -- processes and threads ----------------------------------------------------------------------------------


def in_forks(count: int, work: Callable[[int], int]) -> list[int]:
    """Run `work(number)` in forked children at once; their exit codes (250 for an exception)."""
    gate_read, gate_write = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            code = 250
            try:
                os.close(gate_write)
                os.read(gate_read, 1)  # returns at the end of the file, when the parent opens the gate
                code = work(number)
            finally:
                os._exit(code)
        children.append(child)
    os.close(gate_read)
    os.close(gate_write)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_a_store_opened_before_a_fork_is_safe_on_both_sides(tmp_path: Path) -> None:
    """Parent and children record through the same object at the same time, and nothing is lost or damaged."""
    breaker = breaker_on(tmp_path / "state.db", patience=10)
    breaker.record("a", "before the fork")

    def in_child(number: int) -> int:
        for _ in range(20):
            breaker.record("a", f"child {number}")
        return 0

    child = os.fork()
    if child == 0:
        code = 250
        try:
            code = in_child(1)
        finally:
            os._exit(code)
    for _ in range(20):
        breaker.record("a", "parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert in_forks(4, in_child) == [0] * 4
    breaker.record("a", "after the forks")
    assert total(breaker, "a") == 1 + 20 + 20 + 80 + 1
    assert len(breaker.history("a")) == 122
    assert breaker.store.verify() == []
    breaker.close()


def test_closing_in_a_forked_child_does_not_disturb_the_parent(tmp_path: Path) -> None:
    """A child that ends properly, with `close`, leaves the parent's connection and its data as they were."""
    breaker = breaker_on(tmp_path / "state.db")
    breaker.record("a", "one")

    def in_child(number: int) -> int:
        breaker.close()
        return 0

    assert in_forks(2, in_child) == [0, 0]
    breaker.record("a", "two")
    with breaker_on(tmp_path / "state.db") as other:
        assert total(other, "a") == 2
    breaker.close()


def test_one_store_serves_many_threads(tmp_path: Path) -> None:
    """8 threads, 25 violations each, one breaker: 200 are counted and exactly one of them trips."""
    breaker = breaker_on(tmp_path / "state.db")
    trips: list[str] = []
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for at in range(25):
                if breaker.record("a", f"{number}-{at}").tripped:
                    trips.append(f"{number}-{at}")
                breaker.status("a")
        except BaseException as error:
            failures.append(error)

    run_threads(work, 8)
    assert failures == []
    assert total(breaker, "a") == 200
    assert trips == [breaker.history("a")[4].text]
    breaker.close()


def test_many_threads_may_make_the_same_new_store(tmp_path: Path) -> None:
    """Each with a store of its own, all on a folder that is not there yet."""
    for round_ in range(10):
        path = tmp_path / str(round_) / ".fusewire" / "state.db"
        path.parents[1].mkdir()
        failures: list[BaseException] = []
        barrier = threading.Barrier(8)

        def work(number: int, path: Path = path, failed: list = failures, gate: threading.Barrier = barrier) -> None:
            try:
                gate.wait(45)
                with breaker_on(path, patience=10) as breaker:
                    breaker.record("a", str(number))
            except BaseException as error:
                failed.append(error)

        run_threads(work, 8)
        assert failures == []
        with breaker_on(path) as breaker:
            assert total(breaker, "a") == 8


def run_threads(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


# -- the file under an open store ---------------------------------------------------------------------------


def test_a_file_replaced_under_an_open_store_is_noticed(tmp_path: Path) -> None:
    """Whoever restores a backup over the database is heard: writes go to the file that is there now."""
    path, backup = tmp_path / "state.db", tmp_path / "backup.db"
    with breaker_on(backup) as other:
        for _ in range(3):
            other.record("a", "in the backup")
    breaker = breaker_on(path)
    breaker.record("a", "in the old file")
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.replace(backup, path)
    breaker.record("a", "after")
    assert total(breaker, "a") == 4
    breaker.close()
    with breaker_on(path) as again:
        assert [row.text for row in again.history("a")] == ["in the backup"] * 3 + ["after"]


def test_a_file_removed_under_an_open_store_is_made_again(tmp_path: Path) -> None:
    """The open circuit is known from the audit trail, and nobody writes into a file without a name."""
    path = tmp_path / "state.db"
    breaker = breaker_on(path)
    for _ in range(5):
        breaker.record("a", "x")
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    assert breaker.check("a").verdict == "deny"
    breaker.close()
    with breaker_on(path) as again:
        assert again.status("a").state == "OPEN"
        assert len(again.store.notices()) == 1


def test_a_whole_folder_removed_under_an_open_store_is_made_again(tmp_path: Path) -> None:
    """The next violation is counted in a new store, and the folder is hidden from git again."""
    path = tmp_path / ".fusewire" / "state.db"
    breaker = breaker_on(path)
    breaker.record("a", "x")
    shutil.rmtree(path.parent)
    breaker.record("a", "y")
    assert total(breaker, "a") == 1
    breaker.close()
    assert (path.parent / ".gitignore").exists()


@pytest.mark.parametrize("size", [0, 4096, 6000])
def test_a_file_cut_off_under_an_open_store_is_recovered_by_that_store(tmp_path: Path, size: int) -> None:
    """Cut in place, so that the inode is the same: the open store recovers as a new process would."""
    path = tmp_path / "state.db"
    breaker = breaker_on(path)
    for _ in range(5):
        breaker.record("a", "x")
    breaker.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]
    os.truncate(path, size)
    assert breaker.check("a").verdict == "deny"
    assert len(breaker.store.notices()) == 1
    breaker.close()


# -- folders that cannot be used ----------------------------------------------------------------------------


def give_up_capabilities() -> None:
    """Root, too, may no longer write where the modes forbid it."""
    version, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(version, nothing) == 0


def without_rights(work: Callable[[], str]) -> str:
    """Run in a child without the rights of root; its words."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        text = "nothing"
        try:
            give_up_capabilities()
            text = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def locked_folder() -> Iterator[Path]:
    """A folder that others may read and enter, but in which nobody may write."""
    top = Path(tempfile.mkdtemp(prefix="fusewire-locked-"))
    top.chmod(0o755)
    yield top
    for path in (top, *top.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(top)


def test_a_folder_that_cannot_be_made_is_a_clear_error(locked_folder: Path) -> None:
    """A StoreError in one line that names the folder; nothing else is raised."""
    locked_folder.chmod(0o555)
    path = locked_folder / ".fusewire" / "state.db"

    def work() -> str:
        breaker_on(path).record("a", "x")
        return "written"

    answer = without_rights(work)
    assert answer.startswith("StoreError: the state folder cannot be used: ")
    assert str(path.parent) in answer
    assert "\n" not in answer


def test_a_database_in_a_read_only_folder_is_a_clear_error(locked_folder: Path) -> None:
    """Recording fails with a StoreError in one line, and what was there stays as it was."""
    path = locked_folder / "state.db"
    with breaker_on(path) as breaker:
        breaker.record("a", "x")
    before = path.read_bytes()
    for entry in locked_folder.iterdir():
        entry.chmod(0o444)
    locked_folder.chmod(0o555)

    def work() -> str:
        breaker_on(path, patience=0.05).record("a", "y")
        return "written"

    answer = without_rights(work)
    assert answer.startswith("StoreError: ")
    assert str(path.parent) in answer
    assert "\n" not in answer
    assert path.read_bytes() == before


def test_a_file_in_the_place_of_the_folder_is_set_aside(tmp_path: Path) -> None:
    """`.fusewire` is a file: it keeps its content under another name, and a notice says so."""
    (tmp_path / ".fusewire").write_text("no folder")
    breaker = breaker_on(tmp_path / ".fusewire" / "state.db")
    breaker.record("a", "x")
    assert total(breaker, "a") == 1
    assert [notice for notice in breaker.store.notices() if ".fusewire.set-aside-1" in notice]
    assert (tmp_path / ".fusewire.set-aside-1").read_text() == "no folder"
    breaker.close()


def test_an_audit_trail_that_cannot_be_written_does_not_keep_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text file beside the database fails: that is a StoreError, nothing is half-done, and others may write."""
    path = tmp_path / "state.db"
    breaker = breaker_on(path, patience=0.1)
    for _ in range(4):
        breaker.record("a", "x")

    def disk_is_full(*_: object) -> int:
        raise OSError(28, "No space left on device", "audit.jsonl")

    monkeypatch.setattr(audit_file, "open_file", disk_is_full)
    with pytest.raises(StoreError):
        breaker.record("a", "the fifth trips")
    with breaker_on(path, patience=0.1) as other:
        other.record("b", "another process is not locked out")
    assert breaker.record("b", "nor is this one") is not None
    monkeypatch.undo()
    assert total(breaker, "a") == 4
    assert breaker.record("a", "the fifth trips").tripped
    breaker.close()


# -- never large --------------------------------------------------------------------------------------------


def size_of(folder_: Path) -> int:
    return sum((folder_ / name).stat().st_size for name in os.listdir(folder_))


def a_year(path: Path, events: int, text_of: Callable[[int], str]) -> tuple[int, int]:
    """So many violations over a year on 24 constraints and 20 tools, through the engine; sizes at half time and end.

    They come in bursts of 20, as an agent's do; after a burst somebody asks whether one more may pass.
    """
    burst = 20
    moment = [0.0]
    store = SqliteStore(str(path))
    engine = Engine(store, without_dedup(), lambda: 1_700_000_000 + moment[0])
    chance = random.Random(7)
    half = 0
    for start in range(0, events, burst):
        moment[0] = YEAR * start / events
        session = f"session-{start // 500:032}"
        signals = []
        for number in range(start, start + burst):
            circuit, name = f"rule-{chance.randrange(24)}", "violation"
            if number % 10 == 0:
                circuit, name = f"tool/tool_failure/tool-{chance.randrange(20)}", "tool_failed"
            signals.append(Signal("bad", circuit, name, text=text_of(number), session=session))
        signals.append(Signal("ask", f"rule-{chance.randrange(24)}", "action", text=text_of(start), session=session))
        engine.apply(signals)
        if start <= events // 2:
            half = size_of(path.parent)
    rows = sum(len(store.log_of(row.id)) for row in store.circuits())
    assert rows > 0.9 * LOG_ROWS, "the year was too quiet to show anything"
    assert max(len(store.log_of(f"rule-{number}")) for number in range(24)) <= KEPT_ROWS + OTHER_ROWS
    end = size_of(path.parent)
    store.close()
    return half, end


def test_a_year_of_events_stays_under_5_mb(tmp_path: Path) -> None:
    """12,000 violations with long texts over a year: small, and flat from the first half on."""
    half, end = a_year(tmp_path / "s" / "state.db", 12_000, lambda number: f"{number} git push --force " + "x" * 5000)
    assert end < 5 * MB
    assert end <= half + 64 * 1024


def test_texts_in_any_script_stay_under_5_mb_too(tmp_path: Path) -> None:
    """The limit of a text holds its bytes, not only its characters: a year of Chinese and emoji is no larger."""
    half, end = a_year(tmp_path / "s" / "state.db", 12_000, lambda number: f"{number} " + "🧯漢" * TEXT_LIMIT)
    assert end < 5 * MB
    assert end <= half + 64 * 1024


@pytest.mark.parametrize("where", ["session", "reason", "lease"])
def test_no_single_field_makes_the_store_large(tmp_path: Path, where: str) -> None:
    """A session's name, a call's id or a person's reason of 100 KB is cut like every other text."""
    long = "y" * 100_000
    moment = [1_700_000_000.0]
    breaker = breaker_on(tmp_path / "s" / "state.db", lambda: moment[0])
    for number in range(80):
        moment[0] += 60
        breaker.check("a", session=long if where == "session" else None, lease=long if where == "lease" else None)
        breaker.record("a", f"action {number}", session=long if where == "session" else None)
        if breaker.status("a").state == "OPEN":
            breaker.reset("a", long if where == "reason" else "mended")
        if number % 10 == 9:
            moment[0] += 86400
    breaker.close()
    assert size_of(tmp_path / "s") < 1 * MB


def test_the_folder_holds_no_leftovers_of_a_normal_year(tmp_path: Path) -> None:
    """Only the database, the audit trail, the ignore file and locks: no temporary file stays."""
    with breaker_on(tmp_path / ".fusewire" / "state.db") as breaker:
        for _ in range(30):
            breaker.record("a", "x")
            if breaker.status("a").state == "OPEN":
                breaker.reset("a", "again")
    names = {entry.name for entry in (tmp_path / ".fusewire").iterdir()}
    assert names == {".gitignore", "audit.jsonl", "mark", "recovery.lock", "state.db"}


def test_the_state_folder_is_made_in_one_way_only(tmp_path: Path) -> None:
    """Making it again changes nothing, not even an ignore file that somebody has edited."""
    files.ensure_state_folder(str(tmp_path / ".fusewire"))
    (tmp_path / ".fusewire" / ".gitignore").write_text("*\n!audit.jsonl\n")
    files.ensure_state_folder(str(tmp_path / ".fusewire"))
    assert (tmp_path / ".fusewire" / ".gitignore").read_text() == "*\n!audit.jsonl\n"
    assert audit_file.path_of(str(tmp_path / ".fusewire")) == str(tmp_path / ".fusewire" / "audit.jsonl")


def test_a_project_that_may_only_be_read_can_be_looked_at(project: Project) -> None:
    """status, history and doctor work from a read-only folder, and the doctor says what does not."""
    project.constraint("rule", "circuit_breaker: {violation_threshold: 1}\n")
    assert project.run("record", "rule", "--action", "x").returncode == 0
    everything = [project.root, *project.root.rglob("*")]
    modes = {path: path.stat().st_mode for path in everything}
    for path in everything:
        path.chmod(modes[path] & ~0o222)
    try:
        for arguments, code, said in (
            (["status", "--all"], 0, "OPEN (1)"),
            (["history", "rule"], 0, "violation"),
            (["doctor"], 1, "cannot be written"),
        ):
            result = subprocess.run(
                [*UNPRIVILEGED, sys.executable, "-m", "fusewire", *arguments],
                cwd=project.root,
                capture_output=True,
                text=True,
                check=False,
            )
            assert (result.returncode, said in result.stdout, "Traceback" in result.stderr) == (code, True, False)
    finally:
        for path in everything:
            path.chmod(modes[path])


# -- looking only ---------------------------------------------------------------------------------------


def test_a_read_only_store_sees_what_others_write(tmp_path: Path) -> None:
    """Without being able to write itself; its version tells it when to look again."""
    path = tmp_path / "state.db"
    writer, reader = open_store(f"sqlite:{path}"), open_store(f"sqlite:{path}", read_only=True)
    assert reader.circuits() == []
    assert not path.exists()
    with writer.transact() as transaction:
        transaction.notice("first", 1.0)
    seen = reader.version()
    assert reader.notices() == ["first"]
    assert reader.version() == seen
    with writer.transact() as transaction:
        transaction.notice("second", 2.0)
    assert reader.version() != seen
    assert reader.notices() == ["first", "second"]
    with pytest.raises(StoreError, match="opened for reading only"):
        reader.transact()
    writer.close()
    assert reader.notices() == ["first", "second"]
    with writer.transact() as transaction:
        transaction.notice("third", 3.0)
    assert reader.notices() == ["first", "second", "third"]
    reader.close()
    writer.close()


def test_a_read_only_store_says_what_is_damaged_and_leaves_it(tmp_path: Path) -> None:
    """A reader never sets a file aside, and never takes a damaged one for an empty one."""
    path = tmp_path / "state.db"
    path.write_bytes(b"no database" * 500)
    reader = open_store(f"sqlite:{path}", read_only=True)
    with pytest.raises(StoreError, match="cannot be read"):
        reader.circuits()
    assert path.read_bytes() == b"no database" * 500
    assert not list(tmp_path.glob("*corrupt*"))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_read_only_store_reads_an_older_shape(tmp_path: Path, version: int) -> None:
    """It is brought up to date first, by a connection that may write."""
    path = tmp_path / "state.db"
    with open_store(f"sqlite:{path}").transact() as transaction:
        transaction.notice("kept", 1.0)
    connection = sqlite3.connect(path)
    for table in ("doings", "decisions", "spent")[version - 2 :]:
        connection.execute(f"DROP TABLE {table}")
    connection.executescript(f"DELETE FROM migrations WHERE applied_to > {version}; PRAGMA user_version={version}")
    connection.close()
    reader = open_store(f"sqlite:{path}", read_only=True)
    assert reader.doings("s") == reader.decisions() == []
    assert reader.notices() == ["kept"]
    reader.close()
