"""Say how Copilot reaches its provider."""

from fusewire.agents.provider import Login

LOGIN = Login("github")
