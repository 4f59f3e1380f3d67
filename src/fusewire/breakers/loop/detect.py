"""Judge an iteration of an autonomous loop: its facts and a small memory in; a score, signals and a new memory out.

The signals that each circuit gets:

| circuit                | after an iteration                                                              |
|------------------------|---------------------------------------------------------------------------------|
| loop/no_progress       | `progress` or `no_progress`; nothing if it was neutral or only fixed tests       |
| loop/same_error        | `error` with its fingerprint, or `clean`                                         |
| loop/output_decline    | `volume`, or `progress` where a result overrules what the volume says            |
| loop/permission_denied | `permission_denied`, or `clean`                                                  |
| loop/test_fix          | `work`: 1 if it only fixed tests, else 0                                         |
| loop/circular          | `circular` when approaches or trees alternate                                    |
| loop/score             | `score`                                                                          |
| loop/neutral           | `neutral`, or what ends such a row                                               |

An iteration that held the one probe of a circuit answers that circuit with its success or its failure instead.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fusewire.breakers.loop.iteration import CUT_SHORT
from fusewire.core.events import Signal
from fusewire.testruns.run import TestRun

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fusewire.breakers.loop.iteration import Iteration
    from fusewire.core.events import SignalKind
    from fusewire.util.fast_json import JsonObject

#: Every circuit of the loop that an iteration must pass; the rate limit is asked on its own.
CIRCUITS = (
    "loop/no_progress",
    "loop/same_error",
    "loop/output_decline",
    "loop/permission_denied",
    "loop/test_fix",
    "loop/circular",
    "loop/score",
    "loop/neutral",
)

#: Points of the seed's table. Each counts once an iteration, a changed file up to three times: volume buys no progress.
POINTS = {
    "a failing test passes": 3,
    "a task was completed": 5,
    "a file was changed": 1,
    "a build or lint error is gone": 2,
    "the same error as before": -2,
    "no file was changed": -3,
    "earlier changes were reverted": -1,
}

#: Changed files that count.
MOST_FILES = 3

#: Different approaches to one failure that are the task's own matter before the loop's breaker counts it.
TASK_APPROACHES = 3

#: Trees, approaches, answers and failures that are remembered, and boxes.
_KEPT = 20
_TICKED = 500

#: Iterations in a row whose progress may rest on the agent's word alone.
ON_TRUST = 25

#: The same change so many times in a row is one change that is made again and again.
REPEATS = 5


#: How many approaches or trees may take turns before that is called circular.
PERIODS = (2, 3)


@dataclass(frozen=True)
class Memory:
    """What an iteration is compared with. Bounded; stored as JSON."""

    #: marks of the boxes that were ticked, and fingerprints of the answers
    ticked: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    #: fingerprints of the trees, and the approaches, in which a round is looked for
    trees: list[str] = field(default_factory=list)
    approaches: list[str] = field(default_factory=list)
    #: the approaches that were named for each error: [fingerprint, names]
    tried: list[tuple[str, list[str]]] = field(default_factory=list)
    #: of the last iteration: its error, its compiler messages
    error: str | None = None
    builds: list[str] = field(default_factory=list)
    #: the last test run, and the fewest failures since the error came
    tests: TestRun | None = None
    least: int | None = None
    #: something was changed, and no test has run since
    untested: bool = False
    finished: bool = False
    #: iterations in a row that changed nothing
    on_trust: int = 0

    def after_good_end(self) -> Memory:
        """What the next run is compared with: what was done and said, but no window over the last iterations."""
        return Memory(ticked=self.ticked, answers=self.answers, tests=self.tests, finished=self.finished)

    @classmethod
    def from_data(cls, data: JsonObject) -> Memory:
        tests = None
        if data.get("tests"):
            passed, failed, skipped, broken, failing = data["tests"]
            tests = TestRun("", passed, failed, skipped, broken, tuple(failing))
        return cls(**{**data, "tests": tests})

    def to_data(self) -> JsonObject:
        tests = self.tests
        kept = tests and [tests.passed, tests.failed, tests.skipped, tests.broken, list(tests.failing)]
        return {**asdict(self), "tests": kept}


@dataclass
class Judgement:
    """What an iteration was worth."""

    #: `progress`, `none`, `neutral`, or `tests` if it only fixed tests
    kind: str = "none"
    #: something is done for good: a task, a commit, a test that passes now
    result: bool = False
    tasks: int = 0
    test_fix: bool = False
    #: the last iteration had the same error
    repeats: bool = False
    #: what alternates, if something does
    circular: str = ""
    points: dict[str, int] = field(default_factory=dict)
    score: int = 0
    signals: list[Signal] = field(default_factory=list)


def judge(memory: Memory, facts: Iteration, held: Collection[str], lease: str) -> tuple[Memory, Judgement]:
    """The memory after an iteration and what it was worth; `held` are the circuits whose one probe it was."""
    verdict = Judgement()
    verdict.tasks = _tasks(memory, facts)
    passing = _newly_passing(memory, facts)
    resolved = verdict.tasks > 0 or passing
    verdict.result = resolved or _committed(facts)
    verdict.test_fix = facts.only_tests and not passing and not _tests_grew(memory, facts) and facts.ended != "capped"
    verdict.repeats = _same_error(memory, facts)
    verdict.kind = _kind(memory, facts, verdict, resolved=resolved)
    if verdict.kind != "neutral":
        verdict.points = _points(memory, facts, verdict, passing)
        verdict.score = sum(verdict.points.values())
    trees, approaches = _followed(memory, facts, verdict, resolved=resolved)
    tried, counts = _tried(memory, facts)
    verdict.signals = _Signals(memory, facts, verdict, held, lease).all(error_counts=counts)
    return replace(_remembered(memory, facts, verdict), trees=trees, approaches=approaches, tried=tried), verdict


# -- what counts ------------------------------------------------------------------------------------------


def _tasks(memory: Memory, facts: Iteration) -> int:
    """Tasks completed: boxes that were never ticked before; claims only with a new answer, and not for ever."""
    ticked = len(set(facts.ticked) - set(memory.ticked))
    claimed = facts.tasks_claimed if _is_believed(memory, facts) else 0
    return max(ticked, claimed)


def _is_believed(memory: Memory, facts: Iteration) -> bool:
    """Whether an agent's word that something was done counts: in new words, and with a change now and then."""
    return _is_new_answer(memory, facts) and (facts.meaningful > 0 or memory.on_trust < ON_TRUST)


def _is_new_answer(memory: Memory, facts: Iteration) -> bool:
    return bool(facts.answer) and facts.answer not in memory.answers


def _committed(facts: Iteration) -> bool:
    """An empty commit, or one that only weakens tests, is none."""
    return facts.commits > 0 and facts.files > facts.weakened


def _newly_passing(memory: Memory, facts: Iteration) -> bool:
    """Whether a test passes that failed before; fewer failing ones among fewer or more skipped tests are none."""
    before, now = memory.tests, facts.tests
    if not before or not now or facts.weakened or now.total < before.total or now.skipped > before.skipped:
        return False
    if now.failures < before.failures and now.passed > before.passed:
        return True
    # As many as before: then others fail instead, which is no gain unless they are new.
    mended = set(before.failing) - set(now.failing)
    all_named = len(before.failing) >= before.failed and len(now.failing) >= now.failed
    return bool(mended) and all_named and now.total > before.total and now.passed > before.passed


def _fewer_failures(memory: Memory, facts: Iteration) -> bool:
    """Fewer than there ever were with this error: it is not the same failure any more."""
    least, now = memory.least, facts.tests
    if least is None or now is None or facts.weakened or facts.error != memory.error:
        return False
    return now.failures < least


def _same_error(memory: Memory, facts: Iteration) -> bool:
    return facts.error is not None and facts.error == memory.error and not _fewer_failures(memory, facts)


def _tests_grew(memory: Memory, facts: Iteration) -> bool:
    before, now = memory.tests, facts.tests
    if before and now:
        return now.passed > before.passed
    return facts.tests_added > 0


def _kind(memory: Memory, facts: Iteration, verdict: Judgement, *, resolved: bool) -> str:
    if resolved:
        return "progress"
    if verdict.test_fix:
        return "tests"
    if facts.meaningful or verdict.result or _ends_well(memory, facts):
        return "progress"
    if facts.ended in ("launch", "crash", "idle"):
        return "none"
    if _verifies(memory, facts):
        return "progress"
    if facts.blocked:
        return "neutral"
    return "progress" if facts.read_only and _is_believed(memory, facts) else "none"


def _ends_well(memory: Memory, facts: Iteration) -> bool:
    """Finding that all is done is the end of work, not stagnation; saying it again and again is."""
    return facts.finished and not memory.finished


def _verifies(memory: Memory, facts: Iteration) -> bool:
    """Tests were run on what an earlier iteration has changed and not tested: once, that is work, too."""
    return facts.tests is not None and memory.untested


def _points(memory: Memory, facts: Iteration, verdict: Judgement, passing: bool) -> dict[str, int]:
    changed = facts.meaningful > 0 or _committed(facts)
    passing_on = _verifies(memory, facts)
    found = {
        "a failing test passes": passing,
        "a task was completed": verdict.tasks > 0,
        "a file was changed": changed,
        "a build or lint error is gone": changed and _build_mended(memory, facts),
        # An error beside a finished task costs no points; its own circuit counts it all the same.
        "the same error as before": verdict.repeats and not verdict.result,
        # Work that is to change no file is not measured by files.
        "no file was changed": not changed
        and not (verdict.kind == "progress" and (facts.read_only or _ends_well(memory, facts) or passing_on)),
        "earlier changes were reverted": _reverted(memory, facts),
    }
    points = {name: POINTS[name] for name, holds in found.items() if holds}
    if changed:
        points["a file was changed"] *= min(MOST_FILES, max(1, facts.meaningful))
    return points


def _build_mended(memory: Memory, facts: Iteration) -> bool:
    """One of the last messages is gone, no other came, and something ran that could have shown it."""
    before = set(memory.builds)
    return bool(before - set(facts.builds)) and set(facts.builds) <= before and facts.ended == "exit"


def _reverted(memory: Memory, facts: Iteration) -> bool:
    return facts.tree != facts.tree_before and facts.tree in memory.trees


# -- what repeats -----------------------------------------------------------------------------------------


def _followed(memory: Memory, facts: Iteration, verdict: Judgement, *, resolved: bool) -> tuple[list[str], list[str]]:
    """The trees and approaches so far. A result ends a row of approaches; the probe of a round is still part of it."""
    trees = memory.trees
    for tree in (facts.tree_before, facts.tree):
        if tree and trees[-1:] != [tree]:
            trees = [*trees, tree][-_KEPT:]
    approaches, approach = memory.approaches, facts.said_approach or facts.approach
    if approach:
        approaches = [*approaches, approach][-_KEPT:]
    if not resolved:
        if _committed(facts) and facts.error is None:
            approaches = []
        verdict.circular = _round(facts, trees, approaches)
    return (trees[-1:], []) if resolved else (trees, approaches)


def _round(facts: Iteration, trees: list[str], approaches: list[str]) -> str:
    """What goes round in circles, in words; empty if nothing does."""
    if facts.approach and not _committed(facts) and approaches[-REPEATS:] == [facts.approach] * REPEATS:
        return f"the same change was made {REPEATS} times in a row"
    if length := period(approaches):
        return f"{length} approaches alternate: {' / '.join(show_approach(step) for step in approaches[-length:])}"
    if facts.tree != facts.tree_before and (length := period(trees)):
        return f"the files alternate between the same {length} contents"
    return ""


def period(steps: Sequence[str]) -> int:
    """2 if the last steps are A B A B, 3 for A B C A B C, else 0. All of a round differ from each other."""
    for length in PERIODS:
        last = steps[-2 * length :]
        if len(last) == 2 * length and last[:length] == last[length:] and len(set(last)) == length:
            return length
    return 0


def show_approach(approach: str) -> str:
    return f"the change {approach[7:19]}" if approach.startswith("sha256:") else approach


def _tried(memory: Memory, facts: Iteration) -> tuple[list[tuple[str, list[str]]], bool]:
    """The approaches named for each failure, and whether this failure is the loop's matter by now.

    The first three different ones are the task's own retries; an agent that names none has none.
    """
    if facts.error is None:
        return memory.tried, False
    named = next((names for error, names in memory.tried if error == facts.error), [])
    others = [one for one in memory.tried if one[0] != facts.error][-_KEPT + 1 :]
    is_new = facts.said_approach is not None and facts.said_approach not in named
    if is_new and len(named) < TASK_APPROACHES:
        return [*others, (facts.error, [*named, facts.said_approach or ""])], False
    return [*others, (facts.error, named)], True


def _remembered(memory: Memory, facts: Iteration, verdict: Judgement) -> Memory:
    """What the next iteration is compared with. A neutral one says nothing, so it is not compared with."""
    kept = replace(
        memory,
        ticked=list(dict.fromkeys([*memory.ticked, *facts.ticked]))[-_TICKED:],
        answers=[*memory.answers, facts.answer][-_KEPT:] if facts.answer else memory.answers,
        finished=facts.finished,
        on_trust=0 if facts.meaningful or _committed(facts) else memory.on_trust + 1,
    )
    if verdict.kind == "neutral" or facts.ended in CUT_SHORT:
        return kept
    return replace(
        kept,
        error=facts.error,
        builds=list(facts.builds),
        tests=facts.tests or memory.tests,
        least=_least(memory, facts),
        untested=facts.tests is None and (facts.meaningful > 0 or memory.untested),
    )


def _least(memory: Memory, facts: Iteration) -> int | None:
    """The fewest failures since this error came."""
    if facts.error is None or facts.tests is None:
        return None
    least = memory.least if facts.error == memory.error else None
    return facts.tests.failures if least is None else min(facts.tests.failures, least)


# -- signals to the circuits ------------------------------------------------------------------------------


class _Signals:
    """The signals of one judged iteration."""

    def __init__(self, memory: Memory, facts: Iteration, verdict: Judgement, held: Collection[str], lease: str) -> None:
        self.facts = facts
        self.verdict = verdict
        self.held = held
        self.lease = lease
        self.fewer_failures = _fewer_failures(memory, facts)

    def all(self, *, error_counts: bool) -> list[Signal]:
        facts, verdict = self.facts, self.verdict
        if verdict.kind == "neutral":
            # What its own cap has ended says nothing, and so is no row of anything; nor is a limit with a known end.
            signals = [self._signal("note", "loop/neutral", "neutral", text=facts.blocked)]
            signals = signals if facts.ended != "capped" and not facts.ends else []
            return signals + [self._signal("release", name, "release") for name in self.held]
        signals = [*self._progress(), *self._volume(), *self._denials()]
        signals += self._error(error_counts)
        fixes = verdict.test_fix
        signals.append(
            self._signal("bad" if fixes else "good", "loop/test_fix", "work", value=int(fixes), text=facts.names)
        )
        signals.append(
            self._signal(
                "bad" if verdict.score < 0 else "good",
                "loop/score",
                "score",
                value=verdict.score,
                text=", ".join(verdict.points),
            )
        )
        if verdict.circular:
            signals.append(self._signal("bad", "loop/circular", "circular", text=verdict.circular))
        # A circuit whose probe this was gets the probe's result instead.
        return [one for one in signals if one.circuit not in self.held] + [self._settled(name) for name in self.held]

    def _progress(self) -> list[Signal]:
        kind = self.verdict.kind
        name = "no_progress" if kind == "none" else "progress"
        signals = [self._signal("good", "loop/neutral", name)]
        if kind != "tests":
            signals.append(
                self._signal("bad" if kind == "none" else "good", "loop/no_progress", name, text=self._idle())
            )
        return signals

    def _volume(self) -> list[Signal]:
        if self.verdict.result or self.facts.finished:
            return [self._signal("good", "loop/output_decline", "progress")]
        if self.facts.lines is None:
            return []
        text = f"{self.facts.lines} lines"
        return [self._signal("note", "loop/output_decline", "volume", value=self.facts.lines, text=text)]

    def _denials(self) -> list[Signal]:
        if not self.facts.denied:
            return [self._signal("good", "loop/permission_denied", "clean")]
        circuit, names = "loop/permission_denied", self.facts.denied_names
        return [
            self._signal("bad", circuit, "permission_denied", text=names),
            self._signal("note", circuit, "denied_calls", value=self.facts.denied, text=names),
        ]

    def _error(self, counts: bool) -> list[Signal]:
        facts = self.facts
        if self.fewer_failures:
            return [self._signal("good", "loop/same_error", "clean")]
        if facts.error is not None:
            signal = self._signal("bad", "loop/same_error", "error", fingerprint=facts.error, text=facts.error_text)
            return [signal] if counts else []
        if facts.ended in CUT_SHORT:
            return []
        return [self._signal("good", "loop/same_error", "clean")]

    def _settled(self, circuit: str) -> Signal:
        """A positive score closes, unless the very thing that opened the circuit has come again."""
        facts, verdict = self.facts, self.verdict
        recurred = {
            "same_error": f"the same error came again: {facts.error_text}" if verdict.repeats else "",
            "permission_denied": f"denied again: {facts.denied_names}" if facts.denied else "",
            "test_fix": f"only tests changed again: {facts.names}" if verdict.test_fix else "",
            "circular": verdict.circular,
        }
        cause = recurred.get(circuit.partition("/")[2]) or ""
        if verdict.score > 0 and not cause:
            return self._signal("good", circuit, "progress")
        if facts.ended == "capped":
            return self._signal("release", circuit, "release")
        if not cause:
            cause = f"score {verdict.score:+d} ({', '.join(verdict.points) or 'nothing that counts'})"
            cause += f"; {self._idle()}" if verdict.kind == "none" else f"; {facts.error_text}" * bool(facts.error_text)
        return self._signal("bad", circuit, "probe_failed", text=cause)

    def _idle(self) -> str:
        if self.verdict.kind != "none":
            return f"score {self.verdict.score:+d}"
        how = {"launch": "the agent could not be started", "crash": "the agent crashed", "idle": "the agent hung"}
        error = f"; {self.facts.error_text}" if self.facts.error_text else ""
        return f"{how.get(self.facts.ended, 'the agent ended')}; no file changed, no task completed{error}"

    def _signal(self, kind: SignalKind, circuit: str, name: str, **fields: Any) -> Signal:
        return Signal(kind, circuit, name, lease=self.lease, **fields)
