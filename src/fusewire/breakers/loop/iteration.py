"""One iteration of an autonomous loop, as facts: what its agent did, changed, printed and reported."""

from __future__ import annotations

from fusewire.core.events import Noun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Iteration(Noun):
    """What is known once it has ended. Everything is small: texts are shortened, lists have an end."""

    __slots__ = (
        "answer",
        "approach",
        "blocked",
        "builds",
        "commits",
        "denied",
        "denied_names",
        "ended",
        "error",
        "error_text",
        "files",
        "finished",
        "lines",
        "meaningful",
        "names",
        "only_tests",
        "read_only",
        "said_approach",
        "tasks_claimed",
        "tests",
        "tests_added",
        "ticked",
        "tree",
        "tree_before",
        "weakened",
    )

    def __init__(self, **fields: Any) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, fields.pop(name, _UNKNOWN[name]))
        if fields:
            raise TypeError(f"an iteration has no {', '.join(fields)}")

    #: `exit`, `timeout`, `idle`, `launch` or `crash`
    ended: str
    #: why nobody could expect progress: a question to the human, an outage, a limit, a tree that cannot be read
    blocked: str
    #: new commits; files that changed; those whose change means something; tests that were deleted or weakened
    commits: int
    files: int
    meaningful: int
    weakened: int
    #: only tests that were there before changed; and how many test cases there are more than before
    only_tests: bool
    tests_added: int
    #: some of the changed files by name
    names: str
    #: fingerprints of the tree before and after, and of what was added and removed
    tree_before: str
    tree: str
    approach: str | None
    #: what the agent says it tries
    said_approach: str | None
    #: tasks of the plan that were ticked in it, by marks of their texts, and how many the agent says it has completed
    ticked: tuple[str, ...]
    tasks_claimed: int
    #: (passed, failed, skipped, broken, names of the failing ones) of the last test run
    tests: tuple[int, int, int, int, tuple[str, ...]] | None
    #: fingerprint of what failed in the end, and its text; None if nothing did
    error: str | None
    error_text: str
    #: fingerprints of compiler and linter messages at the end
    builds: tuple[str, ...]
    #: lines printed; None where that cannot be compared (the agent was cut short)
    lines: int | None
    #: fingerprint of the answer's text without what varies
    answer: str
    #: the agent says that its work changes no file: an audit, a review, research
    read_only: bool
    #: the longest row of calls that were denied for want of a permission
    denied: int
    denied_names: str
    #: the agent says that all is done, and nobody has proved it wrong
    finished: bool


_UNKNOWN: dict[str, Any] = {
    "ended": "exit",
    "blocked": "",
    "commits": 0,
    "files": 0,
    "meaningful": 0,
    "weakened": 0,
    "only_tests": False,
    "names": "",
    "tests_added": 0,
    "tree_before": "",
    "tree": "",
    "approach": None,
    "said_approach": None,
    "ticked": (),
    "tasks_claimed": 0,
    "tests": None,
    "error": None,
    "error_text": "",
    "builds": (),
    "lines": None,
    "answer": "",
    "read_only": False,
    "denied": 0,
    "denied_names": "",
    "finished": False,
}
