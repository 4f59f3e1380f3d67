"""rsync: what it copies over what, and what it removes."""

from __future__ import annotations

import os

from fusewire.globs import matches, path_matches
from fusewire.guard.effects import WRITE
from fusewire.guard.programs.places import MOST, last, missing, under
from fusewire.guard.programs.words import told_apart
from fusewire.shell.values import REST, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import Call, Program


_RSYNC_LONGS = (
    "archive recursive dry-run delete delete-before delete-during delete-delay delete-after delete-excluded existing"
    " ignore-existing remove-source-files update inplace checksum ignore-times size-only relative dirs links list-only"
    " exclude= include= exclude-from= include-from= filter= files-from= rsh= rsync-path= backup backup-dir= suffix="
    " log-file= log-file-format= write-batch= read-batch= temp-dir= partial-dir= compare-dest= copy-dest= link-dest="
    " max-size= min-size= block-size= bwlimit= timeout= contimeout= port= chmod= chown= usermap= groupmap= info= debug="
    " out-format= modify-window= max-delete= compress-level= compress-choice= checksum-choice= iconv= protocol="
    " address= sockopts= password-file= skip-compress= outbuf= stop-after= stop-at= remote-option= cvs-exclude"
    " ignore-errors force prune-empty-dirs verbose compress progress partial stats human-readable times perms owner"
    " group copy-links"
    " ignore-non-existing no-recursive whole-file append append-verify del"
)


class _Rsync:
    def __init__(self, call: Call) -> None:
        found = told_apart(call.args, "efBTM", _RSYNC_LONGS)
        self.call = call
        self.flags = {name for name, _ in found}
        self.values = dict(found)
        *self.sources, self.target = [value for name, value in found if not name] or [""]
        #: (whether it is taken along, pattern), the first that fits decides
        self.rules: list[tuple[bool, str]] = []
        for name, value in found:
            if name in ("exclude", "include"):
                self.rules.append((name == "include", value))
            elif name in ("f", "filter") and value[:2] in ("- ", "+ "):
                self.rules.append((value[0] == "+", value[2:]))
        if self.has("C", "cvs-exclude"):
            self.rules += [(False, pattern) for pattern in (".git/", ".svn/", "*~", "*.o", "*.bak")]

    def has(self, *names: str) -> bool:
        return not self.flags.isdisjoint(names)

    @property
    def deletes(self) -> bool:
        return any(name[:3] == "del" for name in self.flags)

    def excluded(self, name: str) -> bool:
        """Whether a path of the transfer is left out: by itself or by a folder above it."""
        parts = name.split("/")
        for end in range(1, len(parts) + 1):
            for taken, pattern in self.rules:
                if _rule_fits(parts[:end], pattern, end < len(parts)):
                    if not taken:
                        return True
                    break
        return False


def _rule_fits(parts: list[str], pattern: str, is_folder: bool) -> bool:
    if pattern.endswith("/") and not is_folder:
        return False
    pattern = pattern.removesuffix("/").removesuffix("/***")
    anchored, pattern = pattern[:1] == "/", pattern.lstrip("/")
    if "/" not in pattern and not anchored:
        return matches(parts[-1], pattern)
    if anchored or "**" in pattern:
        return (
            path_matches("/".join(parts), pattern)
            if "/" in pattern
            else parts == [pattern] or matches("/".join(parts), pattern)
        )
    return path_matches("/".join(parts[-pattern.count("/") - 1 :]), pattern)


def _rsync(call: Call) -> None:
    rsync = _Rsync(call)
    for name in ("log-file", "write-batch"):
        if rsync.values.get(name):
            call.write(rsync.values[name])
    if rsync.has("n", "dry-run", "list-only", "help", "version") or not rsync.sources:
        return
    remote = [source for source in rsync.sources if _is_remote(source)]
    if remote or _is_remote(rsync.target):
        if rsync.values.get("e") or rsync.values.get("rsh"):
            call.script(rsync.values.get("e") or rsync.values["rsh"])
        if _is_remote(rsync.target):
            _rsync_sources_removed(rsync)
            return
    if remote or any(UNKNOWN in call.path(source) for source in rsync.sources):
        call.effect(WRITE, under(rsync.target, UNKNOWN), follows=False)
        if rsync.deletes:
            call.delete(under(rsync.target, UNKNOWN), recursive=True)
        return
    copied = {name: path for source in rsync.sources for name, path in _rsync_files(rsync, source)}
    alone = len(copied) == 1 and len(rsync.sources) == 1 and not call.disk.is_folder(call.path(rsync.sources[0]))
    for name, path in copied.items():
        target = under(rsync.target, name)
        if alone and not rsync.target.endswith("/") and not call.disk.is_folder(call.path(rsync.target)):
            target = rsync.target
        if _rsync_writes(rsync, path, call.path(target)):
            if rsync.values.get("backup-dir"):
                call.write(under(under(rsync.target, rsync.values["backup-dir"]), name))
            call.effect(WRITE, target, follows=False)
    if rsync.deletes:
        _rsync_deletes(rsync, set(copied))
    _rsync_sources_removed(rsync)


def _is_remote(name: str) -> bool:
    return ":" in name.partition("/")[0] or name.startswith("rsync://")


def _rsync_files(rsync: _Rsync, source: str) -> Iterator[tuple[str, str]]:
    """(name below the target, where it is) of every file that a source has."""
    call = rsync.call
    path = call.path(source)
    if not call.disk.is_folder(path):
        if call.disk.exists(path) or not missing(call, source):
            yield (source.lstrip("/") if rsync.has("R", "relative") else last(source)), path
        return
    if not rsync.has("r", "a", "recursive", "archive"):
        return
    inside = source.endswith("/") or last(source) in ("", ".", "..")
    prefix = "" if inside else f"{last(source)}/"
    if rsync.has("R", "relative"):
        prefix = f"{source.strip('/').removeprefix('./')}/"
    base = call.disk.real(path).rstrip("/")
    for number, inner in enumerate(call.disk.tree(base)):
        name = prefix + inner[len(base) + 1 :]
        if number >= MOST:
            yield prefix + REST, f"{base}/{REST}"
            return
        if not rsync.excluded(name):
            yield name, inner


def _rsync_writes(rsync: _Rsync, source: str, target: str) -> bool:
    """Whether a file would be copied: not if the other one is as large and as old."""
    try:
        old = os.stat(target)
    except (OSError, ValueError):
        return not rsync.has("existing", "ignore-non-existing") or not rsync.call.walk.pristine
    if rsync.has("ignore-existing"):
        return False
    if not rsync.call.walk.pristine or rsync.has("c", "checksum", "I", "ignore-times"):
        return True
    try:
        new = os.stat(source)
    except (OSError, ValueError):
        return True
    if rsync.has("u", "update") and old.st_mtime > new.st_mtime:
        return False
    return old.st_size != new.st_size or (int(old.st_mtime) != int(new.st_mtime) and not rsync.has("size-only"))


def _rsync_deletes(rsync: _Rsync, copied: set[str]) -> None:
    """What the target has and the sources have not; only folders that are copied are looked into."""
    call = rsync.call
    for source in rsync.sources:
        inside = source.endswith("/") or last(source) in ("", ".", "..")
        folder = rsync.target if inside else under(rsync.target, last(source))
        if not call.disk.is_folder(call.path(source)):
            continue
        base = call.disk.real(call.path(folder)).rstrip("/")
        prefix = "" if inside else f"{last(source)}/"
        for number, path in enumerate(call.disk.tree(base)):
            name = prefix + path[len(base) + 1 :]
            if number >= MOST:
                call.delete(folder, recursive=True)
                break
            if name not in copied and (not rsync.excluded(name) or rsync.has("delete-excluded")):
                call.delete(under(folder, path[len(base) + 1 :]))


def _rsync_sources_removed(rsync: _Rsync) -> None:
    if rsync.has("remove-source-files"):
        for source in rsync.sources:
            for _, path in _rsync_files(rsync, source):
                rsync.call.delete(path)


PROGRAMS: dict[str, Program] = {"rsync": _rsync}
