"""Load model prices: the dated table that is shipped, and the overrides in `[prices."model"]`.

For the compiler of rules and for people; the hook gets the compact tuple that `load_prices` makes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from fusewire.config.settings import unknown
from fusewire.core.money import KINDS, plain_name
from fusewire.util.errors import ConfigError

if TYPE_CHECKING:
    from fusewire.core.money import Price

#: More than anything costs, and longer than any prompt or name.
_DEAREST = 100_000.0
_LONGEST_PROMPT = 1_000_000_000
_LONGEST_NAME = 100
_MOST_MODELS = 200

PRICE_KEYS = (*KINDS, "fast", "above_input_tokens", "long")
_WEB_SEARCH = 10.0


def load_prices(overrides: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[str, tuple[Price, ...]]:
    """The shipped prices with `overrides` (as `parse_prices` gives them) over them; plain data for `marshal`."""
    shipped = _shipped()
    tables: dict[str, Mapping[str, Any]] = dict(shipped["models"])
    for name, table in (overrides or {}).items():
        tables[name] = {**tables.get(name, {}), **table}
    found = [_price(name, table) for name, table in tables.items() if "input" in table and "output" in table]
    # The longest name first, so that the first that fits is the one that is meant.
    return shipped["as_of"], tuple(sorted(found, key=lambda price: (-len(price[0]), price[0])))


def source_of_prices() -> str:
    """Where the shipped prices are from, in words."""
    return str(_shipped()["source"])


def parse_prices(
    table: Mapping[str, Any], source: str = "fusewire.toml"
) -> tuple[dict[str, Mapping[str, Any]], list[ConfigError]]:
    """What is usable of `[prices]` in one configuration file, and what is wrong with the rest of it."""
    prices: dict[str, Mapping[str, Any]] = {}
    problems: list[ConfigError] = []
    for written, given in table.items():
        name = plain_name(written)
        section = f'[prices."{written[:_LONGEST_NAME]}"]'
        if not name.strip("*") or len(name) > _LONGEST_NAME or "*" in name[:-1]:
            allowed = f"a model's name of up to {_LONGEST_NAME} characters; at its end, * stands for any rest"
            problems.append(ConfigError(source, "[prices]", written, allowed))
        elif not isinstance(given, Mapping):
            problems.append(ConfigError(source, section, given, f"a table with {', '.join(PRICE_KEYS)}"))
        elif len(prices) >= _MOST_MODELS:
            problems.append(ConfigError(source, section, "...", f"up to {_MOST_MODELS} models"))
            break
        else:
            values = dict(_usable(given, source, section, problems))
            missing = [
                key for key in ("input", "output") if key not in {**_shipped()["models"].get(name, {}), **values}
            ]
            if missing:
                allowed = f"{' and '.join(missing)} must be given: the model has no price without"
                problems.append(ConfigError(source, section, dict(given), allowed))
            else:
                prices[name] = values
    return prices, problems


def _usable(
    given: Mapping[str, Any], source: str, section: str, problems: list[ConfigError]
) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if key == "long" and isinstance(value, Mapping):
            known = {name: amount for name, amount in value.items() if name in KINDS}
            for name in value:
                if name not in KINDS:
                    problems.append(unknown(source, f"{section} long.{name}", value[name], name, KINDS))
            yield "long", dict(_usable(known, source, f"{section} long:", problems))
            continue
        if key not in PRICE_KEYS:
            problems.append(unknown(source, f"{section} {key}", value, key, PRICE_KEYS))
        elif not _is_allowed(key, value):
            problems.append(ConfigError(source, f"{section} {key}", value, price_allowed(key)))
        else:
            yield key, value


def _is_allowed(key: str, value: Any) -> bool:
    if key == "above_input_tokens":
        return type(value) is int and 0 <= value <= _LONGEST_PROMPT
    return key != "long" and type(value) in (int, float) and 0 <= value <= _DEAREST


def price_allowed(key: str) -> str:
    """What stands behind a key of `[prices."model"]`, in words."""
    if key == "above_input_tokens":
        return f"a whole number of tokens up to {_LONGEST_PROMPT}; 0 for one price whatever the length"
    if key == "long":
        return f"a table of prices for longer prompts, with {', '.join(KINDS)}"
    if key == "fast":
        return "a factor of all prices, 0 (not known) or more"
    per = "thousand searches" if key == "web_search" else "million tokens"
    return f"dollars per {per}, from 0 to {_DEAREST:.0f}"


def _price(name: str, table: Mapping[str, Any]) -> Price:
    rates = _rates(table, {})
    above = int(table.get("above_input_tokens", 0)) if table.get("long") else 0
    long = _rates(table["long"], dict(zip(KINDS, rates, strict=True))) if above else ()
    return name, rates, above, long, float(table.get("fast", 0.0))


def _rates(table: Mapping[str, Any], usual: Mapping[str, float]) -> tuple[float, ...]:
    """In the order of `KINDS`. A kind without a price is never free: it costs what new input does, or more."""
    given = {**usual, **table}
    new = float(given["input"])
    write = float(given.get("cache_write", new * 1.25))
    return (
        new,
        float(given["output"]),
        float(given.get("cache_read", new)),
        write,
        float(table.get("cache_write_1h", max(write, usual.get("cache_write_1h", new * 2)))),
        float(given.get("web_search", _WEB_SEARCH)),
    )


@cache
def _shipped() -> Mapping[str, Any]:
    text = resources.files("fusewire.config").joinpath("policies/prices.toml").read_text("utf-8")
    return tomllib.loads(text)
