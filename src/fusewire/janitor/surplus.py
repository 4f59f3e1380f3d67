"""Remove rotations beyond the number to keep, then the oldest archives until the folder is within its limit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.janitor.report import format_limit, measure, space
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.limits import Limits
    from fusewire.janitor.report import Cleanup, MemoryFile

#: Unknown files that a message names.
_NAMED = 3


def remove_surplus(folder: str, limits: Limits, cleanup: Cleanup) -> None:
    usage = measure(folder, limits)
    archives = sorted(usage.archives, key=lambda one: (one.micros, one.name.split("/")))
    # what a dry run would have freed by now is still on the disk
    total = usage.total_bytes - (cleanup.bytes_freed if cleanup.dry_run else 0)
    for live in dict.fromkeys(one.live for one in archives if one.live):
        rotations = [one for one in archives if one.live == live]
        for one in rotations[: max(0, len(rotations) - limits.telemetry_keep_rotations)]:
            _remove(folder, one, f"more than {limits.telemetry_keep_rotations} rotations", cleanup)
            archives.remove(one)
            total -= one.bytes
    rest = total - sum(one.bytes for one in archives)
    limit = format_limit(limits.total_max_kb)
    if rest > limits.total_max_bytes:
        # other files exceed the limit by themselves: the archives alone are kept under it
        others = sorted((file for file in usage.files if file not in usage.archives), key=lambda file: -file.bytes)
        largest = ", ".join(f"{path_shown(file.name)} ({space(file.bytes)})" for file in others[:_NAMED])
        cleanup.left(f"{limits.folder} is over {limit}, and archives are not the reason: {largest}")
        total -= rest
    for one in archives:
        if total <= limits.total_max_bytes:
            break
        _remove(folder, one, f"the folder is over {limit}", cleanup)
        total -= one.bytes


def _remove(folder: str, one: MemoryFile, reason: str, cleanup: Cleanup) -> None:
    shown = path_shown(one.name)
    path = os.path.join(folder, one.name)
    if not cleanup.dry_run:
        try:
            os.unlink(path)
            if "/" in one.name:
                os.rmdir(os.path.dirname(path))
        except FileNotFoundError:
            return
        except OSError as error:
            if os.path.lexists(path):  # else only the folder is not empty yet
                cleanup.failed(f"{shown} could not be removed", error)
                return
    cleanup.archives_removed += 1
    cleanup.did(f"{'would remove' if cleanup.dry_run else 'removed'} {shown} ({reason})", one.bytes)
