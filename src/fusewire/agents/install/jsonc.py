"""Parse JSON with comments and trailing commas, with the place of every value.

Agents' settings are files that people write: to change one of them without touching the rest, one must know where in
the text each value stands, and the standard library gives values only.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from fusewire.util.errors import FusewireError

_BLANK = " \t\r\n"
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')

#: Settings are a few levels deep; this is far more, and far less than what Python can recurse.
_DEEPEST = 200


COMMENT, TRAILING_COMMA = "a comment", "a comma that nothing follows"


class JsoncError(FusewireError):
    """A text that is no JSON, not even with comments: what is wrong, and in which line and column."""

    def __init__(self, text: str, at: int, what: str) -> None:
        super().__init__(f"{position(text, at)}: {what}")


@dataclass(frozen=True, slots=True)
class Part:
    """A member of an object or an element of a list.

    `lead` is the end of what stands before it, and whether that is a comment that only its line ends; `comma` is where
    the comma behind it stands, if any does.
    """

    key: str | None
    lead: int
    after_line_comment: bool
    start: int
    node: JsonNode
    comma: int | None

    @property
    def end(self) -> int:
        return self.node.end


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value, and that it is `text[start:end]`.

    In an object or a list, `tail` is the place behind everything that is in it, its last comment too: from there to the
    closing bracket is only white space.
    """

    value: Any
    start: int
    end: int
    parts: tuple[Part, ...] = field(default=())
    tail: int = 0

    def part(self, key: str) -> Part | None:
        """The member of that name; of two, the last, as every reader has it."""
        return next((part for part in reversed(self.parts) if part.key == key), None)


def position(text: str, at: int) -> str:
    """Where something stands, as editors count."""
    line = text.count("\n", 0, at) + 1
    return f"line {line} column {at - (text.rfind(chr(10), 0, at) + 1) + 1}"


def read(text: str) -> JsonNode:
    """The one value of a text; JsoncError if it is none."""
    reader = _JsonReader(text)
    node = reader.value(reader.skip(0), 0)
    rest = reader.skip(node.end)
    if rest < len(text):
        raise JsoncError(text, rest, "nothing may follow the closing bracket")
    return node


def beyond_json(text: str) -> list[tuple[int, str]]:
    """What a strict reader of JSON would stumble over: where, and what it is."""
    reader = _JsonReader(text)
    reader.skip(reader.value(reader.skip(0), 0).end)
    return sorted(reader.beyond.items())


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.beyond: dict[int, str] = {}

    def skip(self, at: int) -> int:
        """Behind white space and comments."""
        return self.behind(at)[0]

    def behind(self, at: int) -> tuple[int, int, bool]:
        """The next thing that is neither white space nor comment; the end of the last comment before it; its kind."""
        text, last, is_line = self.text, at, False
        while at < len(text):
            if text[at] in _BLANK:
                at += 1
            elif text.startswith("//", at):
                self.beyond[at] = COMMENT
                ends = [end for end in (text.find("\n", at), text.find("\r", at)) if end >= 0]
                at = last = min(ends, default=len(text))
                is_line = True
            elif text.startswith("/*", at):
                self.beyond[at] = COMMENT
                end = text.find("*/", at + 2)
                if end < 0:
                    raise JsoncError(text, at, "a comment that never ends")
                at = last = end + 2
                is_line = False
            else:
                break
        return at, last, is_line

    def value(self, at: int, depth: int) -> JsonNode:
        text = self.text
        if depth > _DEEPEST:
            raise JsoncError(text, at, f"nested more than {_DEEPEST} deep")
        if text[at : at + 1] in ("{", "["):
            return self._box(at, depth)
        if text[at : at + 1] == '"':
            return self._string(at)
        found = _SCALAR.match(text, at)
        if found is None:
            raise JsoncError(text, at, "a value is expected here")
        try:
            return JsonNode(json.loads(found.group()), at, found.end())
        except ValueError:  # a number of thousands of digits
            raise JsoncError(text, at, "a number that is too long") from None

    def _string(self, at: int) -> JsonNode:
        found = _STRING.match(self.text, at)
        if found is None:
            raise JsoncError(self.text, at, "a text that is not closed, or has characters that it must not have")
        return JsonNode(json.loads(found.group()), at, found.end())

    def _box(self, start: int, depth: int) -> JsonNode:
        """An object or a list."""
        text = self.text
        is_object = text[start] == "{"
        closing = "}" if is_object else "]"
        parts: list[Part] = []
        at, tail, is_line = self.behind(start + 1)
        while text[at : at + 1] != closing:
            if parts and parts[-1].comma is None:
                raise JsoncError(text, at, f"a comma or {closing!r} is expected here")
            begin, lead, is_after, key = at, tail, is_line, None
            if is_object:
                key, at = self._key(at)
            node = self.value(at, depth + 1)
            at, tail, is_line = self.behind(node.end)
            comma = None
            if text[at : at + 1] == ",":
                comma = at
                at, tail, is_line = self.behind(at + 1)
                if text[at : at + 1] == closing:
                    self.beyond[comma] = TRAILING_COMMA
            parts.append(Part(key, lead, is_after, begin, node, comma))
        value: Any = {part.key: part.node.value for part in parts} if is_object else [part.node.value for part in parts]
        return JsonNode(value, start, at + 1, tuple(parts), tail)

    def _key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] != '"':
            raise JsoncError(self.text, at, "a name in double quotes is expected here")
        name = self._string(at)
        at = self.skip(name.end)
        if self.text[at : at + 1] != ":":
            raise JsoncError(self.text, at, "a colon is expected here")
        return name.value, self.skip(at + 1)
