"""Read from git's objects: the commits that are new in a repository, the files that they changed, their profiles."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from fusewire.util.git import GitFailure, Objects, git, only
from fusewire.worktree.path_kinds import is_state
from fusewire.worktree.profile import PROFILED, Profile, profile_of
from fusewire.worktree.repository import Repository
from fusewire.worktree.trees import empty_tree

#: The files of this many new commits are looked at; more come only from a fetch or a clone.
_LOOKED_AT = 500

#: Bytes that are read for the profiles of one comparison; the files beyond are compared by their ids alone.
_READ_IN_ALL = 64 << 20

_RAW = ("--raw", "-r", "-z", "--no-renames", "--no-abbrev")


class Raw(NamedTuple):
    """A file in two trees; a mode of 0 is a file that is not there."""

    old_mode: int
    mode: int
    old_id: str
    id: str


def new_commits(top: str, tips: Iterable[str], known: Iterable[str]) -> list[str]:
    """What can be reached from the tips and could not from the known ones, newest first."""
    wanted = sorted(set(tips) - set(known))
    if not wanted:
        return []
    try:
        return _listed(top, wanted, sorted(known))
    except GitFailure:  # some of the known ones are gone
        return _listed(top, wanted, existing(top, known))


def _listed(top: str, wanted: list[str], known: list[str]) -> list[str]:
    lines = [*wanted, *(f"^{one}" for one in known)]
    return git(top, "rev-list", "--stdin", given=_as_input(lines)).decode().split()


def _as_input(lines: list[str]) -> bytes:
    """Join lines for the standard input of git."""
    return ("\n".join(lines) + "\n").encode()


def existing(top: str, ids: Iterable[str]) -> list[str]:
    wanted = sorted(ids)
    shown = git(top, "cat-file", "--batch-check=%(objecttype)", given=_as_input(wanted))
    return [one for one, line in zip(wanted, shown.splitlines(), strict=False) if not line.endswith(b" missing")]


def switched_to(old: Repository, new: Repository, top: str) -> str | None:
    """The commit that HEAD was switched to, before anything was committed on it; None if it was not switched.

    What comes with another branch is not work of this session. A merge is: what it brings counts.
    """
    stayed = old.branches.get(old.branch) == new.branches.get(old.branch)
    if not old.head or (new.branch == old.branch and new.branch) or not stayed:
        return None
    asked = [new.head, *(f"^{one}" for one in old.tips)]
    shown = git(top, "rev-list", "--ignore-missing", "--parents", "--stdin", given=_as_input(asked))
    parents = {one: rest for one, *rest in map(str.split, shown.decode().splitlines())}
    at = new.head
    while at in parents:
        if len(parents[at]) != 1:
            return None
        at = parents[at][0]
    return at if at != old.head else None


def between(repository: Repository, top: str, old: str, new: str) -> dict[str, Raw]:
    """The files that differ between two commits; an empty one is the tree without files."""
    nothing = empty_tree(len(old or new))
    shown = git(top, "diff-tree", *_RAW, old or nothing, new or nothing, *_limit(repository))
    return {path: raw for _, path, raw in _rows(shown, repository)}


def files_of(repository: Repository, top: str, commits: list[str], before: str) -> dict[str, Raw]:
    """The files of new commits, as the first of them found them and as the last one left them.

    A commit that was only rewritten (amended, rebased) has files that HEAD had before: these are not new.
    """
    commits = commits[:_LOOKED_AT]
    own = list(_rows(_diffs(repository, top, commits), repository))
    wanted = {(commit, path) for commit, path, _ in own}
    if before:
        against = _diffs(repository, top, [f"{one} {before}" for one in commits])
        wanted &= {(commit, path) for commit, path, _ in _rows(against, repository)}
    paths = {path for _, path in wanted}
    found: dict[str, Raw] = {}
    for _, path, raw in own:
        if path in paths:
            newest = found.get(path, raw)
            found[path] = Raw(raw.old_mode, newest.mode, raw.old_id, newest.id)
    return found


def _diffs(repository: Repository, top: str, lines: list[str]) -> bytes:
    return git(top, "diff-tree", "--stdin", "--root", *_RAW, *_limit(repository), given=_as_input(lines))


def _limit(repository: Repository) -> tuple[str, ...]:
    return "--", *only(repository.prefix)


def _rows(shown: bytes, repository: Repository) -> Iterable[tuple[str, str, Raw]]:
    """The commit, the path relative to the root and the two sides of every file that is no state of ours."""
    inside = f"{repository.prefix}/" if repository.prefix else ""
    start = f"{repository.path}/" if repository.path else ""
    commit = ""
    parts = iter(shown.split(b"\0"))
    for part in parts:
        if not part.startswith(b":"):
            commit = part.decode()
            continue
        path = start + os.fsdecode(next(parts)).removeprefix(inside)
        old_mode, mode, old_id, new_id = part[1:].decode().split()[:4]
        if not is_state(path):
            modes = int(old_mode, 8), int(mode, 8)
            yield commit, path, Raw(*modes, old_id if modes[0] else "", new_id if modes[1] else "")


# -- profiles ----------------------------------------------------------------------------------------------


def profiles(top: str, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Profile]:
    """Map (path, id) to the profile; what is not a text, too large or missing is left out."""
    pairs = sorted(set(wanted))
    try:
        texts = _texts(top, _small(top, sorted({at for _, at in pairs})))
    except GitFailure:
        return {}
    found = {}
    for path, at in pairs:
        profile = profile_of(path, texts[at]) if at in texts else None
        if profile is not None:
            found[path, at] = profile
    return found


def _small(top: str, ids: list[str]) -> list[str]:
    if not ids:
        return []
    shown = git(top, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=_as_input(ids))
    room = _READ_IN_ALL
    small = []
    for line in shown.decode().splitlines():
        at, *rest = line.split()
        if rest[0] == "blob" and int(rest[1]) <= min(PROFILED, room):
            room -= int(rest[1])
            small.append(at)
    return small


def _texts(top: str, ids: list[str]) -> dict[str, bytes]:
    with Objects(top) as objects:
        return {at: found[1] for at in ids if (found := objects.read(at)) is not None}
