"""One line for the foot of an agent's screen: state, what is nearest to its limit, spend, time left."""

from __future__ import annotations

from fusewire.util.durations import number, show_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Columns; beside it the agent's program shows things of its own.
WIDTH = 100

UNREADABLE = "fusewire ? state unreadable: fusewire doctor"

_GREEN, _YELLOW, _RED = "32", "33", "31"
_COLORS = {
    "CLOSED": _GREEN,
    "HALF_OPEN": _YELLOW,
    "UNHEARD": _YELLOW,
    "GONE": _RED,
    "?": _YELLOW,
    "OPEN": _RED,
    "HALTED": _RED,
    "LIMIT": _RED,
}

#: What the state alone does not say.
_WORDS = {
    "UNHEARD": "no hook has run in this session yet",
    "GONE": "its hooks were taken out, nothing is guarded",
    "LIMIT": "spend: every call is refused until a person grants more",
}


def status_line(seen: dict[str, Any], *, color: bool = False) -> str:
    """What `statusline.glance` has seen; the words fit into WIDTH columns, colours take none."""
    state = seen["state"]
    head = f"fusewire {state}"
    if color:
        return f"fusewire \033[{_COLORS[state]}m{state}\033[0m" + _body(seen, WIDTH - _width(head))
    return head + _body(seen, WIDTH - _width(head))


def _body(seen: dict[str, Any], room: int) -> str:
    """Behind the state: money has its place for certain, what else is too long is cut."""
    money = _money(seen["spend"])
    words = " · ".join(filter(None, _facts(seen)))
    tail = f" · {money}" if money else ""
    lead = "" if seen["state"] == "CLOSED" else " "
    if not words:
        return tail
    if not lead:  # nothing is wrong: what is nearest to a limit comes last
        return tail + _cut(f" · {words}", room - _width(tail))
    return _cut(f" {words}", room - _width(tail)) + tail


def _facts(seen: dict[str, Any]) -> Iterator[str]:
    if seen["halted"]:
        yield f"{seen['halted']} until you say something"
    yield _WORDS.get(seen["state"], "")
    circuits = seen["circuits"]
    if circuits and seen["state"] in ("OPEN", "HALF_OPEN"):
        yield _circuit(circuits[0])
        yield _others(circuits[1:])
    elif seen["nearest"] and seen["state"] == "CLOSED":
        yield _circuit(seen["nearest"])
    if seen["problem"]:
        yield seen["problem"]


def _circuit(one: dict[str, Any]) -> str:
    """`repetition Bash(make) 24s`."""
    name = f"{one['name']} {one['key']}" if one["key"] else one["name"]
    left = one["retry_after"]
    if one["phase"] == "open":
        return f"{name} {'until a person acts' if left is None else _time(left)}"
    if one["phase"] == "probe":
        return f"{name} {'ready to probe' if left is None else 'probe under way'}"
    return f"{name} {number(one['level'])}/{number(one['threshold'])}"


def _others(circuits: list[dict[str, Any]]) -> str:
    """`2 more OPEN`."""
    opened = sum(one["state"] == "OPEN" for one in circuits)
    half = len(circuits) - opened
    return ", ".join(f"{count} more {state}" for count, state in ((opened, "OPEN"), (half, "HALF_OPEN")) if count)


def _time(left: float) -> str:
    """Whole seconds, rounded up, so that whoever waits so long is not refused again."""
    return show_duration(-int(-left // 1))


def _money(spend: dict[str, Any]) -> str:
    if spend["usd"] is None:
        return ""
    limit = spend["limit_usd"]
    return f"${spend['usd']:.2f} of ${_dollars(limit)}" if limit else f"${spend['usd']:.2f}"


def _dollars(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else f"{amount:.2f}"


def _width(text: str) -> int:
    """Columns at most: what is not plain may take two."""
    return len(text) if text.isascii() else sum(1 if char.isascii() or char in "·…" else 2 for char in text)


def _cut(text: str, room: int) -> str:
    text = "".join(char if char.isprintable() else "?" for char in text)
    if _width(text) <= room:
        return text
    while text and _width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"
