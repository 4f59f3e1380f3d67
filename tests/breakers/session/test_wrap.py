"""`fusewire wrap`: a hook that sets itself off is stopped, one that works is left alone, and nothing of it changes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.breakers.session.unit_of_work import UnitOfWork
from fusewire.breakers.session.wrap import HOOKS, counts, trigger, turn_of
from fusewire.config.rules import load_rules
from fusewire.core.events import Event
from fusewire.engine.breaker import Breaker
from fusewire.stores.memory import MemoryStore
from tests.helpers.project import Project
from tests.helpers.session_hook import move_clock

#: The command line, and the quick way around its library.
_QUICK = "import sys; from fusewire.breakers.session.wrap import quick; sys.exit(quick(sys.argv[1:]))"
ENTRIES = {"command line": ("-m", "fusewire", "wrap"), "quick": ("-c", _QUICK)}
SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"


def payload(call: str | None = "toolu_1", event: str = "PostToolUse", **more: Any) -> bytes:
    """What Claude Code gives a hook after an edit."""
    fields: dict[str, Any] = {
        "session_id": SESSION,
        "transcript_path": "/home/dev/.claude/projects/-home-dev-project/479528ae.jsonl",
        "prompt_id": "d1e3d91c-2503-4497-a02f-a658144f077b",
        "hook_event_name": event,
    }
    if call is not None:
        fields |= {"tool_name": "Write", "tool_input": {"file_path": "/home/dev/project/a.py"}, "tool_use_id": call}
    return json.dumps({**fields, **more}).encode()


def started(
    project: Project, *arguments: str, entry: str = "quick", env: dict[str, str] | None = None, **more: Any
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *ENTRIES[entry], *arguments],
        cwd=project.root,
        env={**os.environ, **(env or {})},
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )


def wrapped(
    project: Project, *arguments: str, given: bytes = b"", entry: str = "quick", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    with started(project, *arguments, entry=entry, env=env) as process:
        out, err = process.communicate(given, timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def script(project: Project, name: str, text: str) -> str:
    path = project.root / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"./{name}"


def configure(project: Project, text: str) -> None:
    (project.root / "fusewire.toml").write_text(text)


def incidents(project: Project) -> list[dict[str, Any]]:
    path = project.root / ".claude/memory/circuit_breaker_incidents.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def status(project: Project, name: str = "fmt", session: str = SESSION) -> Any:
    with Breaker.open(project=project.root) as breaker:
        return breaker.status(f"tool/hook_recursion/{name}/{session}")


def trip(project: Project, name: str = "fmt") -> None:
    for _ in range(5):
        assert wrapped(project, name, "--", "true", given=payload()).returncode == 0
    assert wrapped(project, name, "--", "true", given=payload()).returncode == 3


# -- the seed's first scenario ----------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("given", [b"", b"no JSON", payload()], ids=["nothing", "text", "payload"])
def test_a_hook_that_calls_itself_is_stopped_at_the_sixth_run(project: Project, entry: str, given: bytes) -> None:
    """Five runs inside each other, the sixth is refused in the seed's words and is on record."""
    again = subprocess.list2cmdline([sys.executable, *ENTRIES[entry]]) if entry != "quick" else ""
    again = again or f"{sys.executable} -c '{_QUICK}'"
    # What came in is passed on, as a hook would do that starts the program it is called by.
    path = script(project, "self.sh", f"echo run >> runs.log; cat > given; exec {again} self -- ./self.sh < given")
    result = wrapped(project, "self", "--", path, given=given, entry=entry)
    assert result.returncode == 3
    assert (project.root / "runs.log").read_text() == "run\n" * 5
    assert (project.root / "given").read_bytes() == given
    assert result.stdout == b""
    lines = result.stderr.decode().splitlines()
    assert lines[0] == (
        "BLOCKED tool.hook_recursion:self: Circuit breaker tripped: this hook ran 5 times in 10 turns (limit 5)."
        " Cooldown: 5s"
    )
    way_on = "Next: find out what makes this hook run again and again, and tell the user."
    assert way_on in lines
    assert any(line.startswith("A person can run: fusewire reset tool/hook_recursion/self/") for line in lines)
    (incident,) = incidents(project)
    assert (incident["type"], incident["breaker"], incident["cooldown_seconds"]) == (
        "circuit_trip",
        "hook_recursion",
        5,
    )


def test_a_hook_that_starts_an_agent_that_starts_it_is_stopped_too(project: Project) -> None:
    """Every agent has a session of its own; the names in the environment say how deep it is."""
    deep = {HOOKS: ":".join(["review"] * 5)}
    assert wrapped(project, "review", "--session", "new", "--", "true", env=deep).returncode == 3
    assert wrapped(project, "review", "--session", "other", "--", "true", env={HOOKS: "review:lint"}).returncode == 0
    assert status(project, "review", "other").level == 2
    # inside of another hook is not inside of itself
    assert wrapped(project, "fmt", "--", "true", given=payload("t"), env={HOOKS: "review:lint"}).returncode == 0
    assert status(project, "fmt").level == 0


# -- honest work ------------------------------------------------------------------------------------------


def test_a_formatter_after_each_of_twenty_edits_never_trips(project: Project) -> None:
    """Before and after each call, with what the agent sends; the formatter gets every byte of it."""
    path = script(project, "format.sh", "cat >> seen; printf 'formatted\\n'; printf 'note\\n' >&2")
    sent = b""
    for number in range(20):
        for event in ("PreToolUse", "PostToolUse"):
            given = payload(f"toolu_{number}", event)
            result = wrapped(project, "fmt", "--", path, given=given)
            assert (result.returncode, result.stdout, result.stderr) == (0, b"formatted\n", b"note\n")
            sent += given
    assert (project.root / "seen").read_bytes() == sent
    assert incidents(project) == []


@pytest.mark.parametrize(
    "given",
    [
        # Gemini and Copilot have no ids for calls: nothing tells two of them apart, and calling again is ordinary.
        {"session_id": "s", "hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_input": {}},
        {"sessionId": "s", "timestamp": 1794778762639, "toolName": "bash", "toolArgs": "{}"},
        {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "go on"},
        {"session_id": "s", "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."},
    ],
    ids=["Gemini", "Copilot", "prompt", "stop"],
)
def test_what_happens_often_is_not_recursion(given: dict[str, Any]) -> None:
    """Calls without an id, what a person says, an agent that stops by itself."""
    runs: list[list[Any]] = []
    assert [counts(runs, given, 0, literal=False) for _ in range(30)] == [0] * 30


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["PreToolUse", "PostToolUse"])), unique=True))
@settings(max_examples=50, deadline=None)
def test_runs_for_different_calls_are_never_counted(order: list[tuple[int, str]]) -> None:
    """In whatever order calls come and end."""
    runs: list[list[Any]] = []
    for call, event in order:
        given = {"session_id": "s", "hook_event_name": event, "tool_name": "Edit", "tool_use_id": f"t{call}"}
        assert counts(runs, given, 0, literal=False) == 0
        del runs[:-16]


# -- what is counted --------------------------------------------------------------------------------------


def test_the_same_call_again_and_again_is_refused_at_the_sixth(project: Project) -> None:
    """The first run of it was nothing special, and counts once there is a second."""
    codes = [wrapped(project, "fmt", "--", "true", given=payload()).returncode for _ in range(7)]
    assert codes == [0, 0, 0, 0, 0, 3, 3]
    assert wrapped(project, "fmt", "--", "true", given=payload("toolu_2")).returncode == 3  # nothing of this name runs
    assert wrapped(project, "lint", "--", "true", given=payload()).returncode == 0
    assert wrapped(project, "fmt", "--session", "b", "--", "true", given=payload()).returncode == 0
    assert len(incidents(project)) == 1


def test_a_stop_hook_that_keeps_an_agent_going_is_counted() -> None:
    """The agent says itself that it is kept from stopping; the stop before was the first."""
    runs: list[list[Any]] = []
    stop = {"hook_event_name": "Stop", "prompt_id": "p", "stop_hook_active": False}
    assert counts(runs, stop, 0, literal=False) == 0
    assert [counts(runs, {**stop, "stop_hook_active": True}, 0, literal=False) for _ in range(3)] == [2, 1, 1]


def test_the_same_event_without_a_call_is_known_by_all_that_it_says() -> None:
    """Once is once: the very same words again are a repetition, other words are not."""
    begun = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup"}
    runs: list[list[Any]] = []
    assert [counts(runs, begun, 0, literal=False) for _ in range(3)] == [0, 2, 1]
    assert counts(runs, {**begun, "source": "compact"}, 0, literal=False) == 0
    assert trigger([]) == trigger("x") == trigger(None) == ("unknown", "")


def test_every_run_is_counted_where_that_is_wanted(project: Project) -> None:
    configure(project, "[tool.hook_recursion]\nliteral = true\nthreshold = 2\n")
    codes = [wrapped(project, "fmt", "--", "true", given=payload(f"t{number}")).returncode for number in range(3)]
    assert codes == [0, 0, 3]


def test_a_breaker_that_is_off_counts_nothing(project: Project) -> None:
    configure(project, "[tool.hook_recursion]\nenabled = false\n")
    assert {wrapped(project, "fmt", "--", "true").returncode for _ in range(8)} == {0}
    assert not (project.root / ".fusewire/state.db").exists()


@pytest.mark.parametrize(
    ("givens", "ran"),
    [([b""] * 8, 5), ([payload()] * 8, 5), ([payload(f"t{number}") for number in range(8)], 8)],
    ids=["nobody says what for", "one call", "eight calls"],
)
def test_eight_at_once_are_counted_exactly(project: Project, givens: list[bytes], ran: int) -> None:
    wrapped(project, "other", "--", "true")  # the database is there
    path = script(project, "hook.sh", "echo run >> runs.log")
    processes = [started(project, "fmt", "--session", "s", "--", path) for _ in givens]
    for process, sent in zip(processes, givens, strict=True):
        assert process.stdin is not None
        process.stdin.write(sent)
        process.stdin.close()
        process.stdin = None
    codes = sorted((process.communicate(timeout=60), process.returncode)[1] for process in processes)
    assert codes == [0] * ran + [3] * (8 - ran)
    assert (project.root / "runs.log").read_text() == "run\n" * ran


# -- turns ------------------------------------------------------------------------------------------------


def turn(project: Project, number: int) -> None:
    """One reply of the model with one call in it, through the real hook."""
    call = {"tool_use_id": f"toolu_turn_{number}", "tool_input": {"command": f"ls {number}"}}
    assert project.hook(project.bash("", **call)).returncode == 0
    done = {"hook_event_name": "PostToolUse", "tool_response": {"stdout": f"{number}", "stderr": ""}}
    assert project.hook(project.bash("", **call, **done)).returncode == 0


def test_what_is_ten_turns_old_no_longer_counts(project: Project) -> None:
    """Turns are those that the hook counts in the same session."""
    for number in range(2):
        turn(project, number)
    run = ("fmt", "--session", SESSION, "--", "true")
    assert {wrapped(project, *run).returncode for _ in range(5)} == {0}
    for number in range(2, 12):
        turn(project, number)
    assert wrapped(project, *run).returncode == 0
    assert status(project).level == 1


def test_where_nobody_counts_turns_a_minute_is_one(project: Project) -> None:
    """And once somebody does, what was counted by the clock is long ago."""
    rules, event, now = load_rules(str(project.root)), Event("wrap", session="s"), 1_794_778_762.0
    with MemoryStore().transact() as transaction:
        turns = [turn_of(UnitOfWork(transaction, rules, event, now + 60 * minute)) for minute in range(11)]
        assert turns == list(range(turns[0], turns[0] + 11))
        transaction.remember("session/s/", {"turn": 3}, now)
        assert turn_of(UnitOfWork(transaction, rules, event, now)) == 3
    assert turns[-1] < -10


def test_a_message_of_a_person_starts_anew(project: Project) -> None:
    """Also if the circuit is open."""
    turn(project, 0)
    trip(project)
    said = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt": "try again", "cwd": "/tmp"}
    assert project.hook(said).returncode == 0
    assert status(project).state == "CLOSED"
    assert wrapped(project, "fmt", "--", "true", given=payload()).returncode == 0


# -- the one trial ----------------------------------------------------------------------------------------


def cooled(project: Project) -> None:
    trip(project)
    move_clock(project, 6)


@pytest.mark.parametrize("given", [payload(), payload("another call")], ids=["the same again", "ordinary work"])
def test_after_the_cooldown_one_run_that_goes_well_closes_it(project: Project, given: bytes) -> None:
    cooled(project)
    result = wrapped(project, "fmt", "--", "cat", given=given)
    assert (result.returncode, result.stdout, result.stderr) == (0, given, b"")
    assert status(project).state == "CLOSED"


@pytest.mark.parametrize(
    ("command", "code"), [("exit 2", 2), ("kill -TERM $$", 143), ("exec ./nosuch", 127)], ids=["exit", "signal", "none"]
)
def test_a_trial_that_goes_wrong_opens_it_for_longer(project: Project, command: str, code: int) -> None:
    """The next rung of the ladder: 10 seconds."""
    cooled(project)
    assert wrapped(project, "fmt", "--", "sh", "-c", command, given=payload()).returncode == code
    found = status(project)
    assert (found.state, found.trips) == ("OPEN", 2)
    assert 5 < found.retry_after <= 10
    assert wrapped(project, "fmt", "--", "true", given=payload()).returncode == 3
    assert [incident["cooldown_seconds"] for incident in incidents(project)] == [5, 10]


def test_nobody_else_runs_during_the_trial_and_a_signal_reaches_it(project: Project) -> None:
    """What ends the wrapper ends what it waits for, which may tidy up and decides with its exit code."""
    cooled(project)
    path = script(project, "slow.sh", "trap 'echo ended >> log; exit 9' TERM; sleep 20 & echo begun > log; wait")
    (project.root / "payload").write_bytes(payload())
    with open(project.root / "payload", "rb") as file:
        process = started(project, "fmt", "--", path, stdin=file, start_new_session=True)
    try:
        deadline = time.monotonic() + 45
        while not (project.root / "log").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        refused = wrapped(project, "fmt", "--", "true", given=payload("another call"))
        assert refused.returncode == 3
        assert b"a trial call is running" in refused.stderr
        process.terminate()
        assert process.wait(timeout=45) == 9
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=45)
    assert (project.root / "log").read_text() == "begun\nended\n"
    assert status(project).state == "OPEN"


# -- nothing of the hook changes --------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_command_is_as_if_nobody_stood_in_front_of_it(project: Project, entry: str) -> None:
    """Every byte in and out, the exit code, the environment."""
    given = bytes(range(256)) * 1024
    result = wrapped(project, "fmt", "--", "sh", "-c", "cat; echo no >&2; exit 7", given=given, entry=entry)
    assert (result.returncode, result.stdout, result.stderr) == (7, given, b"no\n")
    words = ("sh", "-c", f'echo "${HOOKS}|$KEPT|$#" "$@"', "x", "a b", "--json", "--")
    shown = wrapped(project, "fmt", "--", *words, entry=entry, env={HOOKS: "a:b", "KEPT": "yes"})
    assert shown.stdout == b"a:b:fmt|yes|3 a b --json --\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("./nosuch",), 127, b"fusewire wrap: ./nosuch: No such file or directory\n"),
        (("nosuch-program",), 127, b"fusewire wrap: nosuch-program: No such file or directory\n"),
        (("./",), 126, b"fusewire wrap: ./: Permission denied\n"),
        (("./notes",), 126, b"fusewire wrap: ./notes: Permission denied\n"),
    ],
)
def test_what_cannot_be_started_has_a_shells_exit_code(
    project: Project, command: tuple[str, ...], code: int, words: bytes
) -> None:
    (project.root / "notes").write_text("")
    result = wrapped(project, "fmt", "--", *command)
    assert (result.returncode, result.stderr) == (code, words)


def test_a_signal_stays_one(project: Project) -> None:
    """A shell shows it as 128 and its number; and what Python ignores is not ignored by the command."""
    result = wrapped(project, "fmt", "--", "sh", "-c", "kill -USR1 $$")
    assert result.returncode == -signal.SIGUSR1
    line = f"{sys.executable} -c '{_QUICK}' fmt -- sh -c 'kill -TERM $$' < /dev/null; echo $?"
    shell = subprocess.run(["sh", "-c", line], cwd=project.root, capture_output=True, text=True, check=False)
    assert shell.stdout == "143\n"
    assert wrapped(project, "fmt", "--", "sh", "-c", "kill -PIPE $$").returncode == -signal.SIGPIPE


def test_who_ends_the_hook_ends_the_command(project: Project) -> None:
    """An agent's time-out must leave nothing behind: there is one process, not two."""
    process = started(project, "fmt", "--", "sh", "-c", "echo $$; exec sleep 30")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdin = None
    assert int(process.stdout.readline()) == process.pid
    process.kill()
    process.communicate(timeout=45)
    assert process.returncode == -signal.SIGKILL


def test_where_a_file_in_memory_cannot_be_made_the_input_is_the_same(project: Project) -> None:
    code = f"import os; del os.memfd_create; {_QUICK}"
    command = [sys.executable, "-c", code, "fmt", "--", "cat"]
    given = payload() * 1000
    result = subprocess.run(command, input=given, cwd=project.root, capture_output=True, check=False, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, given, b"")


def test_an_input_that_says_nothing_is_left_to_the_command(project: Project) -> None:
    """A pipe that nobody writes to must not hang a hook that does not read it, nor be lost to one that does."""
    process = started(project, "fmt", "--", "sh", "-c", "echo runs; cat")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"  # while the input is open
    out, _ = process.communicate(b"late", timeout=45)
    assert (process.returncode, out) == (0, b"late")


def test_an_endless_input_has_an_end(project: Project) -> None:
    with open("/dev/zero", "rb") as zeros:
        process = started(project, "fmt", "--", "touch", "ran", stdin=zeros)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"fusewire wrap: fmt was not run: standard input is larger than 64 MB\n")
    assert not (project.root / "ran").exists()


# -- failures and usage -----------------------------------------------------------------------------------


def test_a_breaker_out_of_order_lets_the_hook_run_and_says_so(project: Project) -> None:
    wrapped(project, "fmt", "--", "true", given=payload())
    with sqlite3.connect(project.root / ".fusewire" / "state.db") as database:
        database.execute("PRAGMA user_version=99")
    for _ in range(2):
        result = wrapped(project, "fmt", "--", "sh", "-c", "cat; exit 4", given=payload())
        assert (result.returncode, result.stdout) == (4, payload())
        (line,) = result.stderr.decode().splitlines()
        assert line.startswith("fusewire wrap: fmt runs, but nothing is counted: ")
        assert "was written by a newer Fusewire" in line


def test_what_is_remembered_and_damaged_starts_anew(project: Project) -> None:
    wrapped(project, "fmt", "--", "true", given=payload())
    with Breaker.open(project=project.root) as breaker, breaker.store.transact() as transaction:
        transaction.remember(f"wrap/{SESSION}/fmt", {"runs": [3]}, 0)
    assert wrapped(project, "fmt", "--", "true", given=payload()).returncode == 0
    with Breaker.open(project=project.root) as breaker:
        assert any("could not be read" in notice for notice in breaker.store.notices())
        assert breaker.store.recall(f"wrap/{SESSION}/fmt") == {"runs": [[trigger(json.loads(payload()))[1], False]]}


def test_what_is_remembered_stays_small(project: Project) -> None:
    for number in range(20):
        wrapped(project, "fmt", "--", "true", given=payload(f"t{number}"))
    with Breaker.open(project=project.root) as breaker:
        memory = breaker.store.recall(f"wrap/{SESSION}/fmt")
    assert memory is not None
    assert len(memory["runs"]) == 16


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_refusal_as_json(project: Project, entry: str) -> None:
    trip(project)
    result = wrapped(project, "fmt", "--json", "--", "true", given=payload(), entry=entry)
    told = json.loads(result.stdout)
    assert (result.returncode, told["decision"], told["state"]) == (3, "BLOCKED", "OPEN")
    assert b"Circuit breaker tripped" in result.stderr


def test_the_project_is_the_one_that_the_agent_works_in(project: Project, tmp_path: Path) -> None:
    """As for `fusewire hook`: the agent's own word goes before where the hook happens to run."""
    elsewhere = Project(tmp_path / "elsewhere")
    elsewhere.root.mkdir()
    wrapped(elsewhere, "fmt", "--", "true", given=payload("t", cwd=str(project.root)))
    wrapped(elsewhere, "fmt2", "--", "true", env={"CLAUDE_PROJECT_DIR": str(project.root)})
    wrapped(elsewhere, "fmt3", "--project", str(project.root), "--", "true")
    assert list(elsewhere.root.iterdir()) == []
    with Breaker.open(project=project.root) as breaker:
        names = {name for name, _ in breaker.store.remembered("wrap/")}
    assert names == {f"wrap/{SESSION}/fmt", "wrap/none/fmt2", "wrap/none/fmt3"}


def test_wrong_usage_and_odd_names(project: Project) -> None:
    for arguments in (("fmt",), ("fmt", "true"), ("--", "true"), ("fmt", "--"), ("fmt", "--nosuch", "--", "true")):
        result = wrapped(project, *arguments, entry="command line")
        assert (result.returncode, result.stdout) == (2, b""), arguments
    for name in ("a/b", "a:b", "a b", "é", "x" * 81, "Stop"):
        for entry in ENTRIES:
            result = wrapped(project, name, "--", "touch", "ran", entry=entry)
            assert result.returncode == 1, name
            assert b"is refused" in result.stderr
            assert result.stderr.count(b"\n") == 1
    assert wrapped(project, "fmt", "--project", "nosuch", "--", "touch", "ran").returncode == 1
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize(
    "command",
    [
        "fusewire wrap x -- rm -rf specs",
        "fusewire --project . wrap x --session s -- sh -c 'rm -rf specs'",
        "python3 -m fusewire wrap x -- rm -rf specs",
    ],
)
def test_what_is_wrapped_is_seen_by_the_guard(project: Project, command: str) -> None:
    """Nothing that an agent may not run gets past the guard behind our own program."""
    (project.root / "specs").mkdir()
    (project.root / "specs/a.md").write_text("plan")
    assert project.run("guard", "check", "--command", command).returncode == 3
    assert project.run("guard", "check", "--command", command.replace("rm -rf specs", "ls specs")).returncode == 0
