"""A state folder whose mark does not fit: one that came with a clone is set aside, any other is taken over.

That is looked at once. A folder of an earlier version, a copy of a project or a restored backup has no mark that fits,
and keeps its state; what git has in its index, or what belongs to somebody else, was not written by us. Where the mark
fits, the folder is ours whatever git says, so that adding it to the index frees no agent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from fusewire.util.files import fault_at, fault_of_owner, replace_file, set_aside, write_mark
from fusewire.worktree.discover import top_above

#: Derived from other files, and read as `marshal` data: emptied, so that they are made again and not trusted.
_DERIVED = ".bin"

#: Entries of a folder that are looked at; git's objects are in folders of their own.
_MOST = 20_000


def adopt_or_set_aside(folder: str, facts: os.stat_result) -> None:
    fault = _fault(folder, facts)
    if fault:
        set_aside(folder, fault)
        return
    for path in _walk(folder):
        if not os.path.isdir(path) or os.path.islink(path):
            fault = fault_at(path)
            if fault:
                set_aside(path, fault)
    for path in _walk(folder):
        if path.endswith(_DERIVED):
            replace_file(path, b"")
    write_mark(folder)


def _fault(folder: str, facts: os.stat_result) -> str:
    """Why a state folder is none of ours; empty if it is one."""
    if not stat.S_ISDIR(facts.st_mode):
        return fault_at(folder) or "is not a folder"
    fault = fault_of_owner(facts, folder)
    return fault or ("came with the repository (git has it in its index)" if _is_tracked(folder) else "")


def _is_tracked(folder: str) -> bool:
    """Whether git has anything of it; where git cannot say, the folder's owner has to do."""
    top = top_above(os.path.dirname(folder))
    if top is None or not os.listdir(folder):
        return False
    from fusewire.util.git import GitFailure, git, only

    try:
        return bool(git(top, "ls-files", "-z", "--", *only(os.path.relpath(folder, top))))
    except GitFailure:
        return False


def _walk(folder: str) -> Iterator[str]:
    """Everything in it, up to a limit; links are not followed."""
    left = _MOST
    for here, folders, files in os.walk(folder):
        yield from (os.path.join(here, name) for name in (*folders, *files))
        left -= len(folders) + len(files)
        if left < 0:
            return
