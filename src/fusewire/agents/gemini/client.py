"""How Gemini CLI is installed and checked. Measured on Gemini CLI 0.61.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusewire.agents.gemini.trust import system_settings, trust_problems, undecided
from fusewire.agents.install.client import ALL_TOOLS, HOOK_SECONDS, Client, Registration
from fusewire.agents.install.command import shell_line
from fusewire.util.fast_json import JsonObject

_HOOK = "fusewire"


class GeminiClient(Client):
    """Gemini CLI: hooks have names, times are milliseconds, and only trusted folders have hooks."""

    __slots__ = ()

    def handler(self, event: str, line: list[str]) -> JsonObject:
        return {"type": "command", "name": _HOOK, "command": shell_line(line), "timeout": 1000 * HOOK_SECONDS}

    def other_settings(self, root: str) -> list[str]:
        return [system_settings()]

    def switches(self, settings: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        config = settings.get("hooksConfig") if isinstance(settings, dict) else None
        if not isinstance(config, dict):
            return
        if config.get("enabled") is False:
            yield ("hooksConfig", "enabled"), "take it out, or set it to true"
        disabled = config.get("disabled")
        if isinstance(disabled, list) and _HOOK in disabled:
            yield ("hooksConfig", "disabled"), f'take "{_HOOK}" out of the list'

    def adds_calls(self, one: JsonObject | None, other: JsonObject | None) -> bool:
        """The same line is run only once."""
        return one is None or other is None or any(one.get(key) != other.get(key) for key in ("name", "command"))

    def distrust(self, registration: Registration, root: str) -> list[tuple[str, str]]:
        return trust_problems(self, root)

    def undecided(self, root: str) -> list[str]:
        return undecided(self, root)


CLIENT = GeminiClient(
    name="gemini",
    title="Gemini CLI",
    events={
        "BeforeTool": ALL_TOOLS,
        "AfterTool": ALL_TOOLS,
        "BeforeAgent": None,
        "AfterAgent": None,
        "SessionStart": None,
        "SessionEnd": None,
    },
    file="settings.json",
    shared=".gemini/settings.json",
    reads_comments=True,
    project_variables=("GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"),
    shell_tool="run_shell_command",
    calls_have_ids=False,
)
