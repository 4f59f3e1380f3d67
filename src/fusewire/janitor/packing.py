"""From a file that was set aside to its archive, so that a kill at any moment loses nothing and leaves no second copy.

    set aside -> nobody writes to it -> packed, synced, read back -> archive -> still nobody, still the same -> gone

A run that finds a file set aside goes on where the last one stopped: an archive that is there already is compared,
and taken, written anew, or left for what it is.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import TYPE_CHECKING

from fusewire.janitor.names import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.janitor.folder import Folder

_CHUNK = 1 << 18

#: zlib's number for a gzip file with the largest window.
_GZIP = 31


class OutOfTime(Exception):
    """An agent waits for the start of its session: the rest is for a later run."""


class Aside:
    """A file under an intermediate name, and where it goes."""

    def __init__(self, folder: Folder, name: str, archive: str, below: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.name = name
        self.archive = archive
        #: folders from there to the archive
        self.below = below

    def place(self, *, create: bool = False) -> Folder:
        """The folder of the archive, to be closed by the caller."""
        here = self.folder
        for at, part in enumerate(self.below or (".",)):
            there = here.sub(part, create=create)
            if at:
                os.close(here.descriptor)
            here = there
        return here


def pack(
    source: Folder, name: str, place: Folder, archive: str, deadline: float | None = None
) -> tuple[os.stat_result, int]:
    """Write the archive whole or not at all; the facts of what was packed, and the archive's size.

    Raises OSError if the disk has no room or what was written reads back as something else.
    """
    with open(source.open(name), "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        target = source.create(TEMPORARY)
        try:
            with open(target, "wb", buffering=0) as packed:
                length = 0
                for piece in compressed(file, deadline):
                    length += len(piece)
                    while piece:
                        piece = piece[packed.write(piece) or 0 :]
                source.dress(packed.fileno(), facts)
                os.utime(packed.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
                os.fsync(packed.fileno())
                taken = file.tell()
            if taken != facts.st_size:  # the facts must be those of what is in the archive
                raise OSError(16, "changed while it was packed; left for the next run", name)
            if compare(source, TEMPORARY, source, name) not in ("same", "beginning"):
                raise OSError(5, "what was written reads back as something else", archive)
            os.rename(TEMPORARY, archive, src_dir_fd=source.descriptor, dst_dir_fd=place.descriptor)
        except BaseException:
            remove_temporary(source)
            raise
    return facts, length


def compressed(file: object, deadline: float | None = None) -> Iterator[bytes]:
    """A file's content as gzip. Without a name or a time in it, so that the same content is the same archive."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    while chunk := file.read(_CHUNK):  # type: ignore[attr-defined]
        if deadline is not None and time.monotonic() > deadline:
            raise OutOfTime
        yield packer.compress(chunk)
    yield packer.flush()


def compare(place: Folder, archive: str, source: Folder, name: str) -> str:
    """What an archive has of a file: the `same`, its `beginning`, or something `other`."""
    with open(place.open(archive), "rb") as packed, open(source.open(name), "rb") as file:
        unpacker = zlib.decompressobj(_GZIP)
        try:
            while chunk := packed.read(_CHUNK):
                while chunk:
                    part = unpacker.decompress(chunk, _CHUNK)
                    if part != file.read(len(part)):
                        return "other"
                    chunk = unpacker.unconsumed_tail
            part = unpacker.flush()
        except zlib.error:
            return "other"
        if part != file.read(len(part)) or not unpacker.eof or unpacker.unused_data:
            return "other"
        return "beginning" if file.read(1) else "same"


def remove_temporary(folder: Folder) -> None:
    try:
        folder.unlink(TEMPORARY)
    except FileNotFoundError:
        pass


def unchanged(folder: Folder, name: str, before: os.stat_result) -> bool:
    now = folder.look(name)
    return now is not None and _state(now) == _state(before)


def _state(facts: os.stat_result) -> tuple[int, int, int]:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
