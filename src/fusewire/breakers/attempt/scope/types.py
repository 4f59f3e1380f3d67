"""The words of the scope lock: a slice's name, its scope, the answer for a path, and why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.breakers.attempt.scope.boundary import Entry

_SLICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class NoScope(FusewireError):
    """Nobody has said what is in scope. That is no empty scope: nothing is locked, and nothing can be judged."""

    def __init__(self, slice: str, found: str = "") -> None:
        super().__init__(
            f"no scope is defined for {slice}{found}: list files with `fusewire scope set {slice} PATTERN...`,"
            f" name the slice in CONTRACTS.md or contracts/*.md, or give it packages or deliverables in GRAPH.json"
        )


class Unjustifiable(FusewireError):
    """A justification that is none, or for a file that nobody but a person may change."""


@dataclass(frozen=True)
class Scope:
    """What one slice may change, and who said so."""

    slice: str
    entries: tuple[Entry, ...]
    #: given as `files_in_scope`: then nothing else counts
    explicit: bool


@dataclass(frozen=True)
class ScopeAnswer:
    """May this path be changed?"""

    path: str
    #: IN_SCOPE, JUSTIFIED or BLOCKED
    decision: str
    #: where the scope names it, or which justification does; empty if it is blocked
    source: str
    #: why it is blocked; empty if it is not
    reason: str
    #: the file that a justification would open; empty if none would
    opens: str = ""

    @property
    def allowed(self) -> bool:
        return self.decision != "BLOCKED"

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "decision": self.decision, "source": self.source or None, "reason": self.reason}


def slice_name(slice: str) -> str:
    """A slice's name as it was given, if it is one."""
    if not _SLICE.fullmatch(slice):
        shown = repr(slice[:80])
        raise FusewireError(
            f"{shown} is no slice id, no name of a slice; allowed: up to 64 letters, digits, dots, dashes and"
            f" underscores, for example S-1"
        )
    return slice
