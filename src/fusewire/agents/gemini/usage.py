"""Read token usage from Gemini CLI's transcripts. On the hot path."""

from __future__ import annotations

from fusewire.core.money import Usage, token_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusewire.util.fast_json import JsonObject

RECORDS = ("gemini",)


def usages(record: JsonObject, state: object, wrong: list[str]) -> Iterator[Usage]:
    """The usage of one record. Cached tokens are a part of the input; thoughts are apart from the output."""
    usage = record.get("tokens")
    if not isinstance(usage, dict):
        return
    given = token_count(usage.get("input"), wrong)
    cached = min(given, token_count(usage.get("cached"), wrong))
    output = token_count(usage.get("output"), wrong) + token_count(usage.get("thoughts"), wrong)
    tokens = [given - cached + token_count(usage.get("tool"), wrong), output, cached, 0, 0, 0]
    yield Usage(record.get("id"), record.get("model"), tokens)
