"""The janitor of one project: what it does, in which order, and that it is the only one."""

from __future__ import annotations

import os
import time

from fusewire.config.rules import STATE_FOLDER
from fusewire.janitor.folder import Folder, open_memory
from fusewire.janitor.limits import Limits
from fusewire.util.errors import FusewireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from fusewire.janitor.cleanup import Cleanup
    from fusewire.janitor.usage import Usage

#: Seconds that a start of a session may take for it: an agent is waiting, and its hook has a deadline.
_AT_START = 3.0

#: Seconds to wait for another janitor.
_PATIENCE = 5.0


class Busy(FusewireError):
    """Another janitor is at work."""


class Janitor:
    """Cleans the memory folder of a project, and shows what is in it."""

    def __init__(self, root: str, limits: Limits, *, active: Collection[str] = ()) -> None:
        self.root = os.path.realpath(root)
        self.limits = limits
        own = os.environ.get("CLAUDE_CODE_SESSION_ID")
        self.active = frozenset(active) | ({own} if own else set())

    def clean(self, now: float, *, dry_run: bool = False, others: bool = True, seconds: float | None = None) -> Cleanup:
        """One run. `others` are the other folders that grow; after `seconds` nothing new is begun."""
        from fusewire.janitor.cleanup import Cleanup

        deadline = None if seconds is None else time.monotonic() + seconds
        cleanup = Cleanup(dry_run=dry_run)
        folder = self._folder()
        if folder is not None:
            with folder:
                self._alone(folder, cleanup, now, deadline)
        if not dry_run:
            from fusewire.util.gitdir import sweep

            sweep(now)
        if others and self.limits.other_folders:
            from fusewire.janitor.others import clean_others

            clean_others(self.root, self.limits, cleanup, now)
        return cleanup

    def usage(self) -> Usage:
        from fusewire.janitor.usage import usage_of

        folder = self._folder()
        if folder is None:
            return usage_of(None, self.limits)
        with folder:
            return usage_of(folder, self.limits)

    def is_due(self, now: float) -> bool:
        """Whether there is anything to do: a look at the names and a few small files."""
        from fusewire.janitor.due import anything_due

        folder = self._folder()
        if folder is None:
            return False
        with folder:
            return anything_due(folder, self.limits, self.active, now)

    def _folder(self) -> Folder | None:
        return open_memory(self.root, self.limits.folder, self.limits.other_folders)

    def _alone(self, folder: Folder, cleanup: Cleanup, now: float, deadline: float | None) -> None:
        if cleanup.dry_run:
            self._tidy(folder, cleanup, now, deadline)
            return
        from fusewire.util.files import FileLock, make_folder

        try:
            state = make_folder(self.root, STATE_FOLDER)
            with FileLock(os.path.join(state, "janitor.lock"), wait=_PATIENCE if deadline is None else 0.2):
                if not folder.lock():
                    raise BlockingIOError
                self._tidy(folder, cleanup, now, deadline)
        except BlockingIOError:
            raise Busy(f"another janitor is at work in {self.limits.folder}; try again in a moment") from None
        except OSError as error:
            cleanup.failed(f"{error.filename or self.limits.folder}: nothing more could be done", error)

    def _tidy(self, folder: Folder, cleanup: Cleanup, now: float, deadline: float | None) -> None:
        from fusewire.janitor.archives import remove_surplus
        from fusewire.janitor.ledgers import truncate
        from fusewire.janitor.packing import remove_temporary
        from fusewire.janitor.sessions import prune
        from fusewire.janitor.telemetry import rotate

        if not cleanup.dry_run:
            remove_temporary(folder)
        rotate(folder, self.limits, cleanup, now, deadline)
        staying = prune(folder, self.limits, self.active, cleanup, now, deadline)
        truncate(folder, staying, self.limits, cleanup, now)
        remove_surplus(folder, self.limits, cleanup)


def at_session_start(
    root: str, settings: Mapping[str, Any], session: str | None, active: Collection[str], now: float
) -> str:
    """The janitor at the start of a session: the line to show, or nothing. It never raises and never takes long."""
    try:
        janitor = Janitor(root, Limits.from_settings(settings), active={*active, *((session,) if session else ())})
        if not janitor.is_due(now):
            return ""
        cleanup = janitor.clean(now, others=False, seconds=_AT_START)
    except Busy:
        return ""
    except (FusewireError, OSError, ValueError) as error:
        return f"Memory cleanup was not done: {error}"
    if cleanup.failures:
        return f"{cleanup.report()}; not all could be done: {cleanup.problems[-1]} (see: fusewire janitor)"
    return cleanup.report() if cleanup.anything or cleanup.bytes_freed > 0 else ""
