"""The way of everything that was set aside, also by a run that did not live to finish it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.janitor.names import (
    ARCHIVED,
    PRUNING,
    ROTATING,
    next_moment,
    rotation,
    rotation_name,
    session_archive,
    session_of,
)
from fusewire.janitor.packing import Aside, OutOfTime, compare, pack, unchanged
from fusewire.janitor.writers import has_writer
from fusewire.util.file_names import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.cleanup import Cleanup

    #: a file that was set aside, its facts when it was packed, and the size of its archive
    Packed = tuple[Aside, os.stat_result, int]


class Finished:
    """What has become an archive, and what waits for a later run."""

    def __init__(self) -> None:
        self.packed: list[Aside] = []
        #: set aside, and still open in a process that may write to it
        self.held: list[Aside] = []
        #: set aside as before, because it could not be packed
        self.failed: list[Aside] = []


def finish(asides: list[Aside], cleanup: Cleanup, now: float, deadline: float | None = None) -> Finished:
    """Pack what no process writes to, then remove it. Writers are looked for twice: before, and after."""
    result = Finished()
    packed: list[Packed] = []
    for aside in asides:
        try:
            if has_writer(aside.folder, aside.name, now):
                result.held.append(aside)
            else:
                packed.append((aside, *_pack(aside, now, deadline)))
        except FileNotFoundError:
            continue
        except OutOfTime:
            result.failed.append(aside)
            cleanup.left(f"{path_shown(aside.name)} takes too long now: left for a later run, or: fusewire janitor")
        except OSError as error:
            result.failed.append(aside)
            cleanup.failed(f"{path_shown(aside.name)} could not be packed, nothing of it is lost", error)
    let_go(packed, result, cleanup, now)
    return result


def let_go(packed: list[Packed], result: Finished, cleanup: Cleanup, now: float) -> None:
    """Remove what was packed, unless somebody has added to it meanwhile, or still can."""
    _sync([aside for aside, _, _ in packed])
    for aside, facts, size in packed:
        try:
            # In this order: without a writer nothing is added to it, so that the second look is the last word.
            if not has_writer(aside.folder, aside.name, now) and unchanged(aside.folder, aside.name, facts):
                aside.folder.unlink(aside.name)
                cleanup.bytes_freed += facts.st_size - size
                result.packed.append(aside)
            else:
                with aside.place() as place:
                    place.unlink(aside.archive)  # what was set aside has all of it, and more
                result.held.append(aside)
        except OSError as error:
            cleanup.failed(path_shown(aside.name), error)


def _sync(asides: list[Aside]) -> None:
    """The names of the archives are on the disk before anything goes: once for each folder, because it is slow."""
    for aside in {(id(aside.folder), aside.below): aside for aside in asides}.values():
        with aside.place() as place:
            place.sync()


def _pack(aside: Aside, now: float, deadline: float | None) -> tuple[os.stat_result, int]:
    """The archive of what was set aside; one that an interrupted run has written already is taken."""
    with aside.place(create=True) as place:
        number = 1
        while (there := place.look(aside.archive)) is not None:
            facts = aside.folder.look(aside.name)
            state = compare(place, aside.archive, aside.folder, aside.name)
            if state == "same" and facts is not None:
                return facts, there.st_size
            session = session_of(aside.name, PRUNING)
            if session:
                number += 1
                aside.archive = session_archive(session, number)
            elif state == "beginning":
                break  # ours, and now there is more of it
            else:
                _move_on(aside, now)
        return pack(aside.folder, aside.name, place, aside.archive, deadline)


def _move_on(aside: Aside, now: float) -> None:
    """The archive of this moment is another one: what was set aside gets a moment of its own."""
    known = rotation(aside.name)
    if known is None:
        raise OSError(22, "not a name of ours", aside.name)
    micros = next_moment(now, known.live, aside.folder.entries())
    name = rotation_name(known.live, micros, ROTATING)
    aside.folder.rename(aside.name, name)
    aside.name, aside.archive = name, rotation_name(known.live, micros, ARCHIVED)
