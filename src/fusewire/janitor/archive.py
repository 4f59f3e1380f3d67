"""Compress files into archives so that a kill at any moment loses nothing and leaves no second copy.

    set aside by rename -> no writer -> compressed, synced, read back -> archive -> no writer, unchanged -> removed

A run that finds a file set aside continues where the last one stopped: an archive that already has the content, or
its beginning, is reused or replaced; any other archive stays, and the file gets the next free name.
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
    is_aside,
    is_telemetry,
    next_moment,
    parse_rotation,
    rotation_name,
    session_of,
)
from fusewire.janitor.report import format_limit, kind_of, space
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import BinaryIO

    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits
    from fusewire.janitor.report import Cleanup

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
            facts, size = _find_or_pack(aside, place, deadline)
            # in this order: without a writer nothing is appended, so the second check is final
            if folder.has_writer(name, now) or not folder.is_unchanged(name, facts):
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


def _find_or_pack(aside: Aside, place: Folder, deadline: float | None) -> tuple[os.stat_result, int]:
    facts = aside.folder.stat(aside.name)
    while facts is not None and (there := place.stat(aside.archive)) is not None:
        state = compare(place, aside.archive, aside.folder, aside.name)
        if state == "same":
            return facts, there.st_size
        if state == "beginning":
            break  # lines were appended after an interrupted run had packed the file
        aside.use_next_archive()
    return pack(aside.folder, aside.name, place, aside.archive, deadline)


def pack(
    source: Folder, name: str, place: Folder, archive: str, deadline: float | None = None
) -> tuple[os.stat_result, int]:
    """Write an archive atomically; return the facts of the packed file and the archive's size.

    Raises OSError if the disk is full or the archive reads back differently, TimeoutError after the deadline.
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
                length = packed.tell()
            if file.tell() != facts.st_size:  # the facts must be those of what is in the archive
                raise OSError(16, "changed while it was packed; left for the next run", name)
            if compare(source, TEMPORARY, source, name) == "other":
                raise OSError(5, "the archive reads back differently", archive)
            source.rename(TEMPORARY, archive, place)
        except BaseException:
            source.unlink(TEMPORARY, missing_ok=True)
            raise
    return facts, length


def compress(file: BinaryIO, deadline: float | None = None) -> Iterator[bytes]:
    """Compress to gzip without a name or a time, so that the same content gives the same archive."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    while chunk := file.read(_CHUNK):
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError
        yield packer.compress(chunk)
    yield packer.flush()


def compare(place: Folder, archive: str, source: Folder, name: str) -> str:
    """Say what an archive has of a file: the `same`, its `beginning`, or something `other`."""
    with open(place.open(archive), "rb") as packed, open(source.open(name), "rb") as file:
        unpacked = gzip.GzipFile(fileobj=packed)
        try:
            while chunk := unpacked.read(_CHUNK):
                if chunk != file.read(len(chunk)):
                    return "other"
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return "other"
        return "beginning" if file.read(1) else "same"


def bytes_saved(folder: Folder, name: str) -> int:
    """Compute what packing a file would free."""
    try:
        with open(folder.open(name), "rb") as file:
            return -sum(map(len, compress(file))) + file.tell()
    except OSError:
        return 0


# -- telemetry ------------------------------------------------------------------------------------------


def set_aside(folder: Folder, name: str, now: float) -> Aside:
    """Give a file its intermediate name. A process that has it open continues to write to it."""
    micros = next_moment(now, name, folder.entries())
    aside = Aside(folder, rotation_name(name, micros, ROTATING), name, rotation_name(name, micros, ARCHIVED))
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
    asides: dict[Aside, str] = {}
    for name, facts in folder.entries().items():
        waiting = is_aside(name, limits.telemetry)
        if not waiting and not is_telemetry(name, limits.telemetry):
            continue
        why_not = why_untouchable(facts)
        try:
            if waiting and not cleanup.dry_run and _is_put_back(folder, name, facts):
                continue
            if why_not:
                cleanup.left(f"{path_shown(name)} {why_not}: left alone")
            elif waiting:
                _resume(folder, name, facts, asides, cleanup)
            elif reason := rotation_reason(folder, name, facts, limits, now):
                _start(folder, name, facts, reason, asides, cleanup, now)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be rotated", error)
    for aside, words in asides.items():
        state = store(aside, cleanup, now, deadline)
        if state == "packed":
            cleanup.did(f"{words} -> {aside.shown()}")
        elif state == "held":
            cleanup.did(
                f"{words} -> {path_shown(aside.name)}: still open in another process, packed when that has closed it"
            )


def _is_put_back(folder: Folder, name: str, facts: os.stat_result) -> bool:
    """Finish a `put_back` that was killed between its two steps."""
    known = parse_rotation(name)
    return known is not None and folder.is_same(known.live, facts) and folder.put_back(name, known.live)


def _start(
    folder: Folder,
    name: str,
    facts: os.stat_result,
    reason: str,
    asides: dict[Aside, str],
    cleanup: Cleanup,
    now: float,
) -> None:
    shown = path_shown(name)
    if cleanup.dry_run:
        cleanup.files_rotated += 1
        if folder.has_writer(name, now):
            cleanup.did(f"would rotate {shown} ({reason}), and pack it when another process has closed it")
        else:
            archive = rotation_name(name, next_moment(now, name, folder.entries()), ARCHIVED)
            cleanup.did(f"would rotate {shown} ({reason}) -> {path_shown(archive)}", bytes_saved(folder, name))
        return
    aside = set_aside(folder, name, now)
    try:
        create_empty(folder, name, facts)
    except OSError:
        folder.put_back(aside.name, name)
        raise
    cleanup.files_rotated += 1
    asides[aside] = f"rotated {shown} ({reason})"


def _resume(folder: Folder, name: str, facts: os.stat_result, asides: dict[Aside, str], cleanup: Cleanup) -> None:
    """Continue with a file that an earlier run has set aside."""
    known = parse_rotation(name)
    if known is None:
        return
    shown = path_shown(known.live)
    if cleanup.dry_run:
        cleanup.did(f"would finish the rotation of {shown}: {path_shown(name)}")
        return
    create_empty(folder, known.live, facts)
    archive = rotation_name(known.live, known.micros, ARCHIVED)
    asides[Aside(folder, name, known.live, archive)] = f"finished the rotation of {shown}"


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
    asides: dict[Aside, str] = {}
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
                asides[aside] = "an earlier run was interrupted"
    entries = folder.entries()
    staying = {name: facts for name, facts in entries.items() if session_of(name)}
    for name, reason in sessions_to_prune(entries, limits, active, now).items():
        facts = staying.pop(name)
        session = session_of(name)
        aside = session_aside(folder, session, facts)
        try:
            if folder.has_writer(name, now):
                cleanup.left(f"{path_shown(name)} is open in another process: left alone")
            elif cleanup.dry_run:
                cleanup.sessions_pruned += 1
                line = f"would prune session {path_shown(session)} ({reason}) -> {aside.shown()}"
                cleanup.did(line, bytes_saved(folder, name))
            else:
                set_session_aside(aside, facts)
                asides[aside] = reason
        except FileNotFoundError:
            continue
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be pruned", error)
    for aside, reason in asides.items():
        state = store(aside, cleanup, now, deadline)
        if state == "packed":
            cleanup.sessions_pruned += 1
            session = path_shown(session_of(aside.live))
            cleanup.did(f"pruned session {session} ({reason}) -> {aside.shown()}")
        elif state != "gone":
            folder.put_back(aside.name, aside.live)
        if state == "held":
            cleanup.left(f"{path_shown(aside.live)} is open in another process: left alone")
    for name, facts in staying.items():
        if why_not := why_untouchable(facts):
            cleanup.left(f"{path_shown(name)} {why_not}: left alone")
    return [name for name, facts in staying.items() if not why_untouchable(facts)]


# -- the whole folder -----------------------------------------------------------------------------------


class _File:
    """A file of the folder; `live` is the telemetry file that a rotation is of."""

    def __init__(self, parts: tuple[str, ...], facts: os.stat_result, limits: Limits) -> None:
        self.parts = parts
        self.shown = path_shown("/".join(parts))
        self.size = facts.st_size
        self.is_archive = kind_of(parts, facts, limits) in ("rotation", "session archive")
        known = parse_rotation(parts[0]) if self.is_archive else None
        self.live = known.live if known else ""
        self.micros = known.micros if known else facts.st_mtime_ns // 1000


def remove_surplus(folder: Folder, limits: Limits, cleanup: Cleanup) -> None:
    """Remove rotations beyond the number to keep, then the oldest archives until the folder is within its limit."""
    files = [_File(parts, facts, limits) for parts, facts in folder.walk()]
    archives = sorted((file for file in files if file.is_archive), key=lambda one: (one.micros, one.parts))
    # what a dry run would have freed by now is still on the disk
    total = sum(file.size for file in files) - (cleanup.bytes_freed if cleanup.dry_run else 0)
    for live in dict.fromkeys(one.live for one in archives if one.live):
        rotations = [one for one in archives if one.live == live]
        for one in rotations[: max(0, len(rotations) - limits.telemetry_keep_rotations)]:
            _remove(folder, one, f"more than {limits.telemetry_keep_rotations} rotations", cleanup)
            archives.remove(one)
            total -= one.size
    rest = total - sum(one.size for one in archives)
    limit = format_limit(limits.total_max_kb)
    if rest > limits.total_max_bytes:
        # other files exceed the limit by themselves: the archives alone are kept under it
        others = sorted((file for file in files if not file.is_archive), key=lambda file: -file.size)
        largest = ", ".join(f"{file.shown} ({space(file.size)})" for file in others[:_NAMED])
        cleanup.left(f"{folder.shown} is over {limit}, and archives are not the reason: {largest}")
        total -= rest
    for one in archives:
        if total <= limits.total_max_bytes:
            break
        _remove(folder, one, f"the folder is over {limit}", cleanup)
        total -= one.size


def _remove(folder: Folder, one: _File, reason: str, cleanup: Cleanup) -> None:
    try:
        if not cleanup.dry_run and len(one.parts) == 1:
            folder.unlink(one.parts[0])
        elif not cleanup.dry_run:
            with folder.sub(one.parts[0]) as archives:
                with archives.sub(one.parts[1]) as day:
                    day.unlink(one.parts[2])
                _remove_if_empty(archives, one.parts[1])
    except FileNotFoundError:
        return
    except OSError as error:
        cleanup.failed(f"{one.shown} could not be removed", error)
        return
    cleanup.archives_removed += 1
    cleanup.did(f"{'would remove' if cleanup.dry_run else 'removed'} {one.shown} ({reason})", one.size)


def _remove_if_empty(archives: Folder, day: str) -> None:
    try:
        os.rmdir(day, dir_fd=archives.descriptor)
    except OSError:
        pass  # it has other files
