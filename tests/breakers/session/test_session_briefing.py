"""What an agent is told when its session starts: nothing where all is well, else a few lines of what holds."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from fusewire.breakers.loop.loop import Loop
from fusewire.breakers.session.briefing import for_agent
from fusewire.breakers.session.opening import quick_store
from fusewire.config.rules import find_guarded, find_project, load_rules
from fusewire.core.events import Signal
from fusewire.engine.breaker import Breaker
from fusewire.engine.engine import Engine
from tests.helpers.project import Project

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"


def told(project: Project, session: str | None = SESSION, start: Path | None = None) -> list[str]:
    """The lines, without the marks in front; the limits hold for every text."""
    folder = str(start or project.root)
    root = find_guarded(folder)
    rules = load_rules(root)
    text = for_agent(quick_store(root, rules), root, rules, find_project(folder), session)
    assert len(text) < 600
    lines = text.splitlines()
    assert len(lines) <= 12
    if not lines:
        return []
    assert lines[0] == "Fusewire guards this project. What holds now:"
    assert all(line.startswith("- ") for line in lines[1:])
    return [line[2:] for line in lines[1:]]


def start(project: Project, *arguments: str, session: str = SESSION) -> None:
    done = project.run("attempt", "start", *arguments, env={"CLAUDE_CODE_SESSION_ID": session})
    assert done.returncode == 0, done


def test_nothing_is_said_where_there_is_nothing_to_say(project: Project) -> None:
    """A new project, one with constraints that nobody broke, one whose circuits have closed again."""
    assert told(project) == []
    project.constraint("git-safety", "circuit_breaker:\n  violation_threshold: 3\n")
    assert told(project) == []
    project.run("phase", "begin", "RED")
    assert told(project) == []


def test_a_constraint_that_is_open_says_why_until_when_and_who_lifts_it(project: Project) -> None:
    project.constraint("git-safety", "circuit_breaker:\n  violation_threshold: 3\n")
    for ago in (1200, 600, 1):  # what is done twice within five minutes counts once
        breaker = Breaker.open(project=project.root, clock=lambda ago=ago: time.time() - ago)
        breaker.engine.apply([Signal("bad", "git-safety", "violation", text="git push --force")])
    (line,) = told(project)
    assert line.startswith("OPEN git-safety: ")
    assert "what it forbids is refused; until 20" in line
    assert "UTC (in 23h 59m)" in line or "UTC (in 1d)" in line
    assert line.endswith("a person can run: fusewire reset git-safety")


def test_a_loop_that_is_open_says_that_no_loop_runs(project: Project) -> None:
    loop = Loop.open(project.root)
    for _ in range(3):
        begun = loop.begin()
        loop.end(begun.token, begun=begun)
    lines = told(project)
    assert lines
    assert all(line.startswith("OPEN loop/") for line in lines)
    assert "no loop runs on this project; until 20" in lines[0]
    assert lines[0].endswith("a person can run: fusewire reset loop")


def test_a_phase_under_way_says_what_is_left_and_an_open_one_who_decides(project: Project) -> None:
    """One iteration without progress is left of GREEN; then it is open, and that is said once."""
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=1")
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=1")
    (line,) = told(project)
    assert line == (
        "Phase GREEN is under way: 1 of 2 iterations without progress; tell what each brought: fusewire phase end GREEN"
    )
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=1")
    (line,) = told(project)
    assert line.startswith("OPEN phase/GREEN: No progress for 2 iterations; no phase begins; a person decides: ")
    project.run("phase", "resolve", "abort")
    lines = told(project)
    assert any(line.startswith("The phases were aborted: ") for line in lines)


def test_a_phase_that_nobody_has_touched_for_days_is_not_under_way(project: Project) -> None:
    project.run("phase", "end", "GREEN", "--metric", "tests_passing=1")
    assert told(project)[0].startswith("Phase GREEN is under way")
    store = Breaker.open(project=project.root).store
    with store.transact() as transaction:
        transaction.remember("phases", store.recall("phases") or {}, time.time() - 2 * 86400)
    assert told(project) == []


def test_a_phase_that_is_complete_is_not_under_way(project: Project) -> None:
    done = ("--metric", "tests_passing=3", "--metric", "tests_failing=0", "--complete")
    assert "STATUS: COMPLETE" in project.run("phase", "end", "GREEN", *done).stdout
    assert told(project) == []


def test_a_slice_says_what_is_left_of_it_and_what_it_may_change(project: Project) -> None:
    """To the session that it holds for; a stopped test is among the circuits."""
    (project.root / "src").mkdir()
    (project.root / "src" / "a.py").write_text("a = 1\n")
    project.run("scope", "set", "S-1", "src/users", "docs/users.md")
    start(project, "S-1", "test_login")
    start(project, "S-1", "test_logout")
    for _ in range(2):
        project.run("attempt", "record", "S-1", "test_login", "--fail")
    assert told(project) == [
        "Slice S-1 is under way: 2 of 7 failed attempts; change only: src/users, docs/users.md",
        "S-1 test_login: 2 of 3 failed attempts; your test runs count",
        "S-1 test_logout: 0 of 3 failed attempts; your test runs count",
    ]
    assert told(project, "another-session") == []
    project.run("attempt", "record", "S-1", "test_login", "--fail")
    lines = told(project)
    assert lines[0].startswith(
        "OPEN attempt/S-1/test_login: 3 failed attempts at this test (limit 3); stop these attempts"
    )
    assert lines[1].startswith("Slice S-1 is under way: 3 of 7")
    assert len(lines) == 3


def test_many_circuits_are_cut_to_a_few_lines_and_counted(project: Project) -> None:
    """A context is small; the open ones come first."""
    engine = Breaker.open(project=project.root).engine
    for number in range(20):
        failure = Signal("bad", f"attempt/S-{number}/test_{'long_' * 30}{number}", "test_failed")
        engine.apply([failure] * 3)
    lines = told(project)
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" more: fusewire status --all")
    more = int(lines[-1].split()[1])
    assert more + len(lines) - 1 == 20
    assert all(line.startswith("OPEN attempt/S-") and len(line) <= 240 for line in lines[:-1])


def test_circuits_of_other_sessions_calls_are_not_the_projects(project: Project) -> None:
    """What a session's tools did is that session's matter."""
    store = quick_store(str(project.root), load_rules(str(project.root)))
    engine = Engine(store, load_rules(str(project.root)), lambda: 1e9)
    for turn in range(3):
        engine.apply([Signal("bad", f"tool/tool_failure/Bash(pytest)/{SESSION}", "tool_failed", turn=turn)])
    assert any(row.phase == "open" for row in store.circuits())
    assert told(project) == []


def test_a_repository_below_the_guarded_project_has_its_own_work(project: Project) -> None:
    """Constraints hold from above; slices are begun where the command line finds its project."""
    project.constraint("git-safety", "circuit_breaker:\n  violation_threshold: 3\n")
    inner = project.root / "inner"
    inner.mkdir()
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    assert told(project, start=inner) == []
    assert find_guarded(str(inner)) == str(project.root) != find_project(str(inner))
    inside = Project(inner)
    start(inside, "S-1", "test_login")
    assert told(project, start=inner)[0].startswith("Slice S-1 is under way")
    assert told(project) == []


def test_a_scope_that_cannot_be_read_is_said(project: Project) -> None:
    (project.root / "a.py").write_text("a = 1\n")
    start(project, "S-1", "test_login")
    (project.root / "GRAPH.json").write_text("{broken")
    assert any("cannot be told, so nothing may be changed" in line for line in told(project))
