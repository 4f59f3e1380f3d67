"""Describe one repository of a snapshot: HEAD, branches, what differs from HEAD, and a fingerprint of all of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fusewire.util.git import GitFailure, Objects
from fusewire.util.gitdir import find
from fusewire.util.gitfiles import committed_ids
from fusewire.worktree.discover import named
from fusewire.worktree.entries import Entry, Reader, look
from fusewire.worktree.status import WorktreeStatus
from fusewire.worktree.trees import FOLDER, empty_tree, object_id, overlaid, subtree


@dataclass(frozen=True)
class Repository:
    """One repository; the paths of its files are relative to the root of the snapshot."""

    #: the top, relative to the root; empty for the root itself and for a repository whose top is above
    path: str = ""
    #: the root, relative to the top; empty unless the top is above
    prefix: str = ""
    #: the commit; empty before the first
    head: str = ""
    #: the branch that HEAD is on; empty if it is on none
    branch: str = ""
    branches: Mapping[str, str] = field(default_factory=dict)
    #: files that are not as HEAD has them
    files: Mapping[str, Entry] = field(default_factory=dict)
    #: fingerprint of its content; empty if git could not say
    tree: str = ""
    #: fingerprint of what `tree` was worked out from
    basis: str = ""

    @property
    def width(self) -> int:
        """Digits of an object's id."""
        return len(self.head) or 40

    @property
    def tips(self) -> set[str]:
        return {self.head, *self.branches.values()} - {""}

    def top(self, root: str) -> str:
        """The folder in which git is asked."""
        top = os.path.join(root, self.path) if self.path else root
        return top[: -len(self.prefix) - 1] or "/" if self.prefix else top


def with_answers(
    bare: Repository,
    answer: tuple[WorktreeStatus, dict[str, str]],
    reader: Reader,
    inner: Mapping[str, Repository],
    last: Repository | None,
    problems: list[str],
) -> Repository:
    """The repository as git says it is; the last one of the same place only saves time."""
    status, branches = answer
    width = len(status.head) or 40
    files: dict[str, Entry] = {}
    start = f"{bare.path}/" if bare.path else ""
    for name, row in sorted(status.rows.items()):
        path = start + name
        entry = reader.entry(path, look(reader.root, path), row.mode, width)
        files[path] = entry._replace(head_mode=row.head_mode, head_id=row.head_id)
    _as_committed(bare, reader, files)
    files = {path: one for path, one in files.items() if (one.mode, one.id) != (one.head_mode, one.head_id)}
    made = replace(bare, head=status.head, branch=status.branch, branches=branches, files=files)
    overrides = overrides_of(files, start, inner)
    basis = object_id("basis", repr((made.head, made.prefix, sorted(overrides.items()))).encode("utf-8", "replace"))
    tree = last.tree if last is not None and last.basis == basis else ""
    try:
        tree = tree or _tree(made, reader.root, overrides)
    except GitFailure as failure:
        problems.append(f"{named(bare.path)}: {failure}")
    return replace(made, tree=tree, basis=basis if tree else "")


def _as_committed(bare: Repository, reader: Reader, files: dict[str, Entry]) -> None:
    """Git may commit other bytes than the disk has; the committed file is then the same file."""
    start = f"{bare.path}/" if bare.path else ""
    inside = f"{bare.prefix}/" if bare.prefix else ""
    known = {path for path, one in files.items() if one.mode and one.head_mode}
    names = {path: inside + path.removeprefix(start) for path in sorted(known | (reader.with_returns & files.keys()))}
    converted = [names[path] for path in names if path in reader.with_returns]
    reader.with_returns.clear()
    repository = find(bare.top(reader.root)) if names else None
    if repository is not None:
        ids = committed_ids(repository, converted, names.values())
        files.update({path: files[path]._replace(id=ids[name]) for path, name in names.items() if name in ids})


def overrides_of(
    files: Mapping[str, Entry], start: str, inner: Mapping[str, Repository]
) -> dict[str, tuple[int, str] | None]:
    """What stands in place of HEAD's files; an inner repository is a folder like any other."""
    made: dict[str, tuple[int, str] | None] = {".fusewire": None}
    for path, entry in files.items():
        made[path.removeprefix(start)] = (entry.mode, entry.id) if entry.mode else None
    for path, repository in inner.items():
        if path.startswith(start) and path != start.rstrip("/"):
            tree = repository.tree
            made[path.removeprefix(start)] = None if tree == empty_tree(len(tree)) else (FOLDER, tree)
    return made


def _tree(made: Repository, root: str, overrides: Mapping[str, tuple[int, str] | None]) -> str:
    with Objects(made.top(root)) as objects:

        def read(name: str) -> bytes:
            found = objects.read(name)
            if found is None:
                raise GitFailure(f"git cat-file: {name} is missing")
            return found[1]

        base = None
        if made.head:
            found = objects.read(f"{made.head}^{{tree}}")
            if found is None:
                raise GitFailure(f"git cat-file: {made.head} is missing")
            base = subtree(found[0], made.prefix, read, made.width) if made.prefix else found[0]
        return overlaid(base, overrides, read, made.width)
