"""The loop's detector with its real circuits: each condition trips at its number, honest work never does."""

from __future__ import annotations

from typing import Any

import pytest

from fusewire.breakers.loop.detect import CIRCUITS, POINTS, Memory, judge, period
from fusewire.breakers.loop.iteration import Iteration
from fusewire.core.events import Signal, fingerprint
from fusewire.engine.breaker import Breaker
from fusewire.testruns.run import TestRun

ERROR = fingerprint("the same error")


class Played:
    """A loop whose iterations are made up; the detector, the engine and the circuits are real."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.breaker = Breaker.open("memory:", clock=lambda: self.now)
        self.memory = Memory()
        self.count = 0

    def ask(self) -> list[str]:
        """Begin an iteration: the circuits whose probe it is; AssertionError if one refuses."""
        self.count += 1
        signals = [Signal("ask", name, "iteration", lease=f"i{self.count}") for name in CIRCUITS]
        decisions, _ = self.breaker.engine.apply(signals)
        assert all(decision.allowed for decision in decisions), [d.rule for d in decisions if not d.allowed]
        return [decision.circuit for decision in decisions if decision.lease]

    def play(self, **facts: Any) -> list[str]:
        """One iteration; the names of the circuits that it opened."""
        held = self.ask()
        before = (self.memory.trees or ["start"])[-1]
        facts.setdefault("tree_before", before)
        facts.setdefault("tree", f"tree-{self.count}" if facts.get("files") else before)
        facts.setdefault("answer", f"answer-{self.count}")
        if "tests" in facts:
            facts["tests"] = TestRun("", *facts["tests"])
        self.memory, self.judged = judge(self.memory, Iteration(**facts), held, f"i{self.count}")
        decisions, _ = self.breaker.engine.apply(self.judged.signals)
        self.now += 60
        self.alerts = [decision.circuit for decision in decisions if decision.alert]
        return [decision.circuit.partition("/")[2] for decision in decisions if decision.tripped]

    def phase(self, name: str) -> str:
        return self.breaker.status(f"loop/{name}").phase


@pytest.fixture
def loop() -> Played:
    return Played()


WORK: dict[str, Any] = {"files": 1, "meaningful": 1}
IDLE: dict[str, Any] = {}


# -- each condition at its number -----------------------------------------------------------------------------


def test_three_iterations_without_a_change_open_the_circuit(loop: Played) -> None:
    """No progress: the third trips, by the streak and by the score, and not the second."""
    assert [loop.play(**IDLE), loop.play(**IDLE)] == [[], []]
    assert sorted(loop.play(**IDLE)) == ["no_progress", "score"]


@pytest.mark.parametrize("ended", ["launch", "crash", "idle", "timeout"])
def test_what_cannot_even_run_counts_as_no_progress(loop: Played, ended: str) -> None:
    """A failed launch, a crash, a hang and a time-out without work are iterations, never neutral ones."""
    assert [loop.play(ended=ended, blocked="") for _ in range(2)] == [[], []]
    assert "no_progress" in loop.play(ended=ended)


def test_a_crash_is_no_question(loop: Played) -> None:
    """What looks like a question to the human does not excuse an agent that crashed."""
    loop.play(ended="crash", blocked="blocked on human: go on?")
    assert loop.judged.kind == "none"


def test_the_same_error_five_times_opens_the_circuit(loop: Played) -> None:
    """Also while tasks are completed: the fifth trips and not the fourth."""
    for count in range(1, 5):
        assert loop.play(**WORK, error=ERROR, tasks_claimed=1) == [], count
    assert loop.play(**WORK, error=ERROR, tasks_claimed=1) == ["same_error"]


def test_a_falling_output_opens_the_circuit(loop: Played) -> None:
    """70 % across three iterations in which nothing was finished."""
    assert [loop.play(**WORK, lines=lines) for lines in (100, 60)] == [[], []]
    assert loop.play(**WORK, lines=30) == ["output_decline"]


def test_three_denied_calls_open_the_circuit(loop: Played) -> None:
    """In a row inside one iteration, or one in each of three iterations."""
    assert [loop.play(**WORK, denied=1) for _ in range(2)] == [[], []]
    assert loop.play(**WORK, denied=1) == ["permission_denied"]
    assert Played().play(**WORK, denied=3) == ["permission_denied"]
    assert Played().play(**WORK, denied=2) == []


def test_only_fixing_tests_opens_the_circuit(loop: Played) -> None:
    """Three of three iterations are more than 80 %, and they were no progress."""
    fix = {"files": 1, "meaningful": 1, "only_tests": True}
    assert [loop.play(**fix), loop.play(**fix)] == [[], []]
    assert loop.judged.kind == "tests"
    assert loop.play(**fix) == ["test_fix"]


@pytest.mark.parametrize(("approaches", "at"), [("abab", 4), ("abcabc", 6), ("xyzabab", 7)])
def test_alternating_approaches_open_the_circuit(loop: Played, approaches: str, at: int) -> None:
    """Named ones and diffs alike, at the end of the second round."""
    trips = [loop.play(**WORK, said_approach=name) for name in approaches]
    assert trips[:-1] == [[]] * (at - 1)
    assert trips[-1] == ["circular"]
    diffs = Played()
    assert [diffs.play(**WORK, approach=fingerprint(name)) for name in approaches][-1] == ["circular"]


def test_a_tree_that_swings_opens_the_circuit(loop: Played) -> None:
    """The files have the contents of the iteration before last, twice in a row."""
    trips = [loop.play(**WORK, tree=name) for name in ("a", "b", "a", "b")]
    assert trips == [[], [], [], ["circular"]]


def test_a_negative_score_over_three_iterations_opens_the_circuit(loop: Played) -> None:
    """+1, -1, -1: work that keeps the same error."""
    assert [loop.play(**WORK, error=ERROR), loop.play(**WORK, error=ERROR)] == [[], []]
    assert loop.play(**WORK, error=ERROR) == ["score"]


def test_five_questions_open_a_circuit_of_their_own(loop: Played) -> None:
    """Neutral iterations are no stagnation, but they have an end."""
    assert [loop.play(blocked="blocked on human: which one?") for _ in range(4)] == [[]] * 4
    assert loop.play(blocked="blocked on human: which one?") == ["neutral"]


# -- the score ------------------------------------------------------------------------------------------------

FAILING = (3, 2, 0, 0, ("test_a", "test_b"))


@pytest.mark.parametrize(
    ("before", "facts", "points"),
    [
        ({}, WORK, {"a file was changed"}),
        ({}, IDLE, {"no file was changed"}),
        ({}, {**WORK, "files": 900, "meaningful": 900}, {"a file was changed"}),
        ({}, {"files": 3, "meaningful": 0}, {"no file was changed"}),
        ({}, {**WORK, "tasks_claimed": 7}, {"a task was completed", "a file was changed"}),
        (
            {"tests": FAILING},
            {**WORK, "tests": (4, 1, 0, 0, ("test_b",))},
            {"a failing test passes", "a file was changed"},
        ),
        ({"tests": FAILING}, {**WORK, "tests": (3, 1, 0, 0, ("test_b",))}, {"a file was changed"}),
        ({"tests": FAILING}, {**WORK, "tests": (3, 1, 1, 0, ("test_b",))}, {"a file was changed"}),
        ({"tests": FAILING}, {**WORK, "weakened": 1, "tests": (4, 1, 0, 0, ("test_b",))}, {"a file was changed"}),
        ({"error": ERROR}, {**WORK, "error": ERROR}, {"a file was changed", "the same error as before"}),
        ({"error": ERROR}, {**WORK, "error": "sha256:other"}, {"a file was changed"}),
        ({"builds": ("x", "y")}, {**WORK, "builds": ("y",)}, {"a file was changed", "a build or lint error is gone"}),
        ({"builds": ("x",)}, {**WORK, "builds": ("z",)}, {"a file was changed"}),
        ({"tree": "other"}, {**WORK, "tree": "start"}, {"a file was changed", "earlier changes were reverted"}),
        ({}, {"read_only": True}, set()),
    ],
)
def test_each_indicator_counts_once(
    loop: Played, before: dict[str, Any], facts: dict[str, Any], points: set[str]
) -> None:
    """What the seed's table gives points for, and what looks like it and does not count."""
    loop.play(**{**WORK, **before})
    loop.play(**facts)
    assert set(loop.judged.points) == points
    more = min(3, facts["meaningful"]) - 1 if "a file was changed" in points else 0
    assert loop.judged.score == sum(POINTS[name] for name in points) + more


def test_the_seeds_points() -> None:
    """+3, +5, +1, +2, -2, -3, -1."""
    assert sorted(POINTS.values()) == [-3, -2, -1, 1, 2, 3, 5]


# -- must not fire --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        {"commits": 1, "files": 1, "meaningful": 1},
        {"commits": 1, "files": 3, "meaningful": 0},
        {"files": 1, "meaningful": 1},
        {"commits": 1, "files": 9, "meaningful": 9},
        {"files": 40, "meaningful": 40, "lines": 3},
        {"read_only": True},
        {"tasks_claimed": 1},
        {"ended": "timeout", "commits": 20, "files": 30, "meaningful": 30},
        {"ended": "timeout", "files": 1, "meaningful": 1},
        {"files": 1, "meaningful": 1, "only_tests": True, "tests_added": 2},
    ],
    ids=["commit", "commit of lock files", "edit", "merge", "batch", "audit", "tasks", "timeout", "edit cut", "tests"],
)
def test_twenty_honest_iterations_never_trip(loop: Played, facts: dict[str, Any]) -> None:
    """The false trips that made people switch such breakers off."""
    for _ in range(20):
        assert loop.play(**facts) == []
    assert all(loop.phase(name.partition("/")[2]) == "closed" for name in CIRCUITS)


def test_editing_and_committing_in_turns_is_work(loop: Played) -> None:
    """One iteration edits, the next commits what is there."""
    for _ in range(10):
        assert loop.play(**WORK) == []
        assert loop.play(commits=1, files=2) == []


def test_failing_tests_that_become_fewer_are_no_stagnation(loop: Played) -> None:
    """Tests are run again after every edit; the failures differ and shrink."""
    for left in range(20, 0, -1):
        names = tuple(f"test_{number}" for number in range(left))
        assert loop.play(**WORK, error=fingerprint(str(left)), tests=(20 - left, left, 0, 0, names)) == []


def test_questions_between_work_are_harmless(loop: Played) -> None:
    """Four questions, then an answer and work: the row is broken."""
    for _ in range(5):
        for _ in range(4):
            assert loop.play(blocked="blocked on human: which?") == []
        assert loop.play(**WORK) == []


def test_a_question_hides_no_stagnation(loop: Played) -> None:
    """Two empty iterations, a question, a third empty one: the row goes on."""
    loop.play(**IDLE)
    loop.play(**IDLE)
    assert loop.play(blocked="blocked on human: which?") == []
    assert "no_progress" in loop.play(**IDLE)


def test_one_revert_is_only_a_point_less(loop: Played) -> None:
    """An agent that takes a bad idea back has not gone in circles."""
    assert [loop.play(**WORK, tree=name) for name in ("a", "b", "a")] == [[], [], []]
    assert loop.judged.points["earlier changes were reverted"] == -1
    assert loop.play(**WORK, tree="c") == []


def test_a_result_ends_a_row_of_approaches(loop: Played) -> None:
    """Writing a test and making it pass in turns is alternating, and is work."""
    for count in range(6):
        failing = (count, 1, 0, 0, (f"test_{count}",))
        passing = (count + 1, 0, 0, 0, ())
        assert loop.play(**WORK, said_approach="write a test", tests=failing) == []
        assert loop.play(**WORK, said_approach="make it pass", tests=passing) == []


def test_a_result_overrules_a_falling_output(loop: Played) -> None:
    """A commit among the three iterations."""
    assert loop.play(**WORK, lines=100) == []
    assert loop.play(**WORK, lines=50, commits=1) == []
    assert loop.play(**WORK, lines=20) == []
    assert loop.play(**WORK, lines=10) == []


def test_the_same_claim_again_is_no_task(loop: Played) -> None:
    """An agent that says the same words again and again has completed nothing."""
    loop.play(tasks_claimed=1, answer="done")
    assert loop.judged.kind == "progress"
    assert loop.play(tasks_claimed=1, answer="done") == []
    assert loop.judged.kind == "none"
    assert loop.play(tasks_claimed=1, answer="done") == ["score"]


def test_a_box_that_is_ticked_again_is_no_task(loop: Played) -> None:
    """Each box counts once, also where the plan is tidied up in between."""
    completed = []
    for ticked in (("a",), (), ("a",), ("a", "b"), ("c",)):
        loop.play(**WORK, ticked=ticked)
        completed.append(loop.judged.tasks)
    assert completed == [1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    "facts",
    [
        {"files": 2, "weakened": 2, "only_tests": True},
        {"files": 2, "weakened": 2, "commits": 1, "only_tests": True},
        {"commits": 1},
        {"files": 5},
    ],
    ids=["weakened tests", "committed weakened tests", "empty commit", "white space and lock files"],
)
def test_what_only_looks_like_work_is_none(loop: Played, facts: dict[str, Any]) -> None:
    """Deleting or skipping tests, empty commits and noise do not keep a loop alive."""
    trips = [loop.play(**facts) for _ in range(3)]
    assert trips[:2] == [[], []]
    assert trips[2]


def test_tests_that_are_run_after_an_edit_are_work_once(loop: Played) -> None:
    """An iteration edits, the next only runs the tests: for ever. Running them again on the same tree is idle."""
    green = (5, 0, 0, 0, ())
    for _ in range(10):
        assert loop.play(**WORK) == []
        assert loop.play(tests=green) == []
        assert loop.judged.score == 0
    loop.play(tests=green)
    assert loop.judged.kind == "none"


def test_failures_that_become_fewer_are_not_the_same_error(loop: Played) -> None:
    """Also where only the last of them are printed, so that their names stay the same."""
    for failed in range(39, 19, -1):
        names = ("test_y", "test_z")
        assert loop.play(**WORK, error=ERROR, tests=(100 - failed, failed, 0, 0, names)) == []
        assert loop.judged.score in (1, 4)


def test_whoever_commits_beside_a_failure_reaches_the_errors_own_limit(loop: Played) -> None:
    """A big feature whose last test stays red: four iterations pass, the fifth is the seed's limit."""
    for _ in range(4):
        assert loop.play(**WORK, commits=1, error=ERROR) == []
    assert loop.play(**WORK, commits=1, error=ERROR) == ["same_error"]


def test_committed_work_under_alternating_names_is_work(loop: Played) -> None:
    """Implementing and documenting in turns; with an error that stays it is circular."""
    for count in range(20):
        assert loop.play(**WORK, commits=1, said_approach=("implement", "document")[count % 2]) == []
    stuck = Played()
    trips = [stuck.play(**WORK, commits=1, tasks_claimed=0, error=ERROR, said_approach=name) for name in "abab"]
    assert trips[-1] == ["circular"]


def test_saying_that_all_is_done_is_no_stagnation(loop: Played) -> None:
    """Once; who says it again and again, and is not believed, gets nowhere."""
    assert [loop.play(**WORK), loop.play(**WORK), loop.play(finished=True)] == [[], [], []]
    assert loop.judged.score == 0
    assert loop.play(finished=True) == ["score"]


# -- what the adversary tried -----------------------------------------------------------------------------------


def test_other_tests_that_fail_instead_are_no_gain(loop: Played) -> None:
    """Two tests that fail in turns: neither of them passes for good."""
    for count in range(6):
        names = (("test_a",), ("test_b",))[count % 2]
        loop.play(**WORK, tests=(1, 1, 0, 0, names))
        assert "a failing test passes" not in loop.judged.points


def test_the_same_change_again_and_again_is_circular(loop: Played) -> None:
    """The same lines are added once more while the file grows; committed, or in other files, that is work."""
    trips = [loop.play(**WORK, approach=fingerprint("the same lines")) for _ in range(5)]
    assert trips == [[], [], [], [], ["circular"]]
    committing = Played()
    for _ in range(20):
        assert committing.play(**WORK, commits=1, approach=fingerprint("the same lines")) == []


@pytest.mark.parametrize("facts", [{"tasks_claimed": 1}, {"read_only": True}])
def test_an_agents_word_alone_is_believed_for_a_while(loop: Played, facts: dict[str, Any]) -> None:
    """Twenty-five iterations in new words, then something has to change; a change renews the trust."""
    kinds = []
    for _ in range(26):
        loop.play(**facts)
        kinds.append(loop.judged.kind)
    assert kinds == ["progress"] * 25 + ["none"]
    other = Played()
    for count in range(60):
        assert other.play(**(WORK if count % 20 == 0 else facts)) == []


# -- the task's own retries -----------------------------------------------------------------------------------


def test_three_named_approaches_to_a_failure_are_the_tasks_matter(loop: Played) -> None:
    """After them the loop counts: the same error trips at the eighth iteration instead of the fifth."""
    trips = []
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        trips.append(loop.play(**WORK, tasks_claimed=1, error=ERROR, said_approach=name))
    assert trips == [[]] * 7
    assert loop.play(**WORK, tasks_claimed=1, error=ERROR, said_approach="h") == ["same_error"]


def test_naming_the_same_approach_again_buys_nothing(loop: Played) -> None:
    """One approach is one of the three."""
    trips = [loop.play(**WORK, tasks_claimed=1, error=ERROR, said_approach="a") for _ in range(6)]
    assert trips == [[]] * 5 + [["same_error"]]


# -- recovery -------------------------------------------------------------------------------------------------


def stagnate(loop: Played) -> None:
    for _ in range(3):
        loop.play(**IDLE)
    assert loop.phase("no_progress") == loop.phase("score") == "open"


def test_a_probe_with_a_positive_score_closes_everything_that_opened(loop: Played) -> None:
    """One iteration after the cooldown answers for both circuits."""
    stagnate(loop)
    loop.now += 1800
    assert loop.play(**WORK) == []
    assert loop.phase("no_progress") == loop.phase("score") == "closed"


@pytest.mark.parametrize("facts", [IDLE, {"commits": 1}, {**WORK, "error": ERROR, "tree": "tree-0"}])
def test_a_probe_without_a_positive_score_opens_again_and_doubles(loop: Played, facts: dict[str, Any]) -> None:
    """Also where the score is not negative: nothing, or as much good as bad."""
    for _ in range(3):
        loop.play(error=ERROR)
    loop.memory.trees.insert(0, "tree-0")
    loop.now += 1800
    assert set(loop.play(**facts)) == {"no_progress", "score"}
    assert loop.breaker.status("loop/no_progress").retry_after == pytest.approx(3600 - 60)


def test_a_neutral_probe_gives_it_back(loop: Played) -> None:
    """An outage decides nothing: the next iteration is the probe."""
    stagnate(loop)
    loop.now += 1800
    assert loop.play(blocked="the model could not be reached") == []
    assert loop.phase("no_progress") == "probe"
    assert loop.play(**WORK) == []
    assert loop.phase("no_progress") == "closed"


def test_a_recurrence_right_after_a_recovery_opens_at_once_and_alerts(loop: Played) -> None:
    """For three iterations one without progress is enough; afterwards it takes three again."""
    stagnate(loop)
    loop.now += 1800
    loop.play(**WORK)
    loop.play(**WORK)
    assert "no_progress" in loop.play(**IDLE)
    assert "loop/no_progress" in loop.alerts


def test_another_failure_after_a_recovery_is_no_recurrence(loop: Played) -> None:
    """A loop that recovered from one error may have another one."""
    for _ in range(5):
        loop.play(**WORK, tasks_claimed=1, error=ERROR)
    loop.now += 1800
    assert loop.play(**WORK, tasks_claimed=1, error="sha256:other") == []
    assert loop.play(**WORK, tasks_claimed=1, error="sha256:third") == []
    assert loop.play(**WORK, tasks_claimed=1, error=ERROR) == ["same_error"]


def test_the_very_same_error_fails_the_probe_whatever_the_score(loop: Played) -> None:
    """A completed task does not hide that the error is still there."""
    for _ in range(5):
        loop.play(**WORK, tasks_claimed=1, error=ERROR)
    loop.now += 1800
    assert loop.play(**WORK, tasks_claimed=1, error=ERROR) == ["same_error"]


# -- the small parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "length"),
    [
        ("", 0),
        ("ab", 0),
        ("aba", 0),
        ("abab", 2),
        ("aaaa", 0),
        ("abcabc", 3),
        ("abcab", 0),
        ("aabaab", 0),
        ("abcdabcd", 0),
    ],
)
def test_a_period_is_two_whole_rounds(steps: str, length: int) -> None:
    """Of two or three different things."""
    assert period(list(steps)) == length


def test_the_memory_stays_small(loop: Played) -> None:
    """A thousand iterations leave as much as twenty."""
    import json

    memory = Memory()
    sizes = []
    for number in range(400):
        facts = Iteration(
            **WORK,
            tree_before=f"t{number}",
            tree=f"t{number + 1}",
            approach=fingerprint(str(number)),
            said_approach=f"approach {number}",
            error=fingerprint("e", str(number)),
            answer=fingerprint("a", str(number)),
            tests=TestRun("", 1, 1, 0, 0, (f"test_{number}",)),
        )
        memory, _ = judge(memory, facts, (), "x")
        stored = json.dumps(memory.to_data())
        sizes.append(len(stored))
        memory = Memory.from_data(json.loads(stored))
        assert json.dumps(memory.to_data()) == stored
    assert sizes[-1] < 1.2 * sizes[40] < 20_000


def test_a_memory_of_version_0_1_is_read() -> None:
    """It has only the keys that were set; the tests are a list."""
    old = {"trees": ["a"], "approaches": [], "tried": [["e", ["x"]]], "error": "e", "tests": [1, 2, 3, 4, ["test_x"]]}
    memory = Memory.from_data(old)
    assert memory.tests == TestRun("", 1, 2, 3, 4, ("test_x",))
    assert {key: value for key, value in memory.to_data().items() if key in old} == old
    assert (memory.on_trust, memory.least, memory.ticked) == (0, None, [])
