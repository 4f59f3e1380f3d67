"""`fusewire halt`, `resume`, `pause` and `allow-once` at a terminal: scopes, words, JSON, and what is typed wrongly."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fusewire.config import user_state_folder
from fusewire.scopes.orders import read_orders
from tests.helpers.clients import Client
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

SESSION = "479528ae-91f4-4945-992c-9db9f0bba192"


def orders() -> dict[str, Any]:
    return json.loads(Path(user_state_folder(), "orders.json").read_text())


def test_without_a_scope_this_project_is_halted_with_all_its_worktrees(project: Project, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=k", "-c", "user.email=k@x", "-C", str(project.root)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    done = Project(tmp_path / "tree").run("halt", "--reason", "wrong branch")
    assert done.returncode == 0, done.stderr
    assert f"Halted: the agents of {project.root}, in all worktrees." in done.stdout
    assert "fusewire resume" in done.stdout
    assert not Client("claude", project.root).shell("ls").allowed
    assert not Client("claude", tmp_path / "tree").shell("ls").allowed


def test_project_may_stand_without_a_folder_and_with_one(project: Project, tmp_path: Path) -> None:
    assert project.json("halt", "--project", "--reason", "x")["project"] == str(project.root)
    assert project.json("resume", "--project")["left"] == []
    elsewhere = shutil.copytree(project.root, tmp_path / "elsewhere")
    assert project.json("halt", "--project", str(elsewhere), "--reason", "x")["project"] == str(elsewhere)
    assert Client("claude", project.root).shell("ls").allowed


def test_the_json_of_a_halt_has_every_field_and_utc(project: Project) -> None:
    told = project.json("halt", "--all", "--reason", "  going \n home ")
    assert told.keys() == {"scope", "project", "session", "reason", "by", "at"}
    assert (told["scope"], told["project"], told["reason"]) == ("all", None, "going home")
    assert told["at"].endswith("Z")


def test_a_session_is_named_by_the_beginning_of_its_id(project: Project) -> None:
    Client("claude", project.root).shell("make")
    assert project.json("halt", "--session", "4795", "--reason", "x")["session"] == SESSION
    (line,) = project.json("status")["orders"]["halts"]
    assert (line["scope"], line["key"]) == ("session", SESSION)
    assert project.json("resume", "--session", "4795")["lifted"][0]["key"] == SESSION


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["halt"], 2, "--reason"),
        (["halt", "--reason", "  "], 1, "the reason is empty"),
        (["halt", "--session", "nobody", "--reason", "x"], 1, "no session 'nobody' has been heard of"),
        (["halt", "--session", "", "--reason", "x"], 1, "no session '' has been heard of"),
        (["halt", "--all", "--session", "x", "--reason", "x"], 2, "give only one of"),
        (["halt", "--project", "/nowhere", "--reason", "x"], 1, "no such folder: /nowhere"),
        (["resume", "--all", "--project"], 2, "give only one of"),
        (["pause"], 2, "say for how long and why"),
        (["pause", "--for", "1h"], 2, "say for how long and why"),
        (["pause", "--for", "25h", "--reason", "x"], 2, "up to 24h"),
        (["pause", "--for", "never", "--reason", "x"], 2, "no duration"),
        (["pause", "--for", "0s", "--reason", "x"], 2, "no duration"),
        (["pause", "--for", "1h", "--list"], 2, "give one of them"),
        (["pause", "tool.repitition", "--for", "1h", "--reason", "x"], 1, "did you mean tool.repetition?"),
        (["pause", "guard", "--for", "1h", "--reason", "x"], 1, "did you mean guard.*?"),
        (["pause", "fusewire.disarm", "--for", "1h", "--reason", "x"], 1, "is never paused"),
        (["pause", "\x1b[31m", "--for", "1h", "--reason", "x"], 1, "no such rule: [U+001B][31m"),
        (["allow-once"], 2, "CODE"),
    ],
)
def test_what_is_typed_wrongly_is_one_clear_line_and_changes_nothing(
    project: Project, arguments: list[str], code: int, words: str
) -> None:
    done = project.run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(user_state_folder(), "orders.json").exists()


def test_resume_lifts_whatever_halts_here_and_says_what_holds_elsewhere(project: Project, tmp_path: Path) -> None:
    elsewhere = Project(shutil.copytree(project.root, tmp_path / "elsewhere"))
    Client("claude", project.root).shell("make")
    for scope in ([], ["--all"], ["--session", SESSION]):
        assert project.run("halt", *scope, "--reason", "here").returncode == 0
    assert elsewhere.run("halt", "--reason", "there").returncode == 0
    done = project.run("resume")
    assert done.stdout.count("Lifted the halt of") == 3
    assert "1 halt still holds" in done.stdout
    assert "there" in done.stdout
    assert Client("claude", project.root).shell("ls").allowed
    assert not Client("claude", elsewhere.root).shell("ls").allowed
    assert "Nothing is halted here" in project.run("resume").stdout
    assert project.json("resume", "--all")["left"] == []
    assert project.run("resume").stdout == "Nothing is halted.\n"


def test_every_front_end_says_who_is_halted_by_whom_why_and_since_when(project: Project) -> None:
    assert project.run("halt", "--reason", "the release is being cut").returncode == 0
    for command in (["status", "--all"], ["doctor"], ["history", "loop/no_progress"]):
        told = project.run(*command).stderr
        assert told.count("HALTED: the agents of project") == 1, command
        assert "the release is being cut" in told
        assert ", by " in told
        assert re.search(r" since \d\d:\d\d UTC", told)
        assert "fusewire resume" in told
    watch = project.run("watch", "--once").stdout
    assert "HALTED: the agents of project" in watch
    assert "All agents are halted by a person" in watch
    assert "the release is being cut" in project.run("statusline").stdout
    panel = json.loads(project.run("watch", "--once", "--json").stdout)
    assert panel["orders"]["halts"][0]["reason"] == "the release is being cut"
    assert project.json("status")["orders"]["halts"][0]["reason"] == "the release is being cut"


def test_a_pause_is_seen_everywhere_and_ends_with_a_command(project: Project) -> None:
    done = project.run("pause", "tool.repetition", "guard.*", "--for", "1h", "--reason", "polling")
    assert done.returncode == 0, done.stderr
    assert "tool.repetition, guard.* only log until" in done.stdout
    for command in (["status", "--all"], ["doctor"]):
        assert project.run(*command).stderr.count("PAUSED until") == 1
    assert "PAUSED until" in project.run("watch", "--once").stdout
    assert "paused: tool.repetition, guard.*" in project.run("statusline").stdout
    (told,) = project.json("pause", "--list")["pauses"]
    assert (told["rules"], told["reason"]) == (["tool.repetition", "guard.*"], "polling")
    assert project.json("pause", "--end", "guard.*") == {"ended": ["guard.*"]}
    assert project.json("pause", "--list")["pauses"][0]["rules"] == ["tool.repetition"]
    assert project.json("pause", "--end") == {"ended": ["tool.repetition"]}
    assert project.run("pause", "--list").stdout == "Nothing is paused here.\n"
    assert project.run("pause", "--end").stdout == "Nothing of that is paused here.\n"


def test_a_constraint_is_paused_by_its_id(project: Project) -> None:
    project.constraint("no-push", "match: {command: git push}\nmode: block\n")
    client = Client("claude", project.root)
    assert not client.shell("git push").allowed
    assert project.run("pause", "no-push", "--for", "10m", "--reason", "x").returncode == 0
    assert client.shell("git push", "call_2").allowed
    assert project.run("pause", "--end", "no-push").returncode == 0
    assert not client.shell("git push", "call_3").allowed


def test_a_pause_of_one_session_is_for_that_session(project: Project) -> None:
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("a\n")
    client, other = Client("claude", project.root), Client("claude", project.root, "another")
    assert not client.shell("rm specs/a.md").allowed
    assert project.run("pause", "--session", "4795", "--for", "1h", "--reason", "x").returncode == 0
    assert client.shell("rm specs/a.md", "call_2").allowed
    assert not other.shell("rm specs/a.md").allowed


def test_words_of_a_person_are_shown_as_text(project: Project) -> None:
    assert project.run("halt", "--reason", "a\x1b[2Jb").returncode == 0
    for command in (["status"], ["watch", "--once"], ["statusline"], ["resume"]):
        done = project.run(*command)
        assert "\x1b" not in done.stdout + done.stderr


def test_a_damaged_record_is_said_by_every_command_and_mended_by_resume(project: Project) -> None:
    assert project.run("halt", "--reason", "x").returncode == 0
    Path(user_state_folder(), "orders.json").write_text("{")
    told = project.run("log").stderr
    assert "cannot be read" in told
    assert "cannot be read" in project.run("status").stdout
    assert "HALTED" in told
    assert project.run("resume").returncode == 0
    assert project.run("status").stderr == ""
    assert not read_orders(str(project.root)).halts


def test_without_a_home_nothing_is_halted_and_one_line_says_why(project: Project) -> None:
    done = project.run("halt", "--reason", "x", env={"XDG_STATE_HOME": "", "HOME": "nowhere"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "set HOME or XDG_STATE_HOME" in done.stderr


def test_a_very_long_reason_is_cut_to_what_is_kept(project: Project) -> None:
    assert len(project.json("halt", "--reason", "x" * 5000)["reason"]) == 300
    refused = Client("claude", project.root).shell("ls")
    assert len(refused.text) <= 600
    assert orders()["halts"][0]["reason"] == "x" * 300


@pytest.mark.parametrize("command", ["status", "run -- true", "loop begin", "wait --until-reset -- true"])
def test_one_command_says_a_halt_once(project: Project, command: str) -> None:
    """What its own output says of it is not repeated behind it."""
    assert project.run("halt", "--reason", "the release is being cut").returncode == 0
    done = project.run(*command.split())
    assert (done.stdout + done.stderr).count("the release is being cut") == 1


def test_a_halted_session_is_called_by_its_name(project: Project) -> None:
    Session(project, SESSION).says("fix the login")
    done = project.run("halt", "--session", SESSION[:6], "--reason", "wrong branch")
    assert 'Halted: session claude "fix the login" (' in done.stdout
    assert "It stops at its next call." in done.stdout
    assert 'HALTED: session claude "fix the login" (' in project.run("log").stderr
    assert 'Lifted the halt of session claude "fix the login" (' in project.run("resume").stdout
