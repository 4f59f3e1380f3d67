"""How Claude Code is installed and checked. Measured on Claude Code 2.1.325."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from fusewire.agents.install.client import ALL_TOOLS, HOOK_SECONDS, Client, Registration
from fusewire.agents.install.command import shell_line
from fusewire.agents.install.files import settings_or_none, table_in
from fusewire.util.fast_json import JsonObject

_PLUGIN = "fusewire"

#: In a plugin's hooks this stands for its folder.
_PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"

#: How a hook ends whose files are gone: with 1 people see it. Another agent reads these settings, too, and to that one
#: everything but 0 refuses the call.
_END = '[ -n "$COPILOT_CLI" ]; exit'


class ClaudeClient(Client):
    """Claude Code: the only one with a plugin, a status line and a shell wrapper of ours."""

    __slots__ = ()

    def handler(self, event: str, line: list[str]) -> JsonObject:
        return {"type": "command", "command": shell_line(line, _END), "timeout": HOOK_SECONDS}

    def other_settings(self, root: str) -> list[str]:
        is_mac = sys.platform == "darwin"
        folder = "/Library/Application Support/ClaudeCode" if is_mac else "/etc/claude-code"
        return [os.path.join(folder, "managed-settings.json")]

    def plugins(self, root: str) -> Iterator[Registration]:
        """Our plugin, where it is switched on for this project; whatever its hooks run is ours."""
        places = self.places(root)
        enabled: JsonObject = {}
        for scope in ("user", "project", "local"):
            enabled |= table_in(settings_or_none(places[scope].path), "enabledPlugins")
        folder = os.path.join(os.path.dirname(places["user"].path), "plugins")
        known = table_in(settings_or_none(os.path.join(folder, "installed_plugins.json")), "plugins")
        for name, copies in known.items():
            if name.partition("@")[0] != _PLUGIN or enabled.get(name) is not True or not isinstance(copies, list):
                continue
            for copy in copies:
                path = copy.get("installPath") if isinstance(copy, dict) else None
                file = os.path.join(path, "hooks", "hooks.json") if isinstance(path, str) else ""
                settings = settings_or_none(file) if file else None
                if isinstance(path, str) and isinstance(settings, dict) and isinstance(settings.get("hooks"), dict):
                    yield Registration("plugin", file, self._of_plugin(settings["hooks"], path))
                    break

    def _of_plugin(self, hooks: JsonObject, path: str) -> dict[str, list[JsonObject]]:
        found: dict[str, list[JsonObject]] = {}
        for event, entries in hooks.items():
            for entry in entries if isinstance(entries, list) else ():
                handlers = [one for one in self.handlers(entry) if isinstance(one, dict)]
                found.setdefault(event, []).extend(_expanded(handler, path) for handler in handlers)
        return found


def _expanded(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return value.replace(_PLUGIN_ROOT, path)
    if isinstance(value, list):
        return [_expanded(one, path) for one in value]
    return {key: _expanded(one, path) for key, one in value.items()} if isinstance(value, dict) else value


CLIENT = ClaudeClient(
    name="claude",
    title="Claude Code",
    events={
        "PreToolUse": ALL_TOOLS,
        "PostToolBatch": None,
        # only those of MCP servers: all others stand in the batch, and a process each is dear
        "PostToolUseFailure": "mcp__.*",
        "UserPromptSubmit": None,
        "SessionStart": None,
        "SessionEnd": None,
        "Stop": None,
        # errors of the provider; all others are the session's own
        "StopFailure": "rate_limit|overloaded|server_error",
        "SubagentStart": None,
        "SubagentStop": None,
        "ConfigChange": None,
    },
    file="settings.json",
    shared=".claude/settings.json",
    unshared=".claude/settings.local.json",
    off_switch="disableAllHooks",
    managed_only="allowManagedHooksOnly",
    reports=("PostToolBatch", "PostToolUseFailure", "SessionEnd", "SubagentStart", "SubagentStop"),
    has_status_line=True,
    wraps_shell=True,
    hook_shell="sh",
    project_variables=("CLAUDE_PROJECT_DIR",),
)
