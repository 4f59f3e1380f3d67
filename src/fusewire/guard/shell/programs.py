"""Programs that are coding agents, and what shows that a process runs inside one."""

from __future__ import annotations

#: Programs that are agents themselves.
AGENT_PROGRAMS = frozenset(("claude", "codex", "copilot", "gemini"))

#: Where they lie under other names, and what runs those that are scripts.
AGENT_PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "/claude/versions/": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@github/copilot": "copilot",
}
SCRIPT_RUNTIMES = frozenset(("node", "nodejs", "bun", "deno"))

#: What coding agents put into the environment of the commands that they run.
AGENT_VARIABLES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "COPILOT_AGENT_SESSION_ID",
    "COPILOT_CLI",
    "FUSEWIRE_AGENT",
    "GEMINI_CLI",
)

#: Programs that start one.
STARTING_PROGRAMS = AGENT_PROGRAMS | {"fusewire"}
