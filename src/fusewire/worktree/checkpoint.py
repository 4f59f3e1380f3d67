"""Take checkpoints of a project: every file that git would not ignore, in nested repositories too.

Taking one touches neither the user's index nor branch nor stash; going back to one is `rollback`'s.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from fusewire.config.rules import STATE_FOLDER
from fusewire.util.errors import FusewireError
from fusewire.util.files import FileLock, make_folder
from fusewire.util.git import GitFailure
from fusewire.worktree import refs as pins
from fusewire.worktree.contents import Kept, Level, PinFacts, entries_of, full_paths, is_below, is_inside, keep
from fusewire.worktree.discover import REPOSITORIES, shortened
from fusewire.worktree.rollback import RolledBack, roll_back
from fusewire.worktree.rollback_plan import differences
from fusewire.worktree.shadow import Shadow

#: Another process may be taking its first checkpoint of a large project.
_PATIENCE = 120.0


@dataclass(frozen=True)
class Checkpoint:
    """The files of a project at one moment."""

    #: a commit of ours that holds every kept file of the project's root, byte for byte
    commit: str
    #: what keeps it alive
    ref: str
    #: the user's HEAD then; None before the first commit, or without a repository
    head: str | None = None
    #: the user's branch then; None if HEAD was on none
    branch: str | None = None
    #: repositories inside, relative to the root -> a commit of ours in them
    nested: dict[str, str] = field(default_factory=dict)
    #: files that were not kept: too large, or not readable; a rollback never touches them
    left_out: tuple[str, ...] = ()

    def to_data(self) -> dict[str, object]:
        return asdict(self) | {"left_out": list(self.left_out)}

    @classmethod
    def from_data(cls, data: Any) -> Checkpoint:
        """The checkpoint again; ValueError if the data is none."""
        try:
            commit, ref, head, branch = (data[key] for key in ("commit", "ref", "head", "branch"))
            nested, left_out = dict(data["nested"]), tuple(data["left_out"])
        except (KeyError, TypeError, ValueError, IndexError):
            raise ValueError("no checkpoint") from None
        texts = [commit, ref, *nested, *nested.values(), *left_out, *(one for one in (head, branch) if one is not None)]
        if not all(isinstance(text, str) for text in texts) or not commit or not ref:
            raise ValueError("no checkpoint")
        return cls(commit, ref, head, branch, nested, left_out)


class Gone(FusewireError):
    """What git kept for us is no longer there."""


class Checkpoints:
    """The checkpoints of one project."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.private = os.path.join(self.root, STATE_FOLDER, "checkpoints.git")
        self._shadows: dict[str, Shadow] = {}

    def take(self, name: str, message: str = "", spared: Sequence[Checkpoint] = ()) -> Checkpoint:
        """Keep the project as it is now; the newest 50 of a name stay, and those that are `spared`."""
        commits = {commit for one in spared for commit in (one.commit, *one.nested.values())}
        with self._alone():
            return self.pinned(self.kept(), pins.CHECKPOINTS, name, message, commits)

    def take_since(self, checkpoint: Checkpoint, name: str, message: str = "") -> tuple[Checkpoint, list[str]]:
        """Keep the project as it is now, and what differs from an earlier checkpoint: both from one look at it."""
        with self._alone():
            levels = self.levels(checkpoint)
            found = self.kept(levels)
            return self.pinned(found, pins.CHECKPOINTS, name, message), self.compared(found, levels, checkpoint)

    def changed_since(self, checkpoint: Checkpoint) -> list[str]:
        """The paths that differ now; a repository inside that came or went is one path."""
        with self._alone():
            levels = self.levels(checkpoint)
            return self.compared(self.kept(levels), levels, checkpoint)

    def load(self, ref: str) -> Checkpoint:
        """A checkpoint by its ref or its commit."""
        with self._alone():
            found = self.found(pins.commit_of(self.shadow(""), ref) or "")
            if found is None:
                raise FusewireError(f"no checkpoint {shortened(ref)} in {self.root}")
            return found

    def restore(
        self,
        checkpoint: Checkpoint,
        *,
        since: Checkpoint | None = None,
        force: bool = False,
        name: str = "",
        only: Callable[[str], bool] = lambda path: True,
    ) -> RolledBack:
        """Bring the files back, after all that is there is saved; `ChangedSince` if it is not as `since` has it.

        `only` says which files are meant; all others stay as they are.
        """
        with self._alone():
            return roll_back(self, checkpoint, since=since, force=force, name=name, only=only)

    # for `rollback`; the caller holds the lock

    def shadow(self, level: str) -> Shadow:
        """The private side of the root, or of a repository inside."""
        if level not in self._shadows:
            digest = hashlib.sha256(os.fsencode(level)).hexdigest()[:32]
            private = os.path.join(self.private, "nested", digest) if level else self.private
            shadow = Shadow(os.path.join(self.root, level) if level else self.root, private, is_root=not level)
            if level and (shadow.top != shadow.folder or os.path.realpath(shadow.folder) != shadow.folder):
                raise GitFailure(f"{shortened(level)} is no repository with files")
            self._shadows[level] = shadow
        return self._shadows[level]

    def found(self, commit: str) -> Checkpoint | None:
        """The checkpoint of a commit of ours."""
        facts = pins.facts_of(self.shadow(""), commit)
        return _checkpoint(facts) if facts else None

    def kept(self, *wanted: Mapping[str, Level]) -> dict[str, Kept]:
        """Every repository as it is now, by its path; files of the wanted levels are kept even if they are ignored."""
        found: dict[str, Kept] = {}
        failed: list[str] = []
        self._visit([""], wanted, found, failed)
        listed = set(found)
        for level in sorted({level for levels in wanted for level in levels}):
            if level not in found and level not in failed:
                self._visit([level], wanted, found, failed)
        for level in found.keys() - listed:
            found[level].is_listed = False
        found[""].left_out = sorted({*found[""].left_out, *failed})
        return found

    def _visit(
        self, todo: list[str], wanted: Collection[Mapping[str, Level]], found: dict[str, Kept], failed: list[str]
    ) -> None:
        """Keep repositories and those inside of them."""
        while todo:
            level = todo.pop(0)
            paths = {path for levels in wanted if level in levels for path in levels[level].known}
            try:
                if len(found) > REPOSITORIES:
                    raise GitFailure("too many repositories")
                found[level] = keep(self.shadow(level), paths)
            except GitFailure:
                if not level:
                    raise
                failed.append(level)  # a broken one inside must not keep the project from having checkpoints
                continue
            todo += full_paths(level, found[level].nested)

    def pinned(
        self, found: Mapping[str, Kept], kind: str, name: str, message: str, spared: Collection[str] = ()
    ) -> Checkpoint:
        """A checkpoint of what was kept."""
        left_out = [path for level, kept in found.items() for path in full_paths(level, kept.left_out)]
        nested = {level: pins.pin(kept, kind, name, message, spared).commit for level, kept in found.items() if level}
        return _checkpoint(pins.pin(found[""], kind, name, message, spared, nested=nested, all_left_out=left_out))

    def levels(self, checkpoint: Checkpoint) -> dict[str, Level]:
        """What a checkpoint holds, by repository; those inside that no longer have their part are left out."""
        levels = {}
        for level, commit in {"": checkpoint.commit, **checkpoint.nested}.items():
            try:
                shadow = self.shadow(level)
                facts = pins.facts_of(shadow, commit)
            except GitFailure:
                if not level:
                    raise
                continue
            if facts is not None:
                levels[level] = Level(shadow, facts, entries_of(shadow, facts.tree))
        if "" not in levels:
            raise Gone(f"checkpoint {checkpoint.ref} is gone from {self.root}")
        return levels

    def compared(self, found: Mapping[str, Kept], levels: Mapping[str, Level], checkpoint: Checkpoint) -> list[str]:
        """The paths that differ between what is there now and a checkpoint."""
        left_out = set(checkpoint.left_out).union(*(full_paths(level, one.left_out) for level, one in found.items()))
        changed = {level for level, one in found.items() if one.is_listed} - levels.keys()
        changed |= checkpoint.nested.keys() - (found.keys() & levels.keys())
        for level in found.keys() & levels.keys():
            now, then = found[level], levels[level]
            inside = {path for path in checkpoint.nested if is_inside(level, path)}
            unknown = then.may_have_had(now.entries)
            for path, _, new in differences(now.entries, then.entries):
                full = os.path.join(level, path)
                if path not in unknown and (new is not None or not is_below(full, inside)):
                    changed.add(full)
        return sorted(path for path in changed if not is_below(path, left_out))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time; whatever goes wrong is one line."""
        try:
            state = make_folder(self.root, STATE_FOLDER)
            with FileLock(os.path.join(state, "checkpoints.lock"), wait=_PATIENCE):
                self._shadows.clear()  # a repository may have come or gone
                yield
        except GitFailure as failure:
            raise FusewireError(f"checkpoint of {self.root}: {failure}") from None
        except BlockingIOError:
            raise FusewireError(f"checkpoint of {self.root}: another process is at it for {_PATIENCE:.0f} s") from None
        except OSError as error:
            raise FusewireError(f"checkpoint of {self.root}: {error.strerror}: {error.filename}") from None


def _checkpoint(facts: PinFacts) -> Checkpoint:
    left_out = tuple(facts.all_left_out or facts.left_out)
    return Checkpoint(facts.commit, facts.ref, facts.head, facts.branch, facts.nested, left_out)
