"""Find the folder that stands for a project in all of its worktrees."""

from __future__ import annotations

import os

#: Bytes of a file of git's that are read, and characters of a commit's name.
_LONGEST = 4096
_COMMIT = 12


def project_key(root: str) -> str:
    """The main worktree's folder for a folder in a linked worktree; any other folder as it is, without links.

    Of a bare repository there is no main worktree: its git directory stands for all of them.
    """
    root = os.path.realpath(root)
    pointer = _pointer(root)
    if not pointer:
        return root
    from fusewire.util.gitdir import common_of, resolve

    top, folder = os.path.dirname(pointer), resolve(pointer)
    common = common_of(folder) if folder else ""
    if not common or common == folder:  # a submodule is a project of its own
        return root
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    return os.path.normpath(os.path.join(main, os.path.relpath(root, top)))


def pointers_of(root: str) -> list[str]:
    """The files that say of a linked worktree which repository it belongs to: with others it is another project."""
    pointer = _pointer(os.path.realpath(root))
    if not pointer:
        return []
    from fusewire.util.gitdir import resolve

    folder = resolve(pointer)
    return [pointer, os.path.join(folder, "commondir")] if folder else [pointer]


def _pointer(top: str) -> str:
    """The file `.git` around a folder; empty if there is a folder of that name, or nothing."""
    path = _git_around(top)
    return "" if os.path.isdir(path) else path


def _git_around(top: str) -> str:
    """What is named `.git` in a folder or in the nearest one above it; empty if nothing is."""
    while not os.path.lexists(os.path.join(top, ".git")):
        parent = os.path.dirname(top)
        if parent == top:
            return ""
        top = parent
    return os.path.join(top, ".git")


def branch_of(root: str) -> str:
    """The branch that is checked out around a folder, or the beginning of the commit; empty without a repository.

    On the way of a call: git is not asked, and what reads its configuration is not loaded.
    """
    from fusewire.util.files import read_regular

    folder = _git_around(os.path.realpath(root))
    if not folder:
        return ""
    top = os.path.dirname(folder)
    try:
        if not os.path.isdir(folder):
            pointer = os.fsdecode(read_regular(folder, _LONGEST)).strip()
            folder = os.path.join(top, pointer.removeprefix("gitdir:").strip())
        head = read_regular(os.path.join(folder, "HEAD"), _LONGEST).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
    name = head.removeprefix("ref:").strip()
    return name.removeprefix("refs/heads/") if head.startswith("ref:") else name[:_COMMIT]
