"""The log of one iteration: beginning and end are there at every moment, and it never grows beyond its bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.run.output_log import LINE, OutputLog, prune
from tests.helpers.agents import comes_true


def stream(size: int) -> bytes:
    """Bytes of which every eight tell where they are."""
    return b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]


def middle(missing: int) -> bytes:
    return f"\n[fusewire: {missing} bytes left out]".encode().ljust(LINE - 1) + b"\n"


ROOM = 100 + LINE + 50
SIZES = [0, 1, 99, 100, 101, 149, 150, 151, ROOM - 1, ROOM, ROOM + 1, ROOM + 49, ROOM + 50, ROOM + 51]
SIZES += [ROOM + 99, ROOM + 100, ROOM + 101, ROOM + 200, ROOM + 201, 5000]


@pytest.mark.parametrize("piece", [1, 7, 50, 64, 10_000])
@pytest.mark.parametrize("size", SIZES)
def test_the_closed_log_has_beginning_and_end_exactly(tmp_path: Path, size: int, piece: int) -> None:
    """Everything if it fits; else the first 100 bytes, the number of bytes left out, and the last 50."""
    data, path = stream(size), tmp_path / "1.log"
    log = OutputLog(str(path), head=100, tail=50)
    for at in range(0, size, piece):
        log.write(data[at : at + piece])
    log.close()
    log.close()
    expected = data if size <= ROOM else data[:100] + middle(size - 150) + data[-50:]
    assert path.read_bytes() == expected
    assert log.problem == ""
    assert log.written == size


@pytest.mark.parametrize(("head", "tail"), [(100, 50), (0, 10), (3, 1), (1, 300)])
def test_at_every_moment_beginning_and_end_are_on_disk(tmp_path: Path, head: int, tail: int) -> None:
    """After each write, without a close; and the file is never longer than twice the end more."""
    data, path = stream(3000), tmp_path / "1.log"
    log = OutputLog(str(path), head=head, tail=tail)
    for at in range(0, len(data), 13):
        log.write(data[at : at + 13])
        said, found = data[: at + 13], path.read_bytes()
        assert found[:head] == said[:head]
        assert found.endswith(said[-tail:])
        assert len(found) <= head + LINE + 3 * tail
    log.close()


@pytest.mark.parametrize(("head", "tail"), [(-1, 10), (10, 0), (10, -1)])
def test_a_log_without_room_for_an_end_is_refused(tmp_path: Path, head: int, tail: int) -> None:
    """The end is what one reads first."""
    with pytest.raises(ValueError, match="room"):
        OutputLog(str(tmp_path / "1.log"), head=head, tail=tail)
    assert not list(tmp_path.iterdir())


WRITER = """
import os, sys
from fusewire.run.output_log import OutputLog
log, number = OutputLog(sys.argv[1], head=800, tail=80_000), 0
while True:
    log.write(b"".join(b"%07d\\n" % one for one in range(number, number + 1000)))
    number += 1000
    os.write(1, b"%07d\\n" % number)
"""


@pytest.mark.parametrize("lines", [1, 29, 30, 31, 60, 99])
def test_a_killed_writer_leaves_what_was_written(tmp_path: Path, lines: int) -> None:
    """kill -9 in the middle of its work: the beginning and the last 80,000 bytes that were written are there."""
    path = tmp_path / "1.log"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    for _ in range(lines):
        writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.communicate()[0].split()
    written = int(rest[-1]) if rest else lines * 1000
    found = path.read_bytes()
    assert found[:800] == stream(800)
    assert stream(8 * written)[800:][-72_000:] in found  # the writer may have been one piece of 8,000 further
    assert len(found) <= 800 + LINE + 3 * 80_000


def test_the_log_can_be_followed(tmp_path: Path) -> None:
    """`tail -f` shows what is written when it is written, also after the middle was dropped."""
    path, shown = tmp_path / "1.log", tmp_path / "shown"
    log = OutputLog(str(path), head=1000, tail=1000)
    with shown.open("wb") as output:
        follower = subprocess.Popen(["tail", "-c", "+1", "-f", str(path)], stdout=output, stderr=subprocess.DEVNULL)
    try:
        for word in (b"first", b"second", b"third"):
            log.write(word + b"\n")
            assert comes_true(lambda word=word: word in shown.read_bytes())
            log.write(b"." * 2500)
    finally:
        follower.kill()
        follower.wait()
        log.close()


def test_a_full_disk_ends_the_log_and_not_the_agent(tmp_path: Path) -> None:
    """The problem is kept, nothing is raised."""
    log = OutputLog(str(tmp_path / "1.log"))
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, log._file)
    os.close(full)
    log.write(b"lost")
    log.write(b"lost")
    log.close()
    assert log.problem == "the output is no longer written to disk: No space left on device"
    assert log.written == 0


def test_an_older_log_of_the_same_name_is_written_anew_and_is_private(tmp_path: Path) -> None:
    """What an agent says may hold secrets: nobody else reads it."""
    path = tmp_path / "1.log"
    path.write_bytes(b"old" * 1000)
    path.unlink()
    for text in (b"longer text", b"new"):
        log = OutputLog(str(path))
        log.write(text)
        log.close()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_hundred_megabytes_in_large_pieces_stay_within_bounds(tmp_path: Path) -> None:
    """The default bounds: one megabyte and a line."""
    path, piece = tmp_path / "1.log", b"x" * 65536
    log = OutputLog(str(path))
    for _ in range(1600):
        log.write(piece)
    log.write(piece * 100)
    log.close()
    assert path.stat().st_size == 262144 + LINE + 786432
    assert middle(1700 * 65536 - 262144 - 786432) in path.read_bytes()


@pytest.mark.parametrize(("keep", "left"), [(20, 5), (5, 5), (3, 3), (1, 1), (0, 0)])
def test_the_oldest_logs_go(tmp_path: Path, keep: int, left: int) -> None:
    """By age, whatever their names; other files, folders and links stay."""
    for number, name in enumerate("ecadb"):
        (tmp_path / f"{name}.log").touch()
        os.utime(tmp_path / f"{name}.log", (1000 + number, 1000 + number))
    (tmp_path / "notes.txt").touch()
    (tmp_path / "folder.log").mkdir()
    (tmp_path / "link.log").symlink_to("notes.txt")
    assert prune(str(tmp_path), keep) == 5 - left
    names = {path.name for path in tmp_path.iterdir()} - {"notes.txt", "folder.log", "link.log"}
    assert names == {f"{name}.log" for name in "ecadb"[5 - left :]}
    assert len(list(tmp_path.iterdir())) == left + 3
