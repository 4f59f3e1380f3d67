"""Convert tokens to dollars. On the hot path: the hook asks before every call.

Tokens are a list of six counts, in the order of `KINDS`. A cached prompt costs a tenth of a new one, so the kinds are
never added up.
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

#: More than any model takes or returns in one message: a larger count is a mistake.
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
    """The model's name without its provider: us.anthropic.claude-..., openai/gpt-5, models/..."""
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


class Usage:
    """The tokens of one request to a model, as a transcript reports them."""

    __slots__ = ("fast", "identity", "model", "prompt", "tokens")

    def __init__(
        self, identity: Any, model: Any, tokens: list[int], *, prompt: int | None = None, fast: bool = False
    ) -> None:
        #: what the lines about one request share; None where every line is about another one
        self.identity = identity
        self.model = model
        self.tokens = tokens
        #: the length of the prompt, where it is not the sum of the tokens that went in
        self.prompt = prompt
        self.fast = fast


def cost_of(tokens: Sequence[int], model: str, prices: Prices, *, fast: bool = False) -> float | None:
    """The cost of one message; None if the model is not in the table."""
    price = price_of(model, prices)
    return None if price is None else dollars(tokens, price, fast=fast)


def token_count(value: object, wrong: list[str], most: int = MOST) -> int:
    """A number of tokens; anything else counts as 0 and is reported in `wrong`."""
    if value is None:
        return 0
    if type(value) is int and 0 <= value <= most:
        return value
    wrong.append(f"a count of tokens is {str(value)[:40]!r}")
    return 0
