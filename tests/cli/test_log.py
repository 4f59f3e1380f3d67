"""`fusewire log` lists what agents were refused, asked and told; `fusewire why` explains one of it in full."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fusewire.engine.breaker import Breaker
from fusewire.stores.rows import DecisionRow
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

ONE, TWO = "479528ae-91f4-4945-992c-9db9f0bba192", "0d9c1b3e-91f4-4945-992c-9db9f0bba192"


@pytest.fixture
def refused(project: Project) -> Project:
    """Two sessions: one was refused by the guard, then by a circuit; the other by the guard alone."""
    project.starts_hooks = False
    (project.root / "specs").mkdir()
    (project.root / "specs/a.md").write_text("a\n")
    session = Session(project, ONE)
    session.says("fix the login test")
    session.bash("rm -rf specs")
    for _ in range(3):
        session.fails("./deploy.sh")
    session.before("Bash", {"command": "./deploy.sh"})
    Session(project, TWO).bash("rm specs/a.md")
    return project


def decisions(project: Project, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.json("log", *options)["decisions"]
    return found


def test_the_log_has_the_newest_first_with_session_rule_call_and_reason(refused: Project) -> None:
    shown = refused.run("log")
    lines = shown.stdout.splitlines()
    assert shown.returncode == 0
    assert len(lines) == 8
    code = decisions(refused)[-1]["code"]
    assert lines[-2].endswith(f"  {code}  refused guard.rm: it would delete specs, which is protected")
    assert lines[-1] == '    claude "fix the login test" (479528ae): Bash: rm -rf specs'
    assert [one["kind"] for one in decisions(refused)] == ["refused", "refused", "told", "refused"]
    assert [one["rule"] for one in decisions(refused)][1] == "tool.tool_failure:Bash(deploy.sh)"


def test_the_log_is_narrowed_by_session_rule_and_number(refused: Project) -> None:
    assert [one["session"] for one in decisions(refused, "--session", "0d")] == [TWO]
    assert {one["rule"] for one in decisions(refused, "--rule", "guard")} == {"guard.rm"}
    assert len(decisions(refused, "--rule", "tool.*")) == len(decisions(refused, "--rule", "tool.tool_failure")) == 2
    assert decisions(refused, "--rule", "tool_failure") == []
    assert [one["session"] for one in decisions(refused, "--limit", "1")] == [TWO]
    assert refused.json("log", "--limit", "1")["more"] == 3
    assert len(decisions(refused, "--since", "1h")) == 4
    assert decisions(refused, "--since", "1ms") == []
    assert decisions(refused, "--session", ONE[:8], "--rule", "guard.rm")[0]["call"] == "rm -rf specs"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--session", "zzz"), 1, "no session 'zzz' has been heard of in this project"),
        (("--since", "soon"), 2, "'soon' is no duration"),
        (("--limit", "0"), 2, "not in the range"),
        (("--limit", "5", "--all"), 2, "give one of them"),
    ],
)
def test_bad_options_of_the_log_are_one_clear_line(
    refused: Project, options: tuple[str, ...], code: int, said: str
) -> None:
    done = refused.run("log", *options)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_project_without_state_has_an_empty_log_and_gets_none_by_looking(project: Project) -> None:
    assert project.json("log") == {"decisions": [], "more": 0}
    assert project.run("why").stdout == "Nothing has been refused in this project yet.\n"
    assert project.json("why") is None
    assert not (project.root / ".fusewire").exists()


def test_why_explains_the_last_refusal_with_its_setting_and_who_may_lift_it(refused: Project) -> None:
    code = decisions(refused, "--rule", "tool")[0]["code"]
    text = refused.run("why", code.lower()).stdout
    assert text.startswith(f"{code}: refused tool.tool_failure:Bash(deploy.sh), ")
    for part in (
        '  Session     claude "fix the login test" (479528ae), ',
        "  Call        Bash: ./deploy.sh (in ",
        "  Why         this tool failed 3 times in 5 turns (limit 3)",
        "  What passes read the error, and change what causes it before the next try",
        "  Again       ",
        f"  Circuit     tool/tool_failure/Bash(deploy.sh)/{ONE}, now OPEN",
        "a person can run: fusewire reset 'tool/tool_failure/",
        'a person can run: fusewire pause tool.tool_failure --for 1h --reason "',
        "tool.tool_failure.threshold = 3 (default)",
        "  Read more   docs/session.md",
    ):
        assert part in text
    assert refused.run("why").stdout.splitlines()[0].split()[1:3] == ["refused", "guard.rm,"]


def test_why_names_the_file_that_a_setting_comes_from(refused: Project) -> None:
    (refused.root / "fusewire.toml").write_text("[tool.tool_failure]\nthreshold = 4\n")
    view = refused.json("why", decisions(refused, "--rule", "tool")[0]["code"])
    (setting,) = [one for one in view["settings"] if one["key"] == "tool_failure.threshold"]
    assert (setting["value"], setting["source"]) == (4, "fusewire.toml")
    assert view["table"] == "tool"
    assert view["mode"] == "enforce"
    assert view["until"].endswith("Z")


def test_why_inside_a_session_is_about_that_session(refused: Project) -> None:
    shown = refused.run("why", "--json", env={"CLAUDE_CODE_SESSION_ID": ONE})
    assert json.loads(shown.stdout)["session"] == ONE
    assert refused.json("why")["session"] == TWO


def test_an_unknown_code_is_one_line(refused: Project) -> None:
    done = refused.run("why", "00000")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: no decision with the code '00000' is kept in this project; see: fusewire log\n"


def test_an_agent_may_look_at_both(refused: Project) -> None:
    session = Session(refused, ONE)
    session.says("why was that?")
    for command in ("fusewire why", "fusewire log --session 47", "fusewire why ABCDE --json"):
        assert session.bash(command)[0].allowed


def test_what_an_agent_wrote_is_escaped(refused: Project) -> None:
    Session(refused, "evil\x1b[31m").bash("rm -rf specs # \x1b[2J\u202e")
    text = refused.run("log").stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[U+001B][2J" in text


def test_a_row_that_cannot_be_read_hides_no_other(refused: Project) -> None:
    with Breaker.open(project=refused.root) as breaker, breaker.store.transact() as transaction:
        broken = {"evidence": 5, "until": "x", "also": [1, ["x"]], "circuit": "tool/gone/x"}
        code = transaction.decided(DecisionRow(1.0, "", "refused", "gone.rule", broken))
    assert len(decisions(refused)) == 5
    assert refused.run("why", code).returncode == 0


# -- following --------------------------------------------------------------------------------------------


@contextmanager
def following(project: Project, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "fusewire", "log", "--follow", *options]
    process = subprocess.Popen(
        command, cwd=project.root, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_following_misses_none_and_shows_none_twice_while_eight_processes_write(refused: Project) -> None:
    refused.starts_hooks = True

    def refuse(number: int) -> None:
        session = Session(refused, f"session-{number}")
        for _ in range(5):
            session.before("Bash", {"command": "rm -rf specs"})

    with following(refused, "--json", "--rule", "guard") as process:
        assert process.stdout is not None
        seen = [json.loads(process.stdout.readline())["code"] for _ in range(2)]
        with ThreadPoolExecutor(8) as pool:
            writing = pool.map(refuse, range(8))
            seen += [json.loads(process.stdout.readline())["code"] for _ in range(40)]
            list(writing)
        kept = [one["code"] for one in reversed(decisions(refused, "--rule", "guard", "--all"))]
    assert seen == kept
    assert len(set(seen)) == 42


def test_following_goes_on_after_the_database_was_lost(refused: Project) -> None:
    with following(refused, "--json") as process:
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        for path in Path(refused.root, ".fusewire").glob("state.db*"):
            path.unlink()
        Session(refused, "new").bash("rm -rf specs")
        assert json.loads(process.stdout.readline())["session"] == "new"


def test_ctrl_c_ends_following_without_a_traceback(refused: Project) -> None:
    with following(refused) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_following_ends_when_nobody_reads(refused: Project) -> None:
    with following(refused) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.returncode is not None
        assert process.stderr is not None
        assert process.stderr.read() == ""
        process.stdout = None
