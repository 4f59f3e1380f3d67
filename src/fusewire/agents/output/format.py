"""Recognise the output of one agent's command line, and take the text out of JSON that is cut or damaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fusewire.agents.output.conversation import Conversation
from fusewire.util.fast_json import JsonObject, loads

#: format, what must stand in a damaged text to be it, and where its text is
Shape = tuple[str, re.Pattern[str], re.Pattern[str]]

#: The inside of a JSON string, which may be cut.
JSON_STRING = r'"([^"\\]*(?:\\.[^"\\]*)*)'


def _no_error(text: str) -> JsonObject | None:
    return None


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """What an agent's `output.py` gives as `FORMAT`."""

    recognises: Callable[[JsonObject], bool]
    reader: type[Conversation]
    #: in the order of trust
    shapes: tuple[Shape, ...]
    #: formats that are one JSON object
    documents: tuple[str, ...] = ()
    #: the format of messages that come as one array, if that is another one
    array: str = ""
    #: types of messages that only count once the format is known
    later_types: tuple[str, ...] = ()
    #: the object of a failure that is printed on standard error, and nothing else
    error_in: Callable[[str], JsonObject | None] = _no_error


_MARKS = re.compile(
    r'"type": ?"(?:result|assistant|thread\.started|item\.completed|system)"'
    r'|"session_id"|"total_cost_usd"|"response": ?"'
)


def looks_like_an_answer(text: str) -> bool:
    """Whether what could not be read was an agent's JSON at all."""
    return bool(_MARKS.search(text))


def salvage(text: str, shapes: Iterable[Shape]) -> tuple[str, str] | None:
    """(format, the agent's text) out of a damaged JSON text."""
    for name, mark, place in shapes:
        found = place.findall(text) if mark.search(text) else []
        texts = [unescaped for raw in found if (unescaped := _unescaped(raw)).strip()]
        if texts:
            return name, texts[-1]
    return None


def _unescaped(raw: str) -> str:
    """The inside of a JSON string, also if it was cut in the middle of an escape."""
    for end in (len(raw), *range(len(raw) - 1, max(len(raw) - 7, -1), -1)):
        try:
            text = loads('"' + raw[:end].replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"')
        except ValueError:
            continue
        return str(text)
    return ""
