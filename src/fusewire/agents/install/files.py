"""Change a person's settings on disk: read whole, changed under a lock, replaced atomically, with a backup.

A file that is a link is changed where it points to; its mode and its owner stay, also if root changes it. The copy lies
beside it until Fusewire is taken out: it is the file without Fusewire, and so it also says which parts of it were there
before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fusewire.agents.install.jsonc import JsoncError, JsonNode, position, read
from fusewire.util.errors import FusewireError
from fusewire.util.fast_json import JsonObject
from fusewire.util.files import FileLock, FolderLock, read_regular

#: Settings are small; what is larger is none.
_LARGEST = 4 << 20

BACKUP = ".fusewire-backup"

#: One name for all writers: a file that a killed one has left is replaced by the next.
_NEW = ".fusewire-new"

#: In a folder that was there before, with nothing in it.
_KEEP = ".fusewire-keep"

_MARK = "\ufeff"

#: How often a folder may vanish while it is made: others may take theirs out meanwhile.
_TRIES = 1000


def parse_settings(text: str, path: str) -> JsonNode:
    """Parse the text of a settings file; the error names the file and the place."""
    try:
        node = read(text)
    except JsoncError as error:
        raise FusewireError(f"{path}: {error}; mend it, or move it away") from None
    if not isinstance(node.value, dict):
        raise FusewireError(f"{path}: {position(text, node.start)}: settings must be an object, {{...}}")
    return node


def parse_text(text: str | None, path: str) -> JsonNode | None:
    """Parse what a settings file holds, with or without a byte order mark; None if it holds nothing."""
    body = split_mark(text or "")[1]
    return parse_settings(body, path) if body.strip() else None


def settings_of(path: str) -> Any:
    """Read a settings file as a value; None if there is none; FusewireError if it cannot be read."""
    root = parse_text(SettingsFile(path).read(), path)
    return None if root is None else root.value


def settings_or_none(path: str) -> Any:
    """Read a settings file as a value; None if there is none, or it cannot be read."""
    try:
        return settings_of(path)
    except (FusewireError, OSError):
        return None


def table_in(settings: Any, key: str) -> JsonObject:
    """An object in settings; an empty one if there is none."""
    inner = settings.get(key) if isinstance(settings, dict) else None
    return inner if isinstance(inner, dict) else {}


class SettingsFile:
    """One file; `made` is how many folders above it belong to the agent, and go again when nothing is left in them."""

    def __init__(self, path: str, made: int = 1) -> None:
        self.path = path
        self.target = os.path.realpath(path)
        self.backup = self.target + BACKUP
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
        for _ in range(_TRIES):
            try:
                _make(folder)
                lock = FolderLock(folder, wait=30).__enter__()
            except FileNotFoundError:  # another process has just taken the folder away
                continue
            try:
                if os.path.samestat(os.stat(folder), os.fstat(lock.descriptor)):
                    return lock
            except FileNotFoundError:
                pass
            lock.__exit__(None, None, None)
        raise FusewireError(f"{folder}: this folder cannot be made")

    def read(self) -> str | None:
        """The text, with its byte order mark if it has one; None if there is no file."""
        return self._text(self.target, self.path)

    def before(self) -> str | None:
        """The text that was there before Fusewire; None if there was no file, or the backup is gone."""
        try:
            return self._text(self.backup, self.backup)
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
            raise FusewireError(f"{shown}: byte {error.start}: not UTF-8; save it as UTF-8, or move it away") from None

    def write(self, text: str, before: str | None, *, private: bool = False) -> None:
        """Replace it, with its copy first; `before` is the text without Fusewire, None if there was no file. A new one
        that is `private` only its owner can read."""
        with _told(self.path):
            facts = _facts(self.target)
            if before is not None:
                _replace(self.backup, before, facts)
            elif self.was_empty:
                _replace(os.path.join(self.there, _KEEP), "", None)
            _replace(self.target, text, facts, 0o600 if private else 0o666)

    def put_beside(self, path: str, text: str) -> None:
        """Write a program of ours into the same folder, before the settings name it."""
        with _told(path):
            _replace(path, text, None, 0o777)

    def restore(self, text: str | None, also: Iterable[str] = ()) -> None:
        """Without Fusewire: the text that is left, or no file; the copy and what is `also` ours go, and folders that
        were made for us."""
        with _told(self.path):
            if text is not None:
                _replace(self.target, text, _facts(self.target))
            else:
                os.unlink(self.target)
            _remove(self.backup)
            _remove(self.backup + _NEW)
            for path in also:
                _remove(path)
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


def _facts(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _make(folder: str) -> None:
    """Make a folder and those above it, each with the owner of the one that it lies in."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make(above)
    try:
        os.mkdir(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _give_to_owner_of(above, descriptor)
    finally:
        os.close(descriptor)


def _replace(path: str, text: str, facts: os.stat_result | None, mode: int = 0o666) -> None:
    """At once, and never readable for more people than before, not even for a moment; `facts` of the file as it was,
    `mode` of one that is new."""
    temporary = path + _NEW
    _remove(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if facts else mode)
    try:
        if facts is None:
            _give_to_owner_of(os.path.dirname(path), descriptor)
        else:
            with suppress(FileNotFoundError):  # one that may not be written is left
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            _give(descriptor, facts, path)
            os.fchmod(descriptor, stat.S_IMODE(facts.st_mode))
        with open(descriptor, "wb", closefd=False) as file:
            file.write(text.encode())
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    finally:
        os.close(descriptor)


def _give_to_owner_of(folder: str, descriptor: int) -> None:
    """What root makes in somebody's home is theirs: else their agent could not write its own settings any more."""
    if os.geteuid() == 0:
        with suppress(FusewireError):
            _give(descriptor, os.stat(folder), folder)


def _give(descriptor: int, facts: os.stat_result, path: str) -> None:
    """A new file to the owner and the group of another."""
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) == (facts.st_uid, facts.st_gid):
        return
    try:
        os.fchown(descriptor, facts.st_uid, facts.st_gid)
    except OSError:
        whose = f"user {facts.st_uid}, group {facts.st_gid}"
        raise FusewireError(f"{path} is of {whose}, and would not be any more: run this as its owner") from None


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
