"""Tell which changes of protected files while a call ran are not the agent's, but git's or a person's.

Git moves between committed versions: its reflog has an entry of that time which is no mere commit, or its stash has
changed; what was there is among its objects, and so is what is there now, or HEAD has no such file.
"""

from __future__ import annotations

import os

from fusewire.util.fast_json import loads
from fusewire.util.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from fusewire.guard.calls import NotedCall

#: There while git is in the middle of something.
_IN_PROGRESS = (
    *("index.lock", "HEAD.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"),
    *("sequencer", "BISECT_LOG"),
)

#: The reflog's words for a commit of what was in the working tree already.
_COMMITS = (b"commit: ", b"commit (initial): ", b"commit (amend): ")

_REWRITE = b"filter-branch: "

#: What changes with the stash; and what a merge or cherry-pick writes that leaves the commit to a person.
_STASHES = ("refs", "refs/stash", "logs/refs/stash")
_MESSAGES = ("SQUASH_MSG", "MERGE_MSG")

_TAIL = 65536
_LARGEST = 32 * 1024 * 1024

#: Seconds that git may take to answer; the hook has ten.
_PATIENCE = 4.0


def git_folders(root: str) -> tuple[str, str, str] | None:
    """The top of the repository that a project lies in, its git directory, and the one that all worktrees share."""
    top = os.path.abspath(root)
    while not os.path.lexists(os.path.join(top, ".git")):
        if top == os.path.dirname(top):
            return None
        top = os.path.dirname(top)
    folder = os.path.join(top, ".git")
    try:
        if not os.path.isdir(folder):
            folder = os.path.join(top, _line(folder).removeprefix("gitdir: "))
        shared = os.path.join(folder, "commondir")
        return top, folder, os.path.join(folder, _line(shared)) if os.path.exists(shared) else folder
    except OSError:
        return None


def _line(path: str) -> str:
    return os.fsdecode(read_regular(path, 4096)).strip()


def in_progress(root: str) -> bool:
    """Whether git is in the middle of something in the project."""
    found = git_folders(root)
    return found is not None and any(os.path.lexists(os.path.join(found[1], name)) for name in _IN_PROGRESS)


def brought_by_git(root: str, changes: Mapping[str, bytes | None], since: float, log: int = 0) -> set[str]:
    """The names (relative to the project) that git has moved to another version since then.

    `changes` has of each what was there before; None if that is not known. `log` is the length of the reflog then, if
    that is known: its times are whole seconds.
    """
    found = git_folders(root)
    if found is None or not _has_moved(found[1], found[2], since, log):
        return set()
    from fusewire.util.git import GitFailure, git
    from fusewire.util.gitdir import find

    top = found[0]
    prefix = "" if os.path.realpath(root) == os.path.realpath(top) else os.path.relpath(root, top) + "/"
    repository = find(top)
    if repository is None:
        return set()
    target = _squashed(found[1], since) or "HEAD"
    asked = []
    for name, before in changes.items():
        if name[0] == "/" or "\n" in name or before is None:
            continue
        now = content_of(os.path.join(root, name))
        later = _ids(now, repository.format) if now is not None else [f"{target}:{prefix}{name}"] * 2
        asked.append((name, now is not None, [*_ids(before, repository.format), *later]))
    lines = "".join(f"{query}\n" for _, _, queries in asked for query in queries)
    if not lines:
        return set()
    try:
        given = os.fsencode(lines)
        printed = git(repository, "cat-file", "--batch-check", given=given, limit=_PATIENCE).splitlines()
    except GitFailure:
        return set()
    known = [not line.endswith(b" missing") for line in printed]
    brought = set()
    for at, (name, is_there, _) in enumerate(asked):
        was_known, is_known = any(known[4 * at : 4 * at + 2]), any(known[4 * at + 2 : 4 * at + 4])
        if was_known and is_known == is_there:
            brought.add(name)
    return brought


def _has_moved(folder: str, shared: str, since: float, log: int) -> bool:
    if _changed(os.path.join(shared, "refs", "original"), since):
        return False  # filter-branch: what it has removed is in none of the new versions
    actions = _actions(os.path.join(folder, "logs", "HEAD"), since, log)
    if any(action.startswith(_REWRITE) for action in actions):
        return False
    moved = any(not action.startswith(_COMMITS) for action in actions)
    traces = [*(os.path.join(shared, path) for path in _STASHES), *(os.path.join(folder, name) for name in _MESSAGES)]
    return moved or any(_changed(path, since) for path in traces)


def _squashed(folder: str, since: float) -> str:
    """Return the commit that `merge --squash` has brought since then and that is not committed yet; empty if none."""
    path = os.path.join(folder, "SQUASH_MSG")
    try:
        lines = read_regular(path, _TAIL).split(b"\n") if _changed(path, since) else []
    except OSError:
        return ""
    commit = next((line[7:].decode("ascii", "replace") for line in lines if line.startswith(b"commit ")), "")
    return commit if len(commit) >= 40 and commit.isalnum() else ""


def _changed(path: str, since: float) -> bool:
    try:
        return os.lstat(path).st_mtime >= since
    except OSError:
        return False


def _actions(path: str, since: float, log: int) -> list[bytes]:
    """What the reflog says of the time since then."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(log if log <= size else 0, size - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        head, _, action = line.partition(b"\t")
        when = head.rpartition(b"> ")[2].partition(b" ")[0]
        if when.isdigit() and int(when) >= int(since):
            found.append(action)
    return found


def content_of(path: str) -> bytes | None:
    """What git would store of a file or a link; None if there is none that can be read."""
    try:
        if os.path.islink(path):
            return os.fsencode(os.readlink(path))
        return read_regular(path, _LARGEST)
    except OSError:
        return None


def _ids(content: bytes, kind: str) -> list[str]:
    """The names of the object that git has of a content: as it is, or with other line ends."""
    import hashlib

    variants = (content, content.replace(b"\r\n", b"\n"))
    return [hashlib.new(kind, b"blob %d\0%s" % (len(one), one), usedforsecurity=False).hexdigest() for one in variants]


def is_granted(before: bytes, now: bytes, calls: Iterable[NotedCall]) -> bool:
    """Whether settings differ only in permissions for running calls: a person was asked and answered "always"."""
    try:
        old, new = loads(before.decode() or "{}"), loads(now.decode())
        given, added = _permissions(old), _permissions(new)
    except (ValueError, AttributeError, TypeError):
        return False
    if old != new or not given < added:
        return False
    return all(any(_fits(rule, call) for call in calls) for rule in added - given)


def _permissions(settings: Any) -> set[str]:
    """Take the permissions out of settings."""
    permissions = settings.get("permissions", {})
    rules = set(permissions.pop("allow", []))
    if not any(permissions.values()):
        settings.pop("permissions", None)
    return rules


def _fits(rule: str, call: NotedCall) -> bool:
    tool, _, what = rule.partition("(")
    if tool != call.tool:
        return False
    words = what.rstrip(")").removesuffix(":*").removesuffix(" *")
    return bool(words.strip("*")) and words in call.text if tool == "Bash" else True
