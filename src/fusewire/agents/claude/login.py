"""Say how Claude Code reaches its provider."""

from fusewire.agents.provider import Login

LOGIN = Login(
    "anthropic",
    switches=(
        ("CLAUDE_CODE_USE_BEDROCK", "bedrock"),
        ("CLAUDE_CODE_USE_VERTEX", "vertex"),
        ("CLAUDE_CODE_USE_FOUNDRY", "foundry"),
    ),
    address="ANTHROPIC_BASE_URL",
    host="api.anthropic.com",
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
)
