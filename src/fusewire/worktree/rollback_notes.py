"""What stays as it is in the user's repository although the files went back, and the command that would move it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.util.git import GitFailure, git, only

if TYPE_CHECKING:
    from fusewire.worktree.checkpoint import Checkpoint
    from fusewire.worktree.shadow import Shadow

#: A file of the user's git directory -> what is under way while it is there.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
}


def remarks(shadow: Shadow, checkpoint: Checkpoint) -> list[str]:
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
