"""The answer of an agent, with the same fields for all agents."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fusewire.core.pacing import Window
from fusewire.testruns.errors import LIMIT
from fusewire.testruns.evidence import RunEvidence
from fusewire.testruns.run import Problem, TestRun


@dataclass(frozen=True)
class StatusBlock:
    """What stands between `---RALPH_STATUS---` and `---END_RALPH_STATUS---`; None where it cannot be read."""

    status: str | None = None
    tasks_completed: int | None = None
    files_modified: int | None = None
    tests_status: str | None = None
    work_type: str | None = None
    exit_signal: bool | None = None
    recommendation: str | None = None
    #: what the agent tries, in its own words (`APPROACH:`), and at what (`TASK:`)
    approach: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Limit:
    """The provider's own limit was reached, as its structure says."""

    #: when it is lifted (seconds since the epoch), where that was said
    resets_at: float | None
    kind: str


@dataclass(frozen=True)
class AgentOutput:
    """One answer, whole or as far as it came."""

    #: as its reader names it; `text` if it is no agent's JSON
    format: str = "text"
    #: whether the format is one JSON object
    is_document: bool = False
    #: what the JSON said that could not be read as its format wants; empty if everything could
    damage: str = ""
    #: the agent's final text, or the last text that it printed; at most 64 KiB, the end of it
    text: str = ""
    #: fingerprint of that text without what varies by itself (times, durations, ids, paths)
    fingerprint: str = ""
    #: lines and bytes of everything that was printed
    lines: int = 0
    bytes: int = 0
    status: StatusBlock | None = None
    tests: TestRun | None = None
    problems: tuple[Problem, ...] = ()
    #: what the format says about its own end: `completed`, `max_turns`, `hook_stopped`, ...; empty if nothing
    ended: str = ""
    is_error: bool = False
    #: requests to the model, tokens and dollars, where the format tells
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    session: str | None = None
    #: tools that were denied for want of a permission, in order, at most 50; and the longest row of them
    denied: tuple[str, ...] = ()
    denied_in_a_row: int = 0
    #: what would allow them, in the words of the agent's command line; empty if that is not known
    remedy: str = ""
    #: what the agent asks its user, if that is how its answer ends
    question: str | None = None
    limit: Limit | None = None
    #: why the model could not be reached (overloaded, network), as the structure says; empty if it could
    outage: str = ""
    #: the provider has answered a request
    replied: bool = False
    #: how far the windows of the provider's limit are used
    windows: tuple[Window, ...] = ()


def with_checks(answer: AgentOutput, checks: RunEvidence) -> AgentOutput:
    """The answer with what was checked after it; a test run among it replaces the agent's own."""
    own = (one for one in answer.problems if checks.tests is None or one.source != "test")
    problems = {one.fingerprint: one for one in (*checks.problems(), *own)}
    return replace(answer, tests=checks.tests or answer.tests, problems=tuple(problems.values())[:LIMIT])
