"""Compare the manifest with the files, update it, and restore files from it, in one locked transaction."""

from __future__ import annotations

import os
import stat
import time

from fusewire.core.events import Noun
from fusewire.guard import vault as limits
from fusewire.guard.baseline import NAME, signature
from fusewire.guard.calls import leave_marker
from fusewire.guard.manifest import FileEntry, Manifest, Version, error_text, folders_of, is_below, lstat, recordable
from fusewire.guard.restoring import FileBusy, Restoration, has_writer
from fusewire.guard.vault import Vault, Way, look, unlink
from fusewire.util.files import read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from fusewire.guard.integrity import Integrity
    from fusewire.guard.manifest import FolderEntry

#: Seconds for which what was moved aside stays: a writer may have found it under its old name just before.
_LATE = 60.0


class RestoredFile(Noun):
    """A file that was brought back; where what it replaced is now; or the problem because of which it was not."""

    path: str
    kept: str | None = None
    problem: str | None = None


class ManifestTransaction:
    """As a context it holds the lock and is saved at its end; with a manifest that was given, it only compares."""

    def __init__(
        self, integrity: Integrity, manifest: Manifest | None = None, *, patience: float | None = None
    ) -> None:
        self.integrity = integrity
        self.manifest = manifest or Manifest()
        self.skipped: dict[str, str] = {}
        #: The folders as they are now, once they were listed, and what was found and is neither right nor restored.
        self.listed: dict[str, FolderEntry] | None = None
        self.open: dict[str, str] = {}
        #: What has no entry yet, and when (on the monotonic clock) to leave the rest to the next process.
        self.unrecorded: set[str] = set()
        self._until = time.monotonic() + patience if patience is not None else None
        if manifest is not None:
            self._open()

    def _open(self) -> None:
        self.files = self.manifest.files
        self.vault = self.integrity.vault()
        self.way = Way(self.integrity.root, self.manifest.folders)

    def __enter__(self) -> ManifestTransaction:
        self._lock = self.integrity.lock()
        self._lock.__enter__()
        try:
            os.makedirs(os.path.join(self.integrity.folder, "blobs"), 0o700, exist_ok=True)
            self.manifest = self.integrity.load(locked=True) or Manifest()
            self._open()
            self._pin(self.files)
            self._take_over_version_1()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._collect_asides()
                self.save(sweep=True)
        finally:
            self.way.close()
            self._lock.__exit__(kind, error, trace)

    def save(self, *, sweep: bool = False) -> None:
        """Write the manifest; the vault has what it needs pinned. Only then may go what it does not need."""
        self.manifest.trim(self.vault)
        folder = self.integrity.folder
        if self.listed is not None:
            now = folders_of(self.files, self.listed, self.way.root)
            # The folders of what is to be restored stay as they were recorded.
            above = {name: known for name, known in self.manifest.folders.items() if self._is_above_open(name)}
            self.manifest.folders = {**now, **above}
        absent = [path for path in self.integrity.absent() if not os.path.lexists(path)]
        always = self.integrity.anywhere or self.listed is None or bool(self.unrecorded)
        content = self.manifest.pack(absent, self.integrity.key, always)
        path = os.path.join(folder, NAME)
        if os.path.lexists(path) and read_file(path) == content:
            return
        replace_file(path, content)
        leave_marker(self.integrity.root, folder)
        if sweep:
            names = os.listdir(folder)
            for name in names:
                if ".tmp-" in name:  # of a writer that was killed; we hold the lock
                    unlink(os.path.join(folder, name))
            # What a damaged manifest spoke of may be all that is left of a file: it goes only when the room is needed.
            damaged = any(name.startswith(f"{NAME}.corrupt-") for name in names)
            self.vault.sweep(self.vault.pinned, limits.TOTAL_LIMIT - self.vault.used if damaged else 0)

    def _is_above_open(self, folder: str) -> bool:
        return any(name.startswith(f"{folder}/") for name in self.open)

    # -- comparing ----------------------------------------------------------------------------------------

    def compare(self) -> dict[str, str]:
        """What is not as it was recorded, with the kind of each; the names of folders end with a slash."""
        kinds: dict[str, str] = {}
        for name, entry in self.files.items():
            found = lstat(name, self.way.root)
            if found is None:
                kinds[name] = "missing"
            elif signature(found) != entry.signature and (kind := entry.compare(name, found, self.way.root)):
                kinds[name] = kind
        if elsewhere := tuple(f"{folder}/" for folder in self.way.leads_elsewhere()):
            kinds |= {name: "type" for name in self.files if name.startswith(elsewhere)}
        names, self.listed = self.integrity.list_all(self.way.root)
        self.unrecorded = {name for name in names - self.files.keys() if recordable(lstat(name, self.way.root))}
        kinds |= dict.fromkeys(self.unrecorded, "new")
        gone = [name for name, kind in kinds.items() if kind == "missing"]
        for name, known in sorted(self.manifest.folders.items(), reverse=True):
            if not known.modified:
                continue  # its content is not listed
            found = lstat(name, self.way.root)
            if found is not None and stat.S_ISDIR(found.st_mode) and found.st_mode != known.mode:
                kinds[f"{name}/"] = "mode"
            elif found is None and not any(one.startswith(f"{name}/") for one in gone):
                kinds[f"{name}/"] = "missing"
                gone.append(f"{name}/")
        self.open = {name: kind for name, kind in kinds.items() if kind != "new"}
        return kinds

    # -- recording ----------------------------------------------------------------------------------------

    def named(self, paths: Iterable[str]) -> set[str]:
        wanted = [self.integrity.name(path) for path in paths]
        return {*wanted, *(name for name in self.files if is_below(name, wanted))}

    def accept(self, now: float, names: Iterable[str] | None = None, *, theirs: bool = False) -> None:
        """Take what is there for what is right: of these names, or of all.

        What is `theirs` was changed while no call of an agent ran. Of a file that is being written at that moment the
        earlier content stays on record until its writer is done.
        """
        if names is None:
            listed, self.listed = self.integrity.list_all(self.way.root)
            names = listed | self.files.keys()
        names = {*names}
        self.manifest.writing = [name for name in self.manifest.writing if name not in names]
        self._release(names)
        for name in sorted(names, key=lambda name: (name.count("/"), name)):
            self.manifest.pending.pop(name, None)
            self.open.pop(name, None)
            self.unrecorded.discard(name)
            if name[-1] != "/":
                self._accept(name, now, theirs)
        self._pin(names & self.files.keys())

    def _pin(self, names: Iterable[str]) -> None:
        for entry in map(self.files.__getitem__, names):
            if entry.kept:
                self.vault.pin(entry.digest, entry.size)

    def _release(self, names: set[str]) -> None:
        """Give back the room of the contents that these names have on record and that no other file has."""
        others = {entry.digest for name, entry in self.files.items() if name not in names}
        for name in names & self.files.keys():
            entry, found = self.files[name], lstat(name, self.way.root)
            if entry.digest not in others and not (found and signature(found) == entry.signature):
                self.vault.unpin(entry.digest)

    def _accept(self, name: str, now: float, theirs: bool) -> None:
        found, old = lstat(name, self.way.root), self.files.get(name)
        if found is None or not recordable(found):
            self.manifest.set(name, None)
            return
        if old is not None and old.is_current(found, self.vault):
            return
        if self._is_late(old, found):
            self.unrecorded.add(name) if old is None else self.manifest.writing.append(name)
            return
        if theirs and old is not None and has_writer(name, self.way.root):
            self.manifest.writing.append(name)
            return
        try:
            entry = FileEntry.read(name, old, now, self.way.root, self.vault)
        except OSError as error:
            self.skipped[name] = error_text(error)
            entry = old or FileEntry(signature(found), "", False, now)
        self.manifest.set(name, entry)

    def _is_late(self, old: FileEntry | None, found: os.stat_result) -> bool:
        """Whether this new content has to wait; everything else is recorded in no time."""
        if self._until is None or time.monotonic() < self._until:
            return False
        if old is None:
            return True
        same_type = stat.S_IFMT(old.mode) == stat.S_IFMT(found.st_mode)
        return same_type and (found.st_size, found.st_mtime_ns) != old.signature[1:3]

    # -- restoring ----------------------------------------------------------------------------------------

    def step_back(self, name: str) -> bool:
        """Take the version before the present one for what is right; False if there is none."""
        for version in self.manifest.history.get(name, ()):
            if self.vault.intact(version.digest, version.size):
                unlike_any = (version.mode, version.size, 0, 0, 0)
                self.manifest.set(name, FileEntry(unlike_any, version.digest, True, version.when))
                return True
        return False

    def bring_back(self, kinds: dict[str, str], now: float) -> list[RestoredFile]:
        """Restore these, and take away what is new; what somebody is writing becomes pending."""
        plans = [
            Restoration(name, kind, self.files.get(name)) for name, kind in sorted(kinds.items()) if name[-1] != "/"
        ]
        results = [self._restore_folder(name, kind) for name, kind in sorted(kinds.items()) if name[-1] == "/"]
        ready = []
        for plan in plans:
            try:
                plan.keep_what_is_there(now, self.way, self.vault)
                if plan.version and not (plan.entry and plan.version.digest == plan.entry.digest):
                    self.manifest.remember(plan.name, plan.version)
                ready.append(plan)
            except OSError as error:
                results.append(self._failed(plan, error))
        self.listed = None  # folders that are made again get their modes last
        self.save()  # before the first file is replaced: a process that is killed from here on has lost nothing
        for plan in ready:
            try:
                plan.put_back(self.way, self.vault)
                results.append(self._restored(plan, now))
            except OSError as error:
                results.append(self._failed(plan, error))
            finally:
                plan.close()
        self.way.finish()
        self.listed = self.integrity.list_all(self.way.root)[1]
        return sorted(results, key=lambda result: result.path)

    def _restore_folder(self, name: str, kind: str) -> RestoredFile:
        try:
            folder = self.way.parent(name, make=True)
            if folder is not None:
                os.close(folder)
            if kind == "mode":
                self.way.made.append(name.rstrip("/"))  # its mode comes last: it may forbid to write
            self.open.pop(name, None)
            return RestoredFile(name)
        except OSError as error:
            return RestoredFile(name, None, error_text(error))

    def _restored(self, plan: Restoration, now: float) -> RestoredFile:
        self.manifest.pending.pop(plan.name, None)
        self.open.pop(plan.name, None)
        self.unrecorded.discard(plan.name)
        if plan.aside and plan.version:
            self.manifest.asides.append((plan.aside, plan.name, float(now)))
            return RestoredFile(plan.name, self.integrity.name(self.vault.path(plan.version.digest)))
        return RestoredFile(plan.name, plan.aside or None)

    def _failed(self, plan: Restoration, error: OSError) -> RestoredFile:
        plan.close()
        if isinstance(error, FileBusy):
            self.manifest.pending.setdefault(plan.name, time.time())
        return RestoredFile(plan.name, None, error_text(error))

    def _collect_asides(self) -> None:
        """Remove what was moved aside once its content is in the vault and no late writer has it open."""
        left = []
        for aside in self.manifest.asides:
            path, name, when = aside
            found = lstat(path, self.way.root)
            if found is None:
                continue
            if 0 <= time.time() - when < _LATE or has_writer(path, self.way.root):
                left.append(aside)
                continue
            try:
                seen, digest, kept = look(path, self.way.root, self.vault)
            except OSError:
                continue
            if kept:
                if name not in self.files or self.files[name].digest != digest:
                    self.manifest.remember(name, Version(when, digest, seen[1], "replaced", seen[0]))
                unlink(path, self.way.root)
        self.manifest.asides = left

    # -- version 0.1 --------------------------------------------------------------------------------------

    def _take_over_version_1(self) -> None:
        """Move the contents that version 0.1 kept inside the project; what is not read again is removed."""
        old = self.integrity.version_1_folder()
        if not os.path.lexists(os.path.join(old, "manifest.json")):
            return
        shelf = Vault(os.path.join(old, "blobs"))
        versions = [entry.version() for entry in self.files.values() if entry.kept]
        versions += [version for older in self.manifest.history.values() for version in older]
        for version in versions:
            try:
                descriptor = os.open(shelf.path(version.digest), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                self.vault.keep(descriptor, version.digest, version.size)
            finally:
                os.close(descriptor)
        self.save()
        if shelf.folder != self.vault.folder:
            import shutil

            shutil.rmtree(shelf.folder, ignore_errors=True)
        unlink(os.path.join(old, "manifest.json"))
