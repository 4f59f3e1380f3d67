"""JUnit XML, which every test runner can write."""

from __future__ import annotations

import re
from xml.parsers import expat

from fusewire.answers.answer import TestRun
from fusewire.answers.runs import NAMES

_LIMIT = 50_000_000

#: How pytest words an `error` that is no exception of the test itself.
_NOT_STARTED = re.compile(r"collection failure|failed on (?:setup|teardown)")


class _Cases:
    """Counts test cases while expat reads: the attributes of the suites are often wrong, and suites are nested."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0, "broken": 0}
        self.failing: set[str] = set()
        self.suites = 0
        self._name = ""
        self._outcome = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("testsuite", "testsuites"):
            self.suites += 1
        elif tag == "testcase":
            place = attributes.get("classname") or attributes.get("file") or ""
            self._name = f"{place}::{attributes.get('name', '')}" if place else attributes.get("name", "")
            self._outcome = "passed"
        elif tag == "failure":
            self._outcome = "failed"
        elif tag == "error":
            self._outcome = "broken" if _NOT_STARTED.search(attributes.get("message", "")) else "failed"
        elif tag == "skipped" and self._outcome == "passed":
            self._outcome = "skipped"

    def end(self, tag: str) -> None:
        if tag == "testcase" and self._outcome:
            self.counts[self._outcome] += 1
            if self._outcome == "failed" and len(self.failing) < 10_000:
                self.failing.add(self._name)
            self._outcome = ""


def _refuse(*_: object) -> None:
    raise ValueError("a document type is no part of JUnit, and may hold a billion laughs")


def read_junit(data: bytes) -> TestRun | None:
    """One or many suites; None if it is no JUnit XML, is cut, has a document type or is larger than 50 MB."""
    if len(data) > _LIMIT:
        return None
    cases = _Cases()
    parser = expat.ParserCreate()
    parser.StartElementHandler = cases.start
    parser.EndElementHandler = cases.end
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    if not cases.suites:
        return None
    return TestRun("junit", **cases.counts, failing=tuple(sorted(cases.failing)[:NAMES]))
