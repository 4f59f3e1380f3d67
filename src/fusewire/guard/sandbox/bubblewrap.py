"""The same sandbox by `bwrap`, for machines where only that program may make namespaces."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.sandbox.plan import Plan

PROGRAM = "bwrap"


def arguments(plan: Plan, *, die_with_parent: bool = False) -> list[str]:
    """The words before a command."""
    words = [PROGRAM, *(["--die-with-parent"] if die_with_parent else []), "--dev-bind", "/", "/"]
    for path in plan.pins:
        if not os.path.islink(path):  # bwrap would follow it
            folder, name = os.path.split(path)
            words += ["--bind", folder, "/proc/fs", "--bind", path, f"/proc/fs/{name}"]
    if plan.pins:
        words += ["--dev-bind", "/proc", "/proc"]
    for path, is_read_only in plan.mounts:
        words += ["--ro-bind" if is_read_only else "--bind", path, path]
    try:
        words += ["--chdir", os.getcwd()]
    except OSError:
        pass
    return [*words, "--"]
