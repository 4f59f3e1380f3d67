"""The project's state folder: made once, ignored by git from inside, written by rename, locked by `flock`."""

from __future__ import annotations

import os
import time
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def ensure_state_folder(folder: str) -> None:
    """Make the folder; its own `.gitignore` keeps it out of every commit without touching the user's."""
    os.makedirs(folder, exist_ok=True)
    ignore = os.path.join(folder, ".gitignore")
    if not os.path.exists(ignore):
        replace_file(ignore, b"*\n")


def replace_file(path: str, content: bytes, temporary: str | None = None) -> None:
    """Write beside and rename: a reader sees the old content or the new one, never a part."""
    temporary = temporary or f"{path}.tmp-{os.getpid()}-{get_ident()}"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


def read_regular(path: str, limit: int = -1) -> bytes:
    """A file's content; OSError if it is none: a pipe of that name would never end."""
    import stat

    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(22, "not a regular file", path)
        return file.read(limit)


def free_name(prefix: str) -> str:
    """The first of prefix-1, prefix-2, ... that no file has: what is set aside replaces nothing."""
    number = 1
    while os.path.exists(f"{prefix}-{number}"):
        number += 1
    return f"{prefix}-{number}"


def uri_path(path: str) -> str:
    """A path inside a SQLite URI."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


class FileLock:
    """A lock between processes; the system lets go of it when its holder dies.

    `shared` holders exclude only exclusive ones. After `wait` seconds BlockingIOError is raised: a holder that was
    stopped must not hang every hook of the project. Whom nobody waits for may wait without an end (None). Whoever can
    read a file can hold its lock, so that nobody else may read these.
    """

    def __init__(self, path: str, *, shared: bool = False, wait: float | None = 5.0) -> None:
        self.path = path
        self.shared = shared
        self.wait = wait

    def __enter__(self) -> FileLock:
        import fcntl

        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # where we may only read, a lock that is there can still be taken; a folder is one, too
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        else:
            _narrow(self.descriptor)
        mode = fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX
        if self.wait is None:
            fcntl.flock(self.descriptor, mode)
            return self
        mode |= fcntl.LOCK_NB
        deadline = time.monotonic() + self.wait
        while True:
            try:
                fcntl.flock(self.descriptor, mode)
                return self
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(self.descriptor)
                    raise BlockingIOError(11, "another process holds the lock", self.path) from None
                time.sleep(0.002)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)


def _narrow(descriptor: int) -> None:
    """Older versions have made locks that everybody could read."""
    facts = os.fstat(descriptor)
    if facts.st_mode & 0o077 and facts.st_uid == os.geteuid():
        os.fchmod(descriptor, 0o600)
