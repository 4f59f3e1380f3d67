"""The difference of two snapshots, as the loop's detector reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TreeChange:
    """What happened to the tree between two snapshots. Paths are relative to the root, sorted."""

    #: why the trees could not be compared; empty if they could
    problem: str = ""
    #: new commits, in all repositories together (a merge is one too)
    commits: int = 0
    #: files whose content, mode or existence differs, and files of the new commits; at most `LISTED` are named
    files: tuple[str, ...] = ()
    #: how many there are in all
    count: int = 0
    #: those that are more than white space, lock files, logs, caches, generated files or weakened tests
    meaningful: tuple[str, ...] = ()
    #: every meaningful or weakened file is a test that was there before
    only_tests: bool = False
    #: tests that were deleted, or that have fewer tests or assertions or more skips than before
    weakened: tuple[str, ...] = ()
    #: how many test cases the changed test files have more than before
    tests_added: int = 0
    #: fingerprint of the content of the whole tree afterwards; the same content gives the same, committed or not
    tree: str = ""
    #: fingerprint of what was added and removed, without places and white space; None if nothing was
    approach: str | None = None


#: Paths that a change names; the rest is only counted.
LISTED = 200
