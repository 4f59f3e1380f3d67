"""Access a folder by descriptor and its files by plain name, so that no path can be redirected by a link meanwhile."""

from __future__ import annotations

import os
import stat

from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: Deeper than any memory folder.
DEEPEST = 16

#: Seconds without a change after which a file that gets no lease counts as closed.
_QUIET = 3600.0


class Folder:
    """An open folder. Nothing in it is reached through a symbolic link."""

    def __init__(self, descriptor: int, shown: str) -> None:
        self.descriptor = descriptor
        #: the name for messages
        self.shown = shown

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def sub(self, name: str, *, create: bool = False) -> Folder:
        """Open a folder inside; OSError if it is a link or not a folder."""
        if create:
            try:
                os.mkdir(name, 0o777, dir_fd=self.descriptor)
            except FileExistsError:
                pass
        return Folder(os.open(name, _FOLDER, dir_fd=self.descriptor), os.path.join(self.shown, name))

    def entries(self) -> dict[str, os.stat_result]:
        """Stat everything inside without following links, sorted by name."""
        found = {}
        with os.scandir(self.descriptor) as entries:
            for entry in entries:
                try:
                    found[entry.name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed meanwhile
        return dict(sorted(found.items()))

    def stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_same(self, name: str, other: os.stat_result) -> bool:
        """Tell whether a name is one of another file's names."""
        facts = self.stat(name)
        return facts is not None and os.path.samestat(facts, other)

    def is_unchanged(self, name: str, before: os.stat_result) -> bool:
        now = self.stat(name)
        return now is not None and all(
            getattr(now, one) == getattr(before, one) for one in ("st_ino", "st_size", "st_mtime_ns")
        )

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """Open a regular file; OSError if it is a link or anything else."""
        descriptor = os.open(name, flags | _FILE, mode, dir_fd=self.descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(22, "not a regular file", name)
        return descriptor

    def create(self, name: str, like: os.stat_result) -> int:
        """Create a file with the mode and, for root, the owner of another; FileExistsError if the name is taken."""
        descriptor = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        if os.geteuid() != like.st_uid:
            try:
                os.fchown(descriptor, like.st_uid, like.st_gid)
            except OSError:
                pass  # only root may
        return descriptor

    def read(self, name: str, limit: int) -> bytes:
        with open(self.open(name), "rb") as file:
            return file.read(limit)

    def rename(self, old: str, new: str, target: Folder | None = None) -> None:
        """Rename a file, and make that durable."""
        place = target or self
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=place.descriptor)
        try:
            os.fsync(place.descriptor)
        except OSError:
            pass  # some file systems cannot sync a folder

    def unlink(self, name: str, *, missing_ok: bool = False) -> None:
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_if_empty(self, name: str) -> None:
        """Remove a folder inside unless it has files."""
        try:
            os.rmdir(name, dir_fd=self.descriptor)
        except OSError:
            pass

    def put_back(self, aside: str, name: str) -> bool:
        """Give a file its name back unless another file has taken it; also finishes what a killed run began."""
        try:
            os.link(aside, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor, follow_symlinks=False)
        except OSError:
            facts = self.stat(aside)
            if facts is None or not self.is_same(name, facts):
                return False
        self.unlink(aside)
        return True

    def has_writer(self, name: str, now: float) -> bool:
        """Tell whether a process may still write to a file, perhaps one that opened it under an earlier name.

        The kernel grants a read lease only while no process has the file open for writing. Unlike /proc, that also
        covers processes that cannot be inspected. Where it grants none (another user's file, NFS, not Linux), a file
        has a writer until it has not changed for an hour.
        """
        import fcntl
        import signal

        try:
            descriptor = self.open(name)
            try:
                # a process that opens the file now makes the kernel send a signal: one that is ignored by default
                fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            finally:
                os.close(descriptor)  # which also gives the lease back
        except BlockingIOError:
            return True
        except (OSError, AttributeError):
            facts = self.stat(name)
            return facts is not None and now - facts.st_mtime < _QUIET
        return False

    def lock(self) -> None:
        """Exclude the janitors of other projects that use this folder; BlockingIOError if one is at work."""
        import fcntl

        fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
        """Yield every file below, links unfollowed, each with the parts of its path."""
        for name, facts in self.entries().items():
            if not stat.S_ISDIR(facts.st_mode):
                yield (*above, name), facts
            elif len(above) < DEEPEST:
                try:
                    inner = self.sub(name)
                except OSError:
                    continue  # removed, replaced by a link, or not readable for us
                with inner:
                    yield from inner.walk((*above, name))


def open_memory(root: str, folder: str, elsewhere: tuple[str, ...]) -> Folder | None:
    """Open the configured folder; None if it does not exist, FusewireError if it is not a folder of the project."""
    allowed = "a folder of the project, or one that memory_limits.other_folders names, too"
    root = os.path.realpath(root)
    path = resolve(root, folder)
    if folder in elsewhere or path in [resolve(root, one) for one in elsewhere]:
        return open_folder(path, folder)
    parts = [part for part in os.path.relpath(path, root).split(os.sep) if part != "."]
    if parts[:1] in ([".."], [".git"], [".fusewire"]) or "\0" in folder:
        raise FusewireError(f"memory_limits.folder = {folder!r} is refused; allowed: {allowed}")
    here: Folder | None = Folder(os.open(root, _FOLDER), folder)
    for at, part in enumerate(parts):
        if here is not None:
            with here as above:
                here = open_folder(part, os.path.join(*parts[: at + 1]), allowed, above.descriptor)
    if here is not None:
        here.shown = folder
    return here


def open_folder(path: str, shown: str, allowed: str = "a folder", parent: int | None = None) -> Folder | None:
    """Open a folder that is not itself a link; None if it does not exist."""
    try:
        return Folder(os.open(path, _FOLDER, dir_fd=parent), shown)
    except FileNotFoundError:
        return None
    except OSError as error:
        try:
            is_link = stat.S_ISLNK(os.stat(path, dir_fd=parent, follow_symlinks=False).st_mode)
        except OSError:
            is_link = False
        link = "is a symbolic link, which the janitor does not follow"
        why = link if is_link else f"cannot be opened: {error.strerror}"
        raise FusewireError(f"{shown} {why}; allowed: {allowed}") from None


def resolve(root: str, name: str) -> str:
    """Make a configured folder's name absolute, relative to the project."""
    return os.path.normpath(os.path.join(root, os.path.expanduser(name)))
