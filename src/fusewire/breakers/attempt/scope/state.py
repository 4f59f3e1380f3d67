"""Store what the scope lock keeps: files given for a slice, justifications, active slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from fusewire.util.errors import FusewireError
from fusewire.util.file_names import path_shown, path_word
from fusewire.util.quoting import quoted

if TYPE_CHECKING:
    from fusewire.stores import Store, Transaction

#: Slices that can be under way at once, and sessions that work on one of them.
SLICES = 64
SESSIONS = 8

#: Justifications of one slice that are kept.
KEPT = 200

_ACTIVE = "scope"

#: Characters of one field of a justification.
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


class Unjustifiable(FusewireError):
    """A justification that says nothing, or for a file that only a person may change."""


class Justification(TypedDict):
    """Why one file outside the scope has to change."""

    file: str
    #: the failing test that needs it
    test: str
    reason: str
    #: how the file relates to the boundary of the slice's contract
    relationship: str
    #: seconds
    at: float


# -- a slice ------------------------------------------------------------------------------------------------


def recall_slice(store: Store | Transaction, slice: str) -> tuple[list[str], list[Justification]]:
    """The patterns that were given for a slice, and its justifications; FusewireError if that is damaged."""
    try:
        data = store.recall(f"scope:{slice}") or {}
    except ValueError:
        raise _damaged(f"the scope of {slice}", f"fusewire scope set {slice}") from None
    patterns, records = data.get("patterns", []), data.get("justifications", [])
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        raise _damaged(f"the scope of {slice}", f"fusewire scope set {slice}")
    records = records if isinstance(records, list) else []
    return list(patterns), [one for one in records if _is_justification(one)]


def remember_slice(
    transaction: Transaction, slice: str, patterns: list[str], records: list[Justification], now: float
) -> None:
    transaction.remember(f"scope:{slice}", {"patterns": patterns, "justifications": records}, now)


def _is_justification(one: object) -> bool:
    return (
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in ("file", *BLANKS))
        and isinstance(one.get("at"), int | float)
    )


# -- the slices under way -----------------------------------------------------------------------------------


def recall_active(store: Store | Transaction) -> dict[str, list[str | None]]:
    """The slices under way, oldest first, and the sessions that each of them holds for; None is every session."""
    try:
        data = (store.recall(_ACTIVE) or {}).get("active", [])
    except ValueError:
        raise _damaged("the list of slices under way", "fusewire attempt start") from None
    found: dict[str, list[str | None]] = {}
    for entry in data if isinstance(data, list) else []:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
            raise _damaged("the list of slices under way", "fusewire attempt start")
        found[entry[0]] = [one for one in entry[1] if one is None or isinstance(one, str)]
    return found


def remember_active(transaction: Transaction, active: dict[str, list[str | None]], now: float) -> None:
    transaction.remember(_ACTIVE, {"active": [[slice, sessions] for slice, sessions in active.items()]}, now)


def _damaged(what: str, command: str) -> FusewireError:
    return FusewireError(f"{what} is damaged in the project's store; a person can write it again: {command}")


# -- a justification ----------------------------------------------------------------------------------------


def check_justification(file: str, test: str, reason: str, relationship: str, at: float) -> Justification:
    """The justification, its white space made even; Unjustifiable if a field of it says nothing."""
    test, reason, relationship = (" ".join(text.split()) for text in (test, reason, relationship))
    for name, text in zip(BLANKS, (test, reason, relationship), strict=True):
        if len(text) > _LONGEST:
            raise FusewireError(f"--{name} has {len(text)} characters; allowed: {_LONGEST}")
        if _says_nothing(text):
            raise Unjustifiable(f"unjustifiable: --{name} {text!r} says nothing")
    if _words(reason) == _words(relationship):
        raise Unjustifiable("unjustifiable: --reason and --relationship are the same")
    return {"file": file, "test": test, "reason": reason, "relationship": relationship, "at": at}


def _says_nothing(text: str) -> bool:
    words = _words(text)
    is_blank = text.startswith("<") and text.endswith(">")
    repeats = len(words) > 1 and len(set(words)) == 1
    return is_blank or repeats or not words or " ".join(words) in _EMPTY or text.lower().strip(" .!") in _EMPTY


def _words(text: str) -> list[str]:
    return [word for word in (part.strip(".,;:!?-_*'\"()[]…") for part in text.casefold().split()) if word]


def added(records: list[Justification], record: Justification) -> list[Justification]:
    """With one more; the same file again replaces the earlier one, and the oldest are forgotten."""
    return [*(one for one in records if one["file"] != record["file"]), record][-KEPT:]


def justification_lines(record: Justification) -> list[str]:
    """As the protocol writes it."""
    return [
        f"File: {path_shown(record['file'])}",
        f"Failing test: {record['test']}",
        f"Reason: {record['reason']}",
        f"Relationship: {record['relationship']}",
    ]


def how_to_justify(slice: str, path: str) -> str:
    """How to justify a file, with blanks for what only the agent can say; an empty path is one of them."""
    fields = " ".join(f"--{name} {quoted(blank)}" for name, blank in BLANKS.items())
    return f"fusewire scope justify {slice} {path_word(path or '<file>')} {fields}"
