"""Describe the single tests of a run: which ones, how each ended, and which lines are about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusewire.testruns.run import TestRun

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
#: It did not come to run: its module, its suite or its fixtures broke.
BROKEN = "broken"
#: It ran well, and what came after it broke.
SPOILED = "spoiled"


@dataclass(frozen=True)
class CaseResult:
    """One test, or one suite that broke before its tests had names."""

    name: str
    #: path, class, function: names are compared at these joints, so that `test_log` is no `test_login`
    parts: tuple[str, ...]
    outcome: str
    #: how many of the parts are folders and the file
    folders: int = 0
    #: the lines about it, and among them those of its own error; nothing if they cannot be told apart
    begin: int = 0
    end: int = 0
    error: tuple[int, int] = (0, 0)
    #: the line that names its error, without what the runner puts in front
    said: str = ""
    #: what the test printed, where that is no part of the output as it stands (JSON, XML)
    text: str = ""
    #: of what broke, the kind, when its error does not tell by itself
    kind: str = ""
    #: a module, a class or a package broke, and which tests it holds is not known
    suite: bool = False


@dataclass(frozen=True)
class Cases:
    """Everything that one run says about its tests."""

    tests: TestRun
    cases: tuple[CaseResult, ...] = ()
    #: every test has a line, the passing ones too
    verbose: bool = False
    #: why the run ended before every test had its turn
    cut: str = ""
    #: failures that are listed, where one test may fail more than once
    failures: int = 0
    #: tests that were not asked for (-k, a filter), and are not counted otherwise
    deselected: int = 0
    #: tests that were not asked for are counted among the skipped
    counts_filtered: bool = False

    @property
    def broken(self) -> list[CaseResult]:
        return [case for case in self.cases if case.outcome == BROKEN]

    @property
    def may_hide_tests(self) -> bool:
        """Something broke that may have kept tests from running which are not named."""
        named = sum(case.outcome in (BROKEN, SPOILED) for case in self.cases)
        return any(case.suite for case in self.broken) or self.tests.broken > named

    @property
    def listed(self) -> bool:
        """Every test that ran is named: whichever is not, did not run."""
        counts = self.tests
        named = len({case.name for case in self.cases if case.outcome != BROKEN})
        return self.verbose or named >= counts.passed + counts.failed + counts.skipped > 0

    @property
    def left_out(self) -> bool:
        """Some test did not run whose name is not given, so a test that is not listed may be that one."""
        named = len({case.name for case in self.cases if case.outcome == SKIPPED})
        return self.deselected > 0 or self.tests.skipped > named

    @property
    def one_passed(self) -> bool:
        """Exactly one test ran, and it passed: it must be the one that was asked for."""
        counts = self.tests
        ran_well = counts.passed == 1 and not counts.failed + counts.broken
        return ran_well and (self.counts_filtered or not counts.skipped)

    @property
    def names_failures(self) -> bool:
        """Every failing test is named."""
        named = {case.name for case in self.cases if case.outcome == FAILED}
        return max(len(named), self.failures) >= self.tests.failed


# -- names ----------------------------------------------------------------------------------------------------------

_JOINT = re.compile(r"::| \u203a | > | \u00bb |[/\\.#]")
_WORD = re.compile(r"[\s/\\.#:>\u203a\u00bb]+")
_PYTHON_FILE = re.compile(r"\.py(?=::|$)")
#: How unittest writes a test: `test_x (module.Class.test_x)`, before Python 3.11 `test_x (module.Class)`.
_UNITTEST = re.compile(r"(\w+) \(([\w.]+)\)")


def _flat(name: str) -> str:
    """Words without the marks between them: runners join the same parts with `::`, ` > `, `.` or a space."""
    return " ".join(word for word in _WORD.split(_PYTHON_FILE.sub("", name)) if word)


#: Letters that pytest writes as escapes in parameters; the marks that join names are none of them.
_FOREIGN = re.compile(r"[^\x00-\x7f\u203a\u00bb]")


def _spelt(name: str) -> str:
    """One spelling for both: `test_x[\u00fc]`, and what pytest makes of it, `test_x[\\xfc]`."""
    if name.isascii():
        return name
    return _FOREIGN.sub(lambda letter: letter[0].encode("unicode_escape").decode(), name)


def _given(test: str) -> str:
    match = _UNITTEST.fullmatch(test.strip())
    if not match:
        return _spelt(test.strip())
    return match[2] if match[2].endswith(f".{match[1]}") else f"{match[2]}.{match[1]}"


def _whole(case: CaseResult, keep_parameters: bool) -> list[str]:
    parts = [_spelt(part) for part in case.parts]
    if parts and not keep_parameters and parts[-1].endswith("]") and "[" in parts[-1]:
        parts[-1] = parts[-1][: parts[-1].index("[")]
    return [flat for part in parts if (flat := _flat(part))]


def matching(test: str, cases: Iterable[CaseResult]) -> list[CaseResult]:
    """The cases that a name means: exactly it; or its last parts; or all that belong to a class, suite or file."""
    name = _given(test)
    # `go test` writes spaces in names as underscores.
    flat, flats, parameters = _flat(name), {_flat(name), _flat(name.replace(" ", "_"))}, "[" in name
    # The last word is in every name that can match: most cases are put aside by this alone.
    word = flat.rpartition(" ")[2]
    if not word:
        return []
    near = [case for case in cases if word in _spelt(case.name) or any(word in _spelt(part) for part in case.parts)]
    exact = [case for case in near if _spelt(case.name) == name]
    if exact:
        return exact
    ends = {_flat(name[joint.end() :]) for joint in _JOINT.finditer(name)}
    by_end, by_group = [], []
    for case in near:
        parts = _whole(case, parameters)
        whole = " ".join(parts)
        if whole in ends or any(" ".join(parts[start:]) in flats for start in range(len(parts))):
            by_end.append(case)
        elif _is_group(name, flats, case, parts):
            by_group.append(case)
    return by_end or by_group


def _is_group(name: str, flats: set[str], case: CaseResult, parts: list[str]) -> bool:
    """A class, a suite or a parent test; a file only by its whole name, for `test_login` is no `test_login.py`."""
    file = case.parts[case.folders - 1] if case.folders else ""
    first = case.folders if "." in file and name.endswith(file) else case.folders + 1
    return any(
        " ".join(parts[start:stop]) in flats for stop in range(max(first, 1), len(parts)) for start in range(stop)
    )


#: A whole file, which holds tests and is none.
_FILE = re.compile(r".*\.(?:py|[cm]?[jt]sx?|rs|go)")


def same_test(one: str, other: str) -> bool:
    """Whether two spellings may name one test: `TestK.test_in`, `tests/test_calc.py::TestK::test_in`, `test_in`."""
    if one.strip() == other.strip():
        return True
    if bool(_FILE.fullmatch(one.strip())) != bool(_FILE.fullmatch(other.strip())):
        return False
    return _may_mean(one, other) or _may_mean(other, one)


def _may_mean(test: str, name: str) -> bool:
    """A class or a suite is no spelling of a test that it holds."""
    name = _given(name)
    base, bracket, parameters = name.partition("[")
    parts = [part for part in _JOINT.split(_PYTHON_FILE.sub("", base)) if part] or [""]
    parts[-1] += bracket + parameters
    # As if all but the last part were folders: then nothing is a group.
    return bool(matching(test, [CaseResult(name, tuple(parts), FAILED, folders=len(parts) - 1)]))


#: Names that are compared one by one, and how much of each.
_COMPARED = 2_000
_COMPARED_LENGTH = 200


def nearest(test: str, cases: Iterable[CaseResult]) -> str:
    """The listed name that is most like a name that is not listed; empty if none is like it."""
    by_spelling: dict[str, str] = {}
    for case in cases:
        if len(by_spelling) > _COMPARED:
            break
        for start in range(len(case.parts)):
            by_spelling.setdefault(_flat(" ".join(case.parts[start:]))[:_COMPARED_LENGTH], case.name)
        by_spelling.setdefault(_flat(case.name)[:_COMPARED_LENGTH], case.name)
    found = get_close_matches(_flat(_given(test))[:_COMPARED_LENGTH], by_spelling, n=1)
    return by_spelling[found[0]] if found else ""
