"""What `node --test` and other TAP producers print: tests inside tests, told by how far they are indented."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusewire.testruns.run import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fusewire.testruns.run import Run

#: Deeper than this nobody nests tests, and something else is indented.
_DEEPEST = 80
#: How node words the end of a test whose `before` hook failed, and the error of a file that did not end well.
_CANCELLED = "test did not finish before its parent"
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
        return self.outcome == "failed" and self.said.startswith(_CANCELLED)

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

    def run(self, runner: str, lines: list[str]) -> Run:
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


# -- TAP --------------------------------------------------------------------------------------------------------------

_TAP_PLAN = re.compile(r"( *)1\.\.\d+(?: .*)?")
_TAP_RESULT = re.compile(r"( *)(not )?ok (\d+)\b(?: - | )?((?:\\.|[^#\\])*)(#.*)?")
_TAP_LEFT_OUT = re.compile(r"# *(?:SKIP|TODO)\b", re.IGNORECASE)
_TAP_COUNT = re.compile(r"# (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)")
_TAP_FIELD = re.compile(r" *(error|message|code|failureType|type): (.*)")
_TAP_BLOCK = re.compile(r"[|>][-+]?")


def tap_run(text: str) -> Run | None:
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
                found.setdefault(field[1], (_unquoted(said), place))
        return found, index

    def done(self) -> list[NodeTest]:
        return self.open.get(0, [])


def _explains(inside: list[NodeTest], failure: str) -> bool:
    """Whoever is no node does not say why a test with subtests failed: one of those is reason enough."""
    return not failure and any(test.outcome == "failed" for test in inside)


def _unquoted(said: str) -> str:
    return said[1:-1] if len(said) > 1 and said[0] == said[-1] and said[0] in "'\"" else said


# -- node in a terminal -----------------------------------------------------------------------------------------------

_SPEC_COUNT = re.compile(r"\u2139 (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)")
_SPEC_SUITE = re.compile(r"( *)\u25b6 (.+?)(?: \([\d.]+ms\))?")
_SPEC_RESULT = re.compile(
    r"( *)([\u2714\u2716\ufe63\u26a0]) (.+?)(?: \([\d.]+ms\))?(?: #(?! *TODO)(?: .*)?|( # *TODO.*))?"
)
_SPEC_CODE = re.compile(r" *code: '(\w+)',?")
_SPEC_OUTCOMES = {"\u2714": "passed", "\u2716": "failed", "\ufe63": "skipped", "\u26a0": "skipped"}
_SPEC_AGAIN = "\u2716 failing tests:"


def node_run(text: str) -> Run | None:
    """`node --test` in a terminal; elsewhere it prints TAP."""
    lines = text.split("\n")
    found = spec_tests(lines)
    return found.run("node", lines) if found and found.counts.get("tests") else None


def spec_tests(lines: list[str]) -> NodeRun | None:
    """Suites have a line before their tests and one after them; failures are told again below the summary."""
    ends = [index for index, line in enumerate(lines) if line.startswith("\u2139 tests ")]
    if not ends:
        return None
    counts, last = {}, ends[-1]
    for index in range(ends[-1], min(ends[-1] + 10, len(lines))):
        if count := _SPEC_COUNT.fullmatch(lines[index]):
            counts[count[1]] = int(count[2])
            last = index
    found: list[NodeTest] = []
    suites: list[tuple[int, str]] = []
    for index in range(ends[-2] if len(ends) > 1 else 0, ends[-1]):
        line = lines[index]
        if "\u25b6 " in line and (match := _SPEC_SUITE.fullmatch(line)):
            depth = len(match[1])
            closes = (depth, match[2]) in suites
            suites = [suite for suite in suites if suite[0] < depth]
            suites += [] if closes else [(depth, match[2])]
        elif (match := _SPEC_RESULT.fullmatch(line)) and not _told_again(lines, index):
            parent = (len(match[1]), match[3]) in suites
            suites = [suite for suite in suites if suite[0] < len(match[1])]
            test = _spec_test(lines, match, index, ends[-1], tuple(title for _, title in suites))
            test.parent = parent
            found.append(test)
    _add_what_is_told_again(lines, last, found)
    return NodeRun([test for test in found if not test.parent or test.said], counts, last)


def _told_again(lines: list[str], index: int) -> bool:
    return lines[index] == _SPEC_AGAIN or (index > 0 and lines[index - 1].startswith("test at "))


def _spec_test(lines: list[str], match: re.Match[str], begin: int, stop: int, suites: tuple[str, ...]) -> NodeTest:
    outcome = "skipped" if match[4] else _SPEC_OUTCOMES[match[2]]
    test = NodeTest((*suites, match[3]), outcome, begin, begin + 1, line=begin)
    if outcome != "failed":
        return test
    margin, last = " " * (len(match[1]) + 2), begin
    index = begin + 1
    while index < stop and (lines[index].startswith(margin) or not lines[index].strip()):
        line = lines[index]
        if line.strip():
            last = index
            if not test.said:
                test.said, test.line = _unquoted(line.strip()), index
            if not test.code and (code := _SPEC_CODE.fullmatch(line)):
                test.code = code[1]
            test.hook = test.hook or line.lstrip().startswith("at TestHook.")
        index += 1
    test.end = last + 1
    return test


def _add_what_is_told_again(lines: list[str], last: int, found: list[NodeTest]) -> None:
    """Later versions of node tell what a test said only below the summary."""
    again: dict[str, list[NodeTest]] = {}
    for index in range(last, len(lines)):
        if lines[index].startswith("test at ") and index + 1 < len(lines):
            match = _SPEC_RESULT.fullmatch(lines[index + 1])
            if match and match[2] == "\u2716":
                again.setdefault(match[3], []).append(_spec_test(lines, match, index + 1, len(lines), ()))
    for test in found:
        if test.outcome == "failed" and not test.said and again.get(test.titles[-1]) and not test.parent:
            more = again[test.titles[-1]].pop(0)
            test.begin, test.end, test.said, test.line = more.begin, more.end, more.said, more.line
            test.code, test.hook = more.code, more.hook
