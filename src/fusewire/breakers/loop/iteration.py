"""One iteration of an autonomous loop, as facts: what its agent did, changed, printed and reported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """What is known once it has ended. Everything is small: texts are shortened, lists have an end."""

    #: `exit`, `timeout`, `idle`, `launch` or `crash`
    ended: str = "exit"
    #: why nobody could expect progress: a question to the human, an outage, a limit, a tree that cannot be read
    blocked: str = ""
    #: new commits; files that changed; those whose change means something; tests that were deleted or weakened
    commits: int = 0
    files: int = 0
    meaningful: int = 0
    weakened: int = 0
    #: only tests that were there before changed; and how many test cases there are more than before
    only_tests: bool = False
    tests_added: int = 0
    #: some of the changed files by name
    names: str = ""
    #: fingerprints of the tree before and after, and of what was added and removed
    tree_before: str = ""
    tree: str = ""
    approach: str | None = None
    #: what the agent says it tries
    said_approach: str | None = None
    #: tasks of the plan that were ticked in it, by marks of their texts, and how many the agent says it has completed
    ticked: tuple[str, ...] = ()
    tasks_claimed: int = 0
    #: (passed, failed, skipped, broken, names of the failing ones) of the last test run
    tests: tuple[int, int, int, int, tuple[str, ...]] | None = None
    #: fingerprint of what failed in the end, and its text; None if nothing did
    error: str | None = None
    error_text: str = ""
    #: fingerprints of compiler and linter messages at the end
    builds: tuple[str, ...] = ()
    #: lines printed; None where that cannot be compared (the agent was cut short)
    lines: int | None = None
    #: fingerprint of the answer's text without what varies
    answer: str = ""
    #: the agent says that its work changes no file: an audit, a review, research
    read_only: bool = False
    #: the longest row of calls that were denied for want of a permission
    denied: int = 0
    denied_names: str = ""
    #: the agent says that all is done, and nobody has proved it wrong
    finished: bool = False
