"""Compress files into archives so that a kill at any moment loses nothing and leaves no second copy.

    set aside by rename -> no writer -> compressed and synced -> archive -> unchanged -> removed

The next run finds a file that was set aside by its name and continues. An archive that has the file's content, or the
beginning of it, is replaced; any other archive stays, and the file gets the next free name.
"""

from __future__ import annotations

import gzip
import os
import time
import zlib
from typing import TYPE_CHECKING

from fusewire.janitor.limits import is_active, rotation_reason, sessions_to_prune, why_untouchable
from fusewire.janitor.names import (
    ARCHIVED,
    PRUNING,
    ROTATING,
    SESSION_ARCHIVES,
    TEMPORARY,
    is_telemetry,
    next_moment,
    parse_rotation,
    rotation_name,
    session_of,
)
from fusewire.janitor.report import format_limit, measure, space
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import BinaryIO

    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits
    from fusewire.janitor.names import Rotation
    from fusewire.janitor.report import Cleanup, MemoryFile

_CHUNK = 1 << 18

#: zlib's window size for the gzip format.
_GZIP = 31

#: Unknown files that a message names.
_NAMED = 3

#: The end of 2099.
_LATEST = 4_102_444_799


class Aside:
    """A file under an intermediate name, its live name, and the archive that it becomes."""

    def __init__(self, folder: Folder, name: str, live: str, archive: str, below: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.name = name
        self.live = live
        self.archive = archive
        #: folders from `folder` to the archive
        self.below = below
        #: what was done or why, for the report
        self.words = ""

    def open_place(self, *, create: bool = False) -> Folder:
        """Open the folder of the archive."""
        here = self.folder.sub(".")
        for part in self.below:
            with here:
                there = here.sub(part, create=create)
            here = there
        return here

    def use_next_archive(self) -> None:
        """Take the next name, because the archive of this one has other content."""
        known = parse_rotation(self.archive)
        if known is not None:
            self.archive = rotation_name(known.live, known.micros + 1, ARCHIVED)
            return
        head, _, number = self.archive.removesuffix(".json.gz").rpartition("_state")
        self.archive = f"{head}_state.{int(number[1:] or 1) + 1}.json.gz"

    def shown(self) -> str:
        return path_shown("/".join((*self.below, self.archive)))


def store(aside: Aside, cleanup: Cleanup, now: float, deadline: float | None = None) -> str:
    """Compress a file that was set aside, then remove it: `packed`, `held` by a writer, `failed` or `gone`."""
    folder, name = aside.folder, aside.name
    try:
        if folder.has_writer(name, now):
            return "held"
        with aside.open_place(create=True) as place:
            while place.stat(aside.archive) is not None and not has_beginning(place, aside.archive, folder, name):
                aside.use_next_archive()
            facts, size = pack(folder, name, place, aside.archive, deadline)
            if not folder.is_unchanged(name, facts):
                place.unlink(aside.archive)  # the file has all of it, and more
                return "held"
        folder.unlink(name)
    except FileNotFoundError:
        return "gone"
    except TimeoutError:
        cleanup.left(f"{path_shown(name)} takes too long now: left for a later run, or: fusewire janitor")
        return "failed"
    except OSError as error:
        cleanup.failed(f"{path_shown(name)} could not be packed, nothing of it is lost", error)
        return "failed"
    cleanup.bytes_freed += facts.st_size - size
    return "packed"


def pack(
    source: Folder, name: str, place: Folder, archive: str, deadline: float | None = None
) -> tuple[os.stat_result, int]:
    """Write an archive atomically; return the facts of the file before it was read, and the archive's size.

    Raises OSError if the disk is full, TimeoutError after the deadline.
    """
    with open(source.open(name), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        try:
            with open(source.create(TEMPORARY, facts), "wb") as packed:
                for piece in compress(file, deadline):
                    packed.write(piece)
                packed.flush()
                os.utime(packed.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
                os.fsync(packed.fileno())
                size = packed.tell()
            source.rename(TEMPORARY, archive, place)
        except BaseException:
            source.unlink(TEMPORARY, missing_ok=True)
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


def has_beginning(place: Folder, archive: str, source: Folder, name: str) -> bool:
    """Tell whether an archive has the beginning of a file, or all of it."""
    with open(place.open(archive), "rb") as packed, open(source.open(name), "rb") as file:
        unpacked = gzip.GzipFile(fileobj=packed)
        try:
            while chunk := unpacked.read(_CHUNK):
                if chunk != file.read(len(chunk)):
                    return False
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return False
        return True


def bytes_saved(folder: Folder, name: str) -> int:
    """Compute what packing a file would free."""
    try:
        with open(folder.open(name), "rb") as file:
            return -sum(map(len, compress(file))) + file.tell()
    except OSError:
        return 0


# -- telemetry ------------------------------------------------------------------------------------------


def rotation_aside(folder: Folder, live: str, micros: int) -> Aside:
    return Aside(folder, rotation_name(live, micros, ROTATING), live, rotation_name(live, micros, ARCHIVED))


def set_aside(folder: Folder, name: str, now: float) -> Aside:
    """Give a file its intermediate name. A process that has it open continues to write to it."""
    aside = rotation_aside(folder, name, next_moment(now, name, folder.entries()))
    folder.rename(name, aside.name)
    return aside


def create_empty(folder: Folder, name: str, like: os.stat_result) -> None:
    """Create the next live file with the mode of the last, unless a writer was faster."""
    try:
        os.close(folder.create(name, like))
    except FileExistsError:
        pass


def rotate(folder: Folder, limits: Limits, cleanup: Cleanup, now: float, deadline: float | None) -> None:
    """Rotate the telemetry that is due, and finish what an earlier run has set aside."""
    asides: list[Aside] = []
    for name, facts in folder.entries().items():
        known = parse_rotation(name)
        known = known if known is not None and not known.packed else None
        if not is_telemetry(known.live if known else name, limits.telemetry):
            continue
        why_not = why_untouchable(facts)
        try:
            if known and not cleanup.dry_run and folder.is_same(known.live, facts):
                folder.put_back(name, known.live)  # as a run that was killed meant to
            elif why_not:
                cleanup.left(f"{path_shown(name)} {why_not}: left alone")
            elif known:
                asides += _resume(folder, name, facts, known, cleanup)
            elif reason := rotation_reason(folder, name, facts, limits, now):
                asides += _start(folder, name, facts, reason, cleanup, now)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be rotated", error)
    for aside in asides:
        state = store(aside, cleanup, now, deadline)
        held = "still open in another process, packed when that has closed it"
        if state == "packed":
            cleanup.did(f"{aside.words} -> {aside.shown()}")
        elif state == "held":
            cleanup.did(f"{aside.words} -> {path_shown(aside.name)}: {held}")


def _start(
    folder: Folder, name: str, facts: os.stat_result, reason: str, cleanup: Cleanup, now: float
) -> Iterator[Aside]:
    what = f"{path_shown(name)} ({reason})"
    if not cleanup.dry_run:
        aside = set_aside(folder, name, now)
        try:
            create_empty(folder, name, facts)
        except OSError:
            folder.put_back(aside.name, name)
            raise
        aside.words = f"rotated {what}"
        yield aside
    elif folder.has_writer(name, now):
        cleanup.did(f"would rotate {what}, and pack it when another process has closed it")
    else:
        archive = rotation_name(name, next_moment(now, name, folder.entries()), ARCHIVED)
        cleanup.did(f"would rotate {what} -> {path_shown(archive)}", bytes_saved(folder, name))
    cleanup.files_rotated += 1


def _resume(folder: Folder, name: str, facts: os.stat_result, known: Rotation, cleanup: Cleanup) -> Iterator[Aside]:
    """Continue with a file that an earlier run has set aside."""
    shown = path_shown(known.live)
    if cleanup.dry_run:
        cleanup.did(f"would finish the rotation of {shown}: {path_shown(name)}")
        return
    create_empty(folder, known.live, facts)
    aside = rotation_aside(folder, known.live, known.micros)
    aside.words = f"finished the rotation of {shown}"
    yield aside


# -- sessions -------------------------------------------------------------------------------------------


def session_aside(folder: Folder, session: str, facts: os.stat_result) -> Aside:
    """Name the places of a state. The day is that of its last change, so that an interrupted run finds it again."""
    from datetime import UTC, datetime

    changed = min(max(facts.st_mtime, 0), _LATEST)  # a file's time can be anything
    live = f"session_{session}_state.json"
    day = f"{datetime.fromtimestamp(changed, UTC):%Y-%m-%d}"
    return Aside(folder, live + PRUNING, live, f"{session}_state.json.gz", (SESSION_ARCHIVES, day))


def set_session_aside(aside: Aside, facts: os.stat_result) -> None:
    """Rename a state, so that a new one which a writer puts in its place is not removed by mistake."""
    aside.folder.rename(aside.live, aside.name)
    if not aside.folder.is_unchanged(aside.name, facts):
        aside.folder.put_back(aside.name, aside.live)
        raise FileNotFoundError(2, "another state has just taken its place", aside.live)


def prune(
    folder: Folder, limits: Limits, active: Collection[str], cleanup: Cleanup, now: float, deadline: float | None
) -> list[str]:
    """Archive the sessions that are too old or too many; return the names of the states that stay."""
    asides = list(_interrupted(folder, active, cleanup))
    entries = folder.entries()
    staying = {name: facts for name, facts in entries.items() if session_of(name)}
    for name, reason in sessions_to_prune(entries, limits, active, now).items():
        facts = staying.pop(name)
        aside = session_aside(folder, session_of(name), facts)
        aside.words = reason
        try:
            if folder.has_writer(name, now):
                cleanup.left(f"{path_shown(name)} is open in another process: left alone")
            elif cleanup.dry_run:
                cleanup.sessions_pruned += 1
                line = f"would prune session {path_shown(session_of(name))} ({reason}) -> {aside.shown()}"
                cleanup.did(line, bytes_saved(folder, name))
            else:
                set_session_aside(aside, facts)
                asides.append(aside)
        except FileNotFoundError:
            continue
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be pruned", error)
    for aside in asides:
        state = store(aside, cleanup, now, deadline)
        if state == "packed":
            cleanup.sessions_pruned += 1
            cleanup.did(f"pruned session {path_shown(session_of(aside.live))} ({aside.words}) -> {aside.shown()}")
        elif state != "gone":
            folder.put_back(aside.name, aside.live)
        if state == "held":
            cleanup.left(f"{path_shown(aside.live)} is open in another process: left alone")
    for name, facts in staying.items():
        if why_not := why_untouchable(facts):
            cleanup.left(f"{path_shown(name)} {why_not}: left alone")
    return [name for name, facts in staying.items() if not why_untouchable(facts)]


def _interrupted(folder: Folder, active: Collection[str], cleanup: Cleanup) -> Iterator[Aside]:
    """Find the states that an earlier run has set aside; one of an active session gets its name back."""
    for name, facts in folder.entries().items():
        session = session_of(name, PRUNING)
        if session and why_untouchable(facts) and facts.st_nlink < 2:
            cleanup.left(f"{path_shown(name)} {why_untouchable(facts)}: left alone")
        elif session and cleanup.dry_run:
            cleanup.did(f"would finish the pruning of session {path_shown(session)}")
        elif session:
            aside = session_aside(folder, session, facts)
            back = is_active(session, active) or folder.is_same(aside.live, facts)
            if not (back and folder.put_back(name, aside.live)):
                aside.words = "an earlier run was interrupted"
                yield aside


# -- the whole folder -----------------------------------------------------------------------------------


def remove_surplus(folder: Folder, limits: Limits, cleanup: Cleanup) -> None:
    """Remove rotations beyond the number to keep, then the oldest archives until the folder is within its limit."""
    usage = measure(folder, limits)
    archives = sorted(usage.archives, key=lambda one: (one.micros, one.name.split("/")))
    # what a dry run would have freed by now is still on the disk
    total = usage.total_bytes - (cleanup.bytes_freed if cleanup.dry_run else 0)
    for live in dict.fromkeys(one.live for one in archives if one.live):
        rotations = [one for one in archives if one.live == live]
        for one in rotations[: max(0, len(rotations) - limits.telemetry_keep_rotations)]:
            _remove(folder, one, f"more than {limits.telemetry_keep_rotations} rotations", cleanup)
            archives.remove(one)
            total -= one.bytes
    rest = total - sum(one.bytes for one in archives)
    limit = format_limit(limits.total_max_kb)
    if rest > limits.total_max_bytes:
        # other files exceed the limit by themselves: the archives alone are kept under it
        others = sorted((file for file in usage.files if file not in usage.archives), key=lambda file: -file.bytes)
        largest = ", ".join(f"{path_shown(file.name)} ({space(file.bytes)})" for file in others[:_NAMED])
        cleanup.left(f"{folder.shown} is over {limit}, and archives are not the reason: {largest}")
        total -= rest
    for one in archives:
        if total <= limits.total_max_bytes:
            break
        _remove(folder, one, f"the folder is over {limit}", cleanup)
        total -= one.bytes


def _remove(folder: Folder, one: MemoryFile, reason: str, cleanup: Cleanup) -> None:
    shown = path_shown(one.name)
    *folders, name = one.name.split("/")
    try:
        if not cleanup.dry_run and not folders:
            folder.unlink(name)
        elif not cleanup.dry_run:
            with folder.sub(folders[0]) as archives:
                with archives.sub(folders[1]) as day:
                    day.unlink(name)
                archives.remove_if_empty(folders[1])
    except FileNotFoundError:
        return
    except OSError as error:
        cleanup.failed(f"{shown} could not be removed", error)
        return
    cleanup.archives_removed += 1
    cleanup.did(f"{'would remove' if cleanup.dry_run else 'removed'} {shown} ({reason})", one.bytes)
