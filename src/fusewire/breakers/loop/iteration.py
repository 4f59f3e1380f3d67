"""One iteration of an autonomous loop as facts: what its agent did, changed, printed and reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fusewire.breakers.loop.questions import ON_HUMAN

if TYPE_CHECKING:
    from fusewire.agents.output.answer import AgentOutput
    from fusewire.testruns.run import Problem, TestRun
    from fusewire.worktree.difference import TreeChange

#: What agents call work that is not meant to change a file.
READ_ONLY = {
    *("ANALYSIS", "ASSESSMENT", "AUDIT", "EXPLORATION", "INVESTIGATION", "PLANNING", "READ_ONLY", "RESEARCH"),
    *("REVIEW", "SECURITY_AUDIT", "CODE_REVIEW", "TRIAGE", "VERIFICATION"),
}

#: Which problem speaks for an iteration that has several.
_SPEAKS_FIRST = ("test", "build", "exception", "agent", "exit")

#: Ends that are not the agent's own: it may have had no time to fail.
CUT_SHORT = ("timeout", "idle", "stopped", "capped")

#: Characters of a list of names that is shown as evidence.
_SHOWN = 200

#: Failing tests that are remembered by name.
_NAMES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """What is known of an iteration once it has ended. Everything is small: texts are shortened, lists bounded."""

    #: `exit`, `timeout`, `idle`, `launch`, `crash`, `stopped`, or `capped`: the run's own time was up
    ended: str = "exit"
    #: why no progress could be expected: a question to the human, an outage, a limit, a tree that cannot be read
    blocked: str = ""
    #: it met a limit of the provider that says when it ends
    ends: bool = False
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
    #: the last test run
    tests: TestRun | None = None
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
    #: the agent says that all is done, and no check has proved it wrong
    finished: bool = False


def ending(why: str, code: int | None) -> str:
    """How it ended: `exit`, `timeout`, `idle`, `launch`, `crash`, or `stopped` by a person."""
    if why == "exit" and code is not None:
        if code == 124:  # coreutils' timeout around the agent
            return "timeout"
        if code in (126, 127):
            return "launch"
        if code >= 128 or code < 0:
            return "crash"
    return why


def facts_of(
    ended: str,
    answer: AgentOutput,
    change: TreeChange,
    tests: TestRun | None,
    tree_before: str,
    finished: bool,
) -> Iteration:
    """`tests` are those that the supervisor ran itself; without them, those that the agent printed."""
    status = answer.status
    cut_short = ended in CUT_SHORT
    error = None if cut_short else _speaker(answer.problems)
    tests = tests or answer.tests
    return Iteration(
        ended=ended,
        blocked=blocked(ended, answer, change),
        commits=change.commits,
        files=change.count,
        meaningful=len(change.meaningful),
        weakened=len(change.weakened),
        only_tests=change.only_tests,
        tests_added=change.tests_added,
        tree_before=tree_before,
        tree=change.tree,
        approach=change.approach,
        said_approach=_said(status.approach) if status else None,
        tasks_claimed=min(status.tasks_completed or 0, 100) if status and not cut_short else 0,
        tests=tests and replace(tests, failing=tests.failing[:_NAMES]),
        error=error.fingerprint if error else None,
        error_text=str(error or ""),
        builds=tuple(problem.fingerprint for problem in answer.problems if problem.source == "build"),
        lines=volume(ended, answer),
        answer=answer.fingerprint,
        read_only=status is not None and status.work_type in READ_ONLY,
        denied=answer.denied_in_a_row,
        denied_names=show_denied(answer),
        names=", ".join(change.files)[:_SHOWN],
        finished=finished,
    )


def show_denied(answer: AgentOutput) -> str:
    """What was denied, and what would allow it."""
    names = ", ".join(dict.fromkeys(answer.denied))
    names = names if len(names) <= _SHOWN else f"{names[:_SHOWN]}..."
    return f"{names} ({answer.remedy})" if answer.remedy else names


def blocked(ended: str, answer: AgentOutput, change: TreeChange) -> str:
    """Why no progress could be expected; structure says so, never a word in prose."""
    if ended == "stopped":
        return "interrupted by a person"
    if ended == "capped":
        return "cut short: the run's own time was up"
    if answer.limit is not None:
        return f"waiting for the provider's limit ({answer.limit.kind})"
    if answer.outage:
        return f"the model could not be reached: {answer.outage}"
    if change.problem:
        return f"unknown: {change.problem}"
    if answer.question and ended == "exit":
        return f"{ON_HUMAN}{answer.question}"
    return ""


def volume(ended: str, answer: AgentOutput) -> int | None:
    """Lines of output; where the format is one JSON object, lines of the text in it."""
    if ended != "exit":
        return None
    if answer.is_document:
        return answer.text.count("\n") + 1 if answer.text else 0
    return answer.lines


def _speaker(problems: tuple[Problem, ...]) -> Problem | None:
    return min(problems, key=lambda problem: _SPEAKS_FIRST.index(problem.source), default=None)


def _said(approach: str | None) -> str | None:
    words = " ".join((approach or "").lower().split())
    return words[:200] or None
