"""Read token usage from Codex rollouts. On the hot path.

Codex reports running totals: what is new is the difference. A total that has fallen was started again.
"""

from __future__ import annotations

from fusewire.core.money import MOST, Usage, token_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fusewire.agents.spending.ledger import TranscriptFile
    from fusewire.util.fast_json import JsonObject

RECORDS = ("event_msg", "turn_context", "session_meta")

_COUNTS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")


def usages(record: JsonObject, state: TranscriptFile, wrong: list[str]) -> Iterator[Usage]:
    """The usage that one record adds to the totals before it."""
    payload = record.get("payload")
    if not isinstance(payload, dict):
        return
    model, before = state.counter or ("", None)
    when = _text(record.get("timestamp"), 30)
    if record.get("type") == "turn_context":
        state.counter = [_text(payload.get("model"), 100) or model, before]
    elif payload.get("forked_from_id") and len(when) > 19:
        # The totals of the thread that this one was forked from are repeated within the second in which it was made.
        state.charged = max(state.charged, f"{when[:19]}.999Z")
    info = payload.get("info")
    if payload.get("type") != "token_count" or not isinstance(info, dict):
        return
    total, last = info.get("total_token_usage"), info.get("last_token_usage")
    if not isinstance(total, dict):
        return
    now = _counts(total, wrong)
    turn = _counts(last, wrong) if isinstance(last, dict) else None
    if wrong:
        return
    if before is None or any(new < old for new, old in zip(now, before, strict=True)):
        new = turn or now
    else:
        new = [new - old for new, old in zip(now, before, strict=True)]
    state.counter = [model, now]
    if state.was_charged(when):
        return
    if max(new) > MOST:
        wrong.append(f"a count of tokens is {max(new)}")
    else:
        yield Usage(None, model or "codex, model not told", _tokens(new), prompt=turn[0] if turn else None)


def _counts(usage: JsonObject, wrong: list[str]) -> list[int]:
    """Input, of it read from and written to the cache, and output: of a whole session, so they may be large."""
    return [token_count(usage.get(name), wrong, 1 << 50) for name in _COUNTS]


def _tokens(counts: Sequence[int]) -> list[int]:
    given, cached, written, output = counts
    cached = min(given, cached)
    written = min(given - cached, written)
    return [given - cached - written, output, cached, written, 0, 0]


def _text(value: object, limit: int) -> str:
    return value.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore") if isinstance(value, str) else ""
