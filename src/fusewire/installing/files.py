"""Somebody's settings on disk: read whole, changed under a lock, replaced at once, with a copy of what was there.

A file that is a link is changed where it points to; its mode stays. The copy lies beside it until Fusewire is
taken out: it is the file without Fusewire, and so it also says which parts of it were there before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from fusewire.errors import FusewireError
from fusewire.stores.folder import FileLock, read_regular, replace_file

#: Settings are small; what is larger is none.
_LARGEST = 4 << 20

BACKUP = ".fusewire-backup"

#: One name for all: whoever was killed while writing has left this one, and the next one replaces it.
_NEW = ".fusewire-new"

#: In a folder that was there before, with nothing in it.
_KEEP = ".fusewire-keep"

_MARK = "\ufeff"


class SettingsFile:
    """One file; `made` is how many folders above it belong to the agent, and go again when nothing is left in them."""

    def __init__(self, path: str, made: int = 1) -> None:
        self.path = path
        self.target = os.path.realpath(path)
        self.folders = [os.path.dirname(self.target)]
        for _ in range(made - 1):
            self.folders.append(os.path.dirname(self.folders[-1]))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process changes it at a time. The folder itself is locked, so that no lock file is left."""
        self.there = next((folder for folder in self.folders if os.path.isdir(folder)), "")
        self.was_empty = _is_empty(self.there)
        with _told(self.folders[0]):
            lock = self._lock()
        try:
            yield
        finally:
            if not os.path.lexists(self.target):  # nothing has come of it
                _remove_empty(self.folders[: self.folders.index(self.there) if self.there else None])
            lock.__exit__(None, None, None)

    def _lock(self) -> FileLock:
        folder = self.folders[0]
        while True:
            os.makedirs(folder, exist_ok=True)
            try:
                lock = FileLock(folder, wait=30).__enter__()
            except FileNotFoundError:  # another process has just taken the folder away
                continue
            try:
                if os.path.samestat(os.stat(folder), os.fstat(lock.descriptor)):
                    return lock
            except FileNotFoundError:
                pass
            lock.__exit__(None, None, None)

    def read(self) -> str | None:
        """The text, with its byte order mark if it has one; None if there is no file."""
        return self._text(self.target, self.path)

    def before(self) -> str | None:
        """The text that was there before Fusewire; None if there was no file, or nobody knows any more."""
        try:
            return self._text(self.target + BACKUP, self.path + BACKUP)
        except FusewireError:
            return None

    @staticmethod
    def _text(target: str, shown: str) -> str | None:
        with _told(shown):
            try:
                if os.path.isdir(target):
                    raise FusewireError(f"{shown}: a folder is in the place of the settings file")
                data = read_regular(target, _LARGEST + 1)
            except FileNotFoundError:
                return None
        if len(data) > _LARGEST:
            raise FusewireError(f"{shown}: larger than {_LARGEST >> 20} MB, and so no settings file")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise FusewireError(f"{shown}: byte {error.start}: not UTF-8") from None

    def write(self, text: str, before: str | None) -> None:
        """Replace it, with its copy first; `before` is the text without Fusewire, None if there was no file."""
        with _told(self.path):
            mode = _mode(self.target)
            if before is not None:
                _replace(self.target + BACKUP, before, mode)
            elif self.was_empty:
                _replace(os.path.join(self.there, _KEEP), "", None)
            _replace(self.target, text, mode)

    def restore(self, text: str | None) -> None:
        """Without Fusewire: the text that is left, or no file; the copy goes, and folders that were made for us."""
        with _told(self.path):
            if text is not None:
                _replace(self.target, text, _mode(self.target))
            else:
                os.unlink(self.target)
            _remove(self.target + BACKUP)
            _remove(self.target + BACKUP + _NEW)
        if text is None:
            self.clear()

    def clear(self) -> None:
        """Take away the agent's own folders if there is nothing in them, but none that was there before us."""
        keeps = [_remove(os.path.join(folder, _KEEP)) for folder in self.folders]
        _remove_empty(self.folders[: keeps.index(True) if True in keeps else None])


def _remove_empty(folders: list[str]) -> None:
    """Folders from the inside out, as long as there is nothing in them."""
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            return


def split_mark(text: str) -> tuple[str, str]:
    """The byte order mark, and the text behind it."""
    return (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What the system refuses, as one line that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FusewireError(f"{path}: {error.strerror or error}") from error


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _mode(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _replace(path: str, text: str, mode: int | None) -> None:
    """At once, and never readable for more people than before, not even for a moment."""
    temporary = path + _NEW
    _remove(temporary)
    if mode is not None:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
    replace_file(path, text.encode(), temporary)


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
