"""A halt belongs to the session: whoever of its agents asks next is halted too, until a person acts."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project
from tests.helpers.session_hook import Said, Session, move_clock


@pytest.fixture
def session(project: Project) -> Session:
    project.starts_hooks = False
    return Session(project)


def halted(session: Session, agent: str | None = None) -> Said:
    """The same failing call again and again, until the agent is halted."""
    for _ in range(12):
        said = session.fails("./deploy.sh", agent=agent)[0]
        if said.halted:
            return said
    raise AssertionError("nobody was halted")


def test_a_trip_in_a_helper_stops_the_main_agent_at_its_next_call(session: Session) -> None:
    """Claude Code ends only the helper; the main agent would go on and start the next one."""
    session.project.starts_hooks = True
    first = halted(session, agent="a1")
    said, _ = session.bash("ls")
    assert said.halted
    assert said.code == 2
    assert said.reason == first.reason, "the same words, with the same evidence"


def test_and_already_when_the_helpers_report_comes_back(session: Session) -> None:
    call = session.spawn()[1]
    halted(session, agent="a1")
    report = [{"type": "text", "text": "it was stopped\nagentId: a1 (use SendMessage)"}]
    said = session.send("PostToolBatch", tool_calls=[{**call, "tool_response": report}])
    assert said.halted
    assert said.code == 0
    assert "HALTED tool.tool_failure:Bash(deploy.sh)" in said.json["stopReason"]


def test_whoever_holds_the_lock_of_a_rebuild_lifts_nothing(session: Session, project: Project) -> None:
    """An agent needs to read a file only, to hold its lock for as long as it likes."""
    halted(session)
    lock = os.open(project.root / ".fusewire/recovery.lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    began = time.monotonic()
    assert session.bash("ls")[0].halted
    assert time.monotonic() - began < 8, "within the time that a hook has"
    session.says("use the other script")
    assert session.bash("ls")[0].silent, "and a person is heard all the same"
    os.close(lock)


def test_a_halt_that_can_be_read_holds_also_while_nothing_can_be_written(session: Session, project: Project) -> None:
    """Nothing is counted then, which is said; whoever was not halted goes on."""
    first = halted(session)
    with closing(sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        said, _ = session.before("Bash", {"command": "ls"})
        assert said.halted
        assert said.reason.startswith(first.reason)
        assert "out of order" in said.reason
        assert Session(project, id="0d8f1c76-0000-4000-8000-000000000001").before("Bash", {"command": "ls"})[0].allowed
        other.execute("ROLLBACK")
    (circuit,) = project.json("status", "--all")["circuits"]
    project.run("reset", circuit["id"], "--reason", "it was the script")
    with closing(sqlite3.connect(project.root / ".fusewire/state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert session.before("Bash", {"command": "ls"})[0].allowed, "its circuit was closed by a person"


def test_another_session_goes_on(session: Session, project: Project) -> None:
    halted(session)
    assert Session(project, id="0d8f1c76-0000-4000-8000-000000000001").bash("ls")[0].silent


def test_a_person_who_speaks_lifts_it_and_a_helper_that_reports_does_not(session: Session) -> None:
    halted(session)
    session.says("<task-notification><task-id>a1</task-id> done</task-notification>")
    assert session.bash("ls")[0].halted
    session.says("use the other script")
    assert session.bash("ls")[0].silent


def test_time_does_not_lift_it(session: Session, project: Project) -> None:
    """The cooldown of the circuit is over; the agent was stopped all the same."""
    halted(session)
    move_clock(project, 3600)
    assert session.bash("ls")[0].halted


def test_a_person_who_resets_the_circuit_lifts_it(session: Session, project: Project) -> None:
    halted(session)
    name = f"tool/tool_failure/Bash(deploy.sh)/{session.id}"
    assert project.run("reset", name, "--reason", "the host is back").returncode == 0
    assert session.bash("ls")[0].silent
    assert session.bash("./deploy.sh")[0].allowed


def test_switching_the_breaker_off_lifts_it(session: Session, project: Project) -> None:
    halted(session)
    (project.root / "fusewire.toml").write_text("[tool]\ntool_failure.enabled = false\n")
    assert session.bash("ls")[0].allowed


def test_an_agent_that_wants_to_stop_is_told_why_it_should_not_go_on(session: Session) -> None:
    """Somebody's stop hook may want to keep it going."""
    halted(session)
    said = session.send("Stop", stop_hook_active=False)
    assert said.halted


def test_a_helper_may_end(session: Session) -> None:
    halted(session)
    assert session.send("SubagentStop", agent_id="a1", agent_type="x", stop_hook_active=False).silent


def test_must_not_halt_others_for_a_refusal_alone(session: Session) -> None:
    for _ in range(4):
        session.fails("./deploy.sh", agent="a1")
    assert session.bash("ls")[0].silent


def test_refusals_of_long_ago_are_no_row(session: Session, project: Project) -> None:
    """Twice in the morning and once in the evening: the third refusal of the same call halts nobody."""
    (project.root / "specs").mkdir()
    (project.root / "specs/a.md").write_text("a\n")
    for _ in range(2):
        assert session.bash("rm -rf specs")[0].code == 2
    for number in range(52):
        session.send(
            "PostToolBatch", tool_calls=[{**session._call("Bash", {"command": f"ls {number}"}), "tool_response": "x"}]
        )
    last = session.bash("rm -rf specs")[0]
    assert last.code == 2
    assert not last.halted


# -- who goes on all the same -------------------------------------------------------------------------------

#: A program that asks its hook again and again and heeds nothing but a signal.
STUBBORN = """
import json, os, subprocess, sys
hook, root, session = sys.argv[1:4]
for number in range(12):
    given = {"session_id": session, "cwd": root, "hook_event_name": "PreToolUse", "tool_name": "Bash",
             "tool_input": {"command": "./deploy.sh"}, "tool_use_id": f"call_{os.getpid()}_{number}"}
    environment = {**os.environ, "CLAUDE_PID": str(%s), "CLAUDE_PROJECT_DIR": root}
    command = [sys.executable, "-I", "-S", hook, "claude"]
    subprocess.run(command, input=json.dumps(given).encode(), env=environment, stdout=subprocess.DEVNULL)
    sys.stdout.write(str(number) + "\\n")
    sys.stdout.flush()
"""


def stubborn(project: Project, session: Session, pid: str = "os.getpid()") -> subprocess.CompletedProcess[str]:
    script = project.root.parent / "stubborn.py"
    script.write_text(STUBBORN % pid)
    command = [sys.executable, str(script), str(SOURCE / "hook.py"), str(project.root), session.id]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_an_agent_that_goes_on_although_it_is_halted_is_ended(session: Session, project: Project) -> None:
    halted(session)
    done = stubborn(project, session)
    assert done.returncode == -signal.SIGTERM
    assert 2 <= len(done.stdout.split()) <= 5


def test_must_not_end_a_process_that_did_not_start_the_hook(session: Session, project: Project) -> None:
    """Whatever the environment says."""
    halted(session)
    other = subprocess.Popen(["sleep", "60"])
    try:
        done = stubborn(project, session, str(other.pid))
        assert done.returncode == 0
        assert len(done.stdout.split()) == 12
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_must_not_end_it_for_the_calls_of_one_reply(session: Session) -> None:
    """Eight calls that were asked for together are answered one by one."""
    halted(session)
    said = [session.before("Bash", {"command": f"ls {number}"}) for number in range(8)]
    assert all(one.halted for one, _ in said)


# -- settings that change while a session runs ----------------------------------------------------------------


def hooks(events: tuple[str, ...] = ("PreToolUse", "PostToolBatch", "Stop")) -> dict[str, Any]:
    command = shlex.join([sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "claude"])
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}] for event in events}}


@pytest.fixture
def settings() -> Path:
    path = Path(os.environ["HOME"]) / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps(hooks()))
    return path


def changed(session: Session, path: Path) -> Said:
    return session.send("ConfigChange", source="user_settings", file_path=str(path))


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ('{"disableAllHooks": true}', "switch all hooks off"),
        (json.dumps({**hooks(), "disableAllHooks": True}), "switch all hooks off"),
        ('{// off\n"disableAllHooks": true}', "switch all hooks off"),
        ("{}", "take Fusewire's hooks out"),
        ("", "take Fusewire's hooks out"),
        ("{broken", "take Fusewire's hooks out"),
        ("[]", "take Fusewire's hooks out"),
        (json.dumps(hooks(("Stop",))), "take Fusewire's hooks out"),
        (json.dumps({**hooks(), "enabledPlugins": {"fusewire@fusewire": False}}), "switch the plugin of Fusewire off"),
    ],
)
def test_settings_that_switch_us_off_are_not_in_force(session: Session, settings: Path, after: str, what: str) -> None:
    session.send("SessionStart", source="startup")
    settings.write_text(after)
    said = changed(session, settings)
    assert said.json["decision"] == "block"
    assert said.json["reason"].startswith(f"BLOCKED fusewire.disarm: {settings} would {what}, ")
    assert "fusewire uninstall claude" in said.json["systemMessage"]


@pytest.mark.parametrize(
    "after",
    [
        json.dumps({**hooks(), "model": "opus"}),
        json.dumps(hooks(), indent=4),
        json.dumps({**hooks(("PreToolUse", "PostToolBatch", "Stop", "SessionEnd")), "disableAllHooks": False}),
        json.dumps({**hooks(), "enabledPlugins": {"other@x": False, "fusewire@fusewire": True}}),
    ],
)
def test_must_not_keep_other_settings_from_a_person(session: Session, settings: Path, after: str) -> None:
    session.send("SessionStart", source="startup")
    settings.write_text(after)
    assert changed(session, settings).silent


def test_a_file_that_never_called_us_may_change(session: Session, project: Project, settings: Path) -> None:
    project.starts_hooks = True
    session.send("SessionStart", source="startup")
    local = project.root / ".claude/settings.local.json"
    local.parent.mkdir()
    local.write_text('{"model": "opus"}')
    assert changed(session, local).silent
    local.unlink()
    assert changed(session, local).silent


# -- input that cannot be read -------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", ["Stop", "PostToolBatch", "UserPromptSubmit", "SubagentStop"])
@pytest.mark.parametrize("rest", [b"", b', "x": '])
def test_only_a_question_before_a_call_is_denied(project: Project, hook: str, rest: bytes) -> None:
    """Elsewhere exit 2 means: do not stop, or: what the person said is not sent. A person is told instead."""
    answer = project.hook(None, raw=b'{"session_id": "s", "hook_event_name": "' + hook.encode() + b'"' + rest)
    assert answer.returncode == 0
    assert f"the input of the hook {hook} is not JSON" in json.loads(answer.stdout)["systemMessage"]
    gate = project.hook(None, raw=b'{"session_id": "s", "hook_event_name": "PreToolUse"' + rest)
    assert gate.returncode == 2
    assert b"Traceback" not in gate.stderr


@pytest.mark.parametrize(("hook", "code"), [("Stop", 0), ("PreToolUse", 2)])
def test_input_that_is_too_long_is_treated_alike(project: Project, hook: str, code: int) -> None:
    head = b'{"session_id": "s", "hook_event_name": "' + hook.encode() + b'", "x": "'
    answer = project.hook(None, raw=head + b"x" * (65 * 1024 * 1024))
    assert answer.returncode == code
    assert b"it is larger than 67108864 bytes" in answer.stdout
