"""Find what lies under a root: its repositories, and the files that are in none."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from fusewire.util.gitdir import is_top
from fusewire.worktree.path_kinds import CACHES

#: Nested repositories are looked for this far below the root.
_DEPTH = 4
REPOSITORIES = 64
FILES = 200_000


@dataclass
class Territory:
    """Paths are relative to the root."""

    tops: list[str] = field(default_factory=list)
    files: dict[str, os.stat_result] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def survey(root: str, *, inside: bool) -> Territory:
    """Walk the root; `inside` a repository git knows the files, and only further repositories are looked for."""
    found = Territory()
    todo = [("", 0, inside)]
    while todo:
        folder, depth, within = todo.pop()
        full = os.path.join(root, folder)
        if folder and is_top(full):
            found.tops.append(folder)
            within = True
        if within and depth >= _DEPTH:
            continue
        for entry in _entries(full, folder, within, found):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in CACHES:
                    todo.append((path, depth + 1, within))
            elif not within and entry.name != ".git":
                _take_in(found, path, entry)
        if len(found.files) > FILES:
            found.problems.append(too_many("outside repositories"))
            found.files.clear()
            break
    found.tops = sorted(found.tops)[:REPOSITORIES]
    return found


def _entries(full: str, folder: str, within: bool, found: Territory) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(full) as entries:
            yield from entries
    except OSError as error:
        gone = folder and isinstance(error, FileNotFoundError | NotADirectoryError)  # while we looked
        if not gone and not within:  # inside a repository git has its own words for it
            found.problems.append(f"cannot read {shortened(folder)}: {error.strerror}")


def _take_in(found: Territory, path: str, entry: os.DirEntry[str]) -> None:
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode):
        found.files[path] = seen


def named(path: str) -> str:
    """A repository in a message."""
    return f"repository {shortened(path)}" if path else "repository of the root"


def too_many(where: str) -> str:
    return f"more than {FILES:,} files {where}: too large a tree to compare"


def shortened(path: str) -> str:
    """A path in a message: one line, and not the length of a page."""
    text = path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n") or "the root"
    return text if len(text) <= 120 else f"{text[:60]}...{text[-57:]}"
