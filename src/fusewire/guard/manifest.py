"""The manifest's entries and versions: made of the files on the disk, and compared with them.

A manifest has `files` (name: signature, digest, whether its content is kept, when), `folders` (name: mode, inode, time
if its content is listed, target if it is a link), `history` (name: older versions), `pending` (name: cause, of what is
to be looked at again) and `writing` (what somebody was writing when no call of an agent ran). Names are relative inside
the project and absolute outside.
"""

from __future__ import annotations

import os
import stat
import time

from fusewire.guard import vault as limits
from fusewire.guard.baseline import folder_signature
from fusewire.guard.vault import TICK_NS, Vault, look, signature
from fusewire.util.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Manifest = dict[str, Any]
    Entry = list[Any]

#: Versions of one file, with the one that the manifest has; and of all files together.
VERSIONS = 5
HISTORY_ROWS = 10_000

#: An entry of the manifest begins with the signature, of which MODE and SIZE are the first; then follow:
MODE, SIZE, MTIME, DIGEST, KEPT, WHEN = 0, 1, 2, 5, 6, 7

#: In the name of what was moved aside, which is never protected itself.
ASIDE = ".fusewire-aside-"


def new() -> Manifest:
    return {"files": {}, "folders": {}, "history": {}, "pending": {}, "writing": [], "asides": []}


def index_of(manifest: Manifest, absent: list[str], key: str, always: bool) -> dict[str, Any]:
    """What `baseline` reads; not to be relied on while something is open, or if new files could be anywhere."""
    return {
        "key": key,
        "busy": bool(always or manifest["pending"] or manifest["writing"] or manifest["asides"]),
        "files": {name: tuple(entry[:5]) for name, entry in manifest["files"].items()},
        "folders": {name: tuple(known[:3]) for name, known in manifest["folders"].items()},
        "absent": absent,
    }


def from_version_1(raw: bytes) -> Manifest:
    """A manifest of version 0.1, which was JSON; ValueError if it is none."""
    old = loads(raw.decode("ascii"))
    try:
        if old["format"] != 1:
            raise ValueError("it is no manifest of format 1")
        files = {
            name: [*map(int, entry[:5]), str(entry[5]), int(entry[6]), float(entry[7])]
            for name, entry in old["files"].items()
        }
        rows = {name: [[float(row[0]), *row[1:5]] for row in rows] for name, rows in old["history"].items()}
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(f"it is no manifest of format 1: {error!r}") from None
    return {**new(), "files": files, "history": rows}


def make_entry(name: str, old: Entry | None, now: float, root: int, vault: Vault) -> Entry:
    seen, digest, kept = look(name, root, vault)
    same = old is not None and old[DIGEST] == digest
    return [*seen, digest, int(kept), old[WHEN] if same and old else float(now)]


def is_as_recorded(entry: Entry, found: os.stat_result, vault: Vault) -> bool:
    """Whether nothing has moved, and what is to be kept of it is."""
    if signature(found) != entry[:5]:
        return False
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


def folders_of(names: Iterable[str], listed: dict[str, list[Any]], root: int) -> dict[str, list[Any]]:
    """The folders whose content is listed, and those above all of these files."""
    folders = dict(listed)
    for name in (*names, *listed):
        folder = os.path.dirname(name)
        while folder not in ("", "/") and folder not in folders:
            found = lstat(folder, root)
            if found is None:
                break
            folders[folder] = describe_folder(folder, found, root, listed=False)
            folder = os.path.dirname(folder)
    return folders


def describe_folder(name: str, found: os.stat_result, root: int, *, listed: bool) -> list[Any]:
    mode, inode, modified = folder_signature(found, listed)
    if modified > time.time_ns() - TICK_NS:
        modified = 1  # something may be added in the same tick: it is looked through again
    return [mode, inode, modified, os.readlink(name, dir_fd=root) if stat.S_ISLNK(mode) else ""]


def judge(name: str, entry: Entry, found: os.stat_result, root: int) -> str | None:
    """The kind of a file whose signature moved; None if it is still what it was: then its signature is renewed."""
    if stat.S_IFMT(found.st_mode) != stat.S_IFMT(entry[MODE]):
        return "type"
    if found.st_size != entry[SIZE]:
        return "changed" if found.st_size else "emptied"
    other_mode = stat.S_ISREG(found.st_mode) and found.st_mode != entry[MODE]
    if not entry[DIGEST]:
        same, seen = found.st_mtime_ns == entry[MTIME], None
    else:
        try:
            seen, digest, _ = look(name, root)
        except OSError:
            return "mode" if other_mode else "changed"
        same = digest == entry[DIGEST]
    if not same:
        return "changed"
    if other_mode:
        return "mode"
    entry[:5] = seen or entry[:5]
    return None


def pin_all(files: dict[str, Entry], vault: Vault) -> None:
    for entry in files.values():
        if entry[KEPT]:
            vault.pin(entry[DIGEST], entry[SIZE])


def row_of(entry: Entry, how: str = "snapshot") -> list[Any]:
    return [entry[WHEN], entry[DIGEST], entry[SIZE], how, entry[MODE]]


def remember(history: dict[str, list[list[Any]]], name: str, row: list[Any]) -> None:
    """Put a version in front of the older ones; the same content is listed once."""
    history[name] = [row, *(other for other in history.get(name, ()) if other[1] != row[1])][: VERSIONS - 1]


def supersede(history: dict[str, list[list[Any]]], name: str, old: Entry | None, new: Entry | None) -> None:
    """Move what the manifest had to the history, and what it has now out of it."""
    if old is not None and old[KEPT] and (new is None or new[DIGEST] != old[DIGEST]):
        remember(history, name, row_of(old))
    if new is not None and new[KEPT] and name in history:
        history[name] = [row for row in history[name] if row[1] != new[DIGEST]]


def trim(history: dict[str, list[list[Any]]], vault: Vault) -> None:
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
