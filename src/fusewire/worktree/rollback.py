"""Roll back to a checkpoint without losing anything: save what is there now, then move files.

Only files are brought back. Branch, index and what is ignored stay as they are, and the result says so. What is not
saved is never overwritten or removed. A rollback that was killed is completed by the next one to the same checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusewire.util.errors import FusewireError
from fusewire.util.files import make_folder, read_file, replace_file
from fusewire.util.git import GitFailure, git, only
from fusewire.worktree import refs as pins
from fusewire.worktree.contents import Kept, Level, TreeEntry, full_paths
from fusewire.worktree.discover import shortened
from fusewire.worktree.moves import ChangedSince, Moves
from fusewire.worktree.rollback_plan import RollbackPlan, differences, lines, plan

if TYPE_CHECKING:
    from fusewire.worktree.checkpoint import Checkpoint, Checkpoints
    from fusewire.worktree.shadow import Shadow

__all__ = ["ChangedSince", "RolledBack", "roll_back"]

#: A file of the user's git directory -> what is under way while it is there.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
}


@dataclass(frozen=True)
class RolledBack:
    """What a rollback did."""

    #: everything as it was right before
    saved: Checkpoint
    #: files brought back
    written: tuple[str, ...]
    #: files taken away; they are in `saved`
    removed: tuple[str, ...]
    #: what was left alone and why, one line each
    left: tuple[str, ...]
    #: what did not move with the files and how a person would move it, one line each
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LastOne:
    """The rollback before this one, as its journal has it."""

    saved: Checkpoint
    #: the commit of the checkpoint that it went back to
    goal: str
    done: bool


def roll_back(
    checkpoints: Checkpoints,
    checkpoint: Checkpoint,
    *,
    since: Checkpoint | None,
    force: bool,
    name: str,
    only: Callable[[str], bool],
) -> RolledBack:
    """Bring the files of a checkpoint back; the caller holds the lock."""
    goal = checkpoints.levels(checkpoint)
    room = os.path.join(checkpoints.private, "restore")
    journal = os.path.join(room, "journal.json")
    moves = Moves(checkpoints.root, room)
    notes: list[str] = []
    last = _last_one(checkpoints, journal, moves, notes)
    before = checkpoints.levels(last.saved) if last and last.goal == checkpoint.commit else {}
    recorded = checkpoints.levels(since) if since is not None and not force else {}
    now = checkpoints.kept(goal, before, recorded)
    were, will = _flat(before), _flat(goal)
    killed = bool(before and last and not last.done)
    harmless = _harmless(_flat(now), will, were if killed else {}, _flat(recorded))
    if since is not None and not force:
        changed = [path for path in checkpoints.compared(now, recorded, since) if path not in harmless and only(path)]
        if changed:
            raise ChangedSince(changed, "since the last recorded attempt")
    if last and before and all(one == were.get(path) for path, one in _flat(now).items() if path not in harmless):
        saved = last.saved  # it has all that could be lost, and only our own work came after it
    else:
        if last and not last.done:
            notes.append(f"a rollback before this one was interrupted; all as it was before that one: {last.saved.ref}")
        saved = checkpoints.pinned(now, pins.SAVED, name, f"before going back to {checkpoint.ref}")
    planned = plan(checkpoints.root, now, goal, checkpoint, saved, only)
    make_folder(checkpoints.root, os.path.relpath(room, checkpoints.root))
    _write(journal, saved, checkpoint, done=False)
    _stage(planned, goal, moves)
    try:
        _act(planned, moves)
    except BaseException:  # a key pressed too: nothing is left half done unless we are killed
        if moves.undo():
            moves.clear()
            os.unlink(journal)
        raise
    _write(journal, saved, checkpoint, done=True)
    moves.clear()
    left = (*planned.left, *_come_to_light(planned, now, goal))
    notes += _remarks(now[""].shadow, checkpoint)
    return RolledBack(saved, tuple(planned.written), tuple(planned.removed), left, tuple(notes))


def _write(journal: str, saved: Checkpoint, checkpoint: Checkpoint, *, done: bool) -> None:
    data = {"saved": saved.commit, "goal": checkpoint.commit, "done": done}
    replace_file(journal, json.dumps(data).encode(), f"{journal}.tmp")  # one name will do: we hold the lock


def _last_one(checkpoints: Checkpoints, journal: str, moves: Moves, notes: list[str]) -> LastOne | None:
    """The rollback before; files that a killed one had moved and not saved are put back."""
    last = None
    try:
        data = json.loads(read_file(journal))
        saved = checkpoints.found(data["saved"])
        last = LastOne(saved, data["goal"], data["done"]) if saved else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    folder = moves.recover(_flat(checkpoints.levels(last.saved)) if last else {})
    if folder:
        notes.append(f"files that an interrupted rollback had moved and not saved are in {folder}")
    moves.clear()
    return last


def _flat(levels: Mapping[str, Level] | Mapping[str, Kept]) -> dict[str, TreeEntry]:
    """All files, relative to the root; a repository inside has the say over its own."""
    return {os.path.join(level, path): one for level in sorted(levels) for path, one in levels[level].entries.items()}


def _harmless(
    are: Mapping[str, TreeEntry],
    will: Mapping[str, TreeEntry],
    were: Mapping[str, TreeEntry],
    known: Mapping[str, TreeEntry],
) -> set[str]:
    """Files that are already as they will be, or that a killed rollback had taken away from where they were."""
    in_place = {path for path in {*are, *will, *were, *known} if are.get(path) == will.get(path)}
    return in_place | {path for path, old, _ in differences(were, will) if old and path not in are}


def _stage(planned: RollbackPlan, goal: Mapping[str, Level], moves: Moves) -> None:
    """Write what is brought back into a folder of our own: if the disk is full, nothing was touched yet."""
    for level, then in goal.items():
        start = f"{level}/" if level else ""
        paths = [path[len(start) :] for path in planned.written if planned.steps[path].level == level]
        if not paths:
            continue
        then.shadow.make()
        os.makedirs(os.path.join(moves.new, level), exist_ok=True)
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        then.shadow.own("read-tree", then.facts.tree, reading=True, index="restored")
        prefix = f"--prefix={os.path.join(moves.new, start)}"
        then.shadow.own("checkout-index", "-z", "--stdin", "-f", prefix, given=given, reading=True, index="restored")
        for path in then.facts.modes.keys() & set(paths):
            os.chmod(os.path.join(moves.new, level, path), then.facts.modes[path])


def _act(planned: RollbackPlan, moves: Moves) -> None:
    """First what goes, then what comes."""
    path = ""
    try:
        for path in reversed(planned.removed):
            _take_away(path, planned, moves)
        moves.sweep(planned.removed)
        for path in planned.written:
            _take_away(path, planned, moves)
            moves.put_in_place(path)
    except OSError as error:
        raise FusewireError(f"{shortened(path)}: {error.strerror}; nothing was rolled back") from None


def _take_away(path: str, planned: RollbackPlan, moves: Moves) -> None:
    old = planned.steps[path].old
    if old is not None:
        moves.take_away(path, old)


def _come_to_light(planned: RollbackPlan, now: Mapping[str, Kept], goal: Mapping[str, Level]) -> list[str]:
    """Files that an ignore rule hid until it was rolled back: they were not saved, so they stay."""
    if not any(os.path.basename(path) == ".gitignore" for path in planned.steps):
        return []
    found: list[str] = []
    for level in now.keys() & goal.keys():
        shown = {path for path in now[level].shadow.listed([]) if not path.endswith("/")}
        found += full_paths(level, shown - set(now[level].listed) - goal[level].entries.keys())
    return lines(found, "ignored until now, and so not saved")


# -- what stays as it is ------------------------------------------------------------------------------------


def _remarks(shadow: Shadow, checkpoint: Checkpoint) -> list[str]:
    """What stays as it is in the user's repository although the files went back."""
    if shadow.top is None:
        return []
    notes = []
    head, branch = shadow.head()
    where = branch or "the detached HEAD"
    if branch != checkpoint.branch:
        then = f"refs/heads/{checkpoint.branch}" if checkpoint.branch else ""
        way = f"git symbolic-ref HEAD {then}" if then else f"git update-ref --no-deref HEAD {checkpoint.head}"
        way = f"; to go back without touching files: {way}" if then or checkpoint.head else ""
        notes.append(f"HEAD was on {checkpoint.branch or 'no branch'} at the checkpoint and stays on {where}{way}")
    elif head != checkpoint.head:
        notes.append(_about_commits(shadow, checkpoint, head, where))
    notes += _about_index(shadow, head)
    for name, what in _UNDER_WAY.items():
        if shadow.repository is not None and os.path.exists(os.path.join(shadow.repository.folder, name)):
            notes.append(f"{what} is under way and stays so")
            break
    return notes


def _about_commits(shadow: Shadow, checkpoint: Checkpoint, head: str | None, where: str) -> str:
    if checkpoint.head is None:
        return f"the commits since the checkpoint stay on {where}; to drop them: git update-ref -d HEAD"
    added = shadow.asked("rev-list", "--count", f"{checkpoint.head}..HEAD") or "0"
    dropped = shadow.asked("rev-list", "--count", f"HEAD..{checkpoint.head}") or "0"
    if head is None or dropped != "0":
        at = checkpoint.head
        return f"{where} was at {at[:12]} at the checkpoint and stays where it is; to set it back: git reset {at}"
    commits = "1 commit" if added == "1" else f"{added} commits"
    stays = "stays" if added == "1" else "stay"
    them = "it" if added == "1" else "them"
    return f"{commits} since the checkpoint {stays} on {where}; to drop {them}: git reset {checkpoint.head}"


def _about_index(shadow: Shadow, head: str | None) -> list[str]:
    assert shadow.top is not None
    try:
        asked = ("diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD", "--", *only(shadow.prefix))
        said = git(shadow.top, *(asked if head else ("ls-files", "--cached", "-z", "--", *only(shadow.prefix))))
    except GitFailure:
        return []
    count = len({path for path in said.split(b"\0") if path})
    if not count:
        return []
    staged = "1 staged change stays" if count == 1 else f"{count} staged changes stay"
    return [f"{staged} in the index; to unstage: git reset"]
