"""The same sandbox by `bwrap`, for machines where only that program may make namespaces."""

from __future__ import annotations

import os

from fusewire.guard.sandbox.namespaces import SSH_FOLDER, ssh_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.sandbox.plan import MountPlan

PROGRAM = "bwrap"


def arguments(plan: MountPlan, *, die_with_parent: bool = False) -> list[str]:
    """The words before a command."""
    words = [PROGRAM, *(["--die-with-parent"] if die_with_parent else []), "--dev-bind", "/", "/"]
    if plan.pins:
        words += _pins(plan.pins)
    for path, is_read_only in plan.mounts:
        words += ["--ro-bind" if is_read_only else "--bind", path, path]
    if os.geteuid():
        words += _ssh_settings()
    try:
        words += ["--chdir", os.getcwd()]
    except OSError:
        pass
    return [*words, "--"]


def _pins(pins: tuple[str, ...]) -> list[str]:
    """Mount points that a copy of /proc covers, as `namespaces` makes them; bwrap would follow a link."""
    words = []
    folder = ""
    for path in sorted(path for path in pins if not os.path.islink(path)):
        if os.path.dirname(path) != folder:
            folder = os.path.dirname(path)
            words += ["--bind", folder, "/proc/fs"]
        words += ["--bind", path, f"/proc/fs/{os.path.basename(path)}"]
    return [*words, "--dev-bind", "/proc", "/proc"]


def _ssh_settings() -> list[str]:
    words: list[str] = []
    for path, content in ssh_settings().items():
        file = os.memfd_create("ssh", 0)  # inherited by bwrap, which closes it
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        words += ["--perms", "0644", "--file", str(file), path]
    return ["--tmpfs", SSH_FOLDER, *words] if words else []
