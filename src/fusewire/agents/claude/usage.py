"""Read token usage from Claude Code's transcripts. On the hot path.

Every line of a message repeats its usage. Cache writes cost by how long they are kept: five minutes, or an hour.
"""

from __future__ import annotations

from fusewire.core.money import Usage, token_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.util.fast_json import JsonObject

RECORDS = ("assistant",)


def usages(record: JsonObject, state: object, wrong: list[str]) -> Iterator[Usage]:
    """The usage of one record; what cannot be right is described in `wrong`."""
    message = record.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(usage, dict) or message.get("model") == "<synthetic>":
        return
    if isinstance(record.get("forkedFrom"), dict):
        return  # a copy: it was charged to the session that this one was forked from
    identity = message.get("id") or record.get("requestId") or record.get("uuid")
    model, fast = message.get("model"), usage.get("speed") == "fast"
    yield Usage(identity, model, tokens_of(usage, wrong), fast=fast)
    steps = usage.get("iterations")
    for number, step in enumerate(steps if isinstance(steps, list) else ()):
        # What was done beside the message itself, such as compacting the conversation, is not in its own counts.
        if isinstance(step, dict) and step.get("type") not in (None, "message"):
            key = f"{identity}#{number}" if identity else None
            yield Usage(key, step.get("model") or model, tokens_of(step, wrong), fast=fast)


def tokens_of(usage: JsonObject, wrong: list[str]) -> list[int]:
    """The six counts of one usage object."""
    written = token_count(usage.get("cache_creation_input_tokens"), wrong)
    split = usage.get("cache_creation")
    hour = 0
    if isinstance(split, dict):
        hour = token_count(split.get("ephemeral_1h_input_tokens"), wrong)
        written = max(written, hour + token_count(split.get("ephemeral_5m_input_tokens"), wrong))
    tools = usage.get("server_tool_use")
    return [
        token_count(usage.get("input_tokens"), wrong),
        token_count(usage.get("output_tokens"), wrong),
        token_count(usage.get("cache_read_input_tokens"), wrong),
        written - hour,
        hour,
        token_count(tools.get("web_search_requests"), wrong) if isinstance(tools, dict) else 0,
    ]
