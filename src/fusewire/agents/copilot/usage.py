"""Read token usage from Copilot CLI's session events. On the hot path."""

from __future__ import annotations

from fusewire.core.money import Usage, token_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.util.fast_json import JsonObject

RECORDS = ("session.usage_record",)


def usages(record: JsonObject, state: object, wrong: list[str]) -> Iterator[Usage]:
    """The usage of one request, whichever model it went to. The input includes what was cached."""
    data = record.get("data")
    usage = data.get("usage") if isinstance(data, dict) else None
    if not isinstance(usage, dict):
        return
    read = token_count(usage.get("cacheReadTokens"), wrong)
    written = token_count(usage.get("cacheWriteTokens"), wrong)
    new = max(0, token_count(usage.get("inputTokens"), wrong) - read - written)
    tokens = [new, token_count(usage.get("outputTokens"), wrong), read, written, 0, 0]
    yield Usage(usage.get("apiCallId") or record.get("id"), usage.get("model"), tokens)
