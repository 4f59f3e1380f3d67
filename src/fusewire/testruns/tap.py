"""Read TAP (Test Anything Protocol), which `node --test` prints too: counts, and how each test ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusewire.testruns.cases import BROKEN, SPOILED, CaseResult, Cases
from fusewire.testruns.infrastructure import BUILD, ENVIRONMENT, kind_of, refused_in_node
from fusewire.testruns.run import RunSummary, counted
from fusewire.testruns.runner import TestRunner
from fusewire.testruns.text import OutputLines

#: Tests are not nested deeper than this: something else is indented.
_DEEPEST = 80
#: How node words the end of a test whose `before` hook failed, and the error of a file that did not end well.
CANCELLED = "test did not finish before its parent"
_FILE_FAILED = "test failed"


@dataclass
class NodeTest:
    """One result: a test, or what holds tests (a suite, or a test with subtests) and failed by itself."""

    titles: tuple[str, ...]
    #: `passed`, `failed` or `skipped`
    outcome: str
    #: the lines about it
    begin: int
    end: int
    said: str = ""
    #: the line that says so
    line: int = 0
    #: the `code` of the error, which only an error of node itself has
    code: str = ""
    #: others stand inside it
    parent: bool = False
    #: it is the hook of a suite that failed
    hook: bool = False

    @property
    def name(self) -> str:
        return " > ".join(self.titles)

    @property
    def cancelled(self) -> bool:
        return self.outcome == "failed" and self.said.startswith(CANCELLED)

    @property
    def file(self) -> bool:
        """A file of tests that ended badly; those of its tests that came to run are listed beside it."""
        return self.outcome == "failed" and self.said == _FILE_FAILED and "." in self.titles[-1]


@dataclass
class NodeRun:
    """All results of the last run, in the order of their lines, and what its summary counts."""

    tests: list[NodeTest]
    counts: dict[str, int]
    #: the number of the last line that belongs to it
    last: int

    def run(self, runner: str, lines: list[str]) -> RunSummary:
        failures = {test.name: test.said for test in self.tests if test.outcome == "failed" and not test.hook}
        outcomes = [test.outcome for test in self.tests if not test.hook]
        counts = {outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "skipped")}
        if {"pass", "fail", "cancelled", "skipped", "todo"} <= self.counts.keys():
            found = self.counts
            counts = {
                "passed": found["pass"], "failed": found["fail"] + found["cancelled"],
                "skipped": found["skipped"] + found["todo"],
            }  # fmt: skip
        hooks = {test.name: test.said for test in self.tests if test.hook}
        broken = ": ".join(min(hooks.items(), default=("", ""))).strip(": ")
        end = sum(map(len, lines[: self.last + 1])) + self.last
        return counted(runner, end, failures, broken=broken, broken_count=len(hooks), **counts)


_TAP_PLAN = re.compile(r"( *)1\.\.\d+(?: .*)?")
_TAP_RESULT = re.compile(r"( *)(not )?ok (\d+)\b(?: - | )?((?:\\.|[^#\\])*)(#.*)?")
_TAP_LEFT_OUT = re.compile(r"# *(?:SKIP|TODO)\b", re.IGNORECASE)
_TAP_COUNT = re.compile(r"# (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)")
_TAP_FIELD = re.compile(r" *(error|message|code|failureType|type): (.*)")
_TAP_BLOCK = re.compile(r"[|>][-+]?")


def tap_run(text: str) -> RunSummary | None:
    lines = text.split("\n")
    found = tap_tests(lines)
    return found.run("tap", lines) if found and found.tests else None


def tap_tests(lines: list[str]) -> NodeRun | None:
    """From the last start on; without a plan it is no TAP."""
    results = [index for index, line in enumerate(lines) if line.startswith(("ok ", "not ok "))]
    starts = [index for index, line in enumerate(lines) if line.startswith("TAP version ")]
    if not starts:
        # What stands inside the first result stands above it, and below the last result of the run before.
        firsts = [place for place, index in enumerate(results) if re.match(r"(?:not )?ok 1\b", lines[index])]
        starts = [results[place - 1] if place else -1 for place in firsts]
    if not starts:
        return None
    reader = _TapReader(lines)
    reader.read(max(starts[-1], 0))
    if not any(_TAP_PLAN.fullmatch(line) for line in lines if line.startswith("1..")):
        return None
    tests = sorted((test for test in reader.done() if test.begin > starts[-1]), key=lambda test: test.begin)
    return NodeRun(tests, reader.counts if "suites" in reader.counts else {}, reader.last)


class _TapReader:
    """Subtests stand above the result that holds them, and their plan between: what has no plan was printed."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.open: dict[int, list[NodeTest]] = {}
        self.planned: set[int] = set()
        self.counts: dict[str, int] = {}
        self.last = 0

    def read(self, index: int) -> None:
        while index < len(self.lines):
            line = self.lines[index]
            result = _TAP_RESULT.fullmatch(line) if "ok " in line else None
            if result and len(result[1]) <= _DEEPEST and not len(result[1]) % 4:
                index = self._result(result, index)
                continue
            if "1.." in line and (plan := _TAP_PLAN.fullmatch(line)):
                self.planned.add(len(plan[1]))
                self.last = self.last if plan[1] else index
            elif self.open and (count := _TAP_COUNT.fullmatch(line)):
                self.counts[count[1]] = int(count[2])
                self.last = index
            index += 1

    def _result(self, match: re.Match[str], begin: int) -> int:
        depth = len(match[1])
        if not depth and match[3] == "1":
            self.counts = {}
        fields, end = self._fields(begin + 1, depth + 2)
        title = re.sub(r"\\(.)", r"\1", match[4]).strip() or f"test {match[3]}"
        left_out = match[5] and _TAP_LEFT_OUT.match(match[5])
        outcome = "skipped" if left_out else "failed" if match[2] else "passed"
        said, line = fields.get("error") or fields.get("message") or ("", begin)
        test = NodeTest((title,), outcome, begin, end, said, line, fields.get("code", ("", 0))[0])
        inside: list[NodeTest] = []
        for deeper in [level for level in self.open if level > depth]:
            held = self.open.pop(deeper)
            inside += held if deeper in self.planned else []
        self.planned = {level for level in self.planned if level <= depth}
        for held_test in inside:
            held_test.titles = (title, *held_test.titles)
        kind, failure = fields.get("type", ("", 0))[0], fields.get("failureType", ("", 0))[0]
        test.hook, test.parent = failure == "hookFailed", bool(inside)
        own = not inside or (outcome == "failed" and failure != "subtestsFailed" and not _explains(inside, failure))
        # A suite that is well, or holds nothing, is no test.
        keep = [test] if own and (test.hook or kind != "suite" or outcome == "failed") else []
        self.open.setdefault(depth, []).extend([*inside, *keep])
        self.last = self.last if depth else end - 1
        return end

    def _fields(self, begin: int, depth: int) -> tuple[dict[str, tuple[str, int]], int]:
        """What stands below a result: nothing, or YAML between two marks; of its lines those that name an error."""
        lines, margin = self.lines, " " * depth
        found: dict[str, tuple[str, int]] = {}
        index = begin
        yaml = index < len(lines) and lines[index] == margin + "---"
        while index < len(lines) and (lines[index].startswith(margin) or (yaml and not lines[index].strip())):
            line = lines[index]
            if not yaml and (_TAP_RESULT.fullmatch(line) or _TAP_PLAN.fullmatch(line)):
                break
            index += 1
            if yaml and line == margin + "...":
                break
            at_margin = not line.startswith(margin + " ")
            if at_margin and (field := _TAP_FIELD.fullmatch(line)):
                said, place = field[2].strip(), index - 1
                if _TAP_BLOCK.fullmatch(said) and index < len(lines):
                    said, place = lines[index].strip(), index
                found.setdefault(field[1], (unquoted(said), place))
        return found, index

    def done(self) -> list[NodeTest]:
        return self.open.get(0, [])


def _explains(inside: list[NodeTest], failure: str) -> bool:
    """Only node says why a test with subtests failed; elsewhere a subtest that failed is reason enough."""
    return not failure and any(test.outcome == "failed" for test in inside)


def unquoted(said: str) -> str:
    """Remove the quotation marks around a message."""
    return said[1:-1] if len(said) > 1 and said[0] == said[-1] and said[0] in "'\"" else said


# -- single tests -----------------------------------------------------------------------------------------------------

#: How far above its result a file says why it could not be loaded; in TAP as a comment.
_ABOVE = 60
_LOADING = re.compile(r"(?:# )?((?:\w*Error)(?: \[\w+\])?: .*)")


def tap_cases(lines: OutputLines, run: RunSummary) -> Cases:
    """Read how each test ended; every test has a result, also those that passed or were left out."""
    return cases_of(tap_tests(lines.plain), lines, run)


def cases_of(found: NodeRun | None, lines: OutputLines, run: RunSummary) -> Cases:
    """Turn the results of a run into cases, with the lines that say why a test or a file broke."""
    tests = found.tests if found else []
    hooks = {test.titles: test for test in tests if test.hook}
    stopped = {test.titles[:depth] for test in tests if test.cancelled for depth in range(len(test.titles))}
    cases: list[CaseResult] = []
    previous = 0
    for test in tests:
        cases.append(_case(lines, test, hooks, stopped, previous))
        previous = test.end
    return Cases(run.tests, tuple(cases), verbose=True)


def _case(
    lines: OutputLines,
    test: NodeTest,
    hooks: dict[tuple[str, ...], NodeTest],
    stopped: set[tuple[str, ...]],
    previous: int,
) -> CaseResult:
    """`stopped` are the suites of which tests were cancelled, `previous` is where the result above ends."""
    outcome, said, kind, suite = test.outcome, test.said, "", False
    line = test.line
    if test.cancelled:
        outcome = BROKEN
        # The hook of a suite around it says why.
        around = [test.titles[:depth] for depth in range(len(test.titles))]
        hook = next((hooks[suite] for suite in around if suite in hooks), None)
        said, line = (hook.said, hook.line) if hook else (said, line)
        return CaseResult(test.name, test.titles, outcome, 0, line, line + 1, (line, line + 1), said)
    if test.hook:
        outcome = BROKEN if test.titles in stopped else SPOILED
        suite = outcome == BROKEN
    elif test.file:
        loading = _why_not_loaded(lines, max(previous, test.begin - _ABOVE), test.begin)
        if loading:
            said, line, kind = loading
            return CaseResult(
                test.name, test.titles, BROKEN, 0, line, line + 1, (line, line + 1), said, kind=kind, suite=True
            )
    return CaseResult(
        test.name, test.titles, outcome, 0, test.begin, test.end, (line, line + 1), said, kind=kind, suite=suite
    )


def _why_not_loaded(lines: OutputLines, begin: int, end: int) -> tuple[str, int, str] | None:
    """An import or a syntax error that ended the file; any other end is the file's own no."""
    for index in range(begin, end):
        match = _LOADING.fullmatch(lines.plain[index])
        kind = kind_of(re.sub(r" \[\w+\]:", ":", match[1], count=1), []) if match else ""
        if match and kind in (BUILD, ENVIRONMENT):
            return match[1], index, kind
    return None


TAP = TestRunner("tap", "1..", tap_run, tap_cases, idle_lines=(r"1\.\.0(?: .*)?",), is_refusal=refused_in_node)
