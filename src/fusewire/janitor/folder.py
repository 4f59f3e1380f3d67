"""A folder by its descriptor, and every file in it by its plain name: no path that somebody could bend meanwhile."""

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

#: Deeper and more than any folder that this is meant for.
_DEEPEST = 16
_MOST = 100_000


class Folder:
    """An open folder. Nothing in it is reached through a symbolic link."""

    def __init__(self, descriptor: int, shown: str) -> None:
        self.descriptor = descriptor
        #: as people of the project name it
        self.shown = shown

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def sub(self, name: str, *, create: bool = False) -> Folder:
        if create:
            try:
                os.mkdir(name, 0o777, dir_fd=self.descriptor)
            except FileExistsError:
                pass
        return Folder(os.open(name, _FOLDER, dir_fd=self.descriptor), os.path.join(self.shown, name))

    def entries(self) -> dict[str, os.stat_result]:
        """All that is in it, by name, not followed; sorted, so that every run does things in the same order."""
        found = {}
        with os.scandir(self.descriptor) as entries:
            for entry in entries:
                try:
                    found[entry.name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # gone meanwhile
        return dict(sorted(found.items()))

    def look(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """A regular file's descriptor; OSError if it is a link or anything else."""
        descriptor = os.open(name, flags | _FILE, mode, dir_fd=self.descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(22, "not a regular file", name)
        return descriptor

    def create(self, name: str, mode: int = 0o600) -> int:
        """A new file's descriptor; FileExistsError if there is anything of that name."""
        return self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)

    def read(self, name: str, limit: int) -> bytes:
        with open(self.open(name), "rb") as file:
            return file.read(limit)

    def dress(self, descriptor: int, like: os.stat_result) -> None:
        """Give a new file the mode and, where we may, the owner of the one whose place it takes."""
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        if os.geteuid() != like.st_uid:
            try:
                os.fchown(descriptor, like.st_uid, like.st_gid)
            except OSError:
                pass  # only root may

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        os.unlink(name, dir_fd=self.descriptor)

    def put_back(self, aside: str, name: str) -> bool:
        """Give a file its name again, unless that has been taken meanwhile."""
        try:
            os.link(aside, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor, follow_symlinks=False)
        except OSError:
            return False
        self.unlink(aside)
        return True

    def is_back(self, aside: str, name: str) -> bool:
        """Whether `put_back` was killed between its two steps; then it is finished now."""
        one, other = self.look(aside), self.look(name)
        if one is None or other is None or (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino):
            return False
        self.unlink(aside)
        return True

    def lock(self) -> bool:
        """For us alone among all projects that name this folder; False if another janitor is at work in it."""
        import fcntl

        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def sync(self) -> None:
        try:
            os.fsync(self.descriptor)
        except OSError:
            pass  # some file systems have no such thing for folders

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
        """Every file below, links as what they are, each with the parts of its path."""
        count = 0
        for name, facts in self.entries().items():
            count += 1
            if count > _MOST:
                return
            if not stat.S_ISDIR(facts.st_mode):
                yield (*above, name), facts
            elif len(above) < _DEEPEST:
                try:
                    inner = self.sub(name)
                except OSError:
                    continue  # gone, replaced by a link, or not ours to read
                with inner:
                    yield from inner.walk((*above, name))


def open_memory(root: str, folder: str, elsewhere: tuple[str, ...]) -> Folder | None:
    """The configured folder; None if there is none yet, FusewireError if it is not a folder of the project."""
    allowed = "a folder of the project, or one that memory_limits.other_folders names, too"
    given = os.path.expanduser(folder)
    root = os.path.realpath(root)
    if folder in elsewhere or os.path.normpath(given) in [
        os.path.normpath(os.path.expanduser(one)) for one in elsewhere
    ]:
        return open_elsewhere(os.path.join(root, given), folder)
    inside = os.path.relpath(os.path.normpath(os.path.join(root, given)), root)
    parts = [] if inside == "." else inside.split(os.sep)
    if parts[:1] == [".."] or parts[:1] in ([".git"], [".fusewire"]) or "\0" in folder:
        raise FusewireError(f"memory_limits.folder = {folder!r} is refused; allowed: {allowed}")
    here = Folder(os.open(root, _FOLDER), folder)
    for at, part in enumerate(parts):
        try:
            inner = os.open(part, _FOLDER, dir_fd=here.descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            facts = here.look(part)
            if facts is None:
                return None
            name = os.path.join(*parts[: at + 1])
            if stat.S_ISLNK(facts.st_mode):
                raise FusewireError(
                    f"{name} is a symbolic link, which the janitor does not follow; allowed: {allowed}"
                ) from None
            raise FusewireError(f"{name} cannot be opened: {error.strerror}; allowed: {allowed}") from None
        finally:
            os.close(here.descriptor)
        here = Folder(inner, folder)
    return here


def open_elsewhere(path: str, shown: str) -> Folder | None:
    """A folder that the settings name by itself: the way to it is the user's, but it is no link itself."""
    try:
        return Folder(os.open(os.path.normpath(path), _FOLDER), shown)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = (
            "is a symbolic link, which the janitor does not follow"
            if os.path.islink(path)
            else f"cannot be opened: {error.strerror}"
        )
        raise FusewireError(f"{shown} {why}; allowed: a folder") from None
