"""Compare two snapshots of the same root, as the loop's detector reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from fusewire.util.git import GitFailure
from fusewire.worktree.commits import Raw, between, existing, files_of, new_commits, profiles, switched_to
from fusewire.worktree.discover import named, shortened
from fusewire.worktree.entries import Entry
from fusewire.worktree.meaningful import Pair, Side, approach, meaningful, only_tests, tests_added, weakened
from fusewire.worktree.path_kinds import is_by_product
from fusewire.worktree.repository import Repository
from fusewire.worktree.snapshot import Snapshot
from fusewire.worktree.trees import MODULE

#: Paths that a change names; the rest is only counted.
LISTED = 200

_PROBLEMS_SHOWN = 3


@dataclass(frozen=True)
class TreeChange:
    """What happened to the tree between two snapshots. Paths are relative to the root, sorted."""

    #: why the trees could not be compared; empty if they could
    problem: str = ""
    #: new commits, in all repositories together (a merge is one too)
    commits: int = 0
    #: files whose content, mode or existence differs, and files of the new commits; at most `LISTED` are named
    files: tuple[str, ...] = ()
    #: how many there are in all
    count: int = 0
    #: those that are more than white space, lock files, logs, caches, generated files or weakened tests
    meaningful: tuple[str, ...] = ()
    #: every meaningful or weakened file is a test that was there before
    only_tests: bool = False
    #: tests that were deleted, or that have fewer tests or assertions or more skips than before
    weakened: tuple[str, ...] = ()
    #: how many test cases the changed test files have more than before
    tests_added: int = 0
    #: fingerprint of the content of the whole tree afterwards; the same content gives the same, committed or not
    tree: str = ""
    #: fingerprint of what was added and removed, without places and white space; None if nothing was
    approach: str | None = None


def difference(before: Snapshot, after: Snapshot, *, ignored: Collection[str] = ()) -> TreeChange:
    """Reads what was committed from the repositories; writes nothing. What is `ignored` does not count as work."""
    if before.root != after.root:
        return TreeChange(problem=f"two roots: {shortened(before.root)} and {shortened(after.root)}", tree=after.tree)
    compared = _Comparison(before, after)
    compared.run()
    pairs = {path: pair for path, pair in compared.pairs().items() if path not in ignored}
    weaker = weakened(pairs)
    work = meaningful(pairs, weaker)
    listed = sorted(pairs)
    edited = [path for path in (*work, *weaker) if path in compared.edited]
    return TreeChange(
        problem="; ".join(dict.fromkeys(compared.problems[:_PROBLEMS_SHOWN])),
        commits=len(compared.commits),
        files=tuple(listed[:LISTED]),
        count=len(listed),
        meaningful=tuple(work[:LISTED]),
        only_tests=only_tests(pairs, [*work, *weaker]),
        weakened=tuple(weaker[:LISTED]),
        tests_added=tests_added({path: pair for path, pair in pairs.items() if path in compared.edited}),
        tree=after.tree if pairs or not ignored else before.tree,
        approach=approach(pairs, edited),
    )


class _Comparison:
    """Two snapshots, repository by repository, gathered into one list of files."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self.before = before
        self.after = after
        self.problems = [*before.problems, *after.problems]
        self.commits: set[str] = set()
        self.committed: dict[str, Raw] = {}
        #: paths whose content differs, wherever it comes from
        self.edited: set[str] = set()
        self.old: dict[str, Entry] = dict(before.files)
        self.new: dict[str, Entry] = dict(after.files)
        #: which repository's objects have a committed file
        self.tops: dict[str, str] = {}

    def run(self) -> None:
        pairs = self._repositories()
        for old, new in pairs:
            self._tried(self._compare, old, new)
        for path, gone in self.before.repositories.items():
            if path not in self.after.repositories:
                self._vanished(gone)
        # A commit of a linked worktree is seen from every worktree: it belongs where HEAD reaches it.
        for old, new in pairs:
            self._tried(self._count, old, replace(new, branches={}))
        for old, new in pairs:
            self._tried(self._count, old, new)

    def _repositories(self) -> list[tuple[Repository, Repository]]:
        """Those that git could speak of both times; one that has come was empty before."""
        found = []
        for path, new in self.after.repositories.items():
            old = self.before.repositories.get(path)
            if new.tree and (old is None or old.tree):
                found.append((old or Repository(path, new.prefix), new))
        return found

    def _tried(self, act: Callable[[Repository, Repository], None], old: Repository, new: Repository) -> None:
        try:
            act(old, new)
        except GitFailure as failure:
            self.problems.append(f"{named(new.path)}: {failure}")

    # -- files --------------------------------------------------------------------------------------------

    def _compare(self, old: Repository, new: Repository) -> None:
        """Every file that may differ: what HEAD's move brought, with what is not committed laid over it."""
        top = new.top(self.after.root)
        if old.head and old.head != new.head and not existing(top, [old.head]):
            self._replaced(old, new)
            return
        moved = between(new, top, old.head, new.head) if old.head != new.head else {}
        start = switched_to(old, new, top) if moved else None
        if start is not None:
            worked_on = {*old.files, *new.files, *between(new, top, start, new.head)}
            moved = {path: raw for path, raw in moved.items() if path in worked_on}
        for path in {*moved, *old.files, *new.files}:
            raw = moved.get(path)
            if raw is not None and MODULE in (raw.old_mode, raw.mode) and path in self.after.repositories:
                continue
            self.tops[path] = top
            _put(self.old, path, old.files.get(path) or _committed(raw, new.files.get(path), old=True))
            _put(self.new, path, new.files.get(path) or _committed(raw, old.files.get(path), old=False))

    def _replaced(self, old: Repository, new: Repository) -> None:
        if old.tree != new.tree:
            self.problems.append(f"{named(new.path)} was replaced: its files cannot be compared")

    def _vanished(self, gone: Repository) -> None:
        """What it had is known only to itself; a folder that is gone counts as one file."""
        start = f"{gone.path}/" if gone.path else ""
        self.new = {path: one for path, one in self.new.items() if path in self.old or not path.startswith(start)}
        if not os.path.isdir(os.path.join(self.after.root, gone.path)):
            self.old[gone.path] = Entry(MODULE, gone.head or gone.tree)
        elif self.before.tree != self.after.tree:
            self.problems.append(f"{named(gone.path)} is none any more: its files cannot be compared")

    # -- commits ------------------------------------------------------------------------------------------

    def _count(self, old: Repository, new: Repository) -> None:
        top = new.top(self.after.root)
        found = [one for one in new_commits(top, new.tips, old.tips) if one not in self.commits]
        if not found:
            return
        self.commits.update(found)
        before = old.head if old.head and existing(top, [old.head]) else ""
        for path, raw in files_of(new, top, found, before).items():
            self.committed.setdefault(path, raw)
            self.tops.setdefault(path, top)

    # -- both together ------------------------------------------------------------------------------------

    def pairs(self) -> dict[str, Pair]:
        """The files that differ, and those of new commits even if they are what they were before."""
        absent = Entry(0, "")
        found: dict[str, tuple[Entry, Entry]] = {}
        for path in self.old.keys() | self.new.keys():
            old, new = self.old.get(path, absent), self.new.get(path, absent)
            if (old.mode, old.id) != (new.mode, new.id):
                found[path] = old, new
        self.edited = set(found)
        for path, raw in self.committed.items():
            if path not in found:
                there = self.old.get(path, absent)
                profile = there.profile if there.id == raw.id else None
                found[path] = Entry(raw.old_mode, raw.old_id), Entry(raw.mode, raw.id, profile=profile)
        return self._with_profiles(found)

    def _with_profiles(self, found: dict[str, tuple[Entry, Entry]]) -> dict[str, Pair]:
        wanted: dict[str, list[tuple[str, str]]] = {}
        for path, sides in found.items():
            if path in self.tops and not is_by_product(path):
                lacking = [(path, side.id) for side in sides if side.mode and side.profile is None]
                wanted.setdefault(self.tops[path], []).extend(lacking)
        read = {}
        for top, asked in wanted.items():
            read.update(profiles(top, asked) if asked else {})

        def side(path: str, entry: Entry) -> Side:
            if not entry.mode:
                return Side()
            return Side(entry.mode, entry.id, entry.profile or read.get((path, entry.id)))

        return {path: Pair(side(path, old), side(path, new)) for path, (old, new) in found.items()}


def _put(side: dict[str, Entry], path: str, entry: Entry | None) -> None:
    if entry is not None and entry.mode:
        side[path] = entry


def _committed(raw: Raw | None, other: Entry | None, *, old: bool) -> Entry | None:
    """What HEAD has at a path that is as HEAD has it: by the move of HEAD, or else by what the other side tells."""
    if raw is not None:
        return Entry(raw.old_mode, raw.old_id) if old else Entry(raw.mode, raw.id)
    return Entry(other.head_mode, other.head_id) if other is not None else None
