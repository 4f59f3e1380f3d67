"""Read the profiles of committed files from git's objects."""

from __future__ import annotations

from collections.abc import Iterable

from fusewire.util.git import GitFailure, Objects, git
from fusewire.worktree.commits import as_input
from fusewire.worktree.profile import PROFILED, Profile, profile_of

#: Texts that are read for one comparison; the files beyond are compared by their ids alone.
_READ_IN_ALL = 64 << 20


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
    shown = git(top, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=as_input(ids))
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
