"""Make the same sandbox with a program: `bwrap` where only it may make namespaces, `sandbox-exec` on macOS.

The latter is never run by the tests, which have no macOS.
"""

from __future__ import annotations

import os

from fusewire.guard.sandbox.namespaces import SSH_FOLDER, ssh_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.sandbox.plan import MountPlan

BUBBLEWRAP = "bwrap"
SEATBELT = "/usr/bin/sandbox-exec"


def words_before(plan: MountPlan, means: str, *, die_with_parent: bool = False) -> list[str]:
    """The words before a command that start it in the sandbox."""
    if means == "seatbelt":
        return [SEATBELT, "-p", seatbelt_profile(plan), "--"]
    words = [BUBBLEWRAP, *(["--die-with-parent"] if die_with_parent else []), "--dev-bind", "/", "/"]
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


def seatbelt_profile(plan: MountPlan) -> str:
    """Everything is allowed but to write the paths of a plan and to move what is above them; the last rule that fits
    decides. Rules are about names: here a path that does not exist yet can be refused as well."""
    lines = ["(version 1)", "(allow default)"]
    refused = [(path, True) for path in (*plan.missing, *plan.absent)]
    for path, is_read_only in sorted((*plan.mounts, *refused), key=lambda mount: mount[0].split("/")):
        lines.append(f"({'deny' if is_read_only else 'allow'} file-write* (subpath {_quoted(path)}))")
    lines += [f"(deny file-write-unlink (literal {_quoted(path)}))" for path in plan.pins]
    return "\n".join(lines) + "\n"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
