"""Take a snapshot of a project: every repository under the root, and the files that are in none.

Of a repository only HEAD, its branches and what differs from HEAD is kept, so that a snapshot grows with the work that
is not committed and not with the project.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from fusewire.util.git import GitFailure, is_ignored
from fusewire.util.gitdir import top_above
from fusewire.worktree import discover as territory
from fusewire.worktree.discover import named, shortened, survey
from fusewire.worktree.entries import Entry, Reader
from fusewire.worktree.profile import Profile
from fusewire.worktree.repository import Repository, overrides_of, with_answers
from fusewire.worktree.status import WorktreeStatus, branches_of, status_of
from fusewire.worktree.trees import overlaid

_AT_ONCE = 4

_FORMAT = "fusewire snapshot 1"

#: A type, a tuple of forms, a dictionary {str: form}, a list [form] for a tuple of any length, a set of alternatives.
_PROFILE = (bytes, frozenset((bytes, None)), (int, int, int), bool)
_ENTRY = (int, str, [int], frozenset((_PROFILE, None)), int, str)
_FILES = {"": _ENTRY}
_REPOSITORY = (str, str, str, {"": str}, _FILES, str, str)
_SNAPSHOT = (str, str, {"": _REPOSITORY}, _FILES, str, [str])


@dataclass(frozen=True)
class Snapshot:
    """The tree under a root at one moment."""

    root: str
    repositories: Mapping[str, Repository] = field(default_factory=dict)
    #: files outside repositories
    files: Mapping[str, Entry] = field(default_factory=dict)
    #: fingerprint of the whole content; empty if not all of it could be read
    tree: str = ""
    problems: tuple[str, ...] = ()

    def to_data(self) -> object:
        """Plain tuples, dictionaries and values, as `marshal` takes them."""
        repositories = {path: _plain_repository(one) for path, one in self.repositories.items()}
        return (_FORMAT, self.root, repositories, _plain(self.files), self.tree, self.problems)

    @classmethod
    def from_data(cls, given: object) -> Snapshot:
        """The snapshot again; ValueError if the data is damaged."""
        _, root, repositories, files, tree, problems = _checked(given)
        made = {
            path: Repository(path, prefix, head, branch, branches, _entries(own), own_tree, basis)
            for path, (prefix, head, branch, branches, own, own_tree, basis) in repositories.items()
        }
        return cls(root, made, _entries(files), tree, problems)


def take(root: str, previous: Snapshot | None = None) -> Snapshot:
    """A snapshot; the previous one of the same root only saves time."""
    root = os.path.realpath(root)
    if previous is None or previous.root != root:
        previous = Snapshot(root)
    now_ns = time.time_ns()
    above = _repository_of(root)
    prefix = os.path.relpath(root, above) if above and above != root else ""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = {"": _asked(pool, above, prefix)} if above else {}
        found = survey(root, inside=above is not None)
        for top in found.tops:
            asked[top] = _asked(pool, os.path.join(root, top), "")
        answers = {path: _answer(path, one, found.problems) for path, one in asked.items()}
    reader = Reader(root, _known(previous), now_ns)
    files = {path: reader.entry(path, seen) for path, seen in sorted(found.files.items())}
    repositories: dict[str, Repository] = {}
    for path in sorted(answers, reverse=True):  # the inner ones first: their trees are part of the outer ones'
        bare = Repository(path, "" if path else prefix)
        answer = answers[path]
        if answer is not None:
            bare = with_answers(bare, answer, reader, repositories, previous.repositories.get(path), found.problems)
        repositories[path] = bare
    tree = repositories[""].tree if above else overlaid(None, overrides_of(files, "", repositories), _no_tree)
    whole = not found.problems and all(one.tree for one in repositories.values())
    ordered = dict(sorted(repositories.items()))
    return Snapshot(root, ordered, files, tree if whole else "", tuple(found.problems))


def _repository_of(root: str) -> str | None:
    """The top of the repository that the root lies in, unless it is one that ignores the root."""
    above = top_above(root)
    if above is None or above == root:
        return above
    return None if is_ignored(above, os.path.relpath(root, above)) else above


def _asked(pool: ThreadPoolExecutor, top: str, prefix: str) -> tuple[Future[WorktreeStatus], Future[dict[str, str]]]:
    return pool.submit(status_of, top, prefix), pool.submit(branches_of, top)


def _answer(
    path: str, asked: tuple[Future[WorktreeStatus], Future[dict[str, str]]], problems: list[str]
) -> tuple[WorktreeStatus, dict[str, str]] | None:
    try:
        status, branches = asked[0].result(), asked[1].result()
    except GitFailure as failure:
        problems.append(f"{named(path)}: {failure}")
        return None
    problems.extend(map(shortened, status.problems))
    if len(status.rows) > territory.FILES:
        problems.append(territory.too_many("that are not committed"))
        return None
    return status, branches


def _known(previous: Snapshot) -> dict[str, Entry]:
    known = dict(previous.files)
    for repository in previous.repositories.values():
        known.update(repository.files)
    return known


def _no_tree(name: str) -> bytes:
    raise AssertionError(name)


# -- as plain data ------------------------------------------------------------------------------------------


def _plain_repository(one: Repository) -> tuple[object, ...]:
    return one.prefix, one.head, one.branch, dict(one.branches), _plain(one.files), one.tree, one.basis


def _plain(files: Mapping[str, Entry]) -> dict[str, tuple[object, ...]]:
    return {path: (*one[:3], one.profile and tuple(one.profile), *one[4:]) for path, one in files.items()}


def _checked(given: object) -> Any:
    """The data, if it has the form of a snapshot; ValueError if not."""
    if not _fits(given, _SNAPSHOT):
        raise ValueError("this is no snapshot")
    assert isinstance(given, tuple)
    if given[0] != _FORMAT:
        raise ValueError(f"a snapshot of another format: {given[0][:40]!r}")
    return given


def _entries(plain: dict[str, Any]) -> dict[str, Entry]:
    made = {}
    for path, (mode, at, signature, profile, head_mode, head_id) in plain.items():
        made[path] = Entry(mode, at, signature, profile and Profile(*profile), head_mode, head_id)
    return made


def _fits(given: object, form: Any) -> bool:
    if form is None:
        return given is None
    if isinstance(form, type):
        return type(given) is form
    if isinstance(form, frozenset):
        return any(_fits(given, one) for one in form)
    if isinstance(form, dict):
        return type(given) is dict and all(type(key) is str and _fits(one, form[""]) for key, one in given.items())
    if type(given) is not tuple:
        return False
    if isinstance(form, list):
        return all(_fits(one, form[0]) for one in given)
    return len(given) == len(form) and all(map(_fits, given, form))
