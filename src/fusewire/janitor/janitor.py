"""Run the cleanup of one project's memory folder: in order, within a deadline, one process at a time."""

from __future__ import annotations

import os
import time

from fusewire.janitor import files
from fusewire.janitor.limits import (
    Limits,
    read_state,
    rotation_reason,
    sessions_to_prune,
    surplus_lists,
    why_untouchable,
)
from fusewire.janitor.names import LEFT_BEHIND, TEMPORARY, is_telemetry, rotation_aside, session_of
from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from fusewire.janitor.report import Cleanup, FolderUsage

#: Seconds that a cleanup may take at the start of a session: an agent is waiting, and its hook has a deadline.
_AT_START = 3.0

#: Seconds to wait for another janitor.
_LOCK_TIMEOUT = 5.0


class JanitorBusy(FusewireError):
    """Another janitor holds the lock."""


class Janitor:
    """Clean the memory folder of a project, and report what is in it."""

    def __init__(self, root: str, limits: Limits | None = None, *, active: Collection[str] = ()) -> None:
        self.root = os.path.realpath(root)
        self.limits = limits or Limits()
        own = os.environ.get("CLAUDE_CODE_SESSION_ID")
        self.active = frozenset(active) | ({own} if own else set())

    def clean(self, now: float, *, dry_run: bool = False, others: bool = True, seconds: float | None = None) -> Cleanup:
        """Clean once. `others` are the other configured folders; after `seconds` no further file is packed."""
        from fusewire.janitor.report import Cleanup

        deadline = None if seconds is None else time.monotonic() + seconds
        cleanup = Cleanup(dry_run=dry_run)
        folder = self._folder()
        if folder is not None:
            run = self._clean_folder if dry_run else self._clean_locked
            run(folder, cleanup, now, deadline)
        if not dry_run:
            from fusewire.util.gitdir import sweep

            sweep(now)
        if others and self.limits.other_folders:
            from fusewire.janitor.other_folders import clean_others

            clean_others(self.root, self.limits, cleanup, now)
        return cleanup

    def usage(self) -> FolderUsage:
        """Measure the memory folder."""
        from fusewire.janitor.report import measure

        return measure(self._folder(), self.limits)

    def is_due(self, now: float) -> bool:
        """Tell whether there is anything to do, by a look at the names and a few small files."""
        folder, limits = self._folder(), self.limits
        if folder is None:
            return False
        entries = files.scan(folder)
        for name, facts in entries.items():
            path = os.path.join(folder, name)
            if why_untouchable(facts):
                continue
            aside = rotation_aside(name)
            if name == TEMPORARY or (aside is not None and is_telemetry(aside.live, limits.telemetry)):
                return True
            if is_telemetry(name, limits.telemetry) and rotation_reason(path, facts, limits, now):
                return True
            if session_of(name) and surplus_lists(read_state(path), limits):
                return True
        if sessions_to_prune(entries, limits, self.active, now):
            return True
        return sum(facts.st_size for _, facts in files.walk(folder)) > limits.total_max_bytes

    def _folder(self) -> str | None:
        return files.find_memory(self.root, self.limits.folder, self.limits.other_folders)

    def _clean_locked(self, folder: str, cleanup: Cleanup, now: float, deadline: float | None) -> None:
        from fusewire.util.files import FolderLock

        try:
            with FolderLock(folder, wait=_LOCK_TIMEOUT if deadline is None else 0.2):
                files.remove(os.path.join(folder, TEMPORARY))
                self._clean_folder(folder, cleanup, now, deadline)
                if cleanup.files_rotated or cleanup.sessions_pruned:
                    from fusewire.util.gitexclude import hide

                    hide(folder, LEFT_BEHIND, made=False)
        except BlockingIOError:
            raise JanitorBusy(f"another janitor is at work in {self.limits.folder}; try again in a moment") from None
        except OSError as error:
            cleanup.failed(f"{error.filename or self.limits.folder}: nothing more could be done", error)

    def _clean_folder(self, folder: str, cleanup: Cleanup, now: float, deadline: float | None) -> None:
        from fusewire.janitor.archive import give_back, prune, rotate
        from fusewire.janitor.ledgers import truncate
        from fusewire.janitor.surplus import remove_surplus

        rotate(folder, self.limits, cleanup, now, deadline)
        if not cleanup.dry_run:
            give_back(folder, self.active)
        entries = files.scan(folder)
        due = sessions_to_prune(entries, self.limits, self.active, now)
        prune(folder, due, cleanup, now, deadline)
        staying = [name for name in entries if session_of(name) and name not in due]
        truncate(folder, staying, self.limits, cleanup, now)
        remove_surplus(folder, self.limits, cleanup)


def at_session_start(
    root: str, settings: Mapping[str, Any], session: str | None, active: Collection[str], now: float
) -> str:
    """Clean at the start of a session and return the line to show, or nothing. Never raises, and is quick."""
    try:
        janitor = Janitor(root, Limits.from_settings(settings), active={*active, *((session,) if session else ())})
        if not janitor.is_due(now):
            return ""
        cleanup = janitor.clean(now, others=False, seconds=_AT_START)
    except JanitorBusy:
        return ""
    except (FusewireError, OSError, ValueError) as error:
        return f"Memory cleanup was not done: {error}"
    if cleanup.failures:
        return f"{cleanup.report()}; not all could be done: {cleanup.problems[-1]} (see: fusewire janitor)"
    return cleanup.report() if cleanup.anything or cleanup.bytes_freed > 0 else ""
