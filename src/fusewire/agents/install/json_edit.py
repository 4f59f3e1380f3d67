"""Put one value into a JSON text, or take one out: everything else keeps its place, its spaces, its comments.

Taking out is the exact inverse of putting in, so that who changes their mind has the file that they had. What is put
in stands at the end of its object or list, behind the last comment there; the comma that this needs is set behind the
value before it. Where a box is written in one line, what is added stays in that line.
"""

from __future__ import annotations

import json
from typing import Any

from fusewire.agents.install.jsonc import JsonNode

#: Longer lines are broken; but what has nothing nested in it, such as one hook, is one line in any case.
_WIDTH = 100


def put_in(text: str, root: JsonNode, box: JsonNode, key: str | None, value: Any) -> str:
    """The text with one more member of an object, or one more element of a list (`key` is None)."""
    newline, unit = _newline(text), _unit(text, root)
    outer = _indent(text, box.start)
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not box.parts:
        lead = newline + outer + unit
        shown = name + _rendered(value, outer + unit, unit, newline)
        return text[: box.tail] + lead + shown + newline + outer + text[box.tail :]
    last = box.parts[-1]
    if "\n" in text[box.start : box.end] or "\r" in text[box.start : box.end]:
        inner = _indent(text, last.start) if _leads_its_line(text, last.start) else outer + unit
        shown = newline + inner + name + _rendered(value, inner, unit, newline)
    else:
        shown = " " + name + json.dumps(value, ensure_ascii=False)
    if last.comma is None:
        return text[: last.end] + "," + text[last.end : box.tail] + shown + text[box.tail :]
    return text[: box.tail] + shown + "," + text[box.tail :]


def take_out(text: str, box: JsonNode, index: int) -> str:
    """The text without one member or element, as it was before `put_in`."""
    part = box.parts[index]
    cuts = [(part.lead, part.end)]
    if part.comma is not None:
        cuts.append((part.comma, part.comma + 1))
    elif index:
        comma = box.parts[index - 1].comma
        assert comma is not None
        cuts.append((comma, comma + 1))
    if len(box.parts) == 1:
        end = cuts[-1][1]
        closing = _newline(text) + _indent(text, box.start)
        if text.startswith(closing, end):
            cuts.append((end, end + len(closing)))
    follows = part.end
    for start, end in sorted(cuts[1:]):
        follows = end if start == follows else follows
    if part.after_line_comment and not text[follows:].lstrip(" \t").startswith(("\r", "\n")):
        cuts[0] = (part.start, part.end)  # else the comment would swallow what follows
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _unit(text: str, root: JsonNode) -> str:
    """One step of indentation, as the file has it."""
    if root.parts and _leads_its_line(text, root.parts[0].start):
        return _indent(text, root.parts[0].start) or "  "
    return "  "


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _indent(text: str, at: int) -> str:
    """The white space that the line begins with."""
    line = text[_line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _leads_its_line(text: str, at: int) -> bool:
    return not text[_line_start(text, at) : at].strip(" \t")


def _rendered(value: Any, indent: str, unit: str, newline: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(indent) + len(flat) <= _WIDTH or not _nests(value):
        return flat
    inner = indent + unit
    if isinstance(value, dict):
        lines = [
            f"{json.dumps(key, ensure_ascii=False)}: {_rendered(one, inner, unit, newline)}"
            for key, one in value.items()
        ]
    else:
        lines = [_rendered(one, inner, unit, newline) for one in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    body = ",".join(f"{newline}{inner}{line}" for line in lines)
    return f"{opening}{body}{newline}{indent}{closing}"


def _nests(value: Any) -> bool:
    """Whether there is an object inside."""
    inside = value.values() if isinstance(value, dict) else value
    return any(isinstance(one, dict) or (isinstance(one, list) and _nests(one)) for one in inside)
