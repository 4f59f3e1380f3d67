"""The janitor among others: writers that hold a file open, kills at any moment, a second janitor.

Whatever happens, every line that was written is found exactly once: in the file that grows, in one that was set aside,
or in an archive.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire.janitor import files
from fusewire.janitor.archive import create_empty, pack, prune, set_aside, store
from fusewire.janitor.janitor import Janitor, JanitorBusy, at_session_start
from fusewire.janitor.ledgers import replace_state
from fusewire.janitor.limits import Limits
from fusewire.janitor.report import Cleanup
from fusewire.util.files import FolderLock

NOW = 1_794_000_000.0
DAY = 86400.0

#: Appends numbered lines; opens the file anew after so many of them, or never. In pieces, as a full pipe would do it.
WRITER = """
import os, sys, time
path, count, reopen = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
file = os.open(path, flags, 0o644)
for number in range(count):
    if reopen and number % reopen == 0:
        os.close(file)
        file = os.open(path, flags, 0o644)
    os.write(file, b'{"n": %d, "text": "some words"}\\n' % number)
    if number % 20 == 0:
        time.sleep(0.001)
print("done", flush=True)
sys.stdin.read()
"""

#: As ssh-agent does: /proc shows its descriptors to root alone.
HIDDEN = """
import ctypes, sys
assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0  # PR_SET_DUMPABLE
files = [open(path, "a") for path in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.readline()
for file in files:
    file.write("late\\n")
"""

CLEANER = """
import sys
from fusewire.janitor.janitor import Janitor
from fusewire.janitor.limits import Limits
import fusewire.janitor.archive, fusewire.janitor.ledgers, fusewire.util.files
janitor = Janitor(sys.argv[1], Limits(telemetry_max_lines=1, telemetry_keep_rotations=1000, session_max_active=1))
print("ready", flush=True)
cleanup = janitor.clean(float(sys.argv[2]))
print(cleanup.failures, cleanup.problems, flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".claude" / "memory").mkdir(parents=True)
    return tmp_path


def memory(root: Path) -> Path:
    return root / ".claude" / "memory"


@contextmanager
def started(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_of(root: Path, stem: str) -> list[str]:
    """All lines of one telemetry file, wherever they are now."""
    found: list[str] = []
    for path in sorted(memory(root).iterdir()):
        if path.name.startswith(f"{stem}."):
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            found += content.decode().splitlines()
    return found


def leftovers(root: Path) -> list[str]:
    """What no finished run leaves behind."""
    ends = (".rotating", ".pruning", ".tmp")
    return [path.name for path in memory(root).rglob("*") if path.name.endswith(ends)]


# -- a writer that holds the file open --------------------------------------------------------------------


@pytest.mark.parametrize("reopen", [0, 400], ids=["for ever", "and opens it anew"])
def test_a_writer_that_holds_the_file_open_loses_no_line(root: Path, reopen: int) -> None:
    count = 20_000
    path = memory(root) / "a_telemetry.jsonl"
    janitor = Janitor(str(root), Limits(telemetry_max_lines=50, telemetry_keep_rotations=100_000))
    runs = rotated = 0
    with started(WRITER, path, count, reopen) as writer:
        assert writer.stdout is not None
        deadline = time.monotonic() + 45
        while not select.select([writer.stdout], [], [], 0)[0]:  # until it says that it is done
            assert time.monotonic() < deadline
            cleanup = janitor.clean(time.time())
            assert cleanup.problems == []
            rotated += cleanup.files_rotated
            runs += 1
        assert Counter(lines_of(root, "a_telemetry")).most_common(1)[0][1] == 1
        cleanup = janitor.clean(time.time())
        assert leftovers(root), "the writer still has one open"
        assert any("still open in another process" in line for line in cleanup.actions)
    janitor.clean(time.time())
    assert leftovers(root) == []
    numbers = [json.loads(line)["n"] for line in lines_of(root, "a_telemetry")]
    assert len(numbers) == count
    assert sorted(numbers) == list(range(count))
    assert runs > 3
    assert rotated >= (5 if reopen else 1)


def test_lines_that_come_while_a_file_is_packed_are_not_lost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the check for writers did not see appends a line before the file is removed."""
    path = memory(root) / "a_telemetry.jsonl"
    path.write_text("1\n2\n")
    aside = set_aside(str(memory(root)), path.name, NOW)

    def late_pack(*given: Any) -> Any:
        packed = pack(*given)
        with open(aside.path, "a") as late:
            late.write("3\n")
        return packed

    monkeypatch.setattr("fusewire.janitor.archive.pack", late_pack)
    assert store(aside.path, aside.archives, Cleanup(), NOW) == "held"
    monkeypatch.undo()
    assert lines_of(root, "a_telemetry") == ["1", "2", "3"]
    Janitor(str(root), Limits()).clean(NOW)
    assert lines_of(root, "a_telemetry") == ["1", "2", "3"]
    assert leftovers(root) == []


def test_an_archive_that_has_only_the_beginning_is_written_anew(root: Path) -> None:
    """The last run was killed between the two looks, and a line has come since."""
    path = memory(root) / "a_telemetry.jsonl"
    path.write_text("1\n2\n")
    half_way(str(memory(root)), 4)
    (aside,) = memory(root).glob("*.rotating")
    with open(aside, "a") as late:
        late.write("3\n")
    Janitor(str(root), Limits()).clean(NOW)
    assert lines_of(root, "a_telemetry") == ["1", "2", "3"]
    assert (leftovers(root), len(list(memory(root).glob("*.gz")))) == ([], 1)


def test_who_only_reads_holds_nothing_up(root: Path) -> None:
    path = memory(root) / "a_telemetry.jsonl"
    path.write_text("1\n" * 1001)
    with open(path) as reader:
        assert Janitor(str(root), Limits()).clean(NOW).files_rotated == 1
        assert leftovers(root) == []
        assert len(reader.readlines()) == 1001


def test_a_process_that_cannot_be_looked_into_holds_up_only_what_it_has_open(root: Path) -> None:
    held, free = memory(root) / "a_telemetry.jsonl", memory(root) / "b_telemetry.jsonl"
    held.write_text("1\n" * 1001)
    free.write_text("1\n" * 1001)
    janitor = Janitor(str(root), Limits())
    with started(HIDDEN, held) as hidden:
        assert hidden.stdout is not None
        assert hidden.stdout.readline() == "ready\n"
        assert janitor.clean(NOW).files_rotated == 2
        assert [name.partition(".")[0] for name in leftovers(root)] == ["a_telemetry"]
        hidden.communicate("now\n")
    janitor.clean(NOW)
    assert leftovers(root) == []
    assert Counter(lines_of(root, "a_telemetry")) == {"1": 1001, "late": 1}


def test_a_session_whose_state_is_open_is_not_pruned(root: Path) -> None:
    path = memory(root) / "session_s_state.json"
    path.write_text("{}")
    os.utime(path, (NOW - 8 * DAY, NOW - 8 * DAY))
    with open(path, "r+"):
        cleanup = Janitor(str(root), Limits()).clean(NOW)
        assert cleanup.sessions_pruned == 0
        assert "is open in another process: left alone" in cleanup.problems[0]
        assert path.read_text() == "{}"
    assert Janitor(str(root), Limits()).clean(NOW).sessions_pruned == 1


def test_a_state_that_was_written_anew_meanwhile_is_left_to_its_session(root: Path) -> None:
    path = memory(root) / "session_s_state.json"
    path.write_text('{"old": 1}')
    before = path.stat()
    path.write_text('{"new": 1, "more": 2}')
    assert not replace_state(str(path), before, b"{}")
    assert path.read_text() == '{"new": 1, "more": 2}'
    assert [one.name for one in memory(root).iterdir()] == [path.name]


def test_a_state_that_changes_while_it_is_archived_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = memory(root) / "session_s_state.json"
    path.write_text('{"old": 1}')

    def late_pack(*given: Any) -> Any:
        packed = pack(*given)
        path.write_text('{"new": 1, "more": 2}')
        return packed

    monkeypatch.setattr("fusewire.janitor.archive.pack", late_pack)
    cleanup = Cleanup()
    prune(str(memory(root)), {path.name: "older than 7d"}, cleanup, NOW, None)
    assert (cleanup.sessions_pruned, path.read_text()) == (0, '{"new": 1, "more": 2}')
    assert list(memory(root).rglob("*.gz")) == []


# -- killed at any moment ---------------------------------------------------------------------------------


def half_way(folder: str, steps: int) -> None:
    """A rotation as a kill after so many steps leaves it."""
    facts = os.stat(f"{folder}/a_telemetry.jsonl")
    aside = set_aside(folder, "a_telemetry.jsonl", NOW)
    if steps >= 2:
        create_empty(aside.live, facts)
    if steps == 3:
        os.write(files.create(f"{folder}/.fusewire-janitor.tmp", facts), b"\x1f\x8b half of an archive")
    if steps >= 4:
        pack(aside.path, next(aside.archives))
    if steps >= 5:
        os.unlink(aside.path)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("written", ["", "3\n"], ids=["quiet", "written since"])
def test_the_next_run_finishes_a_rotation(root: Path, steps: int, written: str) -> None:
    path = memory(root) / "a_telemetry.jsonl"
    path.write_text("1\n2\n")
    path.chmod(0o640)
    half_way(str(memory(root)), steps)
    if written:
        with open(path, "a") as file:  # a writer that opens the file for each line
            file.write(written)
    cleanup = Janitor(str(root), Limits()).clean(NOW)
    assert cleanup.problems == []
    assert sorted(lines_of(root, "a_telemetry")) == ["1", "2", *written.split()]
    assert leftovers(root) == []
    assert len(list(memory(root).glob("*.gz"))) == 1
    assert path.read_text() == written
    if steps > 1 or not written:
        assert path.stat().st_mode & 0o777 == 0o640


def test_an_archive_of_the_same_moment_with_other_lines_is_kept_beside(root: Path) -> None:
    """It cannot be; but if it is, nothing of either is lost."""
    path = memory(root) / "a_telemetry.jsonl"
    path.write_text("1\n2\n")
    aside = set_aside(str(memory(root)), path.name, NOW)
    Path(next(aside.archives)).write_bytes(gzip.compress(b"other\n"))
    Janitor(str(root), Limits()).clean(NOW)
    assert sorted(lines_of(root, "a_telemetry")) == ["1", "2", "other"]
    assert leftovers(root) == []


def test_the_next_run_finishes_a_pruning(root: Path) -> None:
    """Killed between the archive and the removal of the state: there is no second archive."""
    path = memory(root) / "session_s_state.json"
    path.write_text('{"n": 1}')
    os.utime(path, (NOW - 8 * DAY, NOW - 8 * DAY))
    before = path.stat()
    assert Janitor(str(root), Limits()).clean(NOW).sessions_pruned == 1
    path.write_text('{"n": 1}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    cleanup = Janitor(str(root), Limits()).clean(NOW)
    assert (cleanup.sessions_pruned, cleanup.problems) == (1, [])
    assert not path.exists()
    assert [gzip.decompress(one.read_bytes()) for one in memory(root).rglob("*.gz")] == [b'{"n": 1}']


def test_a_state_that_version_0_1_had_set_aside_is_archived(root: Path) -> None:
    path = memory(root) / "session_s_state.json.pruning"
    path.write_text('{"n": 1}')
    os.utime(path, (NOW - 8 * DAY, NOW - 8 * DAY))
    assert Janitor(str(root), Limits()).is_due(NOW)
    assert Janitor(str(root), Limits()).clean(NOW).sessions_pruned == 1
    assert leftovers(root) == []
    assert [one.name for one in memory(root).rglob("*.gz")] == ["s_state.json.gz"]


def test_a_session_that_has_come_back_gets_its_state_back(root: Path) -> None:
    path = memory(root) / "session_s_state.json.pruning"
    path.write_text('{"n": 1}')
    Janitor(str(root), Limits(), active=("s",)).clean(NOW)
    assert [one.name for one in memory(root).iterdir()] == ["session_s_state.json"]


def test_killed_at_random_moments_nothing_is_lost_and_nothing_is_there_twice(root: Path) -> None:
    chance = random.Random(6)
    wanted: dict[str, list[str]] = {}
    sessions = {}
    killed = 0
    for number in range(12):
        for stem in (f"f{at}_telemetry" for at in range(6)):
            lines = [f"{stem} {number} {at}" for at in range(300)]
            wanted[stem] = wanted.get(stem, []) + lines
            with open(memory(root) / f"{stem}.jsonl", "a") as file:
                file.write("".join(f"{line}\n" for line in lines))
        for at in range(3):
            state = {"id": f"s{number}-{at}", "tool_history": list(range(20))}
            sessions[f"s{number}-{at}"] = state
            (memory(root) / f"session_s{number}-{at}_state.json").write_text(json.dumps(state))
        with started(CLEANER, root, time.time()) as cleaner:
            assert cleaner.stdout is not None
            assert cleaner.stdout.readline() == "ready\n"
            time.sleep(chance.random() * 0.03)
            cleaner.send_signal(signal.SIGKILL)
            killed += cleaner.wait() == -signal.SIGKILL
    assert killed > 3, "or it was not tested"
    with started(CLEANER, root, time.time()) as cleaner:
        assert cleaner.communicate()[0].splitlines() == ["ready", "0 []"]
    assert leftovers(root) == []
    for stem, lines in wanted.items():
        assert sorted(lines_of(root, stem)) == sorted(lines), stem
    found: list[Any] = [json.loads(gzip.decompress(path.read_bytes())) for path in memory(root).rglob("*_state*.gz")]
    found += [json.loads(path.read_bytes()) for path in memory(root).glob("session_*_state.json")]
    assert sorted(state["id"] for state in found) == sorted(sessions)


# -- two at once ------------------------------------------------------------------------------------------


def test_several_janitors_at_once_do_the_work_once(root: Path) -> None:
    for at in range(12):
        (memory(root) / f"f{at}_telemetry.jsonl").write_text("".join(f"{at} {line}\n" for line in range(200)))
        (memory(root) / f"session_s{at}_state.json").write_text("{}")
    with started(CLEANER, root, NOW) as one, started(CLEANER, root, NOW) as two, started(CLEANER, root, NOW) as three:
        for cleaner in (one, two, three):
            assert cleaner.communicate(timeout=45)[0].splitlines() == ["ready", "0 []"]
    assert leftovers(root) == []
    for at in range(12):
        assert lines_of(root, f"f{at}_telemetry") == [f"{at} {line}" for line in range(200)]
        assert len(list(memory(root).glob(f"f{at}_telemetry.*.gz"))) == 1
    assert len(list(memory(root).rglob("*_state.json.gz"))) == 11


def test_while_another_is_at_work_it_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (memory(root) / "a_telemetry.jsonl").write_text("1\n" * 1001)
    with FolderLock(str(memory(root))):
        with pytest.raises(
            JanitorBusy, match=r"^another janitor is at work in \.claude/memory; try again in a moment$"
        ):
            Janitor(str(root), Limits()).clean(NOW, seconds=1)
        assert at_session_start(str(root), {}, None, (), NOW) == ""
    assert at_session_start(str(root), {}, None, (), NOW).startswith("Memory cleanup: 1 file rotated, ")


def test_a_file_that_vanishes_meanwhile_is_no_error(root: Path) -> None:
    """Somebody removes files under the janitor's hands, again and again."""
    script = "import os, sys\nwhile True:\n    try: os.unlink(sys.argv[1])\n    except OSError: pass\n"
    path = memory(root) / "a_telemetry.jsonl"
    state = memory(root) / "session_s_state.json"
    with started(script, path), started(script, state):
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            path.write_text("1\n" * 1001)
            state.write_text(json.dumps({"tool_history": [1] * 60}))
            os.utime(memory(root), (NOW, NOW))
            cleanup = Janitor(str(root), Limits()).clean(NOW)
            assert cleanup.failures == 0, cleanup.problems
