"""Rotation of telemetry: set aside by one rename, a fresh file in its place, packed when nobody writes to it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from fusewire.janitor.due import is_aside, rotation_reason, why_left_alone
from fusewire.janitor.finishing import finish
from fusewire.janitor.names import ARCHIVED, ROTATING, is_telemetry, next_moment, rotation, rotation_name
from fusewire.janitor.packing import Aside, compressed
from fusewire.janitor.writers import has_writer
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.cleanup import Cleanup
    from fusewire.janitor.folder import Folder
    from fusewire.janitor.limits import Limits


def rotate(folder: Folder, limits: Limits, cleanup: Cleanup, now: float, deadline: float | None = None) -> None:
    """Rotate what is due, and finish what an earlier run has set aside."""
    entries = folder.entries()
    asides: dict[Aside, str] = {}
    for name, facts in entries.items():
        if is_aside(name, limits):
            _resume(folder, name, facts, asides, cleanup)
        elif is_telemetry(name, limits.telemetry):
            why_not = why_left_alone(facts)
            reason = "" if why_not else rotation_reason(folder, name, facts, limits, now)
            if why_not:
                cleanup.left(f"{path_shown(name)} {why_not}: left alone")
            elif reason and cleanup.dry_run:
                _foresee(folder, name, reason, cleanup, now)
            elif reason:
                _begin(folder, name, facts, reason, asides, cleanup, now)
    if cleanup.dry_run:
        return
    finished = finish(list(asides), cleanup, now, deadline)
    for aside in finished.packed:
        cleanup.did(f"{asides[aside]} -> {path_shown(aside.archive)}")
    for aside in finished.held:
        words = "still open in another process, packed when that has closed it"
        cleanup.did(f"{asides[aside]} -> {path_shown(aside.name)}: {words}")


def set_aside(folder: Folder, name: str, now: float) -> Aside:
    """The first step: the file gets its intermediate name. Whoever has it open goes on writing to it."""
    micros = next_moment(now, name, folder.entries())
    aside = rotation_name(name, micros, ROTATING)
    folder.rename(name, aside)
    return Aside(folder, aside, rotation_name(name, micros, ARCHIVED))


def start_afresh(folder: Folder, name: str, like: os.stat_result) -> None:
    """The second step: an empty file with the old one's mode, unless a writer was quicker."""
    try:
        descriptor = folder.create(name, stat.S_IMODE(like.st_mode))
    except FileExistsError:
        return
    try:
        folder.dress(descriptor, like)
    finally:
        os.close(descriptor)


def _begin(
    folder: Folder,
    name: str,
    facts: os.stat_result,
    reason: str,
    asides: dict[Aside, str],
    cleanup: Cleanup,
    now: float,
) -> None:
    try:
        aside = set_aside(folder, name, now)
    except FileNotFoundError:
        return  # somebody has removed it meanwhile
    except OSError as error:
        cleanup.failed(f"{path_shown(name)} could not be rotated", error)
        return
    try:
        start_afresh(folder, name, facts)
    except OSError as error:
        folder.put_back(aside.name, name)
        cleanup.failed(f"{path_shown(name)} could not be rotated", error)
        return
    cleanup.files_rotated += 1
    asides[aside] = f"rotated {path_shown(name)} ({reason})"


def _resume(folder: Folder, name: str, facts: os.stat_result, asides: dict[Aside, str], cleanup: Cleanup) -> None:
    """An earlier run was killed, or somebody still wrote to it."""
    known = rotation(name)
    if known is not None and not cleanup.dry_run and folder.is_back(name, known.live):
        return
    why_not = why_left_alone(facts)
    if why_not or known is None:
        cleanup.left(f"{path_shown(name)} {why_not}: left alone")
        return
    if cleanup.dry_run:
        cleanup.did(f"would finish the rotation of {path_shown(known.live)}: {path_shown(name)}")
        return
    try:
        if folder.look(known.live) is None:
            start_afresh(folder, known.live, facts)
    except OSError as error:
        cleanup.failed(path_shown(known.live), error)
    archive = rotation_name(known.live, known.micros, ARCHIVED)
    asides[Aside(folder, name, archive)] = f"finished the rotation of {path_shown(known.live)}"


def _foresee(folder: Folder, name: str, reason: str, cleanup: Cleanup, now: float) -> None:
    archive = rotation_name(name, next_moment(now, name, folder.entries()), ARCHIVED)
    cleanup.files_rotated += 1
    if has_writer(folder, name, now):
        cleanup.did(f"would rotate {path_shown(name)} ({reason}), and pack it when another process has closed it")
    else:
        cleanup.did(f"would rotate {path_shown(name)} ({reason}) -> {path_shown(archive)}", saved(folder, name))


def saved(folder: Folder, name: str) -> int:
    """What packing a file would free."""
    try:
        with open(folder.open(name), "rb") as file:
            packed = sum(map(len, compressed(file)))
            return file.tell() - packed
    except OSError:
        return 0
