"""Read from the end of a transcript of Claude Code whether its session stopped at a usage limit."""

from __future__ import annotations

from fusewire.agents.last_session import LastSession
from fusewire.agents.output.answer import Limit
from fusewire.agents.transcripts.format_reader import moment
from fusewire.agents.values import amount, part, words
from fusewire.util.fast_json import JsonObject

#: Where the transcripts are, below the client's home folder.
FILES = "projects/*/*.jsonl"


def follow(record: JsonObject, session: LastSession) -> None:
    """A request that was refused has the limit beside it; a reply of the model ends it."""
    session.cwd = words(record.get("cwd")) or session.cwd
    if record.get("type") != "assistant":
        return
    if record.get("error") == "rate_limit":
        quota = part(record.get("quotaLimits"))
        session.limit = Limit(amount(quota.get("resetsAt")), words(quota.get("rateLimitType")) or "rate_limit")
    elif not record.get("isApiErrorMessage"):
        session.limit, session.answered_at = None, moment(record.get("timestamp"))
