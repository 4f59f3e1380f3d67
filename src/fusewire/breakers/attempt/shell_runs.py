"""One run of tests in an agent's shell: what its output says about the tests of a slice that are under way.

Only what the runner itself says counts. A test that the output does not name is judged where there can be no doubt:
the command asked for it alone, or everything is green and nothing was left out.
"""

from __future__ import annotations

from fusewire.breakers.attempt.test_commands import asks_for, covers, running_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.breakers.attempt.state import SliceRecord
    from fusewire.breakers.attempt.tracker import Attempts
    from fusewire.core.events import Event
    from fusewire.testruns.judge import RunVerdict

    Commands = list[list[str]]

#: Seconds that git may look for the name of a test.
_PATIENT = 5.0


class ShellTestRun:
    """One call that has run tests: its commands, where it began, what came back."""

    __test__ = False  # no test class, whatever pytest thinks

    __slots__ = ("code", "commands", "here", "output")

    def __init__(self, commands: Commands, here: str, output: str, code: int) -> None:
        self.commands, self.here, self.output, self.code = commands, here, output, code


def run_of(call: Event, commands: Commands, home: str) -> ShellTestRun | None:
    """The run of tests behind a call; None if there is none, or it was refused, interrupted, put in the background."""
    if not call.command or not call.result or call.result.startswith("PreToolUse:"):
        return None
    if (call.input or {}).get("run_in_background") is True:
        return None
    running = running_tests(call, commands, home)
    if not running:
        return None
    first, _, rest = call.result.partition("\n")
    number = first.removeprefix("Exit code ")
    if number != first and number.isdecimal():
        return ShellTestRun(running, call.cwd or home, rest, int(number))
    return ShellTestRun(running, call.cwd or home, call.result, 1 if call.failed else 0)


def verdicts_of(attempts: Attempts, slice_id: str, record: SliceRecord, run: ShellTestRun) -> dict[str, RunVerdict]:
    """What the output says about each test that is under way and not stopped."""
    from fusewire.testruns.cases import matching
    from fusewire.testruns.judge import judge
    from fusewire.testruns.runners import read_cases
    from fusewire.testruns.text import OutputLines

    under_way = [name for name, entry in record.tests.items() if entry.checkpoint]
    if not under_way or attempts.stops(slice_id):
        return {}
    cases = read_cases(OutputLines(run.output), None)
    if cases is None:
        return {}  # no runner's own words: cut short, quiet, or none that we know
    found = {}
    for test in under_way:
        if attempts.stops(slice_id, test):
            continue
        verdict = judge(test, run.output, run.code)
        named = bool(matching(test, cases.cases))
        alone = cases.tests.total == 1 and asks_for(run.commands, test)
        if named or (verdict.result == "fail" and alone) or (verdict.result == "pass" and _had(attempts, test, run)):
            found[test] = verdict
    return found


def _had(attempts: Attempts, test: str, run: ShellTestRun) -> bool:
    """Whether a green run that names nobody had this test in it: it is still there, and was not left out."""
    files = _files_with(attempts.root, test)
    return bool(files) and covers(run.commands, test, files, run.here, attempts.root)


def _files_with(root: str, test: str) -> list[str]:
    """The sources in which the name of a test stands; none where git cannot tell."""
    import re

    from fusewire.util.git import GitFailure, git

    name = re.split(r"::| > | \u203a |[.#/]", test.partition("[")[0])[-1].strip()
    try:
        found = git(root, "grep", "--untracked", "-lzwF", "-e", name, limit=_PATIENT) if name else b""
    except GitFailure:
        return []  # git also ends like this if there is none
    paths = found.decode("utf-8", "surrogateescape").split("\0")
    return [path for path in paths if path and not path.endswith((".md", ".txt", ".rst", ".json", ".log", ".xml"))]
