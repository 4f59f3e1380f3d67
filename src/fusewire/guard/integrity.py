"""Snapshots of protected files: what they were, whether they still are, and their way back.

The manifest says of every protected file what it was when it was last right, and which content that is; the contents,
also those of the last few versions, are in the vault beside it. Looking costs one `lstat` a file: only what moved is
read. A writer holds the lock; a manifest is replaced as a whole, so that a killed writer leaves the old one.
"""

from __future__ import annotations

import os

from fusewire.core.events import Noun
from fusewire.guard.baseline import NAME
from fusewire.guard.calls import folder_of
from fusewire.guard.manifest import ASIDE, FileEntry, FolderEntry, Manifest, Version, error_text, is_below, lstat
from fusewire.guard.manifest_transaction import ManifestTransaction, RestoredFile
from fusewire.guard.vault import Vault
from fusewire.util.files import FileLock, NotOurs, claim, free_name, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Integrity", "IntegrityFinding", "RestoredFile"]

#: Seconds: the first snapshot of a large project takes some, and a second process waits for it. A hook has ten.
_WAIT = 6.0


class IntegrityFinding(Noun):
    """A protected file that is not what it was: missing, emptied, changed, mode, type, or new."""

    kind: str
    path: str


class SnapshotReport(Noun):
    """What was recorded: how much, what is not as it was recorded before, and (path, reason) of what was not kept."""

    files: int
    bytes: int
    changed: list[str]
    skipped: list[tuple[str, str]]


class Integrity:
    """Snapshots of one project's protected files.

    `entries` gives the absolute paths of those that exist now, and of the folders that they lie in, with a slash
    behind; `absent` those where nothing is; `key` names the rules by which both are listed.
    """

    def __init__(
        self,
        root: str,
        entries: Callable[[], Iterable[str]],
        absent: Callable[[], Iterable[str]] = tuple,
        key: str = "",
        *,
        anywhere: bool = False,
    ) -> None:
        self.root = os.path.abspath(root)
        self.entries = entries
        self.absent = absent
        self.key = key
        #: Whether new files may appear in folders that have no protected ones yet.
        self.anywhere = anywhere
        #: What was wrong with the manifest when it was last read.
        self.problem: str | None = None
        self._prefix = self.root.rstrip("/") + "/"

    @property
    def folder(self) -> str:
        return folder_of(self.root)

    def exists(self) -> bool:
        return self.load() is not None

    def vault(self) -> Vault:
        return Vault(os.path.join(self.folder, "blobs"))

    def blob(self, digest: str) -> str:
        """Where a version's content is; of a link it is the target."""
        return self.vault().path(digest)

    def versions(self, path: str) -> list[Version]:
        """The contents of a file that can be had again, newest first."""
        manifest = self.load() or Manifest()
        name, vault = self.name(path), self.vault()
        versions = list(manifest.history.get(name, ()))
        if name in manifest.files:
            versions.append(manifest.files[name].version())
        found = [version for version in versions if vault.has(version.digest, version.size)]
        return sorted(found, key=lambda version: version.when, reverse=True)

    def verify(self) -> list[IntegrityFinding]:
        """What is not as it was recorded; nothing if nothing was recorded."""
        manifest = self.load()
        if manifest is None:
            return []
        work = ManifestTransaction(self, manifest)
        try:
            return [IntegrityFinding(kind, name) for name, kind in sorted(work.compare().items())]
        finally:
            work.way.close()

    def snapshot(self, now: float, *, only: Iterable[str] | None = None) -> SnapshotReport:
        """Record all protected files, or only the named ones and what was recorded below them."""
        with self.transact() as work:
            before = {name: _key(entry) for name, entry in work.files.items()}
            names = None if only is None else work.named(only)
            work.accept(now, names)
            files = work.files
            after = {name: _key(entry) for name, entry in files.items()}
            changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
            seen = [name for name in (files if names is None else names) if name in files]
            unkept = {name: files[name].why_not_kept() for name in seen if not files[name].kept}
            size = sum(entry.size for entry in files.values())
            return SnapshotReport(len(files), size, sorted(changed), sorted({**unkept, **work.skipped}.items()))

    def restore(self, now: float, paths: Iterable[str] | None = None) -> list[RestoredFile]:
        """Bring back what is missing, emptied, changed or of another mode or type; what is replaced is kept first.

        A file that is named and is as it was recorded gets the version before that.
        """
        wanted = None if paths is None else [self.name(path) for path in paths]
        if not self.exists():
            return [RestoredFile(name, None, "no snapshot was taken") for name in wanted or ()]
        with self.transact() as work:
            kinds = {name: kind for name, kind in work.compare().items() if kind != "new"}
            results = [RestoredFile(name, None, self._unknown(work, name)) for name in wanted or ()]
            results = [result for result in results if result.problem]
            for name in wanted or ():
                if name in work.files and name not in kinds and work.step_back(name):
                    kinds[name] = "changed"
            todo = {name: kind for name, kind in kinds.items() if wanted is None or is_below(name, wanted)}
            return sorted([*results, *work.bring_back(todo, now)], key=lambda result: result.path)

    def _unknown(self, work: ManifestTransaction, name: str) -> str | None:
        """What is said about a path that the snapshot does not know; None if it knows it."""
        if any(is_below(known, [name]) for known in (*work.files, *work.manifest.folders)):
            return None
        versions = self.versions(name)
        if not versions:
            return "the snapshot has no such file"
        newest = self.name(self.blob(versions[0].digest))
        return f"the snapshot no longer has this file; {len(versions)} versions of it are kept, the newest is {newest}"

    # -- the manifest -------------------------------------------------------------------------------------

    def transact(self, patience: float | None = None) -> ManifestTransaction:
        """The manifest for a writer, with the lock; use it as a context. What is not recorded within so many seconds
        is recorded by the next one."""
        return ManifestTransaction(self, patience=patience)

    def load(self, *, locked: bool = False) -> Manifest | None:
        """The manifest; None if there is none, or none that can be read: then it is set aside.

        A writer gets an error if it would write over what it may not read.
        """
        path = os.path.join(self.folder, NAME)
        try:
            return Manifest.unpack(read_file(path))
        except (FileNotFoundError, NotADirectoryError):
            return self._version_1()
        except (ValueError, NotOurs) as error:
            return self._set_aside(path, str(error), locked)
        except OSError as error:
            if locked:
                raise
            self.problem = f"the guard's manifest cannot be read ({error_text(error)})"
            return None

    def _set_aside(self, path: str, reason: str, locked: bool) -> Manifest | None:
        if locked:
            aside = free_name(f"{path}.corrupt")
            os.rename(path, aside)
            self.problem = f"the guard's manifest was damaged ({reason}); it is kept as {os.path.basename(aside)}"
            return None
        try:
            with self.lock():
                return self.load(locked=True)  # by now somebody may have written a new one
        except OSError as error:
            self.problem = f"the guard's manifest is damaged ({reason}) and cannot be set aside ({error_text(error)})"
            return None

    def lock(self) -> FileLock:
        folder = folder_of(self.root, make=True)
        return FileLock(os.path.join(folder, "lock"), wait=_WAIT)

    def _version_1(self) -> Manifest | None:
        """What version 0.1 has left in the project; whoever writes next takes it over."""
        try:
            return Manifest.from_version_1(read_file(os.path.join(self.version_1_folder(), "manifest.json")))
        except (OSError, ValueError):
            return None

    def version_1_folder(self) -> str:
        """Where version 0.1 kept its copies; nowhere if that is no folder of ours."""
        claim(os.path.join(self.root, ".fusewire"))  # one that came with a clone is set aside
        folder = os.path.join(self.root, ".fusewire", "guard")
        is_ours = os.path.realpath(folder) == os.path.join(os.path.realpath(self.root), ".fusewire", "guard")
        return folder if is_ours and not os.path.islink(os.path.join(folder, "blobs")) else os.devnull

    # -- names --------------------------------------------------------------------------------------------

    def name(self, path: str) -> str:
        """A path as the manifest has it: relative inside the project, absolute outside."""
        path = os.path.normpath(os.path.join(self.root, path))
        return "." if path == self.root else path.removeprefix(self._prefix)

    def list_all(self, root: int) -> tuple[set[str], dict[str, FolderEntry]]:
        """The files, and the folders that they lie in; a folder is looked at before its content is listed."""
        own = self.folder + "/"  # a snapshot of itself would never be done
        files: set[str] = set()
        folders: dict[str, FolderEntry] = {}
        for path in self.entries():
            name = path.removeprefix(self._prefix)
            if path[-1] != "/":
                if ASIDE not in name and not path.startswith(own):
                    files.add(name)
            elif name and (found := lstat(name := name.rstrip("/"), root)):
                folders[name] = FolderEntry.read(name, found, root, listed=True)
        return files, folders


def _key(entry: FileEntry) -> tuple[str, int]:
    """What differs if the content or the mode is another one."""
    return entry.digest, entry.mode
