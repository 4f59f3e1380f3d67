"""The project's state folder: made once, ignored by git from inside, written by rename, locked by `flock`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def ensure_state_folder(folder: str) -> None:
    """Make the folder; its own `.gitignore` keeps it out of every commit without touching the user's."""
    if os.path.isdir(folder):
        return
    os.makedirs(folder, exist_ok=True)
    replace_file(os.path.join(folder, ".gitignore"), b"*\n")


def replace_file(path: str, content: bytes, temporary: str | None = None) -> None:
    """Write beside and rename: a reader sees the old content or the new one, never a part."""
    temporary = temporary or f"{path}.tmp-{os.getpid()}"
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


class FileLock:
    """A lock between processes; the system lets go of it when its holder dies.

    `shared` holders exclude only exclusive ones. Without `wait` a lock that is taken raises BlockingIOError.
    """

    def __init__(self, path: str, *, shared: bool = False, wait: bool = True) -> None:
        self.path = path
        self.shared = shared
        self.wait = wait

    def __enter__(self) -> FileLock:
        import fcntl

        self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        mode = fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self.descriptor, mode if self.wait else mode | fcntl.LOCK_NB)
        except BaseException:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)
