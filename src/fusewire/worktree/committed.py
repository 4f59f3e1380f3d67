"""The profiles of files that are committed: their texts are read from git, all at once."""

from __future__ import annotations

from collections.abc import Iterable

from fusewire.util.git import GitFailure, git
from fusewire.worktree.profile import PROFILED, Profile, profile_of

#: Texts that are read for one comparison; the files beyond are compared by their ids alone.
_READ_IN_ALL = 64 << 20


def profiles(top: str, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Profile]:
    """(path, id) -> the profile; what is no text, too large or missing is left out."""
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
    shown = git(top, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=_asked(ids))
    room = _READ_IN_ALL
    small = []
    for line in shown.decode().splitlines():
        at, *rest = line.split()
        if rest[0] == "blob" and int(rest[1]) <= min(PROFILED, room):
            room -= int(rest[1])
            small.append(at)
    return small


def _texts(top: str, ids: list[str]) -> dict[str, bytes]:
    shown = git(top, "cat-file", "--batch", given=_asked(ids)) if ids else b""
    texts = {}
    at = 0
    while at < len(shown):
        end = shown.index(b"\n", at)
        head = shown[at:end].split()
        if len(head) != 3:
            at = end + 1
            continue
        size = int(head[2])
        texts[head[0].decode()] = shown[end + 1 : end + 1 + size]
        at = end + size + 2
    return texts


def _asked(ids: list[str]) -> bytes:
    return ("\n".join(ids) + "\n").encode()
