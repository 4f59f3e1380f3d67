"""The way of everything that was set aside, also by a run that did not live to finish it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fusewire.janitor.holders import holders, inode
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
from fusewire.scope.naming import path_shown

if TYPE_CHECKING:
    from fusewire.janitor.cleanup import Cleanup

    #: a file that was set aside, its facts when it was packed, and the size of its archive
    Packed = tuple[Aside, os.stat_result, int]


class Finished:
    """What has become an archive, and what waits for a later run."""

    def __init__(self) -> None:
        self.packed: list[Aside] = []
        #: set aside, and who may still write to it
        self.held: list[tuple[Aside, str]] = []
        #: set aside as before, because it could not be packed
        self.failed: list[Aside] = []


def finish(asides: list[Aside], cleanup: Cleanup, now: float, deadline: float | None = None) -> Finished:
    """Pack what nobody writes to, then let go of it. The processes are looked at twice: before, and after."""
    result = Finished()
    found = {aside: facts for aside in asides if (facts := aside.folder.look(aside.name)) is not None}
    held = holders(found.values(), now)
    packed: list[Packed] = []
    for aside, facts in found.items():
        if inode(facts) in held:
            result.held.append((aside, held[inode(facts)]))
            continue
        try:
            packed.append((aside, *_pack(aside, now, deadline)))
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
    held = holders((facts for _, facts, _ in packed), now)
    for aside, facts, size in packed:
        try:
            # In this order: while nobody holds it, nobody can add to it, so that this look is the last word.
            if inode(facts) not in held and unchanged(aside.folder, aside.name, facts):
                aside.folder.unlink(aside.name)
                cleanup.bytes_freed += facts.st_size - size
                result.packed.append(aside)
            else:
                with aside.place() as place:
                    place.unlink(aside.archive)  # what was set aside has all of it, and more
                result.held.append((aside, held.get(inode(facts), "a process that wrote to it just now")))
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
