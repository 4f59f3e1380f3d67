"""A halt and an open circuit are in the database and in the audit file: whichever is lost, the stricter word holds."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fusewire.guard.calls import folder_of
from fusewire.stores import audit_file
from fusewire.stores.rows import AuditRow
from fusewire.util.durations import show_time
from tests.helpers.project import Project
from tests.helpers.session_hook import Said, Session


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    return Session(project)


def folder(session: Session) -> Path:
    return session.project.root / ".fusewire"


def halt(session: Session) -> Said:
    """The same failing call again and again, until the agent is halted."""
    for _ in range(12):
        said = session.fails("./deploy.sh")[0]
        if said.halted:
            return said
    raise AssertionError("nobody was halted")


def keep_copy(session: Session) -> None:
    """The database as it is, with its log, beside it."""
    with (
        closing(sqlite3.connect(folder(session) / "state.db")) as source,
        closing(sqlite3.connect(folder(session) / "copy.db")) as copy,
    ):
        source.backup(copy)


def lose_everything_since(session: Session) -> None:
    """What deleting or damaging the write-ahead log does at worst: the copy is all that is left."""
    for suffix in ("-wal", "-shm"):
        (folder(session) / f"state.db{suffix}").unlink(missing_ok=True)
    shutil.copyfile(folder(session) / "copy.db", folder(session) / "state.db")


def last_word(session: Session) -> str:
    return audit_file.last_words(str(folder(session)))[f"session/{session.id}"].to


def delete(*names: str) -> Callable[[Session], None]:
    def act(session: Session) -> None:
        for name in names:
            (folder(session) / name).unlink(missing_ok=True)

    return act


def cut(name: str, size: int) -> Callable[[Session], None]:
    return lambda session: os.truncate(folder(session) / name, size)


@pytest.mark.parametrize(
    "lose",
    [
        delete("state.db-wal", "state.db-shm"),
        lambda session: (folder(session) / "state.db-wal").write_bytes(b"\0" * 5000),
        delete("state.db", "state.db-wal", "state.db-shm"),
        lose_everything_since,
        delete("audit.jsonl"),
        cut("audit.jsonl", 100),
        cut("state.db", 7000),
        cut("state.db", 0),
    ],
    ids=["no log", "damaged log", "no database", "older copy", "no trail", "short trail", "short database", "empty"],
)
def test_a_halted_session_stays_halted(session: Session, lose: Callable[[Session], Any]) -> None:
    session.bash("ls")
    keep_copy(session)
    first = halt(session)
    lose(session)
    said, _ = session.before("Bash", {"command": "ls"})
    assert said.halted
    assert said.reason.startswith(first.reason.partition("\n")[0])
    assert last_word(session) == "halted", "and both say so again"
    assert session.project.run("doctor", "--acknowledge").returncode == 0
    session.says("use the other script")
    assert last_word(session) == "lifted"
    assert session.bash("ls")[0].silent, "a person lifts it in both"
    lose_nothing = session.project.json("doctor")
    assert lose_nothing["damage"] == lose_nothing["warnings"] == []


def test_an_open_circuit_stays_open_in_an_older_copy(project: Project) -> None:
    project.constraint("rule", "circuit_breaker:\n  dedup_seconds: 0\n")
    session = Session(project)
    project.run("record", "rule", "--action", "first")
    keep_copy(session)
    for number in range(4):
        project.run("record", "rule", "--action", f"number {number}")
    lose_everything_since(session)
    assert project.run("check", "rule").returncode == 3
    lose_everything_since(session)
    (circuit,) = project.json("status")["circuits"]
    assert circuit["state"] == "OPEN", "also for somebody who only looks"
    assert project.run("reset", "rule", "--reason", "seen").returncode == 0
    assert project.run("check", "rule").returncode == 0


def test_a_reset_whose_commit_was_lost_lifts_nothing(project: Project) -> None:
    project.constraint("rule", "circuit_breaker:\n  dedup_seconds: 0\n")
    session = Session(project)
    for number in range(5):
        project.run("record", "rule", "--action", f"number {number}")
    keep_copy(session)
    project.run("reset", "rule", "--reason", "seen")
    lose_everything_since(session)
    assert project.run("check", "rule").returncode == 3
    assert audit_file.last_words(str(folder(session)))["rule"].to == "open", "the trail says so again"
    assert project.run("reset", "rule", "--reason", "seen again").returncode == 0
    assert project.run("check", "rule").returncode == 0


def test_a_halt_that_was_never_committed_holds_and_can_be_lifted(session: Session) -> None:
    """A process that is killed between its line and its commit leaves such a line."""
    session.bash("ls")
    now = show_time(time.time())
    line = {"time": now, "circuit": f"session/{session.id}", "from": "running", "to": "halted"}
    state = {"rule": "tool.test", "text": "HALTED tool.test: somebody was killed", "circuit": "", "at": 0}
    with (folder(session) / "audit.jsonl").open("a") as file:
        file.write(json.dumps({**line, "cause": "halted", "reason": "", "actor": "", "state": state}) + "\n")
    assert session.before("Bash", {"command": "ls"})[0].halted
    session.says("go on")
    assert session.bash("ls")[0].silent


def test_a_halted_session_that_is_resumed_later_is_still_halted(session: Session) -> None:
    session.bash("ls")
    keep_copy(session)
    halt(session)
    session.send("SessionEnd", reason="other")
    lose_everything_since(session)
    session.send("SessionStart", source="resume")
    assert session.before("Bash", {"command": "ls"})[0].halted


def test_a_shortened_trail_keeps_the_halts_that_live(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.bash("ls")
    keep_copy(session)
    halt(session)
    lifted = Session(session.project, id="11111111-0000-4000-8000-000000000001")
    halt(lifted)
    lifted.says("go on")
    monkeypatch.setattr(audit_file, "LIMIT", 2000)
    monkeypatch.setattr(audit_file, "_STEP", 1000)
    for number in range(9):
        other = Session(session.project, id=f"22222222-0000-4000-8000-00000000000{number}")
        halt(other)
        other.says("go on")
    names = [line.get("circuit") for _, line in audit_file._lines(str(folder(session)))]
    assert f"session/{lifted.id}" not in names, "one that was lifted is gone with the old lines"
    lose_everything_since(session)
    assert session.before("Bash", {"command": "ls"})[0].halted


def test_a_shortened_trail_keeps_an_open_circuit_that_was_only_spoken_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line without a state (an override, a step on the way) is no last word."""
    monkeypatch.setattr(audit_file, "LIMIT", 2000)
    monkeypatch.setattr(audit_file, "_STEP", 1000)
    audit_file.append(str(tmp_path), [(AuditRow("a", 1.0, "closed", "open", "trip", "", ""), {"phase": "open"})])
    for number in range(20):
        spoken = AuditRow("a", 2.0, "closed", "closed", "overridden", f"number {number}", "person")
        audit_file.append(str(tmp_path), [(spoken, None)])
    assert "number 0" not in Path(audit_file.path_of(str(tmp_path))).read_text()
    assert audit_file.last_words(str(tmp_path))["a"].to == "open"


@pytest.mark.parametrize("name", ["479528ae-91f4-4945-992c-9db9f0bba192", 'séance "7"'])
def test_a_session_memory_that_is_damaged_keeps_its_halt(session: Session, name: str) -> None:
    session.id = name
    halt(session)
    with closing(sqlite3.connect(folder(session) / "state.db")) as database:
        database.execute("UPDATE memories SET data = '[1]' WHERE name = ?", (f"session/{session.id}",))
        database.commit()
    assert session.before("Bash", {"command": "ls"})[0].halted


def test_a_halt_for_a_protected_file_has_a_second_copy_too(session: Session) -> None:
    (session.project.root / "AGENTS.md").write_text("rules\n")
    _, call = session.before("Bash", {"command": "./build.sh"})
    (session.project.root / "AGENTS.md").unlink()
    assert session.send("PostToolUse", **call, tool_response={"stdout": ""}).halted
    (Path(folder_of(str(session.project.root))) / "halt").unlink()
    assert session.before("Bash", {"command": "./build.sh"})[0].halted
    assert session.project.run("guard", "snapshot").returncode == 0
    assert session.before("Bash", {"command": "./build.sh"})[0].allowed


def test_must_not_speak_or_halt_where_nothing_was_lost(session: Session) -> None:
    """A copied project has other inodes; a fresh one has neither file nor mark."""
    assert session.bash("ls")[0].silent
    session.fails("./deploy.sh")
    halt(session)
    session.says("go on")
    before = (folder(session) / "audit.jsonl").read_bytes()
    copied = shutil.copy(folder(session) / "audit.jsonl", folder(session) / "audit.copy")
    os.replace(copied, folder(session) / "audit.jsonl")
    assert session.bash("ls")[0].allowed
    assert (folder(session) / "audit.jsonl").read_bytes() == before


def test_when_both_are_lost_it_is_said(session: Session) -> None:
    halt(session)
    assert session.project.json("doctor")["warnings"] == []
    delete("state.db", "state.db-wal", "state.db-shm", "audit.jsonl")(session)
    session.bash("ls")
    (warning,) = session.project.json("doctor")["warnings"]
    assert "nothing was left, all circuits start empty" in warning


def test_must_not_say_so_at_the_first_start(session: Session) -> None:
    assert session.bash("ls")[0].silent
    assert session.project.json("doctor")["warnings"] == []
