"""Open, create and rename files of a memory folder without following links, and tell whether one is being written."""

from __future__ import annotations

import os
import stat

from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: Seconds without a change after which a file that gets no lease counts as closed.
_QUIET = 3600.0


def scan(folder: str) -> dict[str, os.stat_result]:
    """Stat everything in a folder without following links, sorted by name."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                found[entry.name] = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed meanwhile
    return dict(sorted(found.items()))


def walk(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path of every file below a folder, relative to it, but what is for git. Links are not followed."""
    for above, folders, names in os.walk(folder):
        for name in sorted(
            [
                *(one for one in names if one != ".gitignore"),
                *(one for one in folders if os.path.islink(os.path.join(above, one))),
            ]
        ):
            path = os.path.join(above, name)
            try:
                yield os.path.relpath(path, folder), os.lstat(path)
            except FileNotFoundError:
                continue


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file; OSError if it is a link or anything else."""
    descriptor = os.open(path, flags | _FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "not a regular file", path)
    return descriptor


def read(path: str, limit: int) -> bytes:
    with open(open_regular(path), "rb") as file:
        return file.read(limit)


def create(path: str, like: os.stat_result) -> int:
    """Create a file with the mode and, for root, the owner of another; FileExistsError if the name is taken."""
    descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
    if os.geteuid() != like.st_uid:
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except OSError:
            pass  # only root may
    return descriptor


def make_folders(folder: str, *names: str) -> None:
    """Create folders inside of each other; OSError if one of them is a link."""
    for name in names:
        folder = os.path.join(folder, name)
        os.makedirs(folder, exist_ok=True)
        if os.path.islink(folder):
            raise OSError(40, "is a symbolic link", folder)


def remove(path: str) -> None:
    """Remove a file if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def rename(old: str, new: str) -> None:
    """Rename a file, and make that durable."""
    os.rename(old, new)
    try:
        folder = os.open(os.path.dirname(new), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError:
        pass  # some file systems cannot sync a folder


def put_back(aside: str, name: str) -> bool:
    """Give a file its name back unless another file has taken it; also finishes what a killed run began."""
    try:
        os.link(aside, name, follow_symlinks=False)
    except OSError:
        if not is_same(name, aside):
            return False
    os.unlink(aside)
    return True


def is_same(path: str, other: str) -> bool:
    """Tell whether two names are of one file."""
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
    except FileNotFoundError:
        return False


def is_unchanged(path: str, before: os.stat_result) -> bool:
    try:
        now = os.lstat(path)
    except FileNotFoundError:
        return False
    return all(getattr(now, one) == getattr(before, one) for one in ("st_ino", "st_size", "st_mtime_ns"))


def has_writer(path: str, now: float) -> bool:
    """Tell whether a process may still write to a file, perhaps one that opened it under an earlier name.

    The kernel grants a read lease only while no process has the file open for writing. Unlike /proc, that also covers
    processes that cannot be inspected. Where it grants none (another user's file, NFS, not Linux), a file has a writer
    until it has not changed for an hour.
    """
    import fcntl
    import signal

    try:
        descriptor = open_regular(path)
        try:
            # a process that opens the file now makes the kernel send a signal: one that is ignored by default
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        finally:
            os.close(descriptor)  # which also gives the lease back
    except BlockingIOError:
        return True
    except (OSError, AttributeError):
        try:
            return now - os.lstat(path).st_mtime < _QUIET
        except FileNotFoundError:
            return False
    return False


def find_memory(root: str, folder: str, elsewhere: tuple[str, ...]) -> str | None:
    """Find the configured folder; None if it does not exist, FusewireError if it is not a folder of the project."""
    allowed = "a folder of the project, or one that memory_limits.other_folders names, too"
    path = resolve(root, folder)
    if path not in [resolve(root, one) for one in elsewhere]:
        parts = os.path.relpath(path, root).split(os.sep)
        if parts[0] in ("..", ".git", ".fusewire") or "\0" in folder:
            raise FusewireError(f"memory_limits.folder = {folder!r} is refused; allowed: {allowed}")
        for count in range(1, len(parts)):
            above = os.path.join(*parts[:count])
            check_folder(os.path.join(root, above), above, allowed)
    return path if check_folder(path, folder, allowed) else None


def check_folder(path: str, shown: str, allowed: str = "a folder") -> bool:
    """Tell whether a folder exists; FusewireError if it is a link or not a folder."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FusewireError(f"{shown} cannot be opened: {error.strerror}; allowed: {allowed}") from None
    if not stat.S_ISDIR(mode):
        link = "is a symbolic link, which the janitor does not follow"
        why = link if stat.S_ISLNK(mode) else "is not a folder"
        raise FusewireError(f"{shown} {why}; allowed: {allowed}")
    return True


def resolve(root: str, name: str) -> str:
    """Make a configured folder's name absolute, relative to the project."""
    return os.path.normpath(os.path.join(root, os.path.expanduser(name)))
