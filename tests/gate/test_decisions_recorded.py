"""Every answer that was not a plain allow is written down once, whichever step gave it; a plain allow never is."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.scopes.order_changes import change_orders
from fusewire.scopes.orders import HaltOrder, Orders, PauseOrder
from fusewire.stores.rows import DecisionRow
from fusewire.util.worktrees import project_key
from tests.helpers.project import Project
from tests.helpers.session_hook import Said, Session

ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}
NOT_ASKED = {"permission_mode": "default"}


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    specs = project.root / "specs"
    specs.mkdir()
    (specs / "a.md").write_text("a\n")
    return Session(project)


def rows(project: Project) -> list[DecisionRow]:
    with Breaker.open(project=project.root, read_only=True) as breaker:
        return [row for _, row in breaker.store.decisions()]


def only(project: Project) -> DecisionRow:
    (row,) = rows(project)
    return row


def asks(session: Session, command: str, **fields: Any) -> Said:
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"toolu_{command}", **fields}
    return session.send("PreToolUse", **call)


def test_plain_allows_are_not_written_down(project: Project, session: Session) -> None:
    session.send("SessionStart", source="startup")
    session.says("look around")
    session.bash("ls")
    session.bash("cat specs/a.md")
    session.fails("cat nothing")
    session.send("Stop")
    session.send("SessionEnd", reason="exit")
    assert rows(project) == []


def test_a_refusal_of_the_guard_has_its_reason_its_call_and_what_would_pass(project: Project, session: Session) -> None:
    said = asks(session, "rm -rf   specs", cwd=str(project.root / "specs/.."))
    row = only(project)
    assert (row.kind, row.rule, row.session) == ("refused", "guard.rm", session.id)
    assert row.data["reason"] == "it would delete specs, which is protected"
    assert (row.data["tool"], row.data["call"], row.data["agent"]) == ("Bash", "rm -rf specs", "claude")
    assert row.data["cwd"] == str(project.root / "specs/..")
    assert row.data["evidence"]
    assert row.data["next"]
    assert said.why == row.code


def test_tampering_is_written_down(project: Project, session: Session) -> None:
    asks(session, "fusewire reset guard.rm --reason no")
    assert (only(project).kind, only(project).rule) == ("refused", "fusewire.disarm")


def test_constraints_are_written_down_when_they_refuse_ask_and_tell(project: Project, session: Session) -> None:
    for mode, command in (("block", "git push --force"), ("ask", "git push --mirror"), ("count", "git push --all")):
        project.constraint(f"no-{mode}", f"mode: {mode}\nmatch:\n  command: ['{command}*']\n")
    attended = Session(project, env=ATTENDED)
    for command in ("git push --force", "git push --mirror", "git push --all"):
        asks(attended, command, **NOT_ASKED)
    kinds = [(row.kind, row.rule.partition(":")[2]) for row in rows(project)]
    assert kinds == [("refused", "no-block"), ("asked", "no-ask"), ("told", "no-count")]


def test_a_circuit_keeps_its_fact_its_evidence_and_its_end(project: Project, session: Session) -> None:
    for _ in range(3):
        session.fails("./deploy.sh")
    asked, _ = session.before("Bash", {"command": "./deploy.sh"})
    assert not asked.allowed
    told, refused = rows(project)
    assert (told.kind, refused.kind) == ("told", "refused")
    assert refused.data["circuit"] == f"tool/tool_failure/Bash(deploy.sh)/{session.id}"
    assert refused.data["reason"] == "this tool failed 3 times in 5 turns (limit 3)"
    assert refused.data["until"] > refused.at
    assert refused.data["text"].startswith("BLOCKED tool.tool_failure:Bash(deploy.sh): Circuit breaker tripped")


def test_the_same_call_again_and_again_is_written_down_each_time_and_then_as_halted(
    project: Project, session: Session
) -> None:
    for number in range(4):
        asks(session, "rm -rf specs", tool_use_id=f"toolu_{number}")
    kinds = [row.kind for row in rows(project)]
    assert kinds[:2] == ["refused", "refused"]
    assert kinds[-1] == "halted"
    assert len(kinds) == 4
    assert all(row.data["reason"] for row in rows(project))


def test_rules_in_log_mode_are_written_down_as_logged(project: Project, session: Session) -> None:
    (project.root / "fusewire.toml").write_text('[rules]\n"guard.rm" = "log"\n')
    assert asks(session, "rm -rf specs").silent
    row = only(project)
    assert (row.kind, row.rule, row.data["verdict"]) == ("logged", "guard.rm", "deny")


def test_what_a_pause_let_pass_is_written_down_as_logged(project: Project, session: Session) -> None:
    now = time.time()

    def pause(orders: Orders) -> None:
        orders.pauses = (PauseOrder("all", "", ("guard.*",), now + 600, "trying", "me", now - 1),)

    change_orders(pause, [], now)
    assert asks(session, "rm -rf specs").silent
    assert (only(project).kind, only(project).rule) == ("logged", "guard.rm")


def halt(project: Project) -> None:
    def give(orders: Orders) -> None:
        orders.halts = (HaltOrder("project", project_key(str(project.root)), "lunch", "me", time.time()),)

    change_orders(give, [str(project.root)], time.time())


def test_a_persons_halt_is_written_down_before_a_call_and_at_a_prompt(project: Project, session: Session) -> None:
    session.bash("ls")
    halt(project)
    assert asks(session, "ls").halted
    session.says("go on")
    assert [(row.kind, row.rule) for row in rows(project)] == [("halted", "fusewire.halt")] * 2
    assert "lunch" in rows(project)[0].data["reason"]


def test_too_deep_a_nesting_is_written_down(project: Project, session: Session) -> None:
    asks(Session(project, env={"FUSEWIRE_DEPTH": "99"}), "ls")
    assert only(project).kind == "halted"


def test_settings_that_would_switch_us_off_are_written_down(project: Project, session: Session) -> None:
    settings = Path(os.environ["HOME"]) / ".claude/settings.json"
    settings.parent.mkdir()
    command = "python3 -I -S /x/src/fusewire/hook.py claude"
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}}))
    session.send("SessionStart", source="startup")
    settings.write_text('{"disableAllHooks": true}')
    session.send("ConfigChange", source="user_settings", file_path=str(settings))
    assert (only(project).kind, only(project).rule) == ("refused", "fusewire.disarm")


def test_input_that_makes_no_sense_is_written_down(project: Project, session: Session) -> None:
    assert not Said(project.hook(None, raw=b"garbage")).allowed
    row = only(project)
    assert (row.kind, row.rule, row.session) == ("refused", "fusewire.input", "")
    assert row.data["reason"].startswith("the hook's input is not JSON")


@contextmanager
def locked(project: Project) -> Iterator[None]:
    with closing(sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def test_a_refusal_that_cannot_be_written_now_is_written_with_the_next_event(
    project: Project, session: Session
) -> None:
    session.bash("ls")
    with locked(project):
        said = asks(session, "rm -rf specs")
        assert not said.allowed
        assert rows(project) == []
    session.bash("ls")
    row = only(project)
    assert row.rule == "guard.rm"
    assert said.why == row.code


def test_what_somebody_else_put_among_what_waits_is_no_decision(project: Project, session: Session) -> None:
    session.bash("ls")
    place = project.root / ".fusewire/late"
    place.mkdir(mode=0o700)
    for number, content in enumerate(('{"decision": 1}', '{"decision": {"at": 1}}', '{"decision": {"x": 2}}')):
        (place / f"{number:020}-1").write_text(content)
    session.bash("ls")
    assert rows(project) == []


def test_many_processes_at_once_lose_none_and_no_two_have_the_same_code(project: Project, session: Session) -> None:
    project.starts_hooks = True
    session.bash("ls")

    def refuse(number: int) -> None:
        one = Session(project, f"session-{number % 8}")
        for time_ in range(5):
            asks(one, "rm -rf specs", tool_use_id=f"toolu_{number}_{time_}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(refuse, range(8)))
    found = rows(project)
    assert len(found) == 40
    assert len({row.code for row in found}) == 40


def test_a_project_of_version_0_1_gets_its_place_for_them(project: Project, session: Session) -> None:
    session.bash("ls")
    with closing(sqlite3.connect(project.root / ".fusewire/state.db")) as old:
        old.executescript("DROP TABLE decisions; DROP TABLE spent")
        old.executescript("DELETE FROM migrations WHERE applied_to > 3; PRAGMA user_version=3")
    asks(session, "rm -rf specs")
    assert only(project).rule == "guard.rm"


def test_what_is_kept_of_one_is_bounded(project: Project, session: Session) -> None:
    """However long a call is: what is kept of two thousand stays small."""
    asks(session, f"rm -rf specs {'x' * 200_000} \u20ac\ud800")
    row = only(project)
    assert len(json.dumps(row.data)) < 10_000
    assert len(row.data["call"]) <= 300
