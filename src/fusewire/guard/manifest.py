"""The manifest's entries and versions: made of the files on the disk, compared with them, and checked when read."""

from __future__ import annotations

import os
import stat

from fusewire.guard import vault as limits
from fusewire.guard.vault import Vault, look, signature
from fusewire.quickjson import loads
from fusewire.util.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Manifest = dict[str, Any]
    Entry = list[Any]

#: Versions of one file, with the one that the manifest has.
VERSIONS = 5

#: An entry of the manifest begins with the signature, of which MODE and SIZE are the first; then follow:
MODE, SIZE, MTIME, DIGEST, KEPT, WHEN = 0, 1, 2, 5, 6, 7
_ENTRY = [int, int, int, int, int, str, int, float]
_ROW = [float, str, int, str, int]


def checked(manifest: Any) -> Manifest:
    """The manifest if it has the shape of one; a ValueError says what has not."""
    if not isinstance(manifest, dict) or manifest.get("format") != 1:
        raise ValueError("it is no manifest of format 1")
    for key in ("files", "folders", "history"):
        if not isinstance(manifest.get(key), dict):
            raise ValueError(f"it has no {key}")
    if not isinstance(manifest.get("session", 0), (str, type(None))):
        raise ValueError("its session is no text")
    for name, entry in manifest["files"].items():
        if type(entry) is not list or list(map(type, entry)) != _ENTRY:
            raise ValueError(f"its entry {name!a} is none")
    for name, known in manifest["folders"].items():
        if type(known) is not list or list(map(type, known)) not in ([int], [int, str]):
            raise ValueError(f"its folder {name!a} is none")
    for name, rows in manifest["history"].items():
        if type(rows) is not list or not all(type(row) is list and list(map(type, row)) == _ROW for row in rows):
            raise ValueError(f"its versions of {name!a} are none")
    return manifest


def read_text(path: str) -> str:
    """A file of ours; a pipe in its place must not hang the hook."""
    return read_file(path).decode("ascii")


def read_memory(path: str) -> dict[str, list[Any]]:
    try:
        memory = loads(read_text(path))
    except (OSError, ValueError):
        return {}
    if not isinstance(memory, dict) or not all(type(row) is list and len(row) == 6 for row in memory.values()):
        return {}
    return memory


def record(
    names: set[str], old: dict[str, Entry], files: dict[str, Entry], now: float, root: int, vault: Vault
) -> list[tuple[str, str]]:
    """Put the entries of these names into `files`; of those whose content is not kept, the names and the reasons."""
    pin_all(files, vault)
    moved = []
    for name in sorted(names):
        found, entry = lstat(name, root), old.get(name)
        if entry and found and signature(found) == entry[:5] and _is_kept_as_far_as_it_can_be(entry, vault):
            files[name] = entry
        elif recordable(found):
            moved.append(name)
    pin_all(files, vault)
    skipped = {name: why_not_kept(files[name]) for name in names & files.keys() if not files[name][KEPT]}
    for name in moved:
        try:
            files[name] = _entry(*look(name, root, vault), old.get(name), now)
            if not files[name][KEPT]:
                skipped[name] = why_not_kept(files[name])
        except OSError as error:
            found = lstat(name, root)
            if found is not None:
                files[name] = old.get(name) or [*signature(found), "", 0, float(now)]
                skipped[name] = said(error)
    return sorted(skipped.items())


def _entry(seen: list[int], digest: str, kept: bool, old: Entry | None, now: float) -> Entry:
    same = old is not None and old[DIGEST] == digest
    return [*seen, digest, int(kept), old[WHEN] if same and old else float(now)]


def _is_kept_as_far_as_it_can_be(entry: Entry, vault: Vault) -> bool:
    if entry[KEPT]:
        return vault.has(entry[DIGEST], entry[SIZE])
    return bool(entry[DIGEST]) and entry[SIZE] > limits.FILE_LIMIT


def why_not_kept(entry: Entry) -> str:
    if not entry[DIGEST]:
        return "it could not be read when the snapshot was taken"
    if entry[SIZE] > limits.FILE_LIMIT:
        return f"its {entry[SIZE]} bytes are not kept: the limit for one file is {limits.FILE_LIMIT}"
    if not entry[KEPT]:
        return f"its {entry[SIZE]} bytes are not kept: all files together may have {limits.TOTAL_LIMIT}"
    return "its kept content is missing or damaged; nothing was written"


def folders_of(names: Iterable[str], root: int) -> dict[str, list[int | str]]:
    """The folders above these files: the mode of each and, if it is a link, where that leads."""
    folders: dict[str, list[int | str]] = {}
    for name in names:
        folder = os.path.dirname(name)
        while folder not in ("", "/") and folder not in folders:
            found = lstat(folder, root)
            if found is not None:
                known: list[int | str] = [stat.S_IMODE(found.st_mode)]
                if stat.S_ISLNK(found.st_mode):
                    known.append(os.readlink(folder, dir_fd=root))
                folders[folder] = known
            folder = os.path.dirname(folder)
    return folders


def judge(
    name: str, entry: Entry, found: os.stat_result, root: int, known: dict[str, list[Any]], seen: dict[str, list[Any]]
) -> str | None:
    """The kind of a file whose signature moved; None if it is still what it was."""
    if stat.S_IFMT(found.st_mode) != stat.S_IFMT(entry[MODE]):
        return "type"
    if found.st_size != entry[SIZE]:
        return "changed" if found.st_size else "emptied"
    other_mode = stat.S_ISREG(found.st_mode) and found.st_mode != entry[MODE]
    if not entry[DIGEST]:
        same = found.st_mtime_ns == entry[MTIME]
    else:
        if known.get(name, ())[:5] == signature(found):
            seen[name] = known[name]
        else:
            try:
                now, digest, _ = look(name, root)
            except OSError:
                return "mode" if other_mode else "changed"
            seen[name] = [*now, digest]
        same = seen[name][5] == entry[DIGEST]
    if not same:
        return "changed"
    return "mode" if other_mode else None


def differs(old: Entry | None, new: Entry | None) -> bool:
    if old is None or new is None:
        return old is not new
    return bool(old[MODE] != new[MODE] or old[DIGEST] != new[DIGEST])


def pin_all(files: dict[str, Entry], vault: Vault) -> None:
    for entry in files.values():
        if entry[KEPT]:
            vault.pin(entry[DIGEST], entry[SIZE])


def row_of(entry: Entry) -> list[Any]:
    return [entry[WHEN], entry[DIGEST], entry[SIZE], "snapshot", entry[MODE]]


def remember(history: dict[str, list[list[Any]]], name: str, row: list[Any]) -> None:
    """Put a version in front of the older ones; the same content is listed once."""
    history[name] = [row, *(other for other in history.get(name, ()) if other[1] != row[1])][: VERSIONS - 1]


def supersede(history: dict[str, list[list[Any]]], name: str, old: Entry | None, new: Entry | None) -> None:
    """Move what the manifest had to the history, and what it has now out of it."""
    if old is not None and old[KEPT] and (new is None or new[DIGEST] != old[DIGEST]):
        remember(history, name, row_of(old))
    if new is not None and new[KEPT] and name in history:
        history[name] = [row for row in history[name] if row[1] != new[DIGEST]]


def lstat(name: str, folder: int) -> os.stat_result | None:
    """The thing of that name itself; None if it is not there or cannot be reached."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def recordable(found: os.stat_result | None) -> bool:
    return found is not None and (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode))


def said(error: OSError) -> str:
    return (error.strerror or str(error)).lower() if error.errno else str(error)
