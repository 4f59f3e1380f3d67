"""The status line: one line about a real session, that only looks, and never fails on a person's screen."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire.breakers.session.opening import quick_store
from fusewire.breakers.session.state import session_name
from fusewire.config.rules import load_rules
from fusewire.engine.breaker import Breaker
from fusewire.gate.statusline import UNREADABLE, WIDTH, Glance, SeenCircuit, SeenSpend, status_line
from tests.gate.test_hot_path import SLOW, modules_of
from tests.helpers import SOURCE
from tests.helpers.program import fusewire
from tests.helpers.project import Project
from tests.helpers.session_hook import Session, move_clock

#: What `hook.py statusline` runs, with arguments of its own.
PATHED = f"import sys; sys.path.append({str(SOURCE.parent)!r})\n"
MAIN = f"{PATHED}from fusewire.gate.statusline import main; main(sys.argv[1:])"

#: As Claude Code 2.1.325 sends it.
RECORDED: dict[str, Any] = {
    "transcript_path": "/home/dev/.claude/projects/-home-dev-project/9a3f3359.jsonl",
    "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
    "version": "2.1.325",
    "cost": {"total_cost_usd": 0.04608, "total_duration_ms": 7054, "total_lines_added": 2},
    "context_window": {"total_input_tokens": 2000, "used_percentage": 0},
    "exceeds_200k_tokens": False,
}


def payload(session: Session, **more: Any) -> dict[str, Any]:
    root = str(session.project.root)
    return {**RECORDED, "session_id": session.id, "cwd": root, "workspace": {"project_dir": root}, **more}


def line(session: Session, *arguments: str, raw: bytes | None = None, **more: Any) -> str:
    """The one line of a real process; nothing else is printed, and it never fails."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", *(["-c", MAIN, *arguments] if arguments else [SOURCE / "hook.py", "statusline"])],
        input=json.dumps(payload(session, **more)).encode() if raw is None else raw,
        cwd=session.project.root,
        env={**os.environ, **session.env},
        capture_output=True,
        timeout=45,
        check=False,
    )
    text = done.stdout.decode()
    assert (done.returncode, done.stderr, text.count("\n"), text[-1:]) == (0, b"", 1, "\n")
    assert len(text) <= WIDTH + 1 + 20 * ("\033" in text)
    return text.rstrip("\n")


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    return Session(project)


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file with its time, its size and its content; of folders, that they are there."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (facts.st_mtime_ns, facts.st_size, content)
    return found


def remember(session: Session, **parts: Any) -> None:
    """More in what is remembered of the session."""
    root = str(session.project.root)
    with quick_store(root, load_rules(root)).transact() as transaction:
        name = session_name(session.id)
        transaction.remember(name, {**(transaction.recall(name) or {}), **parts}, time.time())


# -- what it shows ----------------------------------------------------------------------------------------


def test_a_session_that_no_hook_has_spoken_for_is_not_called_closed(session: Session) -> None:
    assert line(session) == "fusewire UNHEARD no hook has run in this session yet · $0.05"
    session.bash("ls")
    assert line(session) == "fusewire CLOSED · $0.05 of $25"
    other = Session(session.project, id="another")
    assert line(other).startswith("fusewire UNHEARD")


def test_failures_open_halt_and_a_person_closes(session: Session) -> None:
    session.project.starts_hooks = True
    session.fails("pytest -q")
    assert line(session) == "fusewire CLOSED · $0.05 of $25"
    session.fails("pytest -q")
    assert line(session) == "fusewire CLOSED · $0.05 of $25 · tool_failure Bash(pytest) 2/3"
    session.fails("pytest -q")
    shown = line(session)
    seconds = int(shown.removeprefix("fusewire OPEN tool_failure Bash(pytest) ").partition("s ")[0])
    assert 1 <= seconds <= 10
    assert shown.endswith("s · $0.05 of $25")
    move_clock(session.project, 11)
    assert line(session) == "fusewire HALF_OPEN tool_failure Bash(pytest) ready to probe · $0.05 of $25"
    move_clock(session.project, -11)
    while not session.before("Bash", {"command": "pytest -q"})[0].halted:
        assert line(session).startswith("fusewire OPEN")
    assert line(session) == "fusewire HALTED tool.tool_failure:Bash(pytest) until you say something · $0.05 of $25"
    session.says("go on")
    assert line(session) == "fusewire CLOSED · $0.05 of $25"


def test_failures_of_many_turns_ago_are_no_level_any_more(session: Session) -> None:
    for _ in range(2):
        session.fails("pytest -q")
    for number in range(4):
        assert line(session).endswith(" · tool_failure Bash(pytest) 2/3") == (number < 3)
        session.bash(f"ls folder-{number}", f"file {number}")
    assert line(session) == "fusewire CLOSED · $0.05 of $25"


def test_a_warning_level_is_half_open(session: Session) -> None:
    for _ in range(4):
        session.bash("make", "the same")
    assert line(session).startswith("fusewire HALF_OPEN repetition")
    assert " 4/5 · $0.05 of $25" in line(session)


def test_a_helpers_failures_are_counted_in_its_own_turns(session: Session) -> None:
    session.bash("ls")
    for _ in range(2):
        session.fails("pytest -q", agent="a1")
    assert "tool_failure Bash(pytest) 2/3" in line(session)


def test_the_sessions_circuits_come_first_and_those_of_others_not_at_all(session: Session) -> None:
    project = session.project
    project.constraint("no-force", "match: {command: git push --force}\ncircuit_breaker: {violation_threshold: 1}\n")
    session.bash("ls")
    other = Session(project, id="another")
    for _ in range(3):
        other.fails("pytest -q")
    assert line(session) == "fusewire CLOSED · $0.05 of $25"
    project.run("record", "no-force", "--action", "git push --force")
    shown = line(session)
    assert shown in [f"fusewire OPEN no-force {left} · $0.05 of $25" for left in ("1d", "23h 59m")]
    for _ in range(3):
        session.fails("make")
    shown = line(session)
    assert shown.startswith("fusewire OPEN tool_failure Bash(make) "), shown
    assert " · 1 more OPEN · $0.05 of $25" in shown


def test_what_a_person_must_act_on_says_so(session: Session) -> None:
    session.bash("ls")
    project = session.project
    for _ in range(2):
        project.run("phase", "begin", "GREEN")
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=1", "--metric", "tests_failing=3")
    for _ in range(3):
        project.run("phase", "end", "GREEN", "--metric", "tests_passing=1", "--metric", "tests_failing=3")
    assert line(session) == "fusewire OPEN phase/GREEN until a person acts · $0.05 of $25"


def test_spend_is_what_was_counted_else_what_the_agents_program_says(session: Session) -> None:
    session.bash("ls")
    assert line(session, cost={"total_cost_usd": 1.25}).endswith("CLOSED · $1.25 of $25")
    assert line(session, cost=None).endswith("CLOSED · $0.00 of $25")
    assert line(session, cost={"total_cost_usd": "much"}).endswith("CLOSED · $0.00 of $25")
    assert line(Session(session.project, id="another"), cost=None).endswith("in this session yet")
    remember(session, spend={"usd": 2.5})
    assert line(session).endswith("CLOSED · $2.50 of $25")
    remember(session, granted=2.5)
    assert line(session).endswith("CLOSED · $2.50 of $27.50")
    remember(session, spend={"usd": 27.5})
    assert line(session) == "fusewire LIMIT spend: every call is refused until a person grants more · $27.50 of $27.50"
    remember(session, attended=True)
    assert line(session).endswith("CLOSED · $27.50")


def test_a_session_that_the_guard_has_halted_says_so(session: Session) -> None:
    (session.project.root / "CLAUDE.md").write_text("rules\n")
    session.bash("touch x")
    _, call = session.before("Bash", {"command": "./some-script"})
    (session.project.root / "CLAUDE.md").unlink()
    assert session.send("PostToolBatch", tool_calls=[{**call, "tool_response": ""}]).halted
    assert line(session) == "fusewire HALTED guard.integrity until you say something · $0.05 of $25"


# -- colours ----------------------------------------------------------------------------------------------


def test_colours_are_asked_for_and_can_be_forbidden(session: Session) -> None:
    session.bash("ls")
    assert "\033" not in line(session)
    assert line(session, "--color").startswith("fusewire \033[32mCLOSED\033[0m · ")
    session.env = {"NO_COLOR": "1"}
    assert "\033" not in line(session, "--color")


# -- it only looks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["nothing", "a log", "no log"])
def test_nothing_is_written_wherever_it_looks(session: Session, left: str) -> None:
    """SQLite makes files beside a database even for a reader, unless it is told not to."""
    session.project.starts_hooks = True
    if left != "nothing":
        for _ in range(3):
            session.fails("pytest -q")
    if left == "no log":
        connection = sqlite3.connect(session.project.root / ".fusewire/state.db")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        assert not (session.project.root / ".fusewire/state.db-wal").exists()
    elif left == "a log":
        assert (session.project.root / ".fusewire/state.db-wal").stat().st_size > 0
    before = everything(session.project.root)
    expected = "fusewire UNHEARD" if left == "nothing" else "fusewire OPEN tool_failure Bash(pytest)"
    assert line(session).startswith(expected)
    assert everything(session.project.root) == before


def test_rules_that_have_changed_since_are_left_to_the_hook(session: Session) -> None:
    session.bash("ls")
    (session.project.root / "fusewire.toml").write_text("[tool.resource_limits]\nagent_cost_block_usd = 9\n")
    before = everything(session.project.root)
    assert line(session).endswith("of $25")
    assert everything(session.project.root) == before
    session.bash("ls")
    assert line(session).endswith("of $9")


def test_a_writer_at_work_is_not_waited_for(session: Session) -> None:
    session.bash("ls")
    connection = sqlite3.connect(session.project.root / ".fusewire/state.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE memories SET updated = 0")
    began = time.monotonic()
    assert line(session) == "fusewire CLOSED · $0.05 of $25"
    assert time.monotonic() - began < 5
    connection.execute("ROLLBACK")
    connection.close()


def test_it_imports_nothing_slow(session: Session) -> None:
    for _ in range(3):
        session.fails("pytest -q")
    run = f"import sys; sys.path.append({str(SOURCE.parent)!r}); "
    run += "from fusewire.gate.statusline import glance, read_payload, status_line; "
    run += "status_line(glance(read_payload(), {}))"
    loaded = modules_of(["-c", run], payload(session), session.project.root)
    assert {"fusewire.gate.statusline", "_sqlite3", "fusewire.core.circuit"} <= loaded
    assert not loaded & SLOW


# -- whatever is wrong, it is one line --------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [b"", b"nonsense", b"[1, 2]", b"null", b'{"session_id": 5, "cwd": [], "workspace": 3, "cost": []}', b"\xff\xfe"],
)
def test_input_that_makes_no_sense_is_one_line_that_does_not_claim_to_know(session: Session, raw: bytes) -> None:
    """Whose session it is about is unknown, so it is not called closed; the command says the same."""
    session.bash("ls")
    shown = line(session, raw=raw)
    assert shown == f"fusewire ? its input {'names no session' if raw.startswith(b'{') else 'cannot be read'}"
    done = command(session, raw=raw)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{shown}\n", "")
    assert line(session, "--color", raw=raw).startswith("fusewire \033[33m?\033[0m its input ")
    assert json.loads(command(session, "--json", raw=raw).stdout)["state"] == "?"


def test_a_circuit_of_the_project_that_is_open_is_said_whatever_the_input_is(session: Session) -> None:
    session.project.constraint("rule", "circuit_breaker: {violation_threshold: 1}\n")
    session.bash("ls")
    session.project.run("record", "rule", "--action", "x")
    shown = line(session, raw=b"")
    assert shown.startswith("fusewire OPEN rule ")
    assert shown.endswith(" · its input cannot be read")
    assert line(session, raw=b"{}").startswith("fusewire OPEN rule ")


def damage(session: Session, how: str) -> None:
    database = session.project.root / ".fusewire/state.db"
    for beside in ("-wal", "-shm"):
        if how in ("garbage", "cut", "a folder", "a pipe", "empty"):
            Path(f"{database}{beside}").unlink()
    if how == "garbage":
        database.write_bytes(b"no database at all" * 500)
    elif how == "cut":
        os.truncate(database, 5000)
    elif how == "empty":
        os.truncate(database, 0)
    elif how in ("a folder", "a pipe"):
        database.unlink()
        database.mkdir() if how == "a folder" else os.mkfifo(database)
    elif how == "a state":
        connection = sqlite3.connect(database)
        connection.execute('UPDATE circuits SET state = \'{"since": "then"}\'')
        connection.commit()
        connection.close()


@pytest.mark.parametrize("how", ["garbage", "cut", "empty", "a folder", "a pipe", "a state"])
def test_a_state_that_cannot_be_read_is_never_called_closed(session: Session, how: str) -> None:
    for _ in range(3):
        session.fails("pytest -q")
    damage(session, how)
    assert line(session) == UNREADABLE


@pytest.mark.parametrize("content", [b"", b"\0" * 30, b"nonsense"])
def test_rules_that_cannot_be_read_cost_no_more_than_the_limits(session: Session, content: bytes) -> None:
    for _ in range(3):
        session.fails("pytest -q")
    (session.project.root / f".fusewire/rules.{sys.implementation.cache_tag}.bin").write_bytes(content)
    shown = line(session)
    assert shown.startswith("fusewire OPEN tool_failure Bash(pytest) ")
    assert shown.endswith("s · $0.05")


def test_a_damaged_memory_is_a_session_that_was_not_heard(session: Session) -> None:
    session.bash("ls")
    connection = sqlite3.connect(session.project.root / ".fusewire/state.db")
    connection.execute("UPDATE memories SET data = '[' WHERE name LIKE 'session/%'")
    connection.commit()
    connection.close()
    assert line(session).startswith("fusewire UNHEARD")


# -- the words --------------------------------------------------------------------------------------------

CIRCUIT = st.builds(
    SeenCircuit,
    st.just("tool/x"),
    st.sampled_from(["OPEN", "HALF_OPEN"]),
    st.sampled_from(["open", "probe", "watch"]),
    st.booleans(),
    st.text(max_size=80),
    st.none() | st.text(max_size=150),
    st.floats(0, 1e6),
    st.floats(1, 1e6),
    st.none() | st.floats(0, 1e6),
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["CLOSED", "HALF_OPEN", "OPEN", "HALTED", "LIMIT", "UNHEARD", "?"]),
    st.lists(CIRCUIT, min_size=1, max_size=3),
    st.floats(0, 1e5),
    st.booleans(),
)
def test_it_is_one_line_that_fits_whatever_the_names_are(
    state: str, circuits: list[SeenCircuit], usd: float, color: bool
) -> None:
    halted = circuits[0].name if state == "HALTED" else None
    seen = Glance(state, None, halted, circuits, circuits[0], SeenSpend(usd, 5, False), None)
    text = status_line(seen, color=color)
    plain = text.replace("\033[32m", "").replace("\033[33m", "").replace("\033[31m", "").replace("\033[0m", "")
    assert plain.isprintable()
    assert len(plain) <= WIDTH
    assert plain.startswith(f"fusewire {state}")
    assert f" · ${usd:.2f} of $5" in plain


# -- as a command -----------------------------------------------------------------------------------------


def command(session: Session, *arguments: str, raw: bytes | None = None) -> subprocess.CompletedProcess[str]:
    given = json.dumps(payload(session)).encode() if raw is None else raw
    done = fusewire("statusline", *arguments, cwd=session.project.root, env=dict(os.environ), stdin=given)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_the_command_says_the_same_and_has_json(session: Session) -> None:
    for _ in range(2):
        session.fails("pytest -q")
    done = command(session)
    assert (done.returncode, done.stdout, done.stderr) == (0, line(session) + "\n", "")
    seen = json.loads(command(session, "--json").stdout)
    assert (seen["state"], seen["nearest"]["level"], seen["nearest"]["threshold"]) == ("CLOSED", 2, 3)
    assert seen["spend"] == {"usd": 0.04608, "limit_usd": 25.0, "reached": False}
    elsewhere = command(session, "--project", str(session.project.root.parent))
    assert elsewhere.stdout.startswith("fusewire UNHEARD")


def test_the_command_too_never_fails_on_a_screen(session: Session) -> None:
    session.bash("ls")
    damage(session, "garbage")
    done = command(session)
    assert (done.returncode, done.stdout, done.stderr) == (0, UNREADABLE + "\n", "")


def test_circuits_that_were_opened_by_the_library_are_seen_too(session: Session) -> None:
    session.bash("ls")
    with Breaker.open(project=str(session.project.root)) as breaker:
        for _ in range(3):
            breaker.record("loop/no_progress", "an iteration without progress")
    assert "loop/no_progress" in line(session)
