"""rsync: what it copies over what, and what it removes."""

from __future__ import annotations

import os

from fusewire.guard.effects import WRITE
from fusewire.guard.shell.argv import Argv
from fusewire.guard.shell.values import REST, UNKNOWN
from fusewire.util.globs import matches, path_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.guard.effects import ProgramCall

#: Files of a folder that are looked at one by one.
MOST = 5000

_LONGS = (
    "exclude= include= exclude-from= include-from= filter= files-from= rsh= rsync-path= backup backup-dir= suffix="
    " log-file= temp-dir= partial partial-dir= compare-dest= copy-dest= link-dest= max-size= min-size= bwlimit="
    " timeout= port= chmod= chown= info= out-format="
)


def run_rsync(call: ProgramCall) -> None:
    argv = Argv(call.args, "efBTM", _LONGS)
    call.write(argv.value("log-file") or "")
    if argv.has("n", "dry-run", "list-only", "help", "version") or len(argv.operands) < 2:
        return
    *sources, target = argv.operands
    deletes = any(name.startswith("del") for name, _ in argv.given)
    unknown = any(_is_remote(source) or UNKNOWN in call.path(source) for source in sources)
    if not _is_remote(target) and unknown:
        call.write_into(target)
    elif not _is_remote(target):
        copied = {name: path for source in sources for name, path in _files(call, argv, source)}
        alone = len(copied) == 1 and not call.disk.is_folder(call.path(sources[0]))
        as_it_is = alone and not target.endswith("/") and not call.disk.is_folder(call.path(target))
        for name, path in copied.items():
            put = target if as_it_is else f"{target.rstrip('/')}/{name}"
            if _is_copied(call, argv, path, call.path(put)):
                call.effect(WRITE, put, follows=False)
        for source in sources if deletes else []:
            _removed(call, argv, source, target, set(copied))
    if argv.has("remove-source-files"):
        for source in sources:
            for _, path in _files(call, argv, source):
                call.delete(path)


def _is_remote(name: str) -> bool:
    return ":" in name.partition("/")[0] or name.startswith("rsync://")


def _is_excluded(argv: Argv, name: str) -> bool:
    """Whether a path of the transfer is left out: by itself or by a folder above it; the first rule counts."""
    rules = [(name, value) for name, value in argv.given if name in ("exclude", "include")]
    rules += [("include" if one[0] == "+" else "exclude", one[2:]) for one in argv.values("f", "filter") if one[2:]]
    parts = name.split("/")
    for end in range(1, len(parts) + 1):
        kind = next((kind for kind, one in rules if _rule_fits(parts[:end], one, end < len(parts))), "")
        if kind == "exclude":
            return True
    return False


def _rule_fits(parts: list[str], pattern: str, is_folder: bool) -> bool:
    if pattern.endswith("/") and not is_folder:
        return False
    pattern = pattern.removesuffix("/").removesuffix("/***")
    anchored, pattern = pattern[:1] == "/", pattern.lstrip("/")
    if anchored or "**" in pattern:
        return parts == [pattern] or path_matches("/".join(parts), pattern)
    if "/" not in pattern:
        return matches(parts[-1], pattern)
    return path_matches("/".join(parts[-pattern.count("/") - 1 :]), pattern)


def _inside(source: str) -> bool:
    """Whether what is in a folder is copied, and not the folder itself."""
    return source.endswith("/") or source.rsplit("/", 1)[-1] in ("", ".", "..")


def _files(call: ProgramCall, argv: Argv, source: str) -> Iterator[tuple[str, str]]:
    """(name below the target, where it is) of every file that a source has."""
    path = call.path(source)
    last = source.rstrip("/").rsplit("/", 1)[-1]
    relative = argv.has("R", "relative")
    if not call.disk.is_folder(path):
        if not call.is_missing(source):
            yield (source.lstrip("/") if relative else last), path
        return
    if not argv.has("r", "a", "recursive", "archive"):
        return
    prefix = f"{source.strip('/').removeprefix('./')}/" if relative else "" if _inside(source) else f"{last}/"
    base = call.disk.real(path).rstrip("/")
    for number, inner in enumerate(call.disk.tree(base)):
        name = prefix + inner[len(base) + 1 :]
        if number >= MOST:
            yield prefix + REST, f"{base}/{REST}"
            return
        if not _is_excluded(argv, name):
            yield name, inner


def _is_copied(call: ProgramCall, argv: Argv, source: str, target: str) -> bool:
    """Whether a file would be written: not if the other one is as large and as old."""
    try:
        old = os.stat(target)
    except (OSError, ValueError):
        return not argv.has("existing", "ignore-non-existing")
    if argv.has("ignore-existing"):
        return False
    try:
        new = os.stat(source)
    except (OSError, ValueError):
        return True
    if argv.has("u", "update") and old.st_mtime > new.st_mtime:
        return False
    exact = not call.walk.pristine or argv.has("c", "checksum", "I", "ignore-times")
    return exact or old.st_size != new.st_size or (int(old.st_mtime) != int(new.st_mtime) and not argv.has("size-only"))


def _removed(call: ProgramCall, argv: Argv, source: str, target: str, copied: set[str]) -> None:
    """`--delete`: what the target has and the sources have not; only folders that are copied are looked into."""
    if not call.disk.is_folder(call.path(source)):
        return
    prefix = "" if _inside(source) else f"{source.rstrip('/').rsplit('/', 1)[-1]}/"
    folder = f"{target.rstrip('/')}/{prefix}"
    base = call.disk.real(call.path(folder)).rstrip("/")
    for number, path in enumerate(call.disk.tree(base)):
        name = prefix + path[len(base) + 1 :]
        if number >= MOST:
            call.delete(folder, recursive=True)
            break
        if name not in copied and (not _is_excluded(argv, name) or ("delete-excluded", "") in argv.options):
            call.delete(f"{folder}{path[len(base) + 1 :]}")
