"""Read JUnit XML, which every test runner can write: counts, and how each test ended.

Names and outcomes are exact there, also those of tests that passed or were skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.parsers import expat

from fusewire.testruns.cases import BROKEN, FAILED, PASSED, SPOILED, CaseResult, Cases
from fusewire.testruns.infrastructure import BUILD, refused_in_javascript, refused_in_python, refused_in_rust
from fusewire.testruns.run import NAMES, RunSummary, TestRun
from fusewire.testruns.tap import CANCELLED

_LIMIT = 50_000_000
#: Cases that are kept one by one, and how much of what each one said.
_KEPT = 100_000
_SAID = 16_000
#: Suites in suites that a name shows.
_NESTED = 20

#: How pytest words an `error` that is no exception of the test itself.
_NOT_STARTED = re.compile(r"collection failure|failed on (?:setup|teardown)")


@dataclass
class JUnitCase:
    """One test case as the file has it."""

    place: str
    name: str
    #: `passed`, `failed`, `skipped`, or `broken`: it could not start, or what came after it broke
    outcome: str = "passed"
    #: the attribute `message` of what went wrong, and the text below it
    message: str = ""
    text: str = ""
    #: the attribute `type` of what went wrong
    type: str = ""

    @property
    def said(self) -> str:
        """What went wrong, in one line, with its type in front."""
        lines = (line.strip() for text in (self.message, self.text) for line in text.split("\n"))
        said = next(filter(None, lines), "")
        return said if not self.type or self.type.rsplit(".", 1)[-1] in said else f"{self.type}: {said}".strip(": ")


class _Parser:
    """Counts test cases while expat reads: the attributes of the suites are often wrong, and suites are nested."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0, "broken": 0}
        #: name of a failing test -> what it said
        self.failing: dict[str, str] = {}
        #: what the first one said that could not start
        self.broken = ""
        self.suites = 0
        #: of each suite around what is read: its name, and whether node wrote it
        self._around: list[tuple[str, bool]] = []
        self.kept: list[JUnitCase] = []
        self._case: JUnitCase | None = None
        self._text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("testsuite", "testsuites"):
            self.suites += 1
            if tag == "testsuite":
                self._around.append((attributes.get("name", ""), "disabled" in attributes))
        elif tag == "testcase":
            self._case = self._named(attributes)
        elif self._case:
            self._ended(self._case, tag, attributes)

    def _named(self, attributes: dict[str, str]) -> JUnitCase:
        """`node --test` calls every class "test", and nests suites instead."""
        place, name = attributes.get("classname") or attributes.get("file") or "", attributes.get("name", "")
        if place == "test" and all(by_node for _, by_node in self._around):
            return JUnitCase("", " > ".join([*(suite for suite, _ in self._around[:_NESTED]), name]))
        return JUnitCase(place, name)

    def _ended(self, case: JUnitCase, tag: str, attributes: dict[str, str]) -> None:
        if case.outcome == "failed":
            return  # whatever broke after it
        message = attributes.get("message", "")
        if tag in ("failure", "error"):
            case.outcome = "broken" if tag == "error" and _NOT_STARTED.search(message) else "failed"
            case.message, case.type, self._text = message, attributes.get("type", ""), []
        elif tag == "skipped" and case.outcome == "passed":
            case.outcome = "skipped"

    def data(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        case = self._case
        if case and self._text is not None and tag in ("failure", "error"):
            case.text, self._text = "".join(self._text)[:_SAID], None
        if tag == "testsuite" and self._around:
            self._around.pop()
        if tag == "testcase" and case:
            self.counts[case.outcome] += 1
            if case.outcome == "failed" and len(self.failing) < 10_000:
                self.failing.setdefault(f"{case.place}::{case.name}" if case.place else case.name, case.said)
            elif case.outcome == "broken":
                self.broken = self.broken or _last_error(case.text) or case.said
            if len(self.kept) < _KEPT:
                self.kept.append(case)
            self._case = None


def _refuse(*_: object) -> None:
    raise ValueError("JUnit XML has no document type; one may expand to a billion entities")


def read_junit(data: bytes) -> TestRun | None:
    """Count the tests of all suites; None if it is no JUnit XML, cut, larger than 50 MB, or has a document type."""
    found = read_junit_run(data)
    return found.tests if found else None


def read_junit_run(data: bytes) -> RunSummary | None:
    """The same, and what the first failures say."""
    found = _parse(data)
    return found[0] if found else None


def read_junit_cases(data: bytes) -> Cases | None:
    """Read how each test ended, in their order; a test that passed and broke its teardown stands there twice."""
    found = _parse(data)
    if not found:
        return None
    tests, cases = found[0].tests, found[1]
    return Cases(tests, tuple(_case(case) for case in cases), verbose=len(cases) >= tests.total)


def _parse(data: bytes) -> tuple[RunSummary, list[JUnitCase]] | None:
    if len(data) > _LIMIT:
        return None
    cases = _Parser()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = cases.start
    parser.EndElementHandler = cases.end
    parser.CharacterDataHandler = cases.data
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    if not cases.suites:
        return None
    names = sorted(cases.failing)
    tests = TestRun("junit", **cases.counts, failing=tuple(names[:NAMES]))
    return RunSummary(tests, len(data), cases.failing[names[0]] if names else "", cases.broken), cases.kept


_PLACE = re.compile(r"[./\\]|::")
_TITLE = re.compile(r"::| > | \u203a |/")
#: How pytest words what broke around a test.
_AROUND = re.compile(r"failed on (setup|teardown) with ['\"](.*?)['\"]?$", re.DOTALL)


def _case(case: JUnitCase) -> CaseResult:
    base, bracket, parameters = case.name.partition("[")
    titles = _TITLE.split(base)
    titles[-1] += bracket + parameters
    place = [part for part in _PLACE.split(case.place) if part]
    name = f"{case.place}::{case.name}" if case.place else case.name
    outcome, said = case.outcome, case.message
    kind, suite = "", False
    if outcome == BROKEN:
        around = _AROUND.match(case.message)
        if around:
            outcome, said = BROKEN if around[1] == "setup" else SPOILED, around[2]
        else:
            kind, suite, said = BUILD, True, _last_error(case.text) or case.message
    elif outcome == FAILED and case.message.startswith(CANCELLED):
        outcome, said = BROKEN, case.message
    elif outcome != PASSED:
        said = case.message or case.text.strip().split("\n")[0]
    # Folders and the module, up to the first class.
    folders = next((index for index, part in enumerate(place) if part[0].isupper()), len(place))
    said = said.split("\n")[0]
    return CaseResult(name, (*place, *titles), outcome, folders, said=said, text=case.text, kind=kind, suite=suite)


def _last_error(text: str) -> str:
    """The line that pytest marks with E in the text of a module that could not be collected."""
    errors = [line[1:].strip() for line in text.split("\n") if line.startswith("E  ")]
    return next((line for line in reversed(errors) if line), "")


def is_refusal(said: str, section: list[str]) -> bool:
    """Whether the error of a failing test is a refusal of the filesystem; any runner may have written the file."""
    readers = (refused_in_python, refused_in_rust, refused_in_javascript)
    return any(is_refused(said, section) for is_refused in readers)
