"""Tell from a hook's environment whether ring one holds for what Claude Code's shell starts."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The variable by which Claude Code finds the wrapper, and the one that keeps a person's own.
PREFIX, OWN_PREFIX = "CLAUDE_CODE_SHELL_PREFIX", "FUSEWIRE_SHELL_PREFIX"

#: The wrapper that `install` writes beside the settings: for sessions without a person, or for all.
UNATTENDED, ALWAYS = "fusewire-shell", "fusewire-shell-always"


def active(environment: Mapping[str, str], root: str) -> bool:
    """Whether the shell commands of this session run with the protected files of a project read-only."""
    wrapper = environment.get(PREFIX, "")
    name = os.path.basename(wrapper)
    if name != ALWAYS and (name != UNATTENDED or environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "1"):
        return False
    from fusewire.guard.sandbox.prepared import prepare

    _, means, (mode, _) = prepare(root, documents=True)
    return bool(means) and mode != "off" and os.access(wrapper, os.X_OK)
