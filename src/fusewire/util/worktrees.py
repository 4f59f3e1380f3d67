"""Find the folder that stands for a project in all of its worktrees."""

from __future__ import annotations

import os


def project_key(root: str) -> str:
    """The main worktree's folder for a folder in a linked worktree; any other folder as it is, without links.

    Of a bare repository there is no main worktree: its git directory stands for all of them.
    """
    root = top = os.path.realpath(root)
    while not os.path.lexists(os.path.join(top, ".git")):
        parent = os.path.dirname(top)
        if parent == top:
            return root
        top = parent
    if os.path.isdir(os.path.join(top, ".git")):
        return root
    from fusewire.util.gitdir import common_of, resolve

    folder = resolve(os.path.join(top, ".git"))
    common = common_of(folder) if folder else ""
    if not common or common == folder:  # a submodule is a project of its own
        return root
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    return os.path.normpath(os.path.join(main, os.path.relpath(root, top)))
