"""The same sandbox on macOS: a Seatbelt profile for `sandbox-exec`. Never run by the tests, which have no macOS."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.guard.sandbox.plan import MountPlan

PROGRAM = "/usr/bin/sandbox-exec"


def profile(plan: MountPlan) -> str:
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


def arguments(plan: MountPlan) -> list[str]:
    """The words before a command."""
    return [PROGRAM, "-p", profile(plan), "--"]
