"""Does an autonomous loop get anywhere? One iteration and a small memory in; a score and signals out.

The memory is JSON-able and bounded. What the loop's circuits hear:

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

from fusewire.breakers.loop.cycles import appended, period
from fusewire.core.events import Signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from fusewire.breakers.loop.iteration import Iteration
    from fusewire.core.events import SignalKind

    Memory = dict[str, Any]

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

#: Points of the seed's table. Each counts once an iteration: volume buys no progress.
POINTS = {
    "a failing test passes": 3,
    "a task was completed": 5,
    "a file was changed": 1,
    "a build or lint error is gone": 2,
    "the same error as before": -2,
    "no file was changed": -3,
    "earlier changes were reverted": -1,
}

#: Different approaches to one failure that are the task's own matter before the loop's breaker counts it.
TASK_APPROACHES = 3

#: Trees, approaches, answers and failures that are remembered, and boxes.
_KEPT = 20
_TICKED = 500

#: Iterations in a row whose progress may rest on the agent's word alone.
ON_TRUST = 25

#: The same change so many times in a row is one change that is made again and again.
REPEATS = 5


class Judgement:
    """What an iteration was worth."""

    __slots__ = ("circular", "kind", "points", "result", "score", "signals", "tasks", "test_fix")

    def __init__(self) -> None:
        #: `progress`, `none`, `neutral`, or `tests` if it only fixed tests
        self.kind = "none"
        #: something is done for good: a task, a commit, a test that passes now
        self.result = False
        self.tasks = 0
        self.test_fix = False
        #: what alternates, if something does
        self.circular = ""
        self.points: dict[str, int] = {}
        self.score = 0
        self.signals: list[Signal] = []


def judge(memory: Memory, facts: Iteration, held: Collection[str], lease: str) -> tuple[Memory, Judgement]:
    """The memory after an iteration and what it was worth; `held` are the circuits whose one probe it was."""
    verdict = Judgement()
    verdict.tasks = _tasks(memory, facts)
    passing = _newly_passing(memory, facts)
    resolved = verdict.tasks > 0 or passing
    verdict.result = resolved or _committed(facts)
    verdict.test_fix = facts.only_tests and not passing and not _tests_grew(memory, facts)
    verdict.kind = _kind(memory, facts, verdict, resolved=resolved)
    if verdict.kind != "neutral":
        verdict.points = _points(memory, facts, verdict, passing)
        verdict.score = sum(verdict.points.values())
    after = {**memory, **_followed(memory, facts, verdict, resolved=resolved)}
    after["tried"], counts = _tried(memory, facts)
    verdict.signals = _Telling(memory, facts, verdict, held, lease).signals(counts)
    return {**after, **_noted(memory, facts, verdict)}, verdict


# -- what counts ------------------------------------------------------------------------------------------


def _tasks(memory: Memory, facts: Iteration) -> int:
    """Tasks completed: boxes that were never ticked before; claims only with a new answer, and not for ever."""
    ticked = len(set(facts.ticked) - set(memory.get("ticked", ())))
    claimed = facts.tasks_claimed if _is_believed(memory, facts) else 0
    return max(ticked, claimed)


def _is_believed(memory: Memory, facts: Iteration) -> bool:
    """Whether an agent's word that something was done counts: in new words, and with a change now and then."""
    return _is_new_answer(memory, facts) and (facts.meaningful > 0 or memory.get("on_trust", 0) < ON_TRUST)


def _is_new_answer(memory: Memory, facts: Iteration) -> bool:
    return bool(facts.answer) and facts.answer not in memory.get("answers", ())


def _committed(facts: Iteration) -> bool:
    """An empty commit, or one that only weakens tests, is none."""
    return facts.commits > 0 and facts.files > facts.weakened


def _newly_passing(memory: Memory, facts: Iteration) -> bool:
    """Whether a test passes that failed before; fewer failing ones among fewer or more skipped tests are none."""
    before, now = memory.get("tests"), facts.tests
    if not before or not now or facts.weakened or sum(now[:4]) < sum(before[:4]) or now[2] > before[2]:
        return False
    if now[1] + now[3] < before[1] + before[3] and now[0] > before[0]:
        return True
    # As many as before: then others fail instead, which is no gain unless they are new.
    mended = set(before[4]) - set(now[4])
    all_named = len(before[4]) >= before[1] and len(now[4]) >= now[1]
    return bool(mended and all_named and sum(now[:4]) > sum(before[:4]) and now[0] > before[0])


def _fewer_failures(memory: Memory, facts: Iteration) -> bool:
    """Fewer than there ever were with this error: it is not the same failure any more."""
    least, now = memory.get("least"), facts.tests
    if least is None or now is None or facts.weakened or facts.error != memory.get("error"):
        return False
    return bool(now[1] + now[3] < least)


def _same_error(memory: Memory, facts: Iteration) -> bool:
    return facts.error is not None and facts.error == memory.get("error") and not _fewer_failures(memory, facts)


def _tests_grew(memory: Memory, facts: Iteration) -> bool:
    before, now = memory.get("tests"), facts.tests
    if before and now:
        return bool(now[0] > before[0])
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
    return facts.finished and not memory.get("finished")


def _verifies(memory: Memory, facts: Iteration) -> bool:
    """Tests were run on what an earlier iteration has changed and not tested: once, that is work, too."""
    return facts.tests is not None and bool(memory.get("untested"))


def _points(memory: Memory, facts: Iteration, verdict: Judgement, passing: bool) -> dict[str, int]:
    changed = facts.meaningful > 0 or _committed(facts)
    passing_on = _verifies(memory, facts)
    found = {
        "a failing test passes": passing,
        "a task was completed": verdict.tasks > 0,
        "a file was changed": changed,
        "a build or lint error is gone": changed and _build_mended(memory, facts),
        # Whoever finishes something beside a failure is not held up by it; its own circuit counts it all the same.
        "the same error as before": _same_error(memory, facts) and not verdict.result,
        # Work that is to change no file is not measured by files.
        "no file was changed": not changed
        and not (verdict.kind == "progress" and (facts.read_only or _ends_well(memory, facts) or passing_on)),
        "earlier changes were reverted": _reverted(memory, facts),
    }
    return {name: POINTS[name] for name, holds in found.items() if holds}


def _build_mended(memory: Memory, facts: Iteration) -> bool:
    """One of the last messages is gone, no other came, and something ran that could have shown it."""
    before = set(memory.get("builds", ()))
    return bool(before - set(facts.builds)) and set(facts.builds) <= before and facts.ended == "exit"


def _reverted(memory: Memory, facts: Iteration) -> bool:
    return facts.tree != facts.tree_before and facts.tree in memory.get("trees", ())


# -- what repeats -----------------------------------------------------------------------------------------


def _followed(memory: Memory, facts: Iteration, verdict: Judgement, *, resolved: bool) -> Memory:
    """The trees and approaches so far. A result ends a row of approaches; so does their being found circular."""
    trees = list(memory.get("trees", ()))
    for tree in (facts.tree_before, facts.tree):
        trees = appended(trees, tree, _KEPT) if tree else trees
    approach = facts.said_approach or facts.approach
    approaches = [*memory.get("approaches", ()), approach][-_KEPT:] if approach else memory.get("approaches", [])
    if resolved:
        return {"trees": trees[-1:], "approaches": []}
    if _committed(facts) and facts.error is None:
        approaches = []
    if facts.approach and not _committed(facts) and approaches[-REPEATS:] == [facts.approach] * REPEATS:
        verdict.circular = f"the same change was made {REPEATS} times in a row"
    elif length := period(approaches):
        verdict.circular = f"{length} approaches alternate: {' / '.join(_shown(step) for step in approaches[-length:])}"
    elif (length := period(trees)) and facts.tree != facts.tree_before:
        verdict.circular = f"the files alternate between the same {length} contents"
    if verdict.circular:
        return {"trees": trees[-1:], "approaches": []}
    return {"trees": trees, "approaches": approaches}


def _shown(approach: str) -> str:
    return f"the change {approach[7:19]}" if approach.startswith("sha256:") else approach


def _tried(memory: Memory, facts: Iteration) -> tuple[list[tuple[str, list[str]]], bool]:
    """The approaches named for each failure, and whether this failure is the loop's matter by now.

    The first three different ones are the task's own retries; an agent that names none has none.
    """
    tried: list[tuple[str, list[str]]] = list(memory.get("tried", ()))
    if facts.error is None:
        return tried, False
    named = next((names for error, names in tried if error == facts.error), [])
    others = [one for one in tried if one[0] != facts.error][-_KEPT + 1 :]
    is_new = facts.said_approach is not None and facts.said_approach not in named
    if is_new and len(named) < TASK_APPROACHES:
        return [*others, (facts.error, [*named, facts.said_approach or ""])], False
    return [*others, (facts.error, named)], True


def _noted(memory: Memory, facts: Iteration, verdict: Judgement) -> Memory:
    """What the next iteration is compared with. A neutral one says nothing, so it is not compared with."""
    ticked = list(dict.fromkeys([*memory.get("ticked", ()), *facts.ticked]))[-_TICKED:]
    on_trust = 0 if facts.meaningful or _committed(facts) else memory.get("on_trust", 0) + 1
    answers = [*memory.get("answers", ()), facts.answer][-_KEPT:] if facts.answer else memory.get("answers", [])
    if verdict.kind == "neutral" or facts.ended in ("timeout", "idle"):
        return {"ticked": ticked, "answers": answers, "finished": facts.finished, "on_trust": on_trust}
    return {
        "ticked": ticked,
        "answers": answers,
        "on_trust": on_trust,
        "finished": facts.finished,
        "error": facts.error,
        "builds": list(facts.builds),
        "tests": _flat(facts.tests) if facts.tests else memory.get("tests"),
        "least": _least(memory, facts),
        "untested": facts.tests is None and (facts.meaningful > 0 or memory.get("untested", False)),
    }


def _least(memory: Memory, facts: Iteration) -> int | None:
    """The fewest failures since this error came."""
    if facts.error is None or facts.tests is None:
        return None
    failures = facts.tests[1] + facts.tests[3]
    least = memory.get("least") if facts.error == memory.get("error") else None
    return failures if least is None else min(failures, least)


def _flat(tests: tuple[Any, ...]) -> list[Any]:
    return [*tests[:4], list(tests[4])]


# -- what the circuits hear -------------------------------------------------------------------------------


class _Telling:
    """The signals of one judged iteration."""

    def __init__(self, memory: Memory, facts: Iteration, verdict: Judgement, held: Collection[str], lease: str) -> None:
        self.facts = facts
        self.verdict = verdict
        self.held = held
        self.lease = lease
        self.same_error = _same_error(memory, facts)
        self.fewer_failures = _fewer_failures(memory, facts)

    def signals(self, error_counts: bool) -> list[Signal]:
        facts, verdict = self.facts, self.verdict
        if verdict.kind == "neutral":
            told = [self._signal("note", "loop/neutral", "neutral", text=facts.blocked)]
            return told + [self._signal("release", name, "release") for name in self.held]
        told = [*self._progress(), *self._volume(), *self._denials()]
        told += self._error(error_counts)
        fixes = verdict.test_fix
        told.append(
            self._signal("bad" if fixes else "good", "loop/test_fix", "work", value=int(fixes), text=facts.names)
        )
        told.append(
            self._signal(
                "bad" if verdict.score < 0 else "good",
                "loop/score",
                "score",
                value=verdict.score,
                text=", ".join(verdict.points),
            )
        )
        if verdict.circular:
            told.append(self._signal("bad", "loop/circular", "circular", text=verdict.circular))
        # Whoever held a probe answers with it; what else that circuit would have heard is in the answer.
        return [one for one in told if one.circuit not in self.held] + [self._settled(name) for name in self.held]

    def _progress(self) -> list[Signal]:
        kind = self.verdict.kind
        name = "no_progress" if kind == "none" else "progress"
        told = [self._signal("good", "loop/neutral", name)]
        if kind != "tests":
            told.append(self._signal("bad" if kind == "none" else "good", "loop/no_progress", name, text=self._idle()))
        return told

    def _volume(self) -> list[Signal]:
        if self.verdict.result:
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
        if facts.ended in ("timeout", "idle"):  # cut short: nobody knows whether it would have been clean
            return []
        return [self._signal("good", "loop/same_error", "clean")]

    def _settled(self, circuit: str) -> Signal:
        """A positive score closes, unless the very thing that opened the circuit has come again."""
        name = circuit.partition("/")[2]
        recurred = {
            "same_error": self.same_error,
            "permission_denied": self.facts.denied > 0,
            "test_fix": self.verdict.test_fix,
            "circular": bool(self.verdict.circular),
        }
        if self.verdict.score > 0 and not recurred.get(name):
            return self._signal("good", circuit, "progress")
        return self._signal("bad", circuit, "probe_failed", text=self._idle() or self.facts.error_text)

    def _idle(self) -> str:
        if self.verdict.kind != "none":
            return f"score {self.verdict.score:+d}"
        how = {"launch": "the agent could not be started", "crash": "the agent crashed", "idle": "the agent hung"}
        return f"{how.get(self.facts.ended, 'the agent ended')}; no file changed, no task completed"

    def _signal(self, kind: SignalKind, circuit: str, name: str, **fields: Any) -> Signal:
        return Signal(kind, circuit, name, lease=self.lease, **fields)
