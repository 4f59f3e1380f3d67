"""The slices under way, ready for the hook: their boundaries in one small file beside the store.

The store has the truth; the file is there exactly while a slice is under way, and is `marshal` data with the stamps of
every place that could define a scope. When one of them differs, or the file is not what it should be, it is made anew.
"""

from __future__ import annotations

import os

from fusewire.breakers.attempt.scope.boundary import Boundary
from fusewire.breakers.attempt.scope.places import stamps
from fusewire.config.rules import SCOPE_FILE, STATE_FOLDER, sealed, unsealed
from fusewire.util.files import FileLock, claim, make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.engine.breaker import Breaker

#: Raised when the shape of the file changes.
_FORMAT = 1

FILE = SCOPE_FILE
LOCK = os.path.join(STATE_FOLDER, "scope.lock")


class Active:
    """One slice under way."""

    __slots__ = ("boundary", "problem", "sessions", "slice")

    def __init__(
        self,
        slice: str,
        sessions: tuple[str | None, ...],
        entries: tuple[tuple[str, str], ...],
        justified: tuple[str, ...],
        problem: str,
    ) -> None:
        self.slice = slice
        self.sessions = sessions
        #: why its scope cannot be told, though somebody has tried to define it
        self.problem = problem
        self.boundary = Boundary(slice, entries, justified)

    def holds_for(self, session: str | None) -> bool:
        return None in self.sessions or session in self.sessions

    @property
    def locks(self) -> bool:
        """A slice for which nobody has defined a scope locks nothing."""
        return bool(self.problem or self.boundary.entries)

    def to_data(self) -> tuple[Any, ...]:
        return self.slice, self.sessions, self.boundary.entries, self.boundary.justified, self.problem


def load(root: str, patience: float) -> list[Active]:
    """The slices under way, newest first; StoreError if that cannot be told."""
    try:
        claim(os.path.join(root, STATE_FOLDER))
        form, made_from, slices = unsealed(read_file(os.path.join(root, FILE)))
        if form == _FORMAT and made_from == stamps(root):
            return [Active(*data) for data in slices]
    except (OSError, ValueError, EOFError, TypeError):
        pass
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=root, patience=patience) as breaker:
        try:
            with FileLock(os.path.join(root, LOCK), wait=patience):
                return renew(breaker, root)
        except BlockingIOError:
            return compiled(breaker, root)  # whoever holds the lock writes the file


def doubt(root: str) -> None:
    """Before the store changes: should this process die in between, nobody takes the old file for the truth."""
    make_folder(root, STATE_FOLDER)
    replace_file(os.path.join(root, FILE), b"")


def renew(breaker: Breaker, root: str) -> list[Active]:
    """Write the file anew from the store, or remove it when nothing is under way. Under the lock."""
    made_from = stamps(root)
    active = compiled(breaker, root)
    path = os.path.join(root, FILE)
    try:
        if active:
            # version 2 of marshal is read by every Python: the hook may run on another one
            replace_file(path, sealed((_FORMAT, made_from, [one.to_data() for one in active]), 2))
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError:
        pass  # the answer is right all the same, only slower next time
    return active


def compiled(breaker: Breaker, root: str) -> list[Active]:
    from fusewire.breakers.attempt.scope.sources import read_scope
    from fusewire.breakers.attempt.scope.state import recall_active, recall_slice
    from fusewire.breakers.attempt.scope.types import NoScope
    from fusewire.util.errors import FusewireError

    found = []
    for slice, sessions in reversed(recall_active(breaker.store).items()):
        entries: tuple[tuple[str, str], ...] = ()
        justified: tuple[str, ...] = ()
        problem = ""
        try:
            given, records = recall_slice(breaker.store, slice)
            justified = tuple(record["file"] for record in records)
            entries = read_scope(root, slice, given).entries
        except NoScope:
            pass
        except FusewireError as error:
            problem = str(error)
        found.append(Active(slice, tuple(sessions), entries, justified, problem))
    return found
