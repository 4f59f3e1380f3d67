"""The backstop behind the guard: what protected files were, whether they still are, and their way back.

`.fusewire/guard/manifest.json` says of every protected file what it was at the last snapshot and which content that is;
the contents, also those of the last few versions, are in the vault beside it. Looking costs one `lstat` per file:
only what moved is read. Writers hold the lock; a manifest is replaced as a whole, so that a killed one leaves the old.
"""

from __future__ import annotations

import os
import stat
import time

from fusewire.guard import vault as limits
from fusewire.guard.findings import Finding, Restored, Snapshot, Version
from fusewire.guard.manifest import (
    DIGEST,
    KEPT,
    MODE,
    SIZE,
    checked,
    differs,
    folders_of,
    judge,
    lstat,
    pin_all,
    read_memory,
    read_text,
    record,
    recordable,
    remember,
    row_of,
    said,
    supersede,
    why_not_kept,
)
from fusewire.guard.vault import Vault, Way, look, move_aside, settled, signature, unlink
from fusewire.quickjson import dumps, loads
from fusewire.util.files import FileLock, NotOurs, free_name, make_folder, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fusewire.guard.manifest import Entry, Manifest

__all__ = ["Finding", "Integrity", "Restored", "Snapshot", "Version"]

#: Superseded versions of all files together.
HISTORY_ROWS = 10_000

#: The first snapshot of a large project takes seconds, and whoever comes second waits for it.
_WAIT = 10.0


class Integrity:
    """Snapshots of one project's protected files; `list_files` gives the absolute paths of those that exist now."""

    def __init__(self, root: str, list_files: Callable[[], Iterable[str]]) -> None:
        self.root = os.path.abspath(root)
        self.list_files = list_files
        #: What was wrong with the manifest when it was last read.
        self.problem: str | None = None
        self.folder = os.path.join(self.root, ".fusewire", "guard")
        self._manifest_path = os.path.join(self.folder, "manifest.json")
        self._prefix = self.root.rstrip("/") + "/"
        #: The manifest as it was last read, and the signature that its file had.
        self._loaded: tuple[list[int], Manifest | None] = ([], None)

    def exists(self) -> bool:
        return self._load() is not None

    @property
    def session(self) -> str | None:
        """The session of the last snapshot."""
        manifest = self._load()
        return None if manifest is None else manifest["session"]

    def blob(self, digest: str) -> str:
        """Where a version's content is; of a link it is the target."""
        return self._vault().path(digest)

    def versions(self, path: str) -> list[Version]:
        """The contents of a file that can be had again, newest first."""
        manifest = self._load()
        if manifest is None:
            return []
        name, vault = self._name(path), self._vault()
        rows = list(manifest["history"].get(name, ()))
        if name in manifest["files"]:
            rows.append(row_of(manifest["files"][name]))
        found = [Version(*row[:4]) for row in rows if vault.has(row[1], row[2])]
        return sorted(found, key=lambda version: version.when, reverse=True)

    # -- verify -------------------------------------------------------------------------------------------

    def verify(self) -> list[Finding]:
        """What is not as it was recorded; nothing if nothing was recorded."""
        manifest = self._load()
        if manifest is None:
            return []
        way = Way(self.root, manifest["folders"])
        try:
            kinds = self._compare(manifest, way)
            for name in self._listed():
                if name not in manifest["files"] and recordable(lstat(name, way.root)):
                    kinds[name] = "new"
        finally:
            way.close()
        return [Finding(kind, name) for name, kind in sorted(kinds.items())]

    def _compare(self, manifest: Manifest, way: Way) -> dict[str, str]:
        """The recorded files that are not what they were, with the kind of each."""
        kinds: dict[str, str] = {}
        moved: dict[str, os.stat_result] = {}
        for name, entry in manifest["files"].items():
            found = lstat(name, way.root)
            if found is None:
                kinds[name] = "missing"
            elif signature(found) != entry[:5]:
                moved[name] = found
        if moved:
            kinds |= self._judge_all(manifest["files"], moved, way.root)
        if elsewhere := tuple(f"{folder}/" for folder in way.leads_elsewhere()):
            kinds |= {name: "type" for name in manifest["files"] if name.startswith(elsewhere)}
        return kinds

    def _judge_all(self, files: dict[str, Entry], moved: dict[str, os.stat_result], root: int) -> dict[str, str]:
        """Judge what moved; the digests are remembered beside the manifest, so that no verify reads them again."""
        memory = os.path.join(self.folder, "seen.json")
        known = read_memory(memory)
        seen: dict[str, list[Any]] = {}
        kinds = {}
        for name, found in moved.items():
            kind = judge(name, files[name], found, root, known, seen)
            if kind is not None:
                kinds[name] = kind
        if seen != known:
            try:
                replace_file(memory, dumps(seen).encode())
            except OSError:
                pass  # it costs the next one a little time, no more
        return kinds

    # -- snapshot -----------------------------------------------------------------------------------------

    def snapshot(self, now: float, *, session: str | None = None, only: Iterable[str] | None = None) -> Snapshot:
        """Record all protected files, or only the named ones and what was recorded below them."""
        with self._writing():
            manifest = self._load(locked=True)
            first = manifest is None
            manifest = manifest or {"format": 1, "session": None, "files": {}, "folders": {}, "history": {}}
            old: dict[str, Entry] = manifest["files"]
            names = self._listed() if only is None else self._named(only, old)
            files = {} if only is None else {name: entry for name, entry in old.items() if name not in names}
            way, vault = Way(self.root, manifest["folders"]), self._vault()
            try:
                skipped = record(names, old, files, now, way.root, vault)
                folders = folders_of(files, way.root)
            finally:
                way.close()
            changed = sorted(name for name in old.keys() | files.keys() if differs(old.get(name), files.get(name)))
            for name in changed:
                supersede(manifest["history"], name, old.get(name), files.get(name))
            session = session if only is None or session is not None else manifest["session"]
            if first or (files, folders, session) != (old, manifest["folders"], manifest["session"]):
                manifest |= {"files": files, "folders": folders, "session": session}
                self._save(manifest, vault, sweep=bool(changed))
            size = sum(entry[SIZE] for entry in files.values())
            return Snapshot(len(files), size, changed, skipped)

    # -- restore ------------------------------------------------------------------------------------------

    def restore(self, now: float, paths: Iterable[str] | None = None) -> list[Restored]:
        """Bring back what is missing, emptied, changed or of another mode or type; what is replaced is kept first."""
        wanted = None if paths is None else [self._name(path) for path in paths]
        if self._load() is None:
            return [Restored(name, None, "no snapshot was taken") for name in wanted or ()]
        with self._writing():
            manifest = self._load(locked=True)
            if manifest is None:
                return []
            way, vault = Way(self.root, manifest["folders"]), self._vault()
            try:
                kinds = self._compare(manifest, way)
                names = sorted(name for name in kinds if wanted is None or _is_below(name, wanted))
                results = [Restored(name, None, self._unknown(manifest, name)) for name in wanted or ()]
                results = [result for result in results if result.problem]
                results += self._bring_back(manifest, [(name, kinds[name]) for name in names], now, way, vault)
            finally:
                way.close()
            return sorted(results, key=lambda result: result.path)

    def _bring_back(
        self, manifest: Manifest, todo: list[tuple[str, str]], now: float, way: Way, vault: Vault
    ) -> list[Restored]:
        if not todo:
            return []
        results: list[Restored] = []
        ready: list[_Plan] = []
        pin_all(manifest["files"], vault)
        for name, kind in todo:
            plan = _Plan(name, kind, manifest["files"][name])
            try:
                plan.keep_what_is_there(manifest["history"], now, way, vault)
                ready.append(plan)
            except OSError as error:
                results.append(Restored(name, None, said(error)))
        # Saved before the first file is replaced: whoever is killed from here on has lost nothing.
        self._save(manifest, vault, sweep=False)
        for plan in ready:
            try:
                kept = plan.put_back(way, vault)
                results.append(Restored(plan.name, kept and self._name(kept)))
            except OSError as error:
                results.append(Restored(plan.name, None, said(error)))
        way.finish()
        self._save(manifest, vault, sweep=True)
        return results

    def _unknown(self, manifest: Manifest, name: str) -> str | None:
        """What is said about a path that the snapshot does not know; None if it knows it."""
        if any(_is_below(recorded, [name]) for recorded in manifest["files"]):
            return None
        versions = self.versions(name)
        if not versions:
            return "the snapshot has no such file"
        newest = self._name(self.blob(versions[0].digest))
        return f"the snapshot no longer has this file; {len(versions)} versions of it are kept, the newest is {newest}"

    # -- the manifest -------------------------------------------------------------------------------------

    def _writing(self) -> FileLock:
        make_folder(self.root, ".fusewire/guard/blobs")
        return FileLock(os.path.join(self.folder, "lock"), wait=_WAIT)

    def _vault(self) -> Vault:
        return Vault(os.path.join(self.folder, "blobs"))

    def _load(self, *, locked: bool = False) -> Manifest | None:
        """The manifest; None if there is none, or none that can be read: then it is set aside.

        A writer gets one of its own, and an error if it would write over what it may not read.
        """
        try:
            now, found = time.time_ns(), os.stat(self._manifest_path)
            if not locked and self._loaded[0] == signature(found):
                return self._loaded[1]
            manifest = checked(loads(read_text(self._manifest_path)))
            if not locked:
                self._loaded = settled(found, now), manifest
            return manifest
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, NotOurs) as error:
            return self._set_aside(str(error), locked)
        except OSError as error:
            if locked:
                raise
            self.problem = f"the guard's manifest cannot be read ({said(error)})"
            return None

    def _set_aside(self, reason: str, locked: bool) -> Manifest | None:
        if locked:
            aside = free_name(f"{self._manifest_path}.corrupt")
            os.rename(self._manifest_path, aside)
            self.problem = f"the guard's manifest was damaged ({reason}); it is kept as {os.path.basename(aside)}"
            return None
        try:
            with self._writing():
                return self._load(locked=True)  # by now somebody may have written a new one
        except OSError as error:
            self.problem = f"the guard's manifest is damaged ({reason}) and cannot be set aside ({said(error)})"
            return None

    def _save(self, manifest: Manifest, vault: Vault, *, sweep: bool) -> None:
        """Write the manifest; the vault has what it needs pinned. Only then may go what it does not need."""
        _trim(manifest["history"], vault)
        replace_file(self._manifest_path, dumps(manifest).encode())
        if sweep:
            names = os.listdir(self.folder)
            for name in names:
                if ".tmp-" in name:  # of a writer that was killed; we hold the lock
                    unlink(os.path.join(self.folder, name))
            # What a damaged manifest spoke of may be all that is left of a file: it goes only when the room is needed.
            damaged = any(name.startswith("manifest.json.corrupt-") for name in names)
            vault.sweep(vault.pinned, limits.TOTAL_LIMIT - vault.used if damaged else 0)

    # -- names --------------------------------------------------------------------------------------------

    def _name(self, path: str) -> str:
        """A path as the manifest has it: relative inside the project, absolute outside."""
        path = os.path.normpath(os.path.join(self.root, path))
        return "." if path == self.root else path.removeprefix(self._prefix)

    def _listed(self) -> set[str]:
        return _without_our_own(path.removeprefix(self._prefix) for path in self.list_files())

    def _named(self, paths: Iterable[str], recorded: Iterable[str]) -> set[str]:
        wanted = [self._name(path) for path in paths]
        return _without_our_own([*wanted, *(name for name in recorded if _is_below(name, wanted))])


class _Plan:
    """One file on its way back: first what is in its place is kept, then the recorded one is put there."""

    def __init__(self, name: str, kind: str, entry: Entry) -> None:
        self.name = name
        self.base = os.path.basename(name)
        self.kind = kind
        self.entry = entry
        self.found: os.stat_result | None = None
        self.kept: str | None = None
        self.aside = False

    def keep_what_is_there(self, history: dict[str, list[list[Any]]], now: float, way: Way, vault: Vault) -> None:
        """Put what is there into the vault, or find that it must be moved aside."""
        digest, size = self.entry[DIGEST], self.entry[SIZE]
        if self.kind != "mode" and not (self.entry[KEPT] and vault.intact(digest, size)):
            raise OSError(why_not_kept(self.entry))
        parent = way.parent(self.name, make=False)
        if parent is None:
            return
        try:
            self.found = lstat(self.base, parent)
            if self.found is None or self.kind == "mode":
                return
            row = _keep(self.base, parent, vault, now) if recordable(self.found) else None
        finally:
            os.close(parent)
        self.aside = row is None
        if row is not None:
            self.kept = vault.path(row[1])
            if row[1] != digest:
                remember(history, self.name, row)

    def put_back(self, way: Way, vault: Vault) -> str | None:
        """Write beside and rename; where that is which was here."""
        parent = way.parent(self.name, make=True)
        assert parent is not None
        try:
            found = lstat(self.base, parent)
            if (found and signature(found)) != (self.found and signature(self.found)):
                raise OSError("it was changed while it was being restored; restore it again")
            if self.kind == "mode":
                os.chmod(self.base, stat.S_IMODE(self.entry[MODE]), dir_fd=parent)
            else:
                self._write(parent, vault)
            after = os.stat(self.base, dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)
        self.entry[:5] = settled(after, after.st_ctime_ns)  # just written: the next verify shall look again
        return self.kept or (way.moved.pop() if way.moved else None)

    def _write(self, parent: int, vault: Vault) -> None:
        temporary = f".fusewire-restoring-{os.getpid()}"
        mode, size, digest = self.entry[MODE], self.entry[SIZE], self.entry[DIGEST]
        if stat.S_ISLNK(mode):
            unlink(temporary, parent)
            os.symlink(vault.read_link(digest), temporary, dir_fd=parent)
        else:
            vault.write_file(digest, size, stat.S_IMODE(mode), temporary, parent)
        try:
            if self.aside:
                self.kept = os.path.join(os.path.dirname(self.name), move_aside(self.base, parent))
            os.rename(temporary, self.base, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            unlink(temporary, parent)
            raise


def _keep(base: str, parent: int, vault: Vault, now: float) -> list[Any] | None:
    """A row of the history for the file that is there now; None if it cannot be kept in the vault."""
    try:
        seen, digest, kept = look(base, parent, vault)
    except OSError:
        return None
    return [float(now), digest, seen[SIZE], "replaced", seen[MODE]] if kept else None


def _trim(history: dict[str, list[list[Any]]], vault: Vault) -> None:
    """Drop the oldest versions for which there is no room beside what the writer has pinned; pin the others."""
    rows = [(row, name) for name, rows in history.items() for row in rows]
    rows.sort(key=lambda pair: pair[0][0], reverse=True)
    full = False
    for number, (row, name) in enumerate(rows):
        full = full or not vault.pin(row[1], row[2])
        if number >= HISTORY_ROWS or (full and row[1] not in vault.pinned):
            history[name].remove(row)
    for name in [name for name, left in history.items() if not left]:
        del history[name]


def _without_our_own(names: Iterable[str]) -> set[str]:
    """A snapshot does not record itself: it would never be done."""
    return {name for name in names if not name.startswith(".fusewire/guard/")}


def _is_below(name: str, folders: Iterable[str]) -> bool:
    """Whether a file is one of these, or lies in one of them; "." is the project."""
    return any(name == at or name.startswith(f"{at}/") or (at == "." and name[0] != "/") for at in folders)
