"""The justification of a change outside the scope: four fields, each of them said in earnest."""

from __future__ import annotations

from typing import Any

from fusewire.breakers.attempt.scope.types import Unjustifiable
from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown, path_word

#: Justifications of one slice that are kept.
KEPT = 200

_LONGEST = 1000

#: What is written where nothing can be said.
_EMPTY = frozenset(
    (
        "", "n/a", "na", "none", "nil", "null", "no", "nothing", "tbd", "todo", "fixme", "unknown", "not applicable",
        "reason", "relationship", "test", "failing test", "because", "needed", "see above", "same", "same as above",
        "dito", "ditto", "misc", "various", "x", "xx", "xxx", "asdf", "foo", "bar",
    )
)  # fmt: skip

#: What the refusal prints where the agent has to write.
BLANKS = {"test": "<failing test>", "reason": "<why this file>", "relationship": "<how it relates to the contract>"}


def justification(file: str, test: str, reason: str, relationship: str, at: float) -> dict[str, Any]:
    """The record of one; Unjustifiable if a field of it says nothing."""
    fields = {"test": test, "reason": reason, "relationship": relationship}
    for name, text in fields.items():
        fields[name] = text = " ".join(text.split())
        if len(text) > _LONGEST:
            raise FusewireError(f"--{name} has {len(text)} characters; allowed: {_LONGEST}")
        if _says_nothing(text):
            raise Unjustifiable(f"unjustifiable: --{name} {text!r} says nothing")
    said = [" ".join(_words(text)) for text in fields.values()]
    if said[1] == said[2] or said[0] == said[1] == said[2]:
        raise Unjustifiable("unjustifiable: --reason and --relationship are the same")
    return {"file": file, **fields, "at": at}


def _says_nothing(text: str) -> bool:
    words = _words(text)
    is_blank = text.startswith("<") and text.endswith(">")
    repeats = len(words) > 1 and len(set(words)) == 1
    return is_blank or repeats or not words or " ".join(words) in _EMPTY or text.lower().strip(" .!") in _EMPTY


def _words(text: str) -> list[str]:
    return [word for word in (part.strip(".,;:!?-_*'\"()[]…") for part in text.casefold().split()) if word]


def shown(record: dict[str, Any]) -> list[str]:
    """As the protocol writes it."""
    return [
        f"File: {path_shown(record['file'])}",
        f"Failing test: {record['test']}",
        f"Reason: {record['reason']}",
        f"Relationship: {record['relationship']}",
    ]


def added(records: list[dict[str, Any]], record: dict[str, Any]) -> list[dict[str, Any]]:
    """With one more; the same file again replaces the earlier one, and the oldest are forgotten."""
    return [*(one for one in records if one["file"] != record["file"]), record][-KEPT:]


def command(slice: str, path: str) -> str:
    """How to justify a file, with blanks for what only the agent can say; an empty path is one of them."""
    from fusewire.util.quoting import quoted

    fields = " ".join(f"--{name} {quoted(blank)}" for name, blank in BLANKS.items())
    return f"fusewire scope justify {slice} {path_word(path or '<file>')} {fields}"
