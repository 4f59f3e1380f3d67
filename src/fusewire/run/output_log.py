"""Keep an agent's output on disk, bounded: the beginning and the end, and between them how much was left out.

The file grows by appending, and can be followed; when it has become too long, its end is copied over the middle and it
is cut. Nothing of the end is overwritten before its copy is written, so that a kill at any moment loses none of it.
"""

from __future__ import annotations

import os

from fusewire.util.files import open_file

#: The line between beginning and end always has this length: it is written again in its place.
LINE = 64


class OutputLog:
    """One file, overwritten. A full disk ends the log, not the agent: `problem` says so."""

    def __init__(self, path: str, head: int = 262144, tail: int = 786432) -> None:
        if head < 0 or tail < 1:
            raise ValueError("the log needs room for an end")
        self.problem = ""
        #: Bytes that were written, also those that are no longer there.
        self.written = 0
        self._tail = tail
        self._head = head
        self._limit = head + LINE + 3 * tail
        self._size = 0
        self._file = open_file(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(self._file, 0)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and not self.problem:
                if self._size == self._limit:
                    self._shorten()
                written = os.pwrite(self._file, rest[: self._limit - self._size], self._size)
                self._size += written
                self.written += written
                rest = rest[written:]
        except OSError as error:
            self.problem = f"the output is no longer written to disk: {error.strerror}"

    def close(self) -> None:
        if self._file < 0:
            return
        try:
            if self._size > self._head + LINE + self._tail:
                self._shorten()
        except OSError as error:
            self.problem = self.problem or f"the output on disk could not be shortened: {error.strerror}"
        os.close(self._file)
        self._file = -1

    def _shorten(self) -> None:
        """Keep the beginning and the last `tail` bytes, with a line between them."""
        kept = os.pread(self._file, self._tail, self._size - self._tail)
        missing = self.written - self._head - len(kept)
        self._put(kept, self._head + LINE)
        self._put(_line(missing), self._head)
        self._size = self._head + LINE + len(kept)
        os.ftruncate(self._file, self._size)

    def _put(self, data: bytes, at: int) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._file, rest, at)
            at += written
            rest = rest[written:]


def prune(folder: str, keep: int = 20) -> int:
    """Remove the oldest logs (*.log) of a folder, and count them. A folder that is gone has none."""
    if not os.path.isdir(folder):
        return 0
    with os.scandir(folder) as entries:
        files = [entry for entry in entries if entry.name.endswith(".log") and entry.is_file(follow_symlinks=False)]
    found = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name, entry.path) for entry in files)
    old = found[: max(0, len(found) - keep)]
    for _, _, path in old:
        os.unlink(path)
    return len(old)


def _line(missing: int) -> bytes:
    return f"\n[fusewire: {missing} bytes left out]".ljust(LINE - 1).encode() + b"\n"
