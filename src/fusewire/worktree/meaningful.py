"""Tell which changed files are work: not white space, by-products, or tests that test less than before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from fusewire.worktree.path_kinds import is_by_product, is_test
from fusewire.worktree.profile import ABSENT, Profile
from fusewire.worktree.test_metrics import NOTHING, Shape, is_weaker, sums


class Side(NamedTuple):
    """A file before or after."""

    mode: int = 0
    id: str = ""
    profile: Profile | None = ABSENT


class Pair(NamedTuple):
    """A file that changed: what it was and what it is."""

    old: Side
    new: Side


def weakened(pairs: Mapping[str, Pair]) -> list[str]:
    """The tests that lost something, unless other changed tests have gained it: then it was moved."""
    tests = _tests(pairs)
    if not is_weaker(sums(new for _, new in tests.values()), sums(old for old, _ in tests.values())):
        return []
    return sorted(path for path, (old, new) in tests.items() if is_weaker(new, old))


def tests_added(pairs: Mapping[str, Pair]) -> int:
    tests = _tests(pairs).values()
    return sum(new[0] - old[0] for old, new in tests)


def _tests(pairs: Mapping[str, Pair]) -> dict[str, tuple[Shape, Shape]]:
    """The shapes of the changed tests, before and after."""
    return {
        path: (_shape(pair.old), _shape(pair.new))
        for path, pair in pairs.items()
        if is_test(path) and not is_by_product(path)
    }


def _shape(side: Side) -> Shape:
    return side.profile.shape if side.profile is not None else NOTHING


def meaningful(pairs: Mapping[str, Pair], but: list[str]) -> list[str]:
    """The files that are work, but for these; that a test is gone is none even if nothing was lost with it."""
    return sorted(
        path
        for path, pair in pairs.items()
        if path not in but and _is_work(path, pair) and (pair.new.mode or not is_test(path))
    )


def _is_work(path: str, pair: Pair) -> bool:
    old, new = pair
    if is_by_product(path) or old.id == new.id:
        return False
    if old.profile is None or new.profile is None:
        return True
    written_by_a_program = new.profile.generated if new.mode else old.profile.generated
    return not written_by_a_program and old.profile.squeezed != new.profile.squeezed


def only_tests(pairs: Mapping[str, Pair], paths: list[str]) -> bool:
    """Whether all of these are tests that were there before."""
    return bool(paths) and all(is_test(path) and pairs[path].old.mode for path in paths)


def approach(pairs: Mapping[str, Pair], paths: list[str]) -> str | None:
    """A fingerprint of the lines that were added and removed in these files, wherever they stand."""
    digest = hashlib.sha256()
    changed = False
    for path in sorted(paths):
        old, new = pairs[path]
        lines = new.profile.lines_against(old.profile) if old.profile and new.profile else None
        added, removed = lines if lines is not None else ([new.id.encode()], [b""])
        if added or removed:
            changed = True
            name = os.fsencode(path)
            head = f"{len(name)} {len(added)} {len(removed)}\0".encode()
            digest.update(head + name + b"".join(added) + b"\0" + b"".join(removed))
    return "sha256:" + digest.hexdigest() if changed else None
