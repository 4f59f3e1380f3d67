"""The manifest: what the protected files of a project were when they were last right, and which versions came before.

Names are relative inside the project and absolute outside. On disk an entry is a list (see `baseline` for the file).
"""

from __future__ import annotations

import os
import stat
import time

from fusewire.core.events import Noun
from fusewire.guard import vault as limits
from fusewire.guard.baseline import folder_signature, pack, signature, unpack
from fusewire.guard.vault import TICK_NS, Vault, look
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fusewire.util.fast_json import JsonObject

#: Versions of one file, with the one that the manifest has; and of all files together.
VERSIONS = 5
HISTORY_ROWS = 10_000

#: In the name of what was moved aside, which is never protected itself.
ASIDE = ".fusewire-aside-"


class Version(Noun):
    """A content that a file had and that can be had again; `how` it came here: snapshot or replaced."""

    when: float
    digest: str
    size: int
    how: str
    mode: int

    def to_data(self) -> list[Any]:
        return [getattr(self, name) for name in self.fields]


class FileEntry:
    """What is recorded of one file: its signature, its digest (empty if it could not be read), whether its content is
    kept in the vault, and when that content was recorded first."""

    __slots__ = ("digest", "kept", "signature", "when")

    def __init__(self, signature: tuple[int, ...], digest: str, kept: bool, when: float) -> None:
        self.signature = signature
        self.digest = digest
        self.kept = kept
        self.when = float(when)

    @classmethod
    def read(cls, name: str, old: FileEntry | None, now: float, root: int, vault: Vault) -> FileEntry:
        """Read a file, and put its content into the vault."""
        seen, digest, kept = look(name, root, vault)
        same = old is not None and old.digest == digest
        return cls(seen, digest, kept, old.when if same and old else now)

    @classmethod
    def from_data(cls, data: list[Any]) -> FileEntry:
        return cls(tuple(map(int, data[:5])), str(data[5]), bool(data[6]), float(data[7]))

    def to_data(self) -> list[Any]:
        return [*self.signature, self.digest, int(self.kept), self.when]

    @property
    def mode(self) -> int:
        return self.signature[0]

    @property
    def size(self) -> int:
        return self.signature[1]

    def version(self) -> Version:
        return Version(self.when, self.digest, self.size, "snapshot", self.mode)

    def is_current(self, found: os.stat_result, vault: Vault) -> bool:
        """Whether nothing has moved, and what is to be kept of it is."""
        if signature(found) != self.signature:
            return False
        if self.kept:
            return vault.has(self.digest, self.size)
        return bool(self.digest) and self.size > limits.FILE_LIMIT

    def why_not_kept(self) -> str:
        if not self.digest:
            return "it could not be read when the snapshot was taken"
        if self.size > limits.FILE_LIMIT:
            return f"its {self.size} bytes are not kept: the limit for one file is {limits.FILE_LIMIT}"
        if not self.kept:
            return f"its {self.size} bytes are not kept: all files together may have {limits.TOTAL_LIMIT}"
        return "its kept content is missing or damaged; nothing was written"

    def compare(self, name: str, found: os.stat_result, root: int) -> str | None:
        """How a file differs whose signature moved; None if it does not: then the new signature is recorded."""
        if stat.S_IFMT(found.st_mode) != stat.S_IFMT(self.mode):
            return "type"
        if found.st_size != self.size:
            return "changed" if found.st_size else "emptied"
        other_mode = stat.S_ISREG(found.st_mode) and found.st_mode != self.mode
        if not self.digest:
            same, seen = found.st_mtime_ns == self.signature[2], None
        else:
            try:
                seen, digest, _ = look(name, root)
            except OSError:
                return "mode" if other_mode else "changed"
            same = digest == self.digest
        if not same:
            return "changed"
        if other_mode:
            return "mode"
        self.signature = seen or self.signature
        return None


class FolderEntry(Noun):
    """What is recorded of a folder: its mode and inode, when its content changed last (0 if that is not listed), and
    where it leads if it is a link."""

    mode: int
    inode: int
    modified: int
    target: str

    @classmethod
    def read(cls, name: str, found: os.stat_result, root: int, *, listed: bool) -> FolderEntry:
        mode, inode, modified = folder_signature(found, listed)
        if modified > time.time_ns() - TICK_NS:
            modified = 1  # something may be added in the same tick: it is looked through again
        return cls(mode, inode, modified, os.readlink(name, dir_fd=root) if stat.S_ISLNK(mode) else "")

    def to_data(self) -> list[Any]:
        return [getattr(self, name) for name in self.fields]


class Manifest:
    """The entries and older versions of all protected files, and what is still open."""

    __slots__ = ("asides", "files", "folders", "history", "pending", "writing")

    def __init__(
        self, files: dict[str, FileEntry] | None = None, history: dict[str, list[Version]] | None = None
    ) -> None:
        self.files = files or {}
        #: older versions of each file, the newest first
        self.history = history or {}
        self.folders: dict[str, FolderEntry] = {}
        #: what is to be looked at again, and since when
        self.pending: dict[str, float] = {}
        #: what somebody was writing when no call of an agent ran
        self.writing: list[str] = []
        #: what was moved aside: its name now, its name before, and when
        self.asides: list[tuple[str, str, float]] = []

    @classmethod
    def unpack(cls, raw: bytes) -> Manifest:
        """Read the content of the manifest's file; ValueError says what is wrong with it."""
        data = unpack(raw)
        manifest = cls(*_entries(data))
        manifest.folders = {name: FolderEntry(*known) for name, known in data["folders"].items()}
        manifest.pending, manifest.writing = data["pending"], data["writing"]
        manifest.asides = [(path, name, when) for path, name, when in data["asides"]]
        return manifest

    @classmethod
    def from_version_1(cls, raw: bytes) -> Manifest:
        """Read a manifest of version 0.1, which was JSON; ValueError if it is none."""
        data = loads(raw.decode("ascii"))
        try:
            if data["format"] != 1:
                raise ValueError("it is no manifest of format 1")
            return cls(*_entries(data))
        except (TypeError, KeyError, IndexError, AttributeError) as error:
            raise ValueError(f"it is no manifest of format 1: {error!r}") from None

    def pack(self, absent: list[str], key: str, always: bool) -> bytes:
        """The content of the manifest's file. Its index is not to be relied on while something is open, or `always`:
        if new files could be anywhere."""
        files = {name: entry.to_data() for name, entry in self.files.items()}
        folders = {name: entry.to_data() for name, entry in self.folders.items()}
        index = {
            "key": key,
            "busy": bool(always or self.pending or self.writing or self.asides),
            "files": {name: tuple(data[:5]) for name, data in files.items()},
            "folders": {name: tuple(data[:3]) for name, data in folders.items()},
            "absent": absent,
        }
        rest = {
            "files": files,
            "folders": folders,
            "history": {name: [version.to_data() for version in rows] for name, rows in self.history.items()},
            "pending": self.pending,
            "writing": self.writing,
            "asides": [list(aside) for aside in self.asides],
        }
        return pack(index, rest)

    def remember(self, name: str, version: Version) -> None:
        """Put a version in front of the older ones; the same content is listed once."""
        older = (other for other in self.history.get(name, ()) if other.digest != version.digest)
        self.history[name] = [version, *older][: VERSIONS - 1]

    def set(self, name: str, entry: FileEntry | None) -> None:
        """Record what a file is now, or (None) that it is gone; what it was before moves to the history."""
        old = self.files.get(name)
        if entry is None:
            self.files.pop(name, None)
        else:
            self.files[name] = entry
        if old is not None and old.kept and (entry is None or entry.digest != old.digest):
            self.remember(name, old.version())
        if entry is not None and entry.kept and name in self.history:
            self.history[name] = [other for other in self.history[name] if other.digest != entry.digest]

    def trim(self, vault: Vault) -> None:
        """Drop the oldest versions for which there is no room beside what the writer has pinned; pin the others."""
        rows = [(version, name) for name, versions in self.history.items() for version in versions]
        rows.sort(key=lambda row: row[0].when, reverse=True)
        full = False
        for number, (version, name) in enumerate(rows):
            full = full or not vault.pin(version.digest, version.size)
            if number >= HISTORY_ROWS or (full and version.digest not in vault.pinned):
                self.history[name].remove(version)
        self.history = {name: left for name, left in self.history.items() if left}


def _entries(data: JsonObject) -> tuple[dict[str, FileEntry], dict[str, list[Version]]]:
    files = {name: FileEntry.from_data(entry) for name, entry in data["files"].items()}
    return files, {name: [Version(*row) for row in rows] for name, rows in data["history"].items()}


def folders_of(names: Iterable[str], listed: dict[str, FolderEntry], root: int) -> dict[str, FolderEntry]:
    """The folders whose content is listed, and those above all of these files."""
    folders = dict(listed)
    for name in (*names, *listed):
        folder = os.path.dirname(name)
        while folder not in ("", "/") and folder not in folders:
            found = lstat(folder, root)
            if found is None:
                break
            folders[folder] = FolderEntry.read(folder, found, root, listed=False)
            folder = os.path.dirname(folder)
    return folders


def is_below(name: str, folders: Iterable[str]) -> bool:
    """Whether a file is one of these, or lies in one of them; "." is the project."""
    return any(name == at or name.startswith(f"{at}/") or (at == "." and name[0] != "/") for at in folders)


def lstat(name: str, folder: int) -> os.stat_result | None:
    """The thing of that name itself; None if it is not there or cannot be reached."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def recordable(found: os.stat_result | None) -> bool:
    return found is not None and (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode))


def error_text(error: OSError) -> str:
    return (error.strerror or str(error)).lower() if error.errno else str(error)
