"""The write-ahead log stays small and hooks stay quick, however many come, and whoever reads meanwhile."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fusewire.stores.rows import DOINGS
from fusewire.stores.sqlite import SqliteStore
from tests.helpers import SOURCE
from tests.helpers.project import Project

#: What the issue promises; a transaction of a hook writes a few pages of 4 kB.
BOUND = 1_000_000


def log(project: Project) -> int:
    try:
        return os.stat(project.root / ".fusewire/state.db-wal").st_size
    except FileNotFoundError:
        return 0


def payload(project: Project, number: int, session: str = "one") -> bytes:
    """A result with a long command: every event writes a long memory, as after hours of work."""
    call = project.bash(f"cat {'x' * 240}/{number}", session_id=session, tool_use_id=f"call-{number}")
    response = {"stdout": f"{number}", "stderr": "", "interrupted": False}
    return json.dumps({**call, "hook_event_name": "PostToolUse", "tool_response": response}).encode()


def start(project: Project, given: bytes) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project.root,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project.root)},
    )
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert process.wait(60) == 0


def counted(project: Project) -> int:
    with closing(sqlite3.connect(project.root / ".fusewire/state.db")) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM doings WHERE kind = 'ok'").fetchone()
    return int(rows)


@pytest.mark.parametrize("hooks", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_hooks_one_after_the_other_keep_the_log_small(project: Project, hooks: int) -> None:
    """No connection outlives a hook, so that the next one knows nothing of what was copied before it."""
    largest = 0
    for number in range(hooks):
        end(start(project, payload(project, number)))
        largest = max(largest, log(project))
    assert 100_000 < largest < BOUND
    assert counted(project) == min(hooks, DOINGS)


def test_hooks_that_always_overlap_keep_the_log_small(project: Project) -> None:
    """There is always somebody who writes or waits to."""
    running: list[subprocess.Popen[bytes]] = []
    largest = 0
    for number in range(160):
        running.append(start(project, payload(project, number, session=f"session-{number % 8}")))
        if len(running) == 8:
            end(running.pop(0))
        largest = max(largest, log(project))
    for process in running:
        end(process)
    assert largest < BOUND
    assert counted(project) == 160


@contextmanager
def store(project: Project) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(project.root / ".fusewire/state.db"))
    yield opened
    opened.close()


def grow(writer: SqliteStore, size: int) -> None:
    """Write until the log has at least that size."""
    path = Path(f"{writer.path}-wal")
    for number in range(2000):
        with writer.transact() as transaction:
            transaction.remember("filler", {"number": number, "text": "x" * 8000}, float(number))
        if path.stat().st_size >= size:
            return
    raise AssertionError("the log does not grow")


def test_a_reader_that_stays_open_keeps_the_log_from_nothing(project: Project) -> None:
    """The dashboard and `watch` have a connection all day long, but read for moments."""
    end(start(project, payload(project, 0)))
    with closing(sqlite3.connect(project.root / ".fusewire/state.db")) as reader, store(project) as writer:
        largest = 0
        for number in range(300):
            reader.execute("SELECT count(*) FROM doings").fetchall()
            with writer.transact() as transaction:
                transaction.remember("filler", {"number": number, "text": "x" * 8000}, float(number))
            largest = max(largest, log(project))
    assert largest < BOUND


def test_after_somebody_has_read_for_long_the_log_is_small_again(project: Project) -> None:
    """While a snapshot is read, SQLite has to keep what came after it; the first commit behind it empties the log."""
    end(start(project, payload(project, 0)))
    with closing(sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM doings").fetchall()
        with store(project) as writer:
            grow(writer, BOUND)
        reader.execute("COMMIT")
        end(start(project, payload(project, 1)))
        assert log(project) < BOUND
    assert counted(project) == 2


@pytest.mark.parametrize("call", ["ftruncate", "fdatasync", "pwrite64"])
def test_a_hook_that_is_killed_while_it_empties_the_log_loses_nothing(
    project: Project, call: str, tmp_path: Path
) -> None:
    """At each of the calls that the checkpoint consists of; found by tracing, where that is possible."""
    end(start(project, payload(project, 0)))
    with store(project) as writer:
        grow(writer, 700_000)
        last = writer.recall("filler")
        program = (
            "import sys; from fusewire.stores.sqlite import SqliteStore\n"
            f"store = SqliteStore({writer.path!r})\n"
            "for number in range(200):\n"
            "    with store.transact() as t: t.remember('own', {'number': number, 'text': 'y' * 8000}, 0.0)\n"
            "    print(number, flush=True)\n"
        )
        trace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL"]
        try:
            killed = subprocess.run(
                [*trace, sys.executable, "-c", program], capture_output=True, timeout=60, check=False
            )
        except FileNotFoundError:
            pytest.skip("there is no strace")
        if killed.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            pytest.skip(f"nothing was killed: {killed.stderr.decode()[:200]}")
        said = killed.stdout.split()
        assert writer.recall("filler") == last
        known = writer.recall("own")
    if said:
        assert known is not None
        assert known["number"] >= int(said[-1])
    with store(project) as again:
        assert again.verify() == []
