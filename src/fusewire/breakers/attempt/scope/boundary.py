"""Decide whether a path is in a slice's scope: patterns with the source of each, and justified files.

Patterns start at the project's root. A name without globs means that file, or that folder with all below; `*` stays
within a folder, `**` crosses. On the hook's way: nothing slow here.
"""

from __future__ import annotations

from fusewire.breakers.attempt.scope.places import closed
from fusewire.util.globs import path_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: (pattern, where it was written)
    Entry = tuple[str, str]

IN_SCOPE, JUSTIFIED, BLOCKED = "IN_SCOPE", "JUSTIFIED", "BLOCKED"

#: Patterns that a message names.
_NAMED = 5


class Boundary:
    """What one slice may change."""

    __slots__ = ("entries", "justified", "problem", "sessions", "slice", "stopped")

    def __init__(
        self,
        slice: str,
        entries: tuple[Entry, ...],
        justified: dict[str, str],
        problem: str = "",
        sessions: tuple[str | None, ...] = (),
        stopped: tuple[str, ...] = (),
    ) -> None:
        self.slice = slice
        self.entries = entries
        #: file -> the failing test that needs it
        self.justified = justified
        #: why its scope is unknown although its sources try to define it
        self.problem = problem
        #: those that it holds for while the slice is under way; None is every session
        self.sessions = sessions
        #: which rule has stopped the slice, why, and what to do next: it may change nothing now
        self.stopped = stopped

    def to_data(self) -> tuple[object, ...]:
        return self.slice, self.entries, self.justified, self.problem, self.sessions, self.stopped

    def holds_for(self, session: str | None) -> bool:
        return None in self.sessions or session in self.sessions

    @property
    def locks(self) -> bool:
        """A slice without a defined scope locks nothing before it is stopped."""
        return bool(self.problem or self.entries or self.stopped)

    def answer(self, path: str) -> tuple[str, str]:
        """The decision about a path of the project, and why."""
        why = closed(path)
        if why:
            return BLOCKED, why
        for pattern, source in self.entries:
            if covers(pattern, path):
                return IN_SCOPE, source
        if path in self.justified:
            return JUSTIFIED, f"needed by {self.justified[path]}"
        return BLOCKED, f"outside the scope of {self.slice}"

    def allows(self, path: str) -> bool:
        return self.answer(path)[0] != BLOCKED

    def stops(self, path: str) -> bool:
        """Whether it is stopped and the path is its own; without a defined scope every path is."""
        return bool(self.stopped) and (not self.entries or self.allows(path))

    def summary(self) -> str:
        """The scope in a few words."""
        names = list(dict.fromkeys(pattern for pattern, _ in self.entries))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return ", ".join(names[:_NAMED]) + more


def covers(pattern: str, path: str) -> bool:
    """Whether a pattern (normal, from the root) takes in a path."""
    if pattern == "." or path == pattern or path.startswith(f"{pattern.rstrip('/')}/"):
        return True  # also literally: folders are called `[id]`
    last = pattern.rstrip("/").rpartition("/")[2]
    if not any(mark in pattern for mark in "*?["):
        return False
    files_only = any(mark in last for mark in "*?[") and not pattern.endswith("/") and last != "**"
    whole = f"/{pattern}" if files_only else f"/{pattern.rstrip('/')}/**"
    return path_matches(f"/{path}", whole)
