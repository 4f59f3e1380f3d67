"""Loops inside a session: a stop hook keeps the agent going. Real store, real git, and a process that is the agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fusewire.breakers.loop import stop_hook as iterations
from fusewire.breakers.loop.loop import Loop
from fusewire.breakers.loop.state import LoopRecord
from fusewire.breakers.session.opening import quick_store
from fusewire.config.rules import load_rules
from fusewire.core.events import Event
from fusewire.engine.breaker import Breaker
from fusewire.guard import calls as guard_marks
from tests.helpers.decisions import said
from tests.helpers.project import Project
from tests.stores.test_sqlite_store import without_rights

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"


@dataclass
class Looping:
    """A session whose stop hook does not let it stop."""

    project: Project
    session: str = SESSION
    environment: dict[str, str] = field(default_factory=lambda: {"CLAUDE_PID": str(os.getppid())})
    works: int = 0

    def __post_init__(self) -> None:
        self.home = str(self.project.root)
        self.rules = load_rules(self.home)
        self.store = quick_store(self.home, self.rules)

    def event(self, kind: str = "stop", text: str = "again", **more: Any) -> Event:
        more.setdefault("result", "Done with this part.")
        return Event(kind, hook="Stop", session=self.session, agent="claude", text=text, **more)

    def stops(self, text: str = "again", **more: Any) -> tuple[str, str]:
        event = self.event(text=text, **more)
        return said(iterations.stopping(event, self.store, self.rules, self.home, self.environment))

    def work(self) -> None:
        self.works += 1
        (self.project.root / f"part{self.works}.py").write_text(f"def part():\n    return {self.works}\n")

    @property
    def record(self) -> LoopRecord:
        return LoopRecord.recalled(self.store)

    def progress(self) -> bool:
        with self.store.transact() as transaction:
            return iterations.brought_progress(transaction, self.session)


@pytest.fixture
def looping(project: Project) -> Looping:
    (project.root / "start.py").write_text("start = 1\n")
    return Looping(project)


# -- what counts ----------------------------------------------------------------------------------------------------


def test_three_stretches_that_bring_nothing_open_the_loops_circuit_and_halt(looping: Looping) -> None:
    """First stop: a person's task ends. Second: the hook kept it going once. From then on each stretch is judged."""
    assert looping.stops("") == ("allow", "")
    assert looping.record.running == {}
    assert looping.stops() == ("allow", "")
    assert len(looping.record.running) == 1
    assert looping.stops() == ("allow", "")
    assert looping.stops() == ("allow", "")
    action, text = looping.stops()
    assert action == "halt"
    assert text.startswith(
        "CIRCUIT OPEN loop.no_progress: 3 iterations in a row brought no meaningful change (limit 3)."
    )
    assert "The agent is stopped; it goes on when a person speaks to it." in text
    assert " UTC" not in text, "a halt has no time"
    assert [entry["kind"] for entry in looping.record.history] == ["none"] * 3
    assert looping.record.running == {}, "what is halted begins no iteration"
    action, text = looping.stops()
    assert action == "halt", "a circuit that is open says no to whoever is kept going"
    assert text.startswith("BLOCKED loop.no_progress")


def test_stretches_that_bring_something_are_progress_and_never_halt(looping: Looping) -> None:
    """And the breaker of stop hooks may know: it is no mere recursion."""
    looping.stops("")
    looping.stops()
    assert not looping.progress()
    for _ in range(8):
        looping.work()
        assert looping.stops() == ("allow", "")
        assert looping.progress()
    assert {entry["kind"] for entry in looping.record.history} == {"progress"}
    assert looping.record.history[-1]["names"] == ["part8.py"]
    looping.stops()
    assert not looping.progress()


def test_the_last_message_is_the_answer_of_the_iteration(looping: Looping) -> None:
    """Its status block, its questions and its test results are read as those of any loop."""
    looping.stops()
    block = (
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\nTASKS_COMPLETED_THIS_LOOP: 2\n---END_RALPH_STATUS---"
    )
    looping.work()
    assert looping.stops(result=f"All done.\n{block}\n") == ("allow", "")
    assert looping.record.history[-1]["tasks"] == 2
    assert looping.stops(result="Which database shall I use?") == ("allow", "")
    assert looping.record.history[-1]["blocked"].startswith("blocked on human")


def test_the_guards_halt_is_a_halt_here_and_nothing_here_lifts_it(looping: Looping) -> None:
    """Protected files are compared by the hook after every call; a stop must not take a new record of them."""
    looping.stops()
    guard_marks.write(looping.home, "halt", f"{SESSION}\nBLOCKED guard.integrity: AGENTS.md is gone")
    action, text = looping.stops()
    assert action == "halt"
    assert "AGENTS.md is gone" in text
    assert guard_marks.halted(looping.home, SESSION)


def test_settings_that_the_agents_program_writes_itself_halt_nobody(looping: Looping) -> None:
    """A person who permits something in a dialogue changes a protected file; the loop's own guard would undo it."""
    settings = looping.project.root / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    looping.stops()
    settings.write_text('{"permissions": {"allow": ["Bash(ls)"]}}')
    looping.work()
    assert looping.stops() == ("allow", "")
    assert "Bash(ls)" in settings.read_text()


# -- what does not --------------------------------------------------------------------------------------------------


def test_a_persons_stops_are_never_a_loop(looping: Looping) -> None:
    """However many there are, and whatever they bring: nothing is begun, nothing counted, nothing written."""
    for _ in range(20):
        assert looping.stops("") == ("allow", "")
    assert looping.record == LoopRecord()
    assert looping.store.remembered("session/") == []


def test_one_check_before_the_end_of_each_task_is_no_loop(looping: Looping) -> None:
    """A stop hook that asks once ('did you run the tests?') at every task: each time the iteration is given up."""
    for _ in range(10):
        assert looping.stops("") == ("allow", "")
        assert looping.stops() == ("allow", "")
    looping.stops("")
    assert looping.record.history == []
    assert looping.record.running == {}


@pytest.mark.parametrize("how", ["prompt", "session_end", "stop"])
def test_a_loop_that_ends_without_a_word_is_unknown_and_no_failure(looping: Looping, how: str) -> None:
    """A person spoke, the session ended, or the next task did: the iteration under way is given up."""
    looping.stops()
    looping.stops()
    if how == "stop":
        looping.stops("")
    else:
        iterations.ended(looping.event(how, ""), looping.store, looping.rules, looping.home)
    assert looping.record.running == {}
    assert [entry["kind"] for entry in looping.record.history] == ["none"]
    assert looping.store.recall(f"session/{SESSION}/~stops") is None
    assert list((looping.project.root / ".fusewire" / "loop").glob("*.snapshot")) != []
    looping.stops()
    looping.stops()
    assert looping.stops()[0] == "halt", "what was judged before still counts: the streak is the project's"


def test_inside_fusewire_run_and_of_helpers_nothing_is_counted(looping: Looping) -> None:
    """That loop has a supervisor of its own; a helper's end is no stop of the session."""
    looping.environment["FUSEWIRE_PROJECT"] = looping.home
    for _ in range(5):
        assert looping.stops() == ("allow", "")
    del looping.environment["FUSEWIRE_PROJECT"]
    for _ in range(5):
        assert looping.stops(subagent="a1") == ("allow", "")
    assert looping.record == LoopRecord()


def test_another_loop_of_the_project_is_not_disturbed(looping: Looping) -> None:
    """Whose change is whose could not be told: while it is under way, nothing is measured here."""
    looping.stops()
    other = Loop(Breaker.open(project=looping.home))
    begun = other.begin(owner=None)
    assert looping.stops() == ("allow", "")
    assert list(looping.record.running) == [begun.token]
    assert looping.record.history == []
    result = other.end(begun.token, begun=begun)
    assert result.kind == "none"
    assert looping.stops() == ("allow", "")
    assert len(looping.record.running) == 1, "and afterwards it goes on here"


def test_an_open_circuit_of_another_loop_does_not_stop_a_single_check(looping: Looping) -> None:
    """And after its cooldown the one probe is left to that loop, unless this is one, too."""
    other = Loop(Breaker.open(project=looping.home))
    for _ in range(3):
        begun = other.begin()
        other.end(begun.token, begun=begun)
    assert other.view()["state"] == "OPEN"
    looping.stops("")
    assert looping.stops() == ("allow", "")
    action, text = looping.stops()
    assert action == "halt"
    assert "BLOCKED loop.no_progress" in text


def test_a_session_that_is_killed_leaves_an_iteration_that_the_next_loop_settles(looping: Looping) -> None:
    """It belongs to the agent's process; what that has changed counts, else nobody knows."""
    script = (
        "import os, sys\n"
        "from fusewire.core.events import Event\n"
        "from fusewire.config.rules import load_rules\n"
        "from fusewire.breakers.loop import stop_hook as iterations\n"
        "from fusewire.breakers.session.opening import quick_store\n"
        "home = sys.argv[1]\n"
        "if os.fork() == 0:\n"
        "    rules = load_rules(home)\n"
        "    event = Event('stop', session='killed', text='again', result='')\n"
        "    pid = {'CLAUDE_PID': str(os.getppid())}\n"
        "    iterations.stopping(event, quick_store(home, rules), rules, home, pid)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    subprocess.run([sys.executable, "-c", script, looping.home], check=True, timeout=60)
    (entry,) = looping.record.running.values()
    assert entry["owner"]
    looping.stops()
    assert [one["blocked"] for one in looping.record.history] == ["interrupted by a person"]
    assert [one["kind"] for one in looping.record.history] == ["neutral"]


# -- when something is wrong ----------------------------------------------------------------------------------------


def test_a_look_that_takes_long_is_said_and_not_repeated(looping: Looping, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook has ten seconds; big trees are not measured in sessions."""
    looping.stops()
    monkeypatch.setattr(iterations, "_PATIENT", 0.0)
    action, text = looping.stops()
    assert action == "allow"
    assert "is no longer measured" in text
    assert looping.record.running == {}
    monkeypatch.undo()
    for _ in range(5):
        assert looping.stops() == ("allow", "")
    looping.stops("")
    looping.stops()
    assert len(looping.record.running) == 1, "the next task is another chance"


def test_a_look_that_the_deadline_cut_short_is_not_begun_again(looping: Looping) -> None:
    """What was begun in it and never remembered is given up as well."""
    looping.stops()
    (token,) = looping.record.running
    with looping.store.transact() as transaction:
        transaction.remember(f"session/{SESSION}/~stops", {"looking": True}, time.time())
    action, text = looping.stops()
    assert (action, "came to no end" in text) == ("allow", True)
    assert token not in looping.record.running
    assert looping.stops() == ("allow", "")


def test_damaged_memories_begin_anew(looping: Looping) -> None:
    looping.stops()
    for data in ({"token": 7}, {"token": "unknown"}, {"progress": "yes"}):
        with looping.store.transact() as transaction:
            transaction.remember(f"session/{SESSION}/~stops", data, time.time())
        assert looping.stops()[0] == "allow"
    assert not looping.progress()


def test_a_loop_that_cannot_be_written_down_is_said_once(looping: Looping) -> None:
    """Whoever calls tells the person; from then on the session is left alone."""
    looping.store.recall("anything")
    blocker = looping.project.root / ".fusewire" / "loop"
    blocker.mkdir(parents=True)
    blocker.chmod(0o500)

    def work() -> str:
        with pytest.raises(OSError, match="loop"):
            looping.stops()
        later = {looping.stops() for _ in range(5)}
        return f"{later} {looping.record.running}"

    assert without_rights(work) == f"{{{('allow', '')}}} {{}}"


def test_a_tree_that_cannot_be_read_is_neutral(looping: Looping) -> None:
    """Unknown is not "no progress"."""
    looping.stops()
    broken = looping.project.root / "inside"
    broken.mkdir()
    subprocess.run(["git", "init", "-q", str(broken)], check=True)
    (broken / ".git" / "HEAD").write_text("ref: refs/heads/\x01\n")
    (broken / ".git" / "index").write_bytes(b"not an index")
    looping.stops()
    assert [entry["kind"] for entry in looping.record.history] == ["neutral"]


def test_what_is_kept_is_small_and_goes_with_the_session(looping: Looping) -> None:
    for _ in range(12):
        looping.work()
        looping.stops()
    kept = looping.store.recall(f"session/{SESSION}/~stops")
    assert kept is not None
    assert len(json.dumps(kept)) < 200
    iterations.ended(looping.event("session_end", ""), looping.store, looping.rules, looping.home)
    assert looping.store.remembered("session/") == []
    snapshots = list((Path(looping.home) / ".fusewire" / "loop").glob("*.snapshot"))
    assert [path.name for path in snapshots] == ["last.snapshot"]
