"""Read pieces of foreign JSON, which may be anything: each function gives what is asked for, or nothing."""

from __future__ import annotations

from fusewire.util.fast_json import JsonObject


def count(value: object) -> int | None:
    """A whole number that counts something, else None: JSON may hold -1, 1e999 and true."""
    number = amount(value)
    return int(number) if number is not None and number < 1e15 else None


def amount(value: object) -> float | None:
    """A finite number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= 1e300 else None


def total(*values: int | None) -> int | None:
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def words(value: object) -> str:
    """A text, or nothing."""
    return value if isinstance(value, str) else ""


def part(value: object) -> JsonObject:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def parts(value: object) -> list[JsonObject]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(content: object) -> str:
    """A text, or the texts of a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text_of(content.get("content") if "content" in content else content.get("text"))
    found = (
        [one if isinstance(one, str) else words(part(one).get("text")) for one in content or ()]
        if isinstance(content, list)
        else []
    )
    return "\n".join(text for text in found if text)
