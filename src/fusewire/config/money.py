"""From tokens to dollars. On the hot path: the hook asks before every call.

Tokens are a list of six counts, in the order of `KINDS`. What a cached prompt costs differs tenfold from what a new one
costs, so the kinds are never added up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    #: name, prices, longest prompt that they hold for (0: any), prices of longer ones, factor of fast mode (0: unknown)
    Price = tuple[str, tuple[float, ...], int, tuple[float, ...], float]
    #: date of the table, then the models, longest name first; or nothing, and every model is unknown
    Prices = tuple[str, tuple[Price, ...]] | tuple[()]

#: Tokens by the million, and searches of the web by the thousand.
KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "web_search")
_PER = (1e6, 1e6, 1e6, 1e6, 1e6, 1e3)

#: More than any model takes or gives in one message; such a number is a mistake.
MOST = 50_000_000

#: What may follow a model's name without making it another model: claude-3-5-haiku-20241022-v1:0, gpt-5-2025-08-07.
_MARKS = frozenset(("latest", "preview", "exp", "1m", "v1", "v2", "001", "002", "customtools"))


def price_of(model: str, prices: Prices) -> Price | None:
    """What a model costs; None if the table does not know it: a newer version may cost ten times as much."""
    name = plain_name(model)
    for price in prices[1] if prices else ():
        known = price[0]
        if known[-1:] == "*":
            if name.startswith(known[:-1]):
                return price
        elif name.startswith(known) and (name == known or _is_mark(name[len(known) :])):
            return price
    return None


def plain_name(model: str) -> str:
    """Without the road it came by: us.anthropic.claude-..., openai/gpt-5, models/gemini-2.5-pro."""
    name = model.strip().lower()
    name = name[name.rfind("/") + 1 :]
    at = name.find("claude-")
    return name[at:].replace(".", "-") if at >= 0 else name


def _is_mark(rest: str) -> bool:
    """Whether a name's rest is a date or a mark of a version."""
    if rest[0] not in "-@[:":
        return False
    marked = False
    for part in rest[1:].rstrip("]").replace("@", "-").replace("[", "-").replace(":", "-").split("-"):
        if part in _MARKS or (part.isdigit() and (len(part) == 8 or (len(part) == 4 and part.startswith("20")))):
            marked = True
        elif not (marked and part.isdigit() and len(part) <= 2):
            return False
    return True


def dollars(tokens: Sequence[int], price: Price, *, prompt: int | None = None, fast: bool = False) -> float:
    """The cost of one message; `prompt` is its length, where that is not the sum of what went in."""
    _, usual, above, long, hurry = price
    went_in = tokens[0] + tokens[2] + tokens[3] + tokens[4] if prompt is None else prompt
    rates = long if above and went_in > above else usual
    total = 0.0
    for index in range(6):
        if tokens[index]:
            total += tokens[index] * rates[index] / _PER[index]
    return total * hurry if fast and hurry else total


def cost_of(usage: Any, model: str, prices: Prices) -> float | None:
    """What one message cost: Claude's usage, or six counts; None if the model is not in the table."""
    price = price_of(model, prices)
    if price is None:
        return None
    if not isinstance(usage, dict):
        return dollars(usage, price)
    return dollars(claude_tokens(usage, []), price, fast=usage.get("speed") == "fast")


def copilot_tokens(usage: dict[str, Any], wrong: list[str]) -> list[int]:
    """Copilot's usage of one request, whichever model it went to. What went in is all of it, cached or not."""
    read, written = count(usage.get("cacheReadTokens"), wrong), count(usage.get("cacheWriteTokens"), wrong)
    new = max(0, count(usage.get("inputTokens"), wrong) - read - written)
    return [new, count(usage.get("outputTokens"), wrong), read, written, 0, 0]


def claude_tokens(usage: dict[str, Any], wrong: list[str]) -> list[int]:
    """Claude's usage of one message. Writes to the cache cost by how long it keeps: five minutes, or an hour."""
    written = count(usage.get("cache_creation_input_tokens"), wrong)
    split = usage.get("cache_creation")
    hour = 0
    if isinstance(split, dict):
        hour = count(split.get("ephemeral_1h_input_tokens"), wrong)
        written = max(written, hour + count(split.get("ephemeral_5m_input_tokens"), wrong))
    tools = usage.get("server_tool_use")
    return [
        count(usage.get("input_tokens"), wrong),
        count(usage.get("output_tokens"), wrong),
        count(usage.get("cache_read_input_tokens"), wrong),
        written - hour,
        hour,
        count(tools.get("web_search_requests"), wrong) if isinstance(tools, dict) else 0,
    ]


def codex_counts(usage: dict[str, Any], wrong: list[str]) -> list[int]:
    """Input, of it read from and written to the cache, and output: of a whole session, so they may be large."""
    names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    return [count(usage.get(name), wrong, 1 << 50) for name in names]


def codex_tokens(counts: Sequence[int]) -> list[int]:
    given, cached, written, told = counts
    cached = min(given, cached)
    written = min(given - cached, written)
    return [given - cached - written, told, cached, written, 0, 0]


def gemini_tokens(usage: dict[str, Any], wrong: list[str]) -> list[int]:
    """Gemini counts what came from the cache among the input, and thoughts apart from the output."""
    given = count(usage.get("input"), wrong)
    cached = min(given, count(usage.get("cached"), wrong))
    told = count(usage.get("output"), wrong) + count(usage.get("thoughts"), wrong)
    return [given - cached + count(usage.get("tool"), wrong), told, cached, 0, 0, 0]


def count(value: object, wrong: list[str], most: int = MOST) -> int:
    """A number of tokens; what cannot be one is none, and is said."""
    if value is None:
        return 0
    if type(value) is int and 0 <= value <= most:
        return value
    wrong.append(f"a count of tokens is {str(value)[:40]!r}")
    return 0
