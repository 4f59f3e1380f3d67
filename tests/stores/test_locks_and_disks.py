"""Stopped lock holders, a locked database, a full or read-only disk, no locks, a jumping clock: nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project

HOLD = "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()"


@pytest.fixture
def tripped(project: Project) -> Project:
    project.constraint("rule", "match:\n  command: git push --force\ncircuit_breaker:\n  dedup_seconds: 0\n")
    for number in range(4):
        assert project.run("record", "rule", "--action", f"number {number}").returncode == 0
    return project


@contextmanager
def stopped_holder(path: Path) -> Iterator[int]:
    """A process that holds a lock and was stopped."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        try:
            yield holder.pid
        finally:
            holder.kill()


def entry(project: Project) -> dict[str, object]:
    found: dict[str, object] = json.loads((project.root / "docs/constraints/.circuit-state.json").read_text())["rule"]
    return found


def test_a_stopped_holder_of_the_mirrors_lock_fails_no_command(tripped: Project) -> None:
    with stopped_holder(tripped.root / ".fusewire/mirror.lock"):
        done = tripped.run("record", "rule", "--action", "the fifth")
        assert done.returncode == 0
        (line,) = [line for line in done.stderr.splitlines() if line.lower().startswith("warning")]
        assert ".circuit-state.json may be behind" in line
        assert tripped.run("check", "rule").returncode == 3
        assert tripped.run("status").returncode == 0
        assert tripped.run("reset", "rule", "--reason", "seen").returncode == 0
        assert entry(tripped)["state"] == "CLOSED", "nobody wrote it"
    assert tripped.run("status").stderr == "", "nothing to acknowledge"
    assert tripped.run("record", "rule", "--action", "the sixth").stderr == ""
    assert len(entry(tripped)["violations"]) == 6, "it has caught up"  # type: ignore[arg-type]


def test_the_doctor_names_the_process_that_locks_the_database(tripped: Project) -> None:
    with closing(sqlite3.connect(tripped.root / ".fusewire/state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = tripped.run("doctor")
        assert done.returncode == 1
        assert f"the state database is locked by process {os.getpid()} (" in done.stdout
        other.execute("ROLLBACK")
    assert "readable and writable" in tripped.run("doctor").stdout


def limited(project: Project, size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that may write no file beyond a size, as on a disk that is full."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-m", "fusewire", *arguments]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, preexec_fn=limit, check=False)


def test_the_doctor_says_that_nothing_can_be_written(tripped: Project) -> None:
    done = limited(tripped, 200_000, "doctor")
    assert done.returncode == 1
    assert "cannot be written (File too large)" in done.stdout


@pytest.mark.parametrize("size", [0, 500, 4096, 40_000])
def test_a_write_that_has_no_room_is_one_line_and_changes_nothing(tripped: Project, size: int) -> None:
    done = limited(tripped, size, "record", "rule", "--action", "the fifth")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    if done.returncode:
        assert done.stderr.count("Error: ") == 1
    after = tripped.run("record", "rule", "--action", "one more")
    assert after.returncode == 0
    assert tripped.run("check", "rule").returncode == 3, "it is open now, whether the other was counted or not"


needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None and not os.environ.get("CI"), reason="strace is not installed (apt install strace)"
)


def injected(project: Project, fault: str, *arguments: str, hook: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fusewire", *arguments]
    if hook:
        command = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"]
    syscalls = fault.partition(":")[0]
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={syscalls}", "-e", f"inject={fault}"]
    return subprocess.run([*strace, *command], cwd=project.root, input=hook, capture_output=True, check=False)


@needs_strace
@pytest.mark.parametrize(
    "fault",
    [
        "pwrite64:error=ENOSPC",
        "write:error=ENOSPC:when=3+",
        "flock:error=ENOLCK",
        "rename:error=EROFS",
        "fdatasync:error=EIO",
    ],
)
def test_a_system_that_fails_lifts_nothing(tripped: Project, fault: str) -> None:
    """A command says it in a line or succeeds, and the hook refuses what is forbidden."""
    assert tripped.run("record", "rule", "--action", "the fifth").returncode == 0
    for arguments in (("record", "rule", "--action", "more"), ("check", "rule"), ("status",)):
        done = injected(tripped, fault, *arguments)
        assert b"Traceback" not in done.stderr, arguments
        assert done.returncode in (0, 1, 3), arguments
        assert arguments[0] != "check" or done.returncode != 0
    forbidden = json.dumps(tripped.bash("git push --force")).encode()
    assert injected(tripped, fault, hook=forbidden).returncode == 2
    assert tripped.run("check", "rule").returncode == 3
    assert tripped.run("reset", "rule", "--reason", "seen").returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_only_be_read(tripped: Project) -> None:
    assert tripped.run("record", "rule", "--action", "the fifth").returncode == 0
    folder = tripped.root / ".fusewire"
    folder.chmod(0o555)
    try:
        assert tripped.run("check", "rule").returncode != 0
        assert tripped.run("status").returncode == 0
        assert tripped.hook(tripped.bash("git push --force")).returncode == 2
    finally:
        folder.chmod(0o755)
    assert tripped.run("check", "rule").returncode == 3


@pytest.mark.skipif(
    shutil.which("faketime") is None and not os.environ.get("CI"),
    reason="faketime is not installed (apt install faketime)",
)
@pytest.mark.parametrize("jump", ["-10y", "-1h", "+1h"])
def test_a_clock_that_jumps_closes_nothing(tripped: Project, jump: str) -> None:
    """Within its cooldown of a day, and however far back."""
    assert tripped.run("record", "rule", "--action", "the fifth").returncode == 0
    command = ["faketime", "-f", jump, sys.executable, "-m", "fusewire", "check", "rule"]
    done = subprocess.run(command, cwd=tripped.root, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert tripped.run("check", "rule").returncode == 3
