"""Sessions that cost something: what they cost stands in a transcript on disk, in the recorded shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.project import Project
from tests.helpers.session_hook import Said, Session

OPUS = "claude-opus-5-5"


@dataclass
class Paying(Session):
    """A session with a transcript of its own."""

    messages: int = 0

    def file(self, agent: str | None = None) -> Path:
        main = Path(self.transcript)
        return main if agent is None else main.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"

    def pays(
        self, dollars: float, *, model: str = OPUS, agent: str | None = None, at: str = "", same: bool = False
    ) -> None:
        """A reply that costs so much at the price of the shipped table ($20 for a million tokens of output)."""
        self.messages += not same
        tokens = round(dollars / 20 * 1_000_000)
        usage = {
            "input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "iterations": [],
            "speed": "standard",
        }
        message = {
            "id": f"msg_{self.id}_{self.messages}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": "On it."}],
            "usage": usage,
        }
        record = {
            "isSidechain": agent is not None,
            "message": message,
            "type": "assistant",
            "timestamp": at or "2100-01-01T00:00:00.000Z",
            "sessionId": self.id,
            "version": "2.1.325",
        }
        path = self.file(agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def asks(self, *, agent: str | None = None) -> Said:
        """One more call, always another one."""
        return self.before("Bash", {"command": f"ls part{self.calls}"}, agent=agent)[0]


def paying(project: Project, name: str = "first") -> Paying:
    return Paying(project, id=f"session-{name}", transcript=str(project.root.parent / "transcripts" / f"{name}.jsonl"))
