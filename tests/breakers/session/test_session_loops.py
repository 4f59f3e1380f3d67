"""Loops of calls, and honest work that only looks like one, each through real hook processes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.project import Project
from tests.helpers.session_hook import Said, Session


@pytest.fixture(autouse=True)
def _hooks_in_this_process(project: Project) -> None:
    project.starts_hooks = False


@pytest.fixture
def session(project: Project) -> Session:
    return Session(project)


Pair = tuple[Said, Said]


def read(session: Session, path: str, text: str = "print(1)", **more: Any) -> Pair:
    """A file that is read, as Claude Code reports it."""
    given = {"file_path": f"/home/dev/project/{path}", **more.pop("given", {})}
    response = {"type": "text", "file": {"filePath": given["file_path"], "content": text, "numLines": 1}}
    return session.tool("Read", given, response=response, batch=False, **more)


def edit(session: Session, path: str, old: str = "a", new: str = "b", **more: Any) -> Pair:
    given = {"file_path": str(session.project.root / path), "old_string": old, "new_string": new, "replace_all": False}
    more = {"response": {"filePath": given["file_path"], "structuredPatch": []}, "batch": False, **more}
    return session.tool("Edit", given, **more)


def run(session: Session, command: str, output: str = "", **more: Any) -> Pair:
    return session.bash(command, output, batch=False, **more)


def answers(pairs: list[Pair]) -> str:
    """One letter for each call: `.` nothing is said, `t` told after it, `x` refused, `H` refused and halted."""
    letters = []
    for asked, after in pairs:
        if not asked.allowed:
            letters.append("H" if asked.halted else "x")
        else:
            assert asked.told == ""
            letters.append("t" if after.told else ".")
    return "".join(letters)


def remembered(session: Session, agent: str = "") -> dict[str, Any]:
    connection = sqlite3.connect(session.project.root / ".fusewire/state.db")
    try:
        name = f"session/{session.id}/{agent}"
        (text,) = connection.execute("SELECT data FROM memories WHERE name = ?", (name,)).fetchone()
    finally:
        connection.close()
    found: dict[str, Any] = json.loads(text)
    return found


# -- loops ----------------------------------------------------------------------------------------------


def test_a_repetition_is_told_at_the_fourth_refused_after_the_fifth_and_halted(session: Session) -> None:
    """With the evidence, the count and the limit, the time, a way on, and who may lift it; refusals are on record."""
    session.project.starts_hooks = True
    said = [run(session, "./a.sh", "down") for _ in range(8)]
    assert answers(said) == "...tt" + "xxH"
    warned, tripped, refused, halted = said[3][1].told, said[4][1].told, said[5][0], said[7][0]
    assert warned.startswith("WARNING tool.repetition: the same call brought the same result 4 times (limit 5).")
    assert "\nLast: ./a.sh\n" in warned
    assert " at " not in halted.reason, "a halt has no time"
    assert "Circuit breaker tripped: the same call brought the same result 5 times (limit 5)." in tripped
    assert "Cooldown" not in tripped, "it begins with the first refusal"
    assert refused.code == 2
    assert refused.reason.startswith("BLOCKED tool.repetition: Circuit breaker tripped: ")
    assert "Cooldown: 30s" in refused.reason
    assert "Next: do something else first" in refused.reason
    assert "It resets by itself: one call is allowed at " in refused.reason
    assert "fusewire reset " in refused.reason
    assert halted.code == 2
    assert "Refused 3 times, so the agent is stopped" in halted.reason
    assert halted.json["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert [entry[2] for entry in remembered(session)["history"]].count("refused") == 3
    assert read(session, "b.py")[0].halted, "whatever it asks for: it was stopped"
    session.says("look at b.py instead")
    assert read(session, "b.py")[0].silent, "a person has spoken"


@pytest.mark.parametrize("calls", [("a.py", "b.py"), ("a.py", "b.py", "c.py")])
def test_of_a_cycle_every_call_is_refused(session: Session, calls: tuple[str, ...]) -> None:
    """Told in the third round, refused after the fourth: A and B (and C), not only the one that comes next."""
    length = len(calls)
    said = [read(session, name) for name in calls * 4]
    assert answers(said).strip(".") == "t" + "." * (length - 1) + "t"
    assert "the same calls brought the same results in 3 rounds (limit 4)" in said[3 * length - 1][1].told
    assert all(name in said[-1][1].told for name in calls)
    again = [read(session, name) for name in reversed(calls)]
    assert set(answers(again)) <= set("xH")
    assert all("tool.cycle" in asked.reason for asked, _ in again)
    assert read(session, "other.py")[0].silent


def test_the_same_change_is_told_at_the_third_and_refused_after_the_fourth(session: Session) -> None:
    """Whatever its result, and with looks and checks in between; another change frees it."""
    said = []
    for number in range(5):
        said.append(edit(session, "a.py", response={"lines": number}))
        run(session, f"git diff --stat HEAD~{number}", f"a.py | {number}")
    assert answers(said) == "..ttx"
    assert "the same change was made 3 times with nothing else changed in between (limit 4)" in said[2][1].told
    assert edit(session, "other.py")[0].silent
    assert edit(session, "a.py", response={"lines": 9})[0].silent


def test_the_same_error_with_other_arguments(project: Project, session: Session) -> None:
    """Steps that are no errors do not hide it, nor do other line numbers; then the tool is refused, not one call."""
    (project.root / "fusewire.toml").write_text("[tool.tool_failure]\nenabled = false\n")
    said = []
    for number in range(8):
        error = f"Exit code 1\nmigrate.py:{number + 10}: cannot connect (took 0.{number}s)"
        said.append(run(session, f"./migrate.sh --step {number}", error=error))
        run(session, "ls docs", f"{number}.md")
    assert answers(said) == "...tttt" + "x"
    assert "the same error came 4 times with different arguments (limit 7)" in said[3][1].told
    assert "migrate.sh --step 3" in said[3][1].told
    assert not run(session, "./migrate.sh --other")[0].allowed
    assert run(session, "./other.sh --step 1")[0].allowed


def test_results_that_differ_in_what_varies_are_the_same(session: Session) -> None:
    """Line number, id, time, duration, process, temporary folder, colour: one loop. A count is another result."""
    results = [
        "\x1b[31mapp.py:12\x1b[0m: error req_8f3k2j1h9a0b (pid 4123) in 0.31s at 12:03:59, see /tmp/a1/log.txt",
        "app.py:99: error req_1a2b3c4d5e6f (pid 7) in 12.4s at 23:59:01, see /var/tmp/zz/log.txt",
    ]
    assert answers([run(session, "./report", results[number % 2]) for number in range(5)]) == "...tt"
    assert answers([run(session, "./count", f"{number} of 9 done, {number * 11}%") for number in range(8)]) == "." * 8


def test_the_same_loop_escalates_and_a_new_one_starts_fresh(project: Project, session: Session) -> None:
    """After the cooldown one trial: the same result again, and it waits longer. Another loop begins anew."""
    from tests.helpers.session_hook import move_clock

    for _ in range(5):
        read(session, "a.py")
    move_clock(project, 3600)
    assert "Cooldown: 30s" in read(session, "a.py")[0].reason, "however late, the first one is refused"
    move_clock(project, 31)
    asked, after = read(session, "a.py")
    assert asked.allowed
    assert "the probe failed" in after.told
    assert "Cooldown: 60s" in read(session, "a.py")[0].reason
    assert answers([read(session, "b.py") for _ in range(5)]) == "...tt"
    asked, _ = read(session, "b.py")
    assert "Cooldown: 30s" in asked.reason
    assert not asked.halted, "refusals of one loop are not held against another"
    move_clock(project, 61)
    assert read(session, "a.py", "print(2)")[0].allowed, "the trial brings something new: it is over"
    assert read(session, "a.py", "print(2)")[0].silent


def test_another_change_frees_the_call(session: Session) -> None:
    """A repetition was refused because nothing moved; now something has. An edit that failed moved nothing."""
    for _ in range(5):
        run(session, "./status.sh", "down")
    assert not run(session, "./status.sh")[0].allowed
    edit(session, "a.py", error="String to replace not found in file.")
    assert not run(session, "./status.sh")[0].allowed
    edit(session, "b.py")
    assert run(session, "./status.sh", "down")[0].silent


def test_a_persons_message_starts_everything_anew(project: Project, session: Session) -> None:
    """Windows, warnings and open circuits; a helper that reports back is no person."""
    for _ in range(3):
        read(session, "watched.py")
    for _ in range(7):
        read(session, "open.py")
    for _ in range(3):
        run(session, "./deploy.sh", error="Exit code 4\nno such host")
    session.says("<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>\n</task-notification>")
    assert not read(session, "open.py")[0].allowed
    assert not run(session, "./deploy.sh")[0].allowed
    assert session.says("try once more, the host is up now").silent
    assert {one["state"] for one in project.json("status", "--all")["circuits"]} == {"CLOSED"}
    assert answers([read(session, "open.py") for _ in range(4)]) == "...t"
    assert read(session, "watched.py")[1].silent
    failures = [run(session, "./deploy.sh", error="Exit code 4\nno such host") for _ in range(4)]
    assert answers(failures) == "..tx"
    assert "Cooldown: 10s" in failures[3][0].reason, "the ladder, too"


def test_helpers_are_seen_apart_from_the_main_agent(session: Session) -> None:
    """The same calls in three agents are not added up; once one of them is halted, all are, until a person speaks."""
    said: dict[str | None, list[Pair]] = {None: [], "a1": [], "a2": []}
    for _ in range(3):
        for agent, pairs in said.items():
            pairs.append(read(session, "a.py", agent=agent))
    assert [answers(pairs) for pairs in said.values()] == ["...", "...", "..."]
    assert answers([read(session, "a.py", agent="a1") for _ in range(5)]) == "ttxxx"
    assert answers([read(session, "a.py") for _ in range(2)]) == "tt"
    assert answers([read(session, "a.py", agent="a2")]) == "t"
    last = [read(session, "a.py", agent="a1"), read(session, "a.py", agent="a2"), read(session, "b.py")]
    assert answers(last) == "HHH"
    session.says("go on")
    assert answers([read(session, "a.py", agent=agent) for agent in ("a1", "a2", None)]) == "..."


# -- which hooks there are ------------------------------------------------------------------------------

Scene = Callable[[Session], list[str]]


def told_by(session: Session, registered: frozenset[str]) -> list[str]:
    """One scene with these hooks only: what each call was answered, by any of them."""
    scene = [("./deploy.sh", "Exit code 4\nno such host", True)] * 3 + [("./deploy.sh", "", False)]
    scene += [("./status.sh", "down", False)] * 6 + [("./status.sh", "down", False), ("ls docs", "a.md", False)]
    heard = []
    for command, text, failed in scene:
        call = session._call("Bash", {"command": command, "description": "Run"})
        asked = session.send("PreToolUse", **call)
        said = [asked.reason.partition(".")[0]]
        if asked.allowed and registered & {"PostToolUse"}:
            response = {"stdout": text, "stderr": "", "interrupted": False}
            more: dict[str, Any] = {"error": text, "is_interrupt": False} if failed else {"tool_response": response}
            hook = "PostToolUseFailure" if failed else "PostToolUse"
            said.append(session.send(hook, **call, **more).told.partition(".")[0])
        if registered & {"PostToolBatch"}:
            shown = text if asked.allowed else f"PreToolUse:Bash hook error: {asked.reason}"
            batch = session.send("PostToolBatch", tool_calls=[{**call, "tool_response": shown}])
            said.append(batch.told.partition(".")[0])
        heard.append(" ".join(filter(None, said)))
    return heard


def test_counts_are_the_same_whichever_hooks_tell_of_results(project: Project) -> None:
    """PostToolUse alone, PostToolBatch alone, both."""
    variants = {"PostToolUse"}, {"PostToolBatch"}, {"PostToolUse", "PostToolBatch"}
    one, two, three = (
        told_by(Session(project, id=f"session-{number}"), frozenset(hooks)) for number, hooks in enumerate(variants)
    )
    assert one == two == three
    assert [bool(said) for said in one] == [False, False, True, True] + [False] * 3 + [True] * 4 + [False]


def test_without_results_nothing_is_held_against_anybody(session: Session) -> None:
    """Only PreToolUse is registered: the same calls, now and then, are neither failures nor loops."""
    for number in range(9):
        assert session.before("Bash", {"command": "./status.sh"})[0].silent
        assert session.before("Read", {"file_path": f"/home/dev/project/{number % 2}.py"})[0].silent


def test_calls_without_an_id_and_without_a_session_count_too(session: Session) -> None:
    """Some agents name neither; the call is then known by its arguments."""

    def call(session_id: str | None) -> tuple[bool, bool]:
        given = {"tool_name": "Bash", "tool_input": {"command": "./status.sh"}, "session_id": session_id}
        asked = session.send("PreToolUse", **given)
        after = session.send("PostToolUse", **given, tool_response={"stdout": "down"}) if asked.allowed else asked
        return asked.allowed, bool(after.told)

    session.id = None  # type: ignore[assignment]
    for name in ("named", None):
        assert [call(name) for _ in range(6)] == [(True, False)] * 3 + [(True, True)] * 2 + [(False, False)]


# -- honest work ----------------------------------------------------------------------------------------


def quiet(pairs: list[Pair]) -> None:
    assert [said for pair in pairs for said in pair if not said.silent] == []


def test_must_not_fire_batch_work_paging_and_exploration(session: Session) -> None:
    quiet([pair for number in range(13) for pair in (read(session, f"{number}.py"), edit(session, f"{number}.py"))])
    quiet([read(session, "big.py", f"page {page}", given={"offset": page * 100, "limit": 100}) for page in range(8)])
    missing = "File does not exist. Current working directory: /home/dev/project."
    quiet([session.tool("Read", {"file_path": f"/x/{n}.md"}, error=missing, batch=False) for n in range(5)])
    quiet([run(session, f"ls src{n}", error=f"Exit code 2\nls: cannot access 'src{n}'") for n in range(4)])


def test_must_not_fire_polling_and_waiting(session: Session) -> None:
    quiet([run(session, "gh run view 12", f"in progress, step {number} of 9") for number in range(8)])
    quiet([run(session, "sleep 30 && gh run view 12", "in progress") for _ in range(8)])
    waiting = {"status": "running", "stdout": "", "stderr": ""}
    quiet([session.tool("BashOutput", {"bash_id": "b1"}, response=waiting, batch=False) for _ in range(8)])


def test_must_not_fire_a_check_after_each_edit(session: Session) -> None:
    """Another failure each time, the same failure three times, and success as often as you like."""
    for number in range(4):
        quiet([edit(session, "a.py", f"a{number}", f"b{number}")])
        quiet([run(session, "pytest -q", error=f"Exit code 1\n{9 - number} failed, {number} passed in 0.{number}s")])
    for number in range(3):
        quiet([edit(session, "b.py", f"a{number}", f"b{number}")])
        quiet([run(session, "mypy src", error="Exit code 1\na.py:3: error: Incompatible types")])
    for number in range(5):
        quiet([edit(session, "c.py", f"a{number}", f"b{number}"), run(session, "ruff check .", "All checks passed!")])


def test_must_not_fire_words_that_are_no_errors(session: Session) -> None:
    """`"is_error": false`, `error: null`, a log or a file that says error; a search that finds nothing."""
    session.project.starts_hooks = True
    for number in range(5):
        answer = {"is_error": False, "error": None, "content": [{"type": "text", "text": f"error {number}"}]}
        quiet([session.tool("mcp__db__run", {"sql": f"select {number}"}, response=answer, batch=False)])
        quiet([run(session, f"cat log{number}.txt", "ERROR: fatal\nTraceback (most recent call last):\nfailed")])
        quiet([run(session, f"grep -rn word{number} src", error="Exit code 1")])


def test_must_not_fire_the_rhythm_of_git_todos_and_finished_tasks(session: Session) -> None:
    for number in range(5):
        quiet([edit(session, "a.py", f"a{number}", f"b{number}")])
        quiet([run(session, "git status --short", " M a.py"), run(session, "git add -A")])
        quiet([run(session, "git commit -m wip", f"[main {number}ab{number}c{number}d] wip")])
    todos = [{"content": "one", "status": "in_progress", "activeForm": "Doing"}]
    quiet([session.tool("TodoWrite", {"todos": todos}, response={"newTodos": todos}, batch=False) for _ in range(3)])
    done = {"status": "completed"}
    quiet([session.tool("mcp__plan__task_complete", done, response={"ok": True}, batch=False) for _ in range(3)])


def test_must_not_fire_different_programs_of_one_tool(session: Session) -> None:
    """Six failures of Bash, but each of another program."""
    failing = ("pytest -q", "mypy src", "ruff check .", "./a.sh", "node app.js", "make docs")
    quiet([run(session, command, error=f"Exit code 1\n{command} is unhappy") for command in failing])


def test_must_not_fire_what_people_decide(session: Session) -> None:
    """Calls that a person denied, each another one; and the next message after three failures."""
    for number in range(5):
        asked, call = session.before("Bash", {"command": f"rm -rf build{number}"})
        denied = "The user doesn't want to proceed with this tool use. The tool use was rejected."
        quiet([(asked, session.send("PostToolBatch", tool_calls=[{**call, "tool_response": denied}]))])
    for _ in range(3):
        quiet([run(session, "./deploy.sh", error="Exit code 4\nno such host") for _ in range(2)])
        assert session.says("again, please").silent
