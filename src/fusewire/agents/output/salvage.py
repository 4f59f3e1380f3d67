"""The second layer: text out of JSON that is cut or damaged."""

from __future__ import annotations

import re

from fusewire.util.fast_json import loads

_STRING = r'"([^"\\]*(?:\\.[^"\\]*)*)'

#: Format, what must stand in a damaged text to be it, and where its text is; in the order of trust.
_SHAPES = (
    (
        "claude-json",
        re.compile(r'"type": ?"result"|"total_cost_usd"|"num_turns"'),
        re.compile(rf'"result": ?{_STRING}'),
    ),
    ("claude-stream", re.compile(r'"type": ?"assistant"'), re.compile(rf'"type": ?"text", ?"text": ?{_STRING}')),
    ("codex", re.compile(r'"type": ?"item\.completed"'), re.compile(rf'"type": ?"agent_message", ?"text": ?{_STRING}')),
    ("gemini", re.compile(r'^\{\s+"session_id"'), re.compile(rf'"response": ?{_STRING}')),
    ("gemini", re.compile(r'"role": ?"assistant"'), re.compile(rf'"content": ?{_STRING}')),
)

_MARKS = re.compile(
    r'"type": ?"(?:result|assistant|thread\.started|item\.completed|system)"'
    r'|"session_id"|"total_cost_usd"|"response": ?"'
)


def looks_like_an_answer(text: str) -> bool:
    """Whether what could not be read was an agent's JSON at all."""
    return bool(_MARKS.search(text))


def salvaged(text: str) -> tuple[str, str] | None:
    """(format, the agent's text) out of a damaged JSON text."""
    for name, mark, place in _SHAPES:
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
