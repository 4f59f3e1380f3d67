"""Compress files into archives so that a kill at any moment loses nothing and leaves no second copy.

    set aside by rename -> no writer -> compressed and synced -> archive -> unchanged -> removed

The next run finds a file that was set aside by its name and continues. An archive that has the file's content, or the
beginning of it, is replaced; any other archive stays, and the file gets the next free name. A session's state is not
set aside: it is old, and left alone if a process has it open.
"""

from __future__ import annotations

import gzip
import os
import time
import zlib
from itertools import count
from typing import TYPE_CHECKING

from fusewire.janitor import files
from fusewire.janitor.limits import is_active, rotation_reason, why_untouchable
from fusewire.janitor.names import (
    ARCHIVED,
    PRUNING,
    ROTATING,
    TEMPORARY,
    is_telemetry,
    next_moment,
    rotation_aside,
    rotation_name,
    session_archives,
    session_of,
)
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import BinaryIO

    from fusewire.janitor.limits import Limits
    from fusewire.janitor.report import Cleanup

_CHUNK = 1 << 18

#: zlib's window size for the gzip format.
_GZIP = 31


def store(path: str, archives: Iterator[str], cleanup: Cleanup, now: float, deadline: float | None = None) -> str:
    """Compress a file into the first archive that has no other content, then remove it.

    Returns the archive's path; or else `held` by a writer, `failed` or `gone`.
    """
    shown = path_shown(os.path.basename(path))
    try:
        if files.has_writer(path, now):
            return "held"
        archive = next(one for one in archives if not os.path.lexists(one) or has_beginning(one, path))
        facts, size = pack(path, archive, deadline)
        if not files.is_unchanged(path, facts):
            os.unlink(archive)  # the file has all of it, and more
            return "held"
        os.unlink(path)
    except FileNotFoundError:
        return "gone"
    except TimeoutError:
        cleanup.left(f"{shown} takes too long now: left for a later run, or: fusewire janitor")
        return "failed"
    except OSError as error:
        cleanup.failed(f"{shown} could not be packed, nothing of it is lost", error)
        return "failed"
    cleanup.bytes_freed += facts.st_size - size
    return archive


def pack(path: str, archive: str, deadline: float | None = None) -> tuple[os.stat_result, int]:
    """Write an archive atomically; return the facts of the file before it was read, and the archive's size.

    Raises OSError if the disk is full, TimeoutError after the deadline.
    """
    temporary = os.path.join(os.path.dirname(path), TEMPORARY)
    with open(files.open_regular(path), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        try:
            with open(files.create(temporary, facts), "wb") as packed:
                packed.writelines(compress(file, deadline))
                packed.flush()
                os.utime(packed.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
                os.fsync(packed.fileno())
                size = packed.tell()
            files.rename(temporary, archive)
        except BaseException:
            files.remove(temporary)
            raise
    return facts, size


def compress(file: BinaryIO, deadline: float | None = None) -> Iterator[bytes]:
    """Compress to gzip without a name or a time, so that the same content gives the same archive."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    while chunk := file.read(_CHUNK):
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError
        yield packer.compress(chunk)
    yield packer.flush()


def has_beginning(archive: str, path: str) -> bool:
    """Tell whether an archive has the beginning of a file, or all of it."""
    with open(files.open_regular(archive), "rb") as packed, open(files.open_regular(path), "rb") as file:
        unpacked = gzip.GzipFile(fileobj=packed)
        try:
            while chunk := unpacked.read(_CHUNK):
                if chunk != file.read(len(chunk)):
                    return False
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return False
        return True


def bytes_saved(path: str) -> int:
    """Compute what packing a file would free."""
    try:
        with open(files.open_regular(path), "rb") as file:
            return -sum(map(len, compress(file))) + file.tell()
    except OSError:
        return 0


# -- telemetry ------------------------------------------------------------------------------------------


class Aside:
    """A telemetry file under its intermediate name, and what to report of it."""

    def __init__(self, folder: str, live: str, micros: int, words: str = "") -> None:
        self.live = os.path.join(folder, live)
        self.path = os.path.join(folder, rotation_name(live, micros, ROTATING))
        self.archives = (os.path.join(folder, rotation_name(live, at, ARCHIVED)) for at in count(micros))
        self.words = words


def set_aside(folder: str, name: str, now: float, words: str = "") -> Aside:
    """Give a file its intermediate name. A process that has it open continues to write to it."""
    aside = Aside(folder, name, next_moment(now, name, os.listdir(folder)), words)
    files.rename(aside.live, aside.path)
    return aside


def create_empty(path: str, like: os.stat_result) -> None:
    """Create the next live file with the mode of the last, unless a writer was faster."""
    try:
        os.close(files.create(path, like))
    except FileExistsError:
        pass


def rotate(folder: str, limits: Limits, cleanup: Cleanup, now: float, deadline: float | None) -> None:
    """Rotate the telemetry that is due, and finish what an earlier run has set aside."""
    for aside in list(_asides(folder, limits, cleanup, now)):
        state = store(aside.path, aside.archives, cleanup, now, deadline)
        if state == "held":
            held = "still open in another process, packed when that has closed it"
            cleanup.did(f"{aside.words} -> {path_shown(os.path.basename(aside.path))}: {held}")
        elif state not in ("failed", "gone"):
            cleanup.did(f"{aside.words} -> {path_shown(os.path.basename(state))}")


def _asides(folder: str, limits: Limits, cleanup: Cleanup, now: float) -> Iterator[Aside]:
    for name, facts in files.scan(folder).items():
        known = rotation_aside(name)
        if not is_telemetry(known.live if known else name, limits.telemetry):
            continue
        path, shown, why_not = os.path.join(folder, name), path_shown(name), why_untouchable(facts)
        try:
            if known and why_not and not cleanup.dry_run and files.is_same(os.path.join(folder, known.live), path):
                files.put_back(path, os.path.join(folder, known.live))  # as a run that was killed meant to
            elif why_not:
                cleanup.left(f"{shown} {why_not}: left alone")
            elif known and cleanup.dry_run:
                cleanup.did(f"would finish the rotation of {path_shown(known.live)}: {shown}")
            elif known:
                create_empty(os.path.join(folder, known.live), facts)
                words = f"finished the rotation of {path_shown(known.live)}"
                yield Aside(folder, known.live, known.micros, words)
            elif reason := rotation_reason(path, facts, limits, now):
                if cleanup.dry_run:
                    _plan_rotation(path, f"would rotate {shown} ({reason})", cleanup, now)
                else:
                    yield _start(folder, name, facts, f"rotated {shown} ({reason})", now)
                cleanup.files_rotated += 1
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            cleanup.failed(f"{shown} could not be rotated", error)


def _plan_rotation(path: str, words: str, cleanup: Cleanup, now: float) -> None:
    folder, name = os.path.split(path)
    if files.has_writer(path, now):
        cleanup.did(f"{words}, and pack it when another process has closed it")
    else:
        archive = rotation_name(name, next_moment(now, name, os.listdir(folder)), ARCHIVED)
        cleanup.did(f"{words} -> {path_shown(archive)}", bytes_saved(path))


def _start(folder: str, name: str, facts: os.stat_result, words: str, now: float) -> Aside:
    aside = set_aside(folder, name, now, words)
    try:
        create_empty(aside.live, facts)
    except OSError:
        files.put_back(aside.path, aside.live)
        raise
    return aside


# -- sessions -------------------------------------------------------------------------------------------


def give_back(folder: str, active: Collection[str]) -> None:
    """Give the states of active sessions their names back, which version 0.1 may have set aside."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        live = path.removesuffix(PRUNING)
        if path != live and session_of(name) and (is_active(session_of(name), active) or files.is_same(live, path)):
            files.put_back(path, live)


def prune(folder: str, due: Mapping[str, str], cleanup: Cleanup, now: float, deadline: float | None) -> None:
    """Archive the states of sessions that are due, each with its reason."""
    for name, reason in due.items():
        path = os.path.join(folder, name)
        words = f"session {path_shown(session_of(name))} ({reason})"
        try:
            below, names = session_archives(name, os.lstat(path).st_mtime)
            place = os.path.join(folder, *below)
            archives = (os.path.join(place, one) for one in names)
            if files.has_writer(path, now):
                state = "held"
            elif cleanup.dry_run:
                state = next(archives)
                cleanup.bytes_freed += bytes_saved(path)
            else:
                files.make_folders(folder, *below)
                state = store(path, archives, cleanup, now, deadline)
        except FileNotFoundError:
            continue
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be pruned", error)
            continue
        if state == "held":
            cleanup.left(f"{path_shown(name)} is open in another process: left alone")
        elif state not in ("failed", "gone"):
            cleanup.sessions_pruned += 1
            would = "would prune" if cleanup.dry_run else "pruned"
            cleanup.did(f"{would} {words} -> {path_shown(os.path.relpath(state, folder))}")
