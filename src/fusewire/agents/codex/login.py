"""Say how Codex reaches its provider."""

from fusewire.agents.provider import Login

LOGIN = Login("openai", address="OPENAI_BASE_URL", host="api.openai.com", keys=("CODEX_API_KEY", "OPENAI_API_KEY"))
