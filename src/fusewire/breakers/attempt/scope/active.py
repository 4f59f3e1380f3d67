"""Keep the boundaries of the active slices in one small file beside the store, ready for the hook.

The store has the truth; the file is there exactly while a slice is under way, and is `marshal` data with the stamps of
every place that could define a scope. When one of them differs, or the file is damaged, it is written again.
"""

from __future__ import annotations

import os

from fusewire.breakers.attempt.scope.boundary import Boundary
from fusewire.breakers.attempt.scope.places import stamps
from fusewire.config.rules import SCOPE_FILE, STATE_FOLDER, sealed, unsealed
from fusewire.util.errors import FusewireError
from fusewire.util.files import FileLock, claim, make_folder, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.engine.breaker import Breaker

#: Raised when the shape of the file changes.
_FORMAT = 3

#: Characters of the reason why a slice is stopped: a refusal stays short.
_WHY = 200

#: Seconds that the store is waited for where only the slice's name is asked for.
_PATIENCE = 0.1

LOCK = os.path.join(STATE_FOLDER, "scope.lock")


def load(root: str, patience: float) -> list[Boundary]:
    """The slices under way, newest first; StoreError if that is unknown."""
    try:
        claim(os.path.join(root, STATE_FOLDER))
        form, made_from, slices = unsealed(read_file(os.path.join(root, SCOPE_FILE)))
        if form == _FORMAT and made_from == stamps(root):
            return [Boundary(*data) for data in slices]
    except (OSError, ValueError, EOFError, TypeError):
        pass
    from fusewire.engine.breaker import Breaker

    with Breaker.open(project=root, patience=patience) as breaker:
        try:
            with FileLock(os.path.join(root, LOCK), wait=patience):
                return renew(breaker, root)
        except BlockingIOError:
            return _compile(breaker, root)  # the process that holds the lock writes the file


def slice_of(root: str, session: str | None) -> str:
    """The slice that a session works on, such as `slice S-1`; empty if none, or if that is unknown."""
    if not os.path.lexists(os.path.join(root, SCOPE_FILE)):
        return ""
    try:
        found = load(root, _PATIENCE)
    except FusewireError:
        return ""
    fitting = (one for one in found if not any(one.sessions) or session in one.sessions)
    return next((f"slice {one.slice}" for one in fitting), "")


def invalidate(root: str) -> None:
    """Before the store changes: should this process die in between, the old file must not be taken for the truth."""
    make_folder(root, STATE_FOLDER)
    replace_file(os.path.join(root, SCOPE_FILE), b"")


def renew(breaker: Breaker, root: str) -> list[Boundary]:
    """Write the file from the store, or remove it when no slice is under way. Under the lock."""
    made_from = stamps(root)
    active = _compile(breaker, root)
    path = os.path.join(root, SCOPE_FILE)
    try:
        if active:
            # version 2 of marshal is read by every Python: the hook may run on another one
            replace_file(path, sealed((_FORMAT, made_from, [one.to_data() for one in active]), 2))
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError:
        pass  # the answer is right all the same, only slower next time
    return active


def _compile(breaker: Breaker, root: str) -> list[Boundary]:
    from fusewire.breakers.attempt.scope.sources import NoScope, read_scope
    from fusewire.breakers.attempt.scope.state import recall_active, recall_slice
    from fusewire.breakers.attempt.stops import record_of, stops_of
    from fusewire.core.events import plain
    from fusewire.util.errors import FusewireError

    found = []
    active = recall_active(breaker.store)
    for row in breaker.store.circuits():
        if row.kind == "attempt" and row.phase == "open" and row.id.count("/") == 1:
            active.setdefault(row.id.partition("/")[2], [])  # stopped, though never started
    for slice, sessions in reversed(active.items()):
        stop = next(iter(stops_of(breaker.engine, record_of(breaker.store, slice), slice)), None)
        one = Boundary(
            slice,
            (),
            {},
            "",
            tuple(sessions or [None]),
            (stop.rule, plain(stop.reason, _WHY), *stop.next) if stop else (),
        )
        try:
            given, records = recall_slice(breaker.store, slice)
            one.justified = {record["file"]: record["test"] for record in records}
            one.entries = read_scope(root, slice, given).entries
        except NoScope:
            pass
        except FusewireError as error:
            one.problem = str(error)
        if sessions or one.entries:
            found.append(one)
    return found
