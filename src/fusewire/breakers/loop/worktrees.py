"""Tell apart the loops that run in several worktrees of one repository: each is judged by its own work.

All worktrees see all branches, so that a loop would take its neighbour's commits for progress of its own. What another
loop's worktree has checked out is left out of the comparison, unless this loop merges it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fusewire.breakers.loop.overview import strictest
from fusewire.breakers.loop.state import LoopRecord
from fusewire.config.rules import DATABASE, find_project
from fusewire.engine.breaker import Breaker
from fusewire.util.durations import counted
from fusewire.util.errors import FusewireError
from fusewire.util.gitdir import find, top_above
from fusewire.util.processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.util.json_types import State
    from fusewire.worktree.snapshot import Snapshot

#: Worktrees that are looked at.
_MOST = 64


@dataclass(frozen=True)
class LinkedLoop:
    """The loop of another worktree of the same repository."""

    folder: str
    #: what is checked out there; empty if HEAD is on no branch
    branch: str
    state: State
    iterations: int
    #: whether an iteration is under way, and when the last one ended
    runs: bool
    ended_at: float

    @property
    def line(self) -> str:
        branch = f" ({self.branch})" if self.branch else ""
        runs = ", running" if self.runs else ""
        return f"{self.folder}{branch}: {self.state.replace('_', '-')}, {counted(self.iterations, 'iteration')}{runs}"

    def ran_since(self, moment: float) -> bool:
        return self.runs or self.ended_at >= moment


def other_loops(root: str) -> list[LinkedLoop]:
    """The loops of the repository's other worktrees, as far as they can be read; nothing is written."""
    top = top_above(os.path.realpath(root))
    repository = find(top) if top else None
    if top is None or repository is None:
        return []
    found = []
    for folder, branch in _worktrees(repository.common):
        home = find_project(folder) if os.path.isdir(folder) else folder
        if folder != top and os.path.exists(os.path.join(home, DATABASE)):
            try:
                found.append(_loop(folder, branch, home))
            except (FusewireError, OSError):  # damaged or busy: its own commands say so
                continue
    return [loop for loop in found if loop.iterations or loop.runs]


def own_part(before: Snapshot, after: Snapshot, others: Iterable[LinkedLoop]) -> tuple[Snapshot, Snapshot]:
    """Both snapshots without the worktrees of other loops, and the later one without their branches."""
    folders = {os.path.relpath(one.folder, after.root) for one in others}
    branches = {one.branch for one in others if one.branch}
    return _without(before, folders, set()), _without(after, folders, branches)


def _without(snapshot: Snapshot, folders: set[str], branches: set[str]) -> Snapshot:
    repositories = {
        path: replace(
            one,
            branches={name: at for name, at in one.branches.items() if name not in branches},
            files={name: entry for name, entry in one.files.items() if name.rstrip("/") not in folders},
        )
        for path, one in snapshot.repositories.items()
        if path not in folders
    }
    return replace(snapshot, repositories=repositories)


def _worktrees(common: str) -> list[tuple[str, str]]:
    """Every worktree of a repository and its branch, as git has them written down."""
    found = [(os.path.dirname(common), _branch(common))] if os.path.basename(common) == ".git" else []
    linked = f"{common}/worktrees"
    for name in sorted(os.listdir(linked))[:_MOST] if os.path.isdir(linked) else ():
        place = _line(f"{linked}/{name}/gitdir")
        if place:
            place = os.path.join(linked, name, place)  # it may be relative to where it is written
            found.append((os.path.dirname(os.path.realpath(place)), _branch(f"{linked}/{name}")))
    return found


def _branch(folder: str) -> str:
    head = _line(f"{folder}/HEAD")
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).rstrip("\n")
    except OSError:
        return ""


def _loop(folder: str, branch: str, home: str) -> LinkedLoop:
    with Breaker.open(project=home, read_only=True, patience=0.2) as breaker:
        record = LoopRecord.recalled(breaker.store)
        rows = breaker.store.circuits()
        states = {row.id: breaker.engine.view(row.id)[1] for row in rows if row.kind == "loop"}
        runs = any(is_alive(entry["owner"]) for entry in record.running.values())
        ended_at = record.history[-1]["at"] if record.history else 0.0
        return LinkedLoop(folder, branch, strictest(states), record.totals["iterations"], runs, ended_at)
