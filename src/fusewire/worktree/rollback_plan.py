"""Plan a rollback before anything is touched: which files go, which come, what is in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fusewire.worktree.contents import Kept, Level, TreeEntry, is_below, is_inside
from fusewire.worktree.discover import shortened

if TYPE_CHECKING:
    from fusewire.worktree.checkpoint import Checkpoint

#: Lines about files of one kind.
_LINES = 20


class FileRestore(NamedTuple):
    """One file: the repository it is of, what is there now, what will be."""

    level: str
    old: TreeEntry | None
    new: TreeEntry | None


@dataclass
class RollbackPlan:
    """Paths are relative to the root."""

    steps: dict[str, FileRestore] = field(default_factory=dict)
    #: what is left alone and why
    left: list[str] = field(default_factory=list)

    @property
    def written(self) -> list[str]:
        return sorted(path for path, step in self.steps.items() if step.new)

    @property
    def removed(self) -> list[str]:
        return sorted(path for path, step in self.steps.items() if not step.new)


def plan(
    root: str,
    now: Mapping[str, Kept],
    goal: Mapping[str, Level],
    checkpoint: Checkpoint,
    saved: Checkpoint,
    only: Callable[[str], bool],
) -> RollbackPlan:
    """The way from what is there now, all of which is saved, to the checkpoint."""
    made = RollbackPlan()
    left_out = {*checkpoint.left_out, *saved.left_out}
    made.left += lines(left_out, "not kept, because it is larger than 100 MB or cannot be read")
    made.left += lines(now.keys() - {"", *checkpoint.nested}, "a repository that is new since the checkpoint")
    made.left += lines(
        checkpoint.nested.keys() - now.keys() - left_out, "a repository at the checkpoint, and gone since"
    )
    other = checkpoint.nested.keys() & now.keys() - goal.keys()
    made.left += lines(other, "a repository that no longer has its part of the checkpoint")
    ignored_then: list[str] = []
    others: list[str] = []
    for level in sorted(now.keys() & goal.keys()):  # a repository inside has the say over its own files
        unknown = goal[level].may_have_had(now[level].entries)
        inside = {path for path in checkpoint.nested if is_inside(level, path)}
        for path, old, new in differences(now[level].entries, goal[level].entries):
            full = os.path.join(level, path)
            if is_below(full, left_out) or (new is None and is_below(full, inside)):
                continue
            if not only(full):
                others.append(full)
            elif path in unknown:
                ignored_then.append(full)
            else:
                made.steps[full] = FileRestore(level, old, new)
    made.left += lines(others, "somebody else's")
    made.left += lines(ignored_then, "ignored at the checkpoint")
    _leave_blocked(root, made)
    return made


def differences(
    are: Mapping[str, TreeEntry], will: Mapping[str, TreeEntry]
) -> Iterable[tuple[str, TreeEntry | None, TreeEntry | None]]:
    """Each path that is not the same on both sides, with both."""
    for path in are.keys() | will.keys():
        old, new = are.get(path), will.get(path)
        if old != new:
            yield path, old, new


def lines(paths: Iterable[str], why: str) -> list[str]:
    """One line for each path, but not a page of them."""
    ordered = sorted(paths)
    made = [f"{shortened(path)}: left alone: {why}" for path in ordered[:_LINES]]
    return made if len(ordered) <= _LINES else [*made, f"and {len(ordered) - _LINES} more: left alone: {why}"]


def _leave_blocked(root: str, made: RollbackPlan) -> None:
    """Take out the files whose place is held by something that is not saved."""
    going = {path for path, step in made.steps.items() if step.old}
    for path in made.written:
        blocker = _blocker(root, path, going)
        if blocker:
            del made.steps[path]
            made.left.append(f"{shortened(path)}: left alone: {shortened(blocker)} is in its way and is not saved")


def _blocker(root: str, path: str, going: Collection[str]) -> str | None:
    """What stands where a file, or a folder above it, has to be, and will not go."""
    parts = path.split("/")
    for end in range(1, len(parts)):
        above = "/".join(parts[:end])
        mode = _mode(root, above)
        if mode is None or above in going:
            return None
        if not stat.S_ISDIR(mode):
            return above
    mode = _mode(root, path)
    if mode is None or path in going:
        return None
    return _held(root, path, going) if stat.S_ISDIR(mode) else path


def _held(root: str, path: str, going: Collection[str]) -> str | None:
    """The first thing in a folder that will not go."""
    try:
        with os.scandir(os.path.join(root, path)) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return path
    for entry in inside:
        below = f"{path}/{entry.name}"
        held = _held(root, below, going) if entry.is_dir(follow_symlinks=False) else None if below in going else below
        if held:
            return held
    return None


def _mode(root: str, path: str) -> int | None:
    try:
        return os.lstat(os.path.join(root, path)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
