"""Read one file of a snapshot, and its content no more often than needed."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from fusewire.worktree.path_kinds import is_by_product
from fusewire.worktree.profile import PROFILED, Profile, profile_of
from fusewire.worktree.trees import LINK, object_id

#: A larger file is known by its size and time.
HASHED = 8 << 20
#: Profiles of all files together: texts beyond this are compared by their hashes alone.
_PROFILED_IN_ALL = 64 << 20
#: A file that was changed this short before it was read may be changed again without a sign of it.
_YOUNG = 2_000_000_000


class Entry(NamedTuple):
    """A file as it is, and as HEAD has it; a mode of 0 is a file that is not there."""

    mode: int
    id: str
    #: of `lstat`, when the content was read; empty if it cannot be relied on
    signature: tuple[int, ...] = ()
    profile: Profile | None = None
    head_mode: int = 0
    head_id: str = ""


class Reader:
    """Reads files for one snapshot; what the last one knew of a file that was not touched since is taken over."""

    def __init__(self, root: str, known: Mapping[str, Entry], now_ns: int) -> None:
        self.root = root
        self.known = known
        self.now_ns = now_ns
        self.room = _PROFILED_IN_ALL
        #: files in which git may change the line ends
        self.with_returns: set[str] = set()

    def entry(self, path: str, seen: os.stat_result | None, mode: int = -1, width: int = 40) -> Entry:
        """The file at a path, with the mode that git says or else that of the disk; absent if it is no file."""
        if seen is None or mode == 0 or not (stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode)):
            return Entry(0, "")
        link = stat.S_ISLNK(seen.st_mode)
        if link or mode in (-1, LINK):
            mode = LINK if link else 0o100755 if seen.st_mode & 0o100 else 0o100644
        signature = _signature(seen)
        known = self.known.get(path)
        if known is not None and known.signature == signature and len(known.id) == width:
            self.room -= seen.st_size if known.profile else 0
            return known._replace(mode=mode, head_mode=0, head_id="")
        content = self._content(path, seen, link=link)
        if content is None:
            return Entry(mode, object_id("size and time", f"{seen.st_size} {seen.st_mtime_ns}".encode(), width))
        if seen.st_ctime_ns > self.now_ns - _YOUNG:
            signature = ()
        if b"\r\n" in content and not link:
            self.with_returns.add(path)
        profile = None if link else self._profile(path, content)
        return Entry(mode, object_id("blob", content, width), signature, profile)

    def _content(self, path: str, seen: os.stat_result, *, link: bool) -> bytes | None:
        """None if it is too large, or cannot be read."""
        full = os.path.join(self.root, path)
        try:
            if link:
                return os.fsencode(os.readlink(full))
            if seen.st_size > HASHED:
                return None
            # a fifo that has just taken the file's place must not make us wait
            descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                return file.read(HASHED)
        except OSError:
            return None

    def _profile(self, path: str, content: bytes) -> Profile | None:
        if is_by_product(path) or len(content) > min(PROFILED, self.room):
            return None
        profile = profile_of(path, content)
        self.room -= len(content) if profile else 0
        return profile


def look(root: str, path: str) -> os.stat_result | None:
    try:
        return os.lstat(os.path.join(root, path))
    except OSError:
        return None


def _signature(seen: os.stat_result) -> tuple[int, ...]:
    return seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev
