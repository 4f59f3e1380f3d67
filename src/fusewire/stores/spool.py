"""Spool what could not be written in time in `.fusewire/late/`, one file each, until a transaction takes it in.

A file appears whole (written beside, then renamed) and its name sorts by time. The holder of the write lock takes in
what is there and writes the names down in the same transaction; the files are removed after the commit. So a process
that is killed in between leaves files that the next one knows, and nothing is counted twice.
"""

from __future__ import annotations

import os
import time

from fusewire.util.fast_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.stores import Transaction
    from fusewire.util.fast_json import JsonObject

FOLDER = "late"

#: Files that may wait, and bytes of each.
LIMIT = 1000
_LARGEST = 64 * 1024

#: What is being written begins with this; after so many seconds its writer is no more.
_UNFINISHED = "."
_LEFT = 60

#: The name under which a transaction remembers which files it has taken in.
_TAKEN = "late"


def put(folder: str, data: JsonObject) -> None:
    """Keep it for the next transaction; OSError if that cannot be."""
    content = dumps(data).encode()
    if len(content) > _LARGEST:
        raise OSError(27, "too large to be counted later")
    place = os.path.join(folder, FOLDER)
    try:
        _put(place, content)
    except FileNotFoundError:  # again, if somebody took in all that was there and removed the folder in between
        _put(place, content)


def _put(place: str, content: bytes) -> None:
    try:
        os.mkdir(place, 0o700)
    except FileExistsError:
        pass
    directory = _open(place)
    try:
        if len(os.listdir(directory)) >= LIMIT:
            raise OSError(28, "too much waits to be counted already")
        name = f"{time.time_ns():020}-{os.getpid()}"
        unfinished = _UNFINISHED + name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(unfinished, flags, 0o600, dir_fd=directory)
        try:
            whole = os.write(file, content) == len(content)
        finally:
            os.close(file)
        if not whole:
            os.unlink(unfinished, dir_fd=directory)
            raise OSError(28, "the disk is full")
        os.rename(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        os.close(directory)


def take(folder: str, transaction: Transaction, now: float) -> tuple[list[Any], list[str]]:
    """What waits, oldest first (None for what cannot be read), and the files to remove after the commit."""
    try:
        directory = _open(os.path.join(folder, FOLDER))
    except OSError:
        return [], []
    try:
        names = sorted(os.listdir(directory))
        waiting = [name for name in names if not name.startswith(_UNFINISHED)]
        try:
            taken = set((transaction.recall(_TAKEN) or {}).get("names", ()))
        except (ValueError, TypeError):
            taken = set()
        found = [_content(name, directory) for name in waiting if name not in taken]
        if waiting:
            transaction.remember(_TAKEN, {"names": waiting}, now)
        left = [name for name in names if name.startswith(_UNFINISHED) and _is_left(name, directory)]
        return found, waiting + left
    finally:
        os.close(directory)


def remove(folder: str, names: list[str]) -> None:
    """After the commit. What is left of it is known, and removed by the next one."""
    place = os.path.join(folder, FOLDER)
    try:
        directory = _open(place)
        try:
            for name in names:
                try:
                    os.unlink(name, dir_fd=directory)
                except FileNotFoundError:
                    pass
        finally:
            os.close(directory)
        os.rmdir(place)
    except OSError:
        pass


def _open(place: str) -> int:
    return os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _content(name: str, directory: int) -> Any:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            return loads(os.read(file, _LARGEST).decode())
        finally:
            os.close(file)
    except (OSError, ValueError):
        return None


def _is_left(name: str, directory: int) -> bool:
    try:
        return time.time() - os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime > _LEFT
    except OSError:
        return False
