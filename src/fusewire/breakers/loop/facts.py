"""From what was seen of an iteration (its process, its answer, its tree) to the facts that are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusewire.breakers.loop.iteration import Iteration

if TYPE_CHECKING:
    from fusewire.agents.output.answer import AgentOutput
    from fusewire.testruns.run import Problem, TestRun
    from fusewire.worktree.change import TreeChange

#: What agents call work that is not meant to change a file.
READ_ONLY = {
    *("ANALYSIS", "ASSESSMENT", "AUDIT", "EXPLORATION", "INVESTIGATION", "PLANNING", "READ_ONLY", "RESEARCH"),
    *("REVIEW", "SECURITY_AUDIT", "CODE_REVIEW", "TRIAGE", "VERIFICATION"),
}

#: Which problem speaks for an iteration that has several.
_SPEAKS_FIRST = ("test", "build", "exception", "agent", "exit")

#: Characters of a list of names that is shown as evidence.
_SHOWN = 200

#: Failing tests that are remembered by name.
_NAMES = 50


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
    cut_short = ended in ("timeout", "idle", "stopped")
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
        tests=None
        if tests is None
        else (tests.passed, tests.failed, tests.skipped, tests.broken, tests.failing[:_NAMES]),
        error=error.fingerprint if error else None,
        error_text=f"{error.type}: {error.message}" if error else "",
        builds=tuple(problem.fingerprint for problem in answer.problems if problem.source == "build"),
        lines=volume(ended, answer),
        answer=answer.fingerprint,
        read_only=status is not None and status.work_type in READ_ONLY,
        denied=answer.denied_in_a_row,
        denied_names=", ".join(dict.fromkeys(answer.denied))[:_SHOWN],
        names=", ".join(change.files)[:_SHOWN],
        finished=finished,
    )


def blocked(ended: str, answer: AgentOutput, change: TreeChange) -> str:
    """Why no progress could be expected; structure says so, never a word in prose."""
    if ended == "stopped":
        return "interrupted by a person"
    if answer.limit is not None:
        return f"waiting for the provider's limit ({answer.limit.kind})"
    if answer.outage:
        return f"the model could not be reached: {answer.outage}"
    if change.problem:
        return f"unknown: {change.problem}"
    if answer.question and ended == "exit":
        return f"blocked on human: {answer.question}"
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
