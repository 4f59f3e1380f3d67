"""Hold empty folders that stand where a configuration folder is missing, so that they can be mounted read-only.

A placeholder has the sticky bit, which tells it apart from a folder that somebody made. All commands that need it
lock it together; the last of them removes it if it is still empty. What a killed command left behind is taken over by
the next one.
"""

import posix as os
from _stat import S_ISVTX
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

#: How often a folder is made again that somebody else has just removed.
_TRIES = 100


def hold(folders: tuple[str, ...]) -> list[tuple[str, int]]:
    """Make and lock placeholders; those that cannot be made are left out."""
    held = []
    for path in folders:
        for _ in range(_TRIES):
            try:
                file = _lock(path)
            except FileNotFoundError:
                continue
            except OSError:
                break
            held.append((path, file))
            break
    return held


def _lock(path: str) -> int:
    try:
        os.mkdir(path, 0o1755)
    except FileExistsError:
        pass
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flock(file, LOCK_SH)
        there, here = os.stat(path, follow_symlinks=False), os.fstat(file)
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            raise FileNotFoundError(path)  # its last user removed it before we had the lock
    except OSError:
        os.close(file)
        raise
    return file


def release(held: list[tuple[str, int]]) -> None:
    """Remove the placeholders that nobody else needs; one in which somebody made something becomes a folder."""
    for path, file in held:
        try:
            flock(file, LOCK_EX | LOCK_NB)
            mode = os.fstat(file).st_mode
            if mode & S_ISVTX:
                try:
                    os.rmdir(path)
                except OSError:
                    os.fchmod(file, mode & 0o777)
        except OSError:
            pass
        os.close(file)
