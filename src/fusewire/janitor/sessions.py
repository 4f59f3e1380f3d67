"""Pruning of session states: the old and the too many go into `session_archives/`, by the day of their last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.janitor.due import is_active, sessions_to_prune, why_left_alone
from fusewire.janitor.finishing import finish
from fusewire.janitor.names import PRUNING, SESSION_ARCHIVES, session_archive, session_of, session_state
from fusewire.janitor.packing import Aside, unchanged
from fusewire.janitor.telemetry import saved
from fusewire.janitor.writers import has_writer
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    import os
    from collections.abc import Collection

    from fusewire.janitor.cleanup import Cleanup
    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits

#: The end of 2099.
_LATEST = 4_102_444_799


def prune(
    folder: Folder,
    limits: Limits,
    active: Collection[str],
    cleanup: Cleanup,
    now: float,
    deadline: float | None = None,
) -> list[str]:
    """Archive what is to go; the names of the states that stay."""
    entries = folder.entries()
    reasons: dict[Aside, str] = {}
    for name, facts in entries.items():
        if session_of(name, PRUNING):
            _resume(folder, name, facts, active, reasons, cleanup)
    entries = folder.entries()  # some may have come back
    for name, facts in entries.items():
        if session_of(name) and (why_not := why_left_alone(facts)):
            cleanup.left(f"{path_shown(name)} {why_not}: left alone")
    leaving = sessions_to_prune(entries, limits, active, now)
    for name, reason in leaving.items():
        try:
            if has_writer(folder, name, now):
                cleanup.left(f"{path_shown(name)} is open in another process: left alone")
            elif cleanup.dry_run:
                cleanup.sessions_pruned += 1
                place = _shown(archive_of(folder, name, entries[name]))
                line = f"would prune session {path_shown(session_of(name))} ({reason}) -> {place}"
                cleanup.did(line, saved(folder, name))
            else:
                reasons[set_aside(folder, name, entries[name])] = reason
        except FileNotFoundError:
            continue
        except OSError as error:
            cleanup.failed(f"{path_shown(name)} could not be pruned", error)
    if not cleanup.dry_run:
        _finish(folder, reasons, cleanup, now, deadline)
    return [
        name
        for name, facts in entries.items()
        if session_of(name) and name not in leaving and not why_left_alone(facts)
    ]


def set_aside(folder: Folder, name: str, facts: os.stat_result) -> Aside:
    """The first step: a writer that replaces the state from now on makes a new one, which is not removed by mistake."""
    aside = archive_of(folder, name, facts)
    folder.rename(name, aside.name)
    if not unchanged(folder, aside.name, facts):
        folder.put_back(aside.name, name)
        raise FileNotFoundError(2, "another state has just taken its place", name)
    return aside


def archive_of(folder: Folder, name: str, facts: os.stat_result) -> Aside:
    """Where a state goes. Its own last change says the day, so that an interrupted run finds the place again."""
    from datetime import UTC, datetime

    session = session_of(name) or session_of(name, PRUNING)
    changed = min(max(facts.st_mtime, 0), _LATEST)  # a file's time can be anything
    day = f"{datetime.fromtimestamp(changed, UTC):%Y-%m-%d}"
    return Aside(folder, session_state(session, PRUNING), session_archive(session), (SESSION_ARCHIVES, day))


def _resume(
    folder: Folder,
    name: str,
    facts: os.stat_result,
    active: Collection[str],
    reasons: dict[Aside, str],
    cleanup: Cleanup,
) -> None:
    """An earlier run was killed: finish it, or give the state back to a session that has come back."""
    session = session_of(name, PRUNING)
    if cleanup.dry_run:
        cleanup.did(f"would finish the pruning of session {path_shown(session)}")
        return
    try:
        if folder.is_back(name, session_state(session)):
            return
        if is_active(session, active) and folder.put_back(name, session_state(session)):
            cleanup.did(f"gave session {path_shown(session)} its state back: it is active")
            return
    except OSError as error:
        cleanup.failed(path_shown(name), error)
        return
    why_not = why_left_alone(facts)
    if why_not:
        cleanup.left(f"{path_shown(name)} {why_not}: left alone")
    else:
        reasons[archive_of(folder, name, facts)] = "an earlier run was interrupted"


def _finish(folder: Folder, reasons: dict[Aside, str], cleanup: Cleanup, now: float, deadline: float | None) -> None:
    finished = finish(list(reasons), cleanup, now, deadline)
    for aside in finished.packed:
        cleanup.sessions_pruned += 1
        session = path_shown(session_of(aside.name, PRUNING))
        cleanup.did(f"pruned session {session} ({reasons[aside]}) -> {_shown(aside)}")
    for aside in finished.failed:
        folder.put_back(aside.name, session_state(session_of(aside.name, PRUNING)))
    for aside in finished.held:
        state = session_state(session_of(aside.name, PRUNING))
        folder.put_back(aside.name, state)
        cleanup.left(f"{path_shown(state)} is open in another process: left alone")


def _shown(aside: Aside) -> str:
    return path_shown("/".join((*aside.below, aside.archive)))
