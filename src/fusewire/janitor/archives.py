"""How many archives are kept: the last rotations of each file, and no more than the folder has room for."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from fusewire.janitor.cleanup import space
from fusewire.janitor.names import is_date, is_session_archive, is_telemetry, rotation
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.cleanup import Cleanup
    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits

#: Unknown files that a message names.
_NAMED = 3


class Archive:
    """A file that only the janitor makes, and may remove."""

    def __init__(self, parts: tuple[str, ...], facts: os.stat_result, limits: Limits) -> None:
        self.parts = parts
        self.size = facts.st_size
        known = rotation(parts[-1]) if len(parts) == 1 else None
        #: of which telemetry file; empty for a session's
        self.live = known.live if known and known.packed and is_telemetry(known.live, limits.telemetry) else ""
        self.micros = known.micros if known else facts.st_mtime_ns // 1000
        self.ours = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and bool(self.live or is_session_archive(parts))


def remove_surplus(folder: Folder, limits: Limits, cleanup: Cleanup) -> None:
    """Remove rotations beyond the number that is kept, then the oldest of all until the folder is within its limit."""
    files = [Archive(parts, facts, limits) for parts, facts in folder.walk()]
    archives = sorted((file for file in files if file.ours), key=lambda one: (one.micros, one.parts))
    # what a dry run would have freed by now is still on the disk
    total = sum(file.size for file in files) - (cleanup.bytes_freed if cleanup.dry_run else 0)
    for live in dict.fromkeys(one.live for one in archives if one.live):
        mine = [one for one in archives if one.live == live]
        for one in mine[: max(0, len(mine) - limits.telemetry_keep_rotations)]:
            _remove(folder, one, f"more than {limits.telemetry_keep_rotations} rotations", cleanup)
            archives.remove(one)
            total -= one.size
    rest = total - sum(one.size for one in archives)
    shown = limit_shown(limits.total_max_kb)
    if rest > limits.total_max_bytes:
        # What is not ours to remove is too much by itself. Our share stays bounded all the same.
        cleanup.left(f"{folder.shown} is over {shown}, and archives are not the reason: {_largest(files)}")
        total -= rest
    for one in archives:
        if total <= limits.total_max_bytes:
            break
        _remove(folder, one, f"the folder is over {shown}", cleanup)
        total -= one.size


def _largest(files: list[Archive]) -> str:
    others = sorted((file for file in files if not file.ours), key=lambda file: -file.size)
    return ", ".join(f"{path_shown('/'.join(file.parts))} ({space(file.size)})" for file in others[:_NAMED])


def _remove(folder: Folder, one: Archive, reason: str, cleanup: Cleanup) -> None:
    shown = path_shown("/".join(one.parts))
    if cleanup.dry_run:
        cleanup.archives_removed += 1
        cleanup.did(f"would remove {shown} ({reason})", one.size)
        return
    try:
        if len(one.parts) == 1:
            folder.unlink(one.parts[0])
        else:
            with folder.sub(one.parts[0]) as archives:
                with archives.sub(one.parts[1]) as day:
                    day.unlink(one.parts[2])
                _remove_empty(archives, one.parts[1])
    except FileNotFoundError:
        return
    except OSError as error:
        cleanup.failed(f"{shown} could not be removed", error)
        return
    cleanup.archives_removed += 1
    cleanup.did(f"removed {shown} ({reason})", one.size)


def _remove_empty(archives: Folder, day: str) -> None:
    if is_date(day):
        try:
            os.rmdir(day, dir_fd=archives.descriptor)
        except OSError:
            pass  # something is left in it


def limit_shown(kilobytes: int) -> str:
    """5120 and 5000 kilobytes are 5MB for whoever has set them."""
    step = next((step for step in (1024, 1000) if kilobytes >= step and kilobytes % step == 0), None)
    return f"{kilobytes // step}MB" if step else f"{kilobytes}KB"
