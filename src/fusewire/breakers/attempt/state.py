"""Keep what is remembered of a slice between attempts: bounded, written in the transaction of its circuits.

How often a test has failed is the circuits' matter; here is what was tried, on which files, and what the runner said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NotRequired, TypedDict

from fusewire.core.events import plain
from fusewire.stores.records import require_types
from fusewire.util.errors import FusewireError
from fusewire.worktree.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusewire.stores import Store, Transaction
    from fusewire.util.fast_json import JsonObject

#: Tests of a slice that are remembered, those that fail rather than others; and whose errors are.
_TESTS = 200
_ERRORS = 20
_SLICES = 200
_LOG = 10
_FILES = 500
_INFRASTRUCTURE = 20
_PRIOR = 3

#: Bytes of a runner's output that a view shows; the whole of it is in a file.
SHOWN = 16_000
_LINE = 500


class Tried(TypedDict):
    """What a retry keeps of a failed attempt."""

    attempt: int
    strategy: str
    files: list[str]
    result: str


class FailedAttempt(Tried):
    """One failed attempt at a test."""

    #: the message of its failure
    said: NotRequired[str]
    #: the file with the whole output, relative to the project; empty if there is none
    output: str
    #: seconds
    at: float


class InfrastructureError(TypedDict):
    """A run that could not start the test, and so is no attempt."""

    test: str
    kind: str
    reason: str
    evidence: str
    at: float


class ArchStop(TypedDict):
    """Why an architectural decision is needed (deviation rule 4), and since when."""

    reason: str
    at: float


class RecoveryOption(TypedDict):
    option: str
    risk: str


class Thoughts(TypedDict, total=False):
    """The fields of a diagnostic report that need a mind."""

    test_expectation: str
    best_hypothesis: str
    specific_question: str
    recovery_options: list[RecoveryOption]


class TriedTest(TypedDict):
    """What a retry keeps of one test."""

    log: list[Tried]
    report: Thoughts


class TriedBefore(TypedDict):
    """What a retry keeps of the attempts that it ends."""

    failures: int
    guidance: str
    #: the reason; empty if there was none
    arch_stop: str
    tests: dict[str, TriedTest]


_TRIED = Tried.__annotations__.keys()


def check_test(name: str) -> str:
    """The exact name of a test, as its runner reports it."""
    name = name.strip()
    if not name or len(name) > 1000 or any(ord(letter) < 32 for letter in name):
        raise FusewireError(f"{name[:60]!r} is no name of a test; allowed: one line of up to 1000 characters")
    return name


def _checkpoint(data: object) -> Checkpoint | None:
    """An empty object is stored for none."""
    return Checkpoint.from_data(data) if data else None


@dataclass
class TestRecord:
    """One test since it last passed."""

    __test__ = False  # no test class, whatever pytest thinks

    #: which of the slice's tests was started first, second, ...
    number: int = 0
    #: where and when its attempts began; None until it is started, and again after it has passed
    checkpoint: Checkpoint | None = None
    began: float = 0.0
    #: whether it took its first run to take the checkpoint: code may have been changed before
    late: bool = False
    log: list[FailedAttempt] = field(default_factory=list)
    files_touched: list[str] = field(default_factory=list)
    description: str = ""
    last_error: str = ""
    #: what the last attempt was: pass, fail, infra; empty if there was none since it was started
    last_result: str = ""
    #: when it last passed
    passed_at: float = 0.0
    report: Thoughts = field(default_factory=Thoughts)

    @classmethod
    def from_data(cls, data: JsonObject) -> TestRecord:
        """The record again; ValueError if the data is none."""
        record = cls(**{**data, "checkpoint": _checkpoint(data.get("checkpoint"))})
        require_types(record, cls())
        if not all(isinstance(line, dict) and line.keys() >= {*_TRIED, "output"} for line in record.log):
            raise ValueError("not a test's log")
        return record

    def to_data(self) -> JsonObject:
        return {**vars(self), "checkpoint": self.checkpoint.to_data() if self.checkpoint else {}}

    def touched(self, files: list[str]) -> None:
        self.files_touched = list(dict.fromkeys([*self.files_touched, *files]))[:_FILES]

    def failed(self, entry: FailedAttempt, error: str) -> None:
        self.log = [*self.log, entry][-_LOG:]
        self.last_error = error
        self.last_result = "fail"

    @property
    def is_done(self) -> bool:
        """Whether it has passed and was not started again."""
        return self.last_result == "pass" and self.checkpoint is None and not self.log

    def passed(self, now: float) -> None:
        """Its attempts are over; the next ones begin at a checkpoint of their own."""
        self.passed_at = now
        self.checkpoint, self.log, self.files_touched, self.report = None, [], [], {}
        self.last_error, self.last_result = "", "pass"


@dataclass
class SliceRecord:
    """A slice under way; every list in it has an end."""

    tests: dict[str, TestRecord] = field(default_factory=dict)
    #: newest last
    infrastructure: list[InfrastructureError] = field(default_factory=list)
    arch_stop: ArchStop | None = None
    #: everything as it was when the slice, or its last retry, began
    began: Checkpoint | None = None
    #: everything as it was at the last recorded attempt
    after: Checkpoint | None = None
    #: newest last
    prior: list[TriedBefore] = field(default_factory=list)
    #: counts its retries: an attempt that was begun before one of them says nothing about what came after it
    life: int = 0
    #: whether `attempt finish` has ended it
    finished: bool = False
    #: attempts so far, which number their outputs
    attempts: int = 0
    #: tests so far
    started: int = 0

    @classmethod
    def recalled(cls, store: Store | Transaction, slice_id: str) -> SliceRecord:
        """What is remembered; ValueError if that is damaged."""
        try:
            return cls.from_data(store.recall(_name(slice_id)) or {})
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"not a slice's memory: {error}") from error

    @classmethod
    def from_data(cls, data: JsonObject) -> SliceRecord:
        tests = {name: TestRecord.from_data(test) for name, test in data.get("tests", {}).items()}
        stop: ArchStop | None = data.get("arch_stop") or None
        began, after = _checkpoint(data.get("began")), _checkpoint(data.get("after"))
        record = cls(**{**data, "tests": tests, "arch_stop": stop, "began": began, "after": after})
        require_types(record, cls())
        if stop is not None and not stop.keys() >= ArchStop.__annotations__.keys():
            raise ValueError("not an ARCH-STOP")
        for prior in record.prior:
            logs = [entry for test in prior["tests"].values() for entry in test["log"]]
            if not prior.keys() >= TriedBefore.__annotations__.keys() or not all(one.keys() >= _TRIED for one in logs):
                raise ValueError("not what was tried before")
        return record

    def to_data(self) -> JsonObject:
        return {
            **vars(self),
            "tests": {name: test.to_data() for name, test in self.tests.items()},
            "arch_stop": self.arch_stop or {},
            "began": self.began.to_data() if self.began else {},
            "after": self.after.to_data() if self.after else {},
        }

    def remember(self, transaction: Transaction, slice_id: str, now: float) -> None:
        oldest = sorted(self.tests, key=lambda name: (bool(self.tests[name].log), self.tests[name].number))
        for name in oldest[: max(0, len(self.tests) - _TESTS)]:
            del self.tests[name]
        for name in self.failing()[:-_ERRORS]:  # a stopped slice may collect more failures than a report shows
            self.tests[name].last_error = ""
        self.infrastructure = self.infrastructure[-_INFRASTRUCTURE:]
        self.prior = self.prior[-_PRIOR:]
        transaction.remember(_name(slice_id), self.to_data(), now)

    def test(self, name: str) -> TestRecord:
        """The record of a test; made if there is none."""
        if name not in self.tests:
            self.started += 1
            self.tests[name] = TestRecord(number=self.started)
        return self.tests[name]

    def checkpoints(self) -> list[Checkpoint]:
        """Those that a retry may go back to."""
        return [one for one in (self.began, *(test.checkpoint for test in self.tests.values())) if one]

    def end_life(self) -> None:
        """What is begun from now on has nothing to do with what was begun before."""
        self.life += 1
        self.began = self.after = None

    def first(self) -> TestRecord | None:
        """The test at which the failed attempts began; if none failed, the first that was begun."""
        begun = [test for test in self.tests.values() if test.checkpoint]
        failing = [test for test in begun if test.log]
        return min(failing or begun, key=lambda test: test.began, default=None)

    def failing(self) -> list[str]:
        """The tests that have failed since they last passed, in the order in which they were started."""
        return sorted((name for name, test in self.tests.items() if test.log), key=lambda name: self.tests[name].number)

    def add_infrastructure(self, test: str, kind: str, reason: str, evidence: str, now: float) -> None:
        reason, evidence = one_line(reason), plain(evidence, 2000)
        error = InfrastructureError(test=test, kind=kind, reason=reason, evidence=evidence, at=now)
        self.infrastructure = [*self.infrastructure, error]


def tried_before(prior: Sequence[TriedBefore], test: str) -> list[Tried]:
    """The failed attempts at a test before the retries."""
    return [entry for one in prior if test in one["tests"] for entry in one["tests"][test]["log"]]


def slice_times(store: Store) -> dict[str, float]:
    """The slices that were worked on last, and when something was last done in each."""
    newest = store.remembered(_name(""))[:_SLICES]
    return {name.removeprefix(_name("")): at for name, at in newest}


def one_line(text: str) -> str:
    return plain(" ".join(text.split()), _LINE)


def shown(text: str, where: str) -> str:
    """A runner's output as far as a view shows it: its end, which says what failed, and where the rest is."""
    data = text.encode("utf-8", "replace")
    if len(data) <= SHOWN:
        return plain(text)
    kept = data[-SHOWN:].decode("utf-8", "ignore")
    return f"[{len(data) - SHOWN} bytes cut here; the whole output: {where}]\n{kept}"


def _name(slice_id: str) -> str:
    return f"attempt:{slice_id}"
