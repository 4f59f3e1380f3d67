"""How Copilot CLI is installed and checked. Measured on Copilot CLI 1.0.102."""

from __future__ import annotations

import os

from fusewire.agents.install.client import HOOK_SECONDS, Client, Registration, plain_events
from fusewire.agents.install.command import shell_line
from fusewire.agents.install.files import settings_or_none
from fusewire.util.fast_json import JsonObject

#: Files of a project in which hooks can be switched off, one of them another agent's.
_INSIDE = (".github/copilot/settings.json", ".github/copilot/settings.local.json", ".claude/settings.json")


class CopilotClient(Client):
    """Copilot CLI: entries have no matcher, and an exit code other than 0 refuses the call."""

    __slots__ = ()

    def entry(self, event: str, handler: JsonObject) -> JsonObject:
        return handler

    def handler(self, event: str, line: list[str]) -> JsonObject:
        return {"type": "command", "bash": shell_line(line, "exit 0"), "timeoutSec": HOOK_SECONDS}

    def other_settings(self, root: str) -> list[str]:
        return [os.path.join(self._folder(root), "settings.json"), *(os.path.join(root, one) for one in _INSIDE)]

    def distrust(self, registration: Registration, root: str) -> list[tuple[str, str]]:
        if registration.scope != "project":
            return []
        config = settings_or_none(os.path.join(self._folder(root), "config.json"))
        lists = [config.get(key) for key in ("trustedFolders", "trusted_folders")] if isinstance(config, dict) else []
        trusted = [one for folders in lists if isinstance(folders, list) for one in folders if isinstance(one, str)]
        real = os.path.realpath(root)
        if any(os.path.commonpath((real, folder)) == folder for folder in map(os.path.realpath, trusted)):
            return []
        what = "Copilot CLI runs the hooks of a project only in folders that are trusted, and this one is not"
        return [(what, f"start `copilot` in {root} and trust the folder, or: fusewire install copilot --user")]

    def _folder(self, root: str) -> str:
        """Its home folder: hooks lie one below it."""
        return os.path.dirname(os.path.dirname(self.places(root)["user"].path))


CLIENT = CopilotClient(
    name="copilot",
    title="Copilot CLI",
    events=plain_events(
        "PreToolUse PermissionRequest PostToolUse PostToolUseFailure UserPromptSubmit SessionStart SessionEnd"
        " Stop SubagentStart SubagentStop"
    ),
    file="hooks/fusewire.json",
    shared=".github/hooks/fusewire.json",
    empty='{\n  "version": 1\n}\n',
    off_switch="disableAllHooks",
    project_variables=("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    hook_folder_variable="COPILOT_HOOK_DIR",
    calls_have_ids=False,
)
