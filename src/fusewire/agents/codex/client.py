"""How Codex is installed and checked. Measured on Codex 0.166.0."""

from __future__ import annotations

from fusewire.agents.codex.trust import SESSION_END_SECONDS, trust_problems
from fusewire.agents.install.client import HOOK_SECONDS, Client, Registration, plain_events
from fusewire.agents.install.command import shell_line
from fusewire.util.fast_json import JsonObject
from fusewire.util.quoting import quoted


class CodexClient(Client):
    """Codex: it starts the user's own shell, which may be of an unusual kind."""

    __slots__ = ()

    def handler(self, event: str, line: list[str]) -> JsonObject:
        seconds = SESSION_END_SECONDS if event == "SessionEnd" else HOOK_SECONDS
        return {"type": "command", "command": f"exec /bin/sh -c {quoted(shell_line(line))}", "timeout": seconds}

    def distrust(self, registration: Registration, root: str) -> list[tuple[str, str]]:
        return trust_problems(self, registration, root)


CLIENT = CodexClient(
    name="codex",
    title="Codex",
    events=plain_events(
        "PreToolUse PermissionRequest PostToolUse UserPromptSubmit SessionStart SessionEnd Stop"
        " SubagentStart SubagentStop"
    ),
    file="hooks.json",
    shared=".codex/hooks.json",
    reads_byte_order_mark=False,
    hook_shell="login",
)
