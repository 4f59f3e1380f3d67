"""Read from the end of a transcript of Codex whether its session stopped at a usage limit."""

from __future__ import annotations

from fusewire.agents.last_session import LastSession
from fusewire.agents.output.answer import Limit
from fusewire.agents.transcripts.format_reader import moment
from fusewire.agents.values import amount, part, words
from fusewire.core.pacing import Window
from fusewire.util.fast_json import JsonObject

#: Where the transcripts are, below the client's home folder.
FILES = "sessions/*/*/*/rollout-*.jsonl"


def follow(record: JsonObject, session: LastSession) -> None:
    """After each reply the client notes how much of its two windows is used, and when they end."""
    payload = part(record.get("payload"))
    session.cwd = words(payload.get("cwd")) or session.cwd
    limits = part(payload.get("rate_limits"))
    if payload.get("type") != "token_count" or not limits:
        return
    named = [(name, part(limits.get(name))) for name in ("primary", "secondary")]
    session.windows = tuple(filter(None, (_window(name, window) for name, window in named)))
    session.answered_at = moment(record.get("timestamp"))
    credits = part(limits.get("credits"))
    beyond = credits.get("has_credits") is True or credits.get("unlimited") is True
    full = [] if beyond else [window for _, window in named if (amount(window.get("used_percent")) or 0) >= 100]
    ends = [end for window in full if (end := amount(window.get("resets_at"))) is not None]
    session.limit = Limit(max(ends, default=None), "usage limit") if full else None


def _window(name: str, given: JsonObject) -> Window | None:
    used, minutes, ends = (amount(given.get(key)) for key in ("used_percent", "window_minutes", "resets_at"))
    return None if used is None or not minutes or not ends else Window(name, used / 100, ends, minutes * 60)
