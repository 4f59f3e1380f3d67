"""What an adversary inside the four agents found, held for good: real hook processes, a real shell, real git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusewire.agents.caller import is_agent
from fusewire.agents.codex.interactive import check_unseen
from fusewire.breakers.session.registration import note, switched_off
from fusewire.config.pyproject_table import changes_table
from fusewire.core.events import Event
from fusewire.guard.shell.commands import simple_commands
from fusewire.guard.tampering import disarming
from tests.helpers import SOURCE
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

RULE = """circuit_breaker: {violation_threshold: 1, dedup_seconds: 0}
match:
  - command: [git push -f]
"""

# -- who is a person -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["exec env -i {}", "exec -c {}"])
def test_a_shell_that_gives_way_leaves_the_agent_above(project: Project, tmp_path: Path, given: str) -> None:
    """`exec env -i` takes the record of the shell's environment away; the agent above the shell is still there."""
    project.constraint("rule", RULE)
    project.run("record", "rule", "--action", "x")
    script = tmp_path / "fix.sh"
    script.write_text(
        f"#!/bin/sh\ncd {project.root}\n"
        f"PYTHONPATH={SOURCE.parent} {sys.executable} -m fusewire reset rule --reason mine\n"
    )
    script.chmod(0o755)
    agent = tmp_path / "claude"
    shutil.copy("/bin/bash", agent)  # a program of that name, whose own environment says nothing
    line = f"CLAUDECODE=1 bash -c '{given.format(script)}'; true"
    done = subprocess.run(
        [str(agent), "-c", line], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60, check=False
    )
    assert "is for a person at a terminal" in done.stderr, done
    assert "OPEN" in project.run("status", "--all").stdout


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["claude", "-p", "x"], True),
        (["/opt/claude/versions/2.1.325"], True),
        (["node", "/x/@google/gemini-cli/bundle/gemini.js"], True),
        (["node", "--no-warnings", "/usr/bin/gemini"], True),
        (["/x/bin/codex", "exec", "y"], True),
        (["node", "/x/@github/copilot/npm-loader.js"], True),
        (["fusewire", "install", "claude"], False),
        (["vim", "claude"], False),
        (["node", "server.js", "claude"], False),
        (["bash", "-c", "claude"], False),
        ([""], False),
        ([], False),
    ],
)
def test_an_agent_is_known_by_its_command_line(words: list[str], found: bool) -> None:
    assert is_agent(words) is found


def test_a_prompt_that_an_agent_gives_lifts_no_halt(project: Project) -> None:
    session = Session(project)
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("a\n")
    while not session.bash("rm -rf specs")[0].halted:
        assert session.calls < 10
    session.env = {"FUSEWIRE_DEPTH": "1"}
    session.says("go on")
    assert session.bash("ls")[0].halted
    session.env = {}
    session.says("go on")
    assert session.bash("ls")[0].allowed


# -- the root stays where it is --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line", ["mkdir -p docs/constraints", "git init", "mkdir .git", "mv ../.git ../x", "rm -rf ../.git"]
)
def test_an_agent_in_a_subfolder_does_not_move_the_root(project: Project, line: str) -> None:
    below = project.root / "app"
    below.mkdir()
    env = {"CLAUDE_PROJECT_DIR": str(below)}
    answer = project.hook(project.bash(line, cwd=str(below)), env=env)
    assert answer.returncode == 2, answer
    for harmless in ("git init other", "mkdir -p docs/x", "git commit -m x", "git checkout -b x", "git gc"):
        assert project.hook(project.bash(harmless, cwd=str(below)), env=env).returncode == 0, harmless


# -- settings that no longer call us ---------------------------------------------------------------------


def registered() -> dict[str, Any]:
    handler = {
        "type": "command",
        "command": "/p/python",
        "args": ["-I", "/x/fusewire/hook.py", "claude"],
        "timeout": 20,
    }
    return {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [handler]}], "Stop": [{"hooks": [handler]}]}}


def otherwise(how: str) -> str:
    settings = registered()
    group = settings["hooks"]["PreToolUse"][0]
    if how == "matcher":
        group["matcher"] = "Nothing"
    elif how == "time-out":
        group["hooks"][0]["timeout"] = 0.001
    elif how == "other key":
        settings["off"] = settings.pop("hooks")
    elif how == "other event":
        settings["hooks"]["Notification"] = settings["hooks"].pop("PreToolUse")
    text = json.dumps(settings)
    if how == "garbage":
        text += "}}"
    elif how == "too deep":
        text = text[:-1] + ', "disableAllHooks": true, "x": ' + "[" * 100_000 + "]" * 100_000 + "}"
    elif how == "too large":
        text = text[:-1] + f', "x": "{"a" * 5_000_000}", "disableAllHooks": true}}'
    return text


WAYS = ["matcher", "time-out", "other key", "other event", "garbage", "too deep", "too large"]


@pytest.mark.parametrize("how", WAYS)
def test_settings_that_only_look_as_if_they_called_us(tmp_path: Path, how: str) -> None:
    """On the client each of these let a protected file be deleted, while the text still named our hook as often."""
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps(registered()))
    noted = note(str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path / "none")})
    file.write_text(json.dumps({"model": "x", **registered()}, indent=2))
    assert switched_off(str(file), noted) == ""
    file.write_text(otherwise(how))
    assert switched_off(str(file), noted) != ""


# -- agents without hooks, and words in a person's place -------------------------------------------------

REFUSED = [
    "CLAUDE_CODE_SIMPLE=1 claude -p x",
    "env CLAUDE_CODE_SAFE_MODE=1 claude -p x",
    "claude --settings off.json -p x",
    "claude --managed-settings '{}' -p x",
    "npx -y @anthropic-ai/claude-code@latest --bare -p x",
    "node /x/@anthropic-ai/claude-code/cli.js --bare -p x",
    "/home/dev/.local/share/claude/versions/2.1.325 --bare -p x",
    "codex exec -cfeatures.hooks=false y",
    'python -c \'import subprocess; subprocess.run(["claude", "--bare"])\'',
    "echo 'fusewire reset x' | at now",
    "tmux send-keys -t 0 'fusewire reset x' Enter",
    "tmux send-keys -t 0 'grant another $5' Enter",
    "tmux send-keys -t 0 'grant 20 more calls' Enter",
    "systemd-run --user fusewire grant 5",
]

HARMLESS = [
    "claude -p 'look at the hooks'",
    'claude --settings \'{"model": "x"}\' -p y',
    "git clone --bare https://example.org/claude.git",
    "tmux new -d 'npm run dev'",
    "tmux send-keys -t 0 'fusewire status' Enter",
    "docker run -it node npm test",
    "crontab -l",
    "codex exec -C app y",
    "python -c 'print(\"codex-plan\")'",
    "claude -c -p 'fix the hooks'",
    "node server.js --bare",
]


@pytest.mark.parametrize("line", REFUSED)
def test_refused(line: str) -> None:
    assert disarming(Event("before_tool", tool="Bash", command=line), simple_commands(line), ())


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless(line: str) -> None:
    assert not disarming(Event("before_tool", tool="Bash", command=line), simple_commands(line), ())


TABLE = '[project]\nname = "x"\n\n[tool.fusewire.guard]\nprotect = ["plans/"]\n'


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"old_string": '"plans/"', "new_string": ""}, True),
        ({"content": '[project]\nname = "x"\n'}, True),
        ({"content": '[tool."fusewire".guard]\nprotect = []\n'}, True),
        ({"edits": [{"old_string": "plans", "new_string": "none"}]}, True),
        ({"patch": '*** Update File: pyproject.toml\n@@\n-protect = ["plans/"]\n+protect = []\n*** End Patch'}, True),
        ({"old_string": 'name = "x"', "new_string": 'name = "y"'}, False),
        ({"content": TABLE.replace("x", "y", 1)}, False),
        ({"patch": '*** Update File: pyproject.toml\n@@\n-name = "x"\n+name = "y"\n*** End Patch'}, False),
    ],
)
def test_our_table_in_the_projects_settings(project: Project, given: dict[str, Any], refused: bool) -> None:
    event = Event("before_tool", tool="Edit", input=given)
    assert bool(disarming(event, [], ("pyproject.toml",), changes_table(event, TABLE))) is refused


# -- what the hook stands on -----------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["rm {}", "ln -sf /bin/true {}", "chmod -x {}", "mv {} x"])
def test_the_interpreter_of_the_hook_is_protected(project: Project, line: str) -> None:
    assert project.hook(project.bash(line.format(sys.executable))).returncode == 2


@pytest.mark.parametrize("path", ["/etc/claude-code/managed-settings.json", "/etc/gemini-cli/settings.json"])
def test_an_administrators_settings_are_protected(project: Project, path: str) -> None:
    assert project.hook(project.bash(f"echo '{{}}' > {path}")).returncode == 2


def test_a_registration_that_was_made_since_silences_nobody(project: Project, tmp_path: Path) -> None:
    """An opaque program makes the file by which Copilot's hook of the project knows that another one answers."""
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("a\n")
    of_person, of_project = tmp_path / ".copilot" / "hooks", project.root / ".github" / "hooks"
    for folder in (of_person, of_project):
        folder.mkdir(parents=True)
    text = '{"hooks": {"PreToolUse": [{"bash": "/p/python -I -S /x/fusewire/hook.py copilot"}]}}'
    (of_project / "fusewire.json").write_text(text)

    def asked(session: str) -> int:
        payload = {**project.bash("rm -rf specs"), "timestamp": "2026-01-01T00:00:00Z", "session_id": session}
        payload["transcript_path"] = f"/home/dev/.copilot/session-state/{session}/events.jsonl"
        env = {**os.environ, "HOME": str(tmp_path), "COPILOT_PROJECT_DIR": str(project.root)}
        env |= {"COPILOT_HOOK_DIR": str(of_project), "COPILOT_HOME": str(tmp_path / ".copilot")}
        line = [sys.executable, "-I", "-S", str(SOURCE / "hook.py"), "copilot"]
        return subprocess.run(
            line, input=json.dumps(payload).encode(), env=env, capture_output=True, check=False
        ).returncode

    assert asked("s0") == 2
    (of_person / "fusewire.json").write_text("{}")
    assert asked("s1") == 2, "it calls nobody"
    (of_person / "fusewire.json").write_text(text)
    assert asked("s2") == 2, "it is younger than the process that would have had to read it"


# -- what is typed into a program that runs (Codex) ------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *("bash --norc", "env bash", "exec bash", "cd . && bash", "false || bash", "bash --rcfile x", "TERM=x bash"),
        *("python3 -q", "python3 -i -q", "python3 -", "python3.12", "timeout 9 bash", "script -q /dev/null", "sudo -i"),
        *("su", "node -i", "cat p | apply_patch", "true && apply_patch < p"),
    ],
)
def test_programs_to_type_into(line: str) -> None:
    assert check_unseen(line, simple_commands(line))


@pytest.mark.parametrize(
    "line",
    [
        *("python3 - <<'E'\nprint(1)\nE", "cat x.py | python3", "cat x | bash -s -- a", "bash x.sh", "bash < x.sh"),
        *("python3 --version", "node -v", "bash --version", "which bash", "python3 -m pytest", "sudo ls", "su -c ls"),
        *("script -qc 'ls' /dev/null", "echo bash", "git log --grep python3", "sqlite3 x.db .tables"),
    ],
)
def test_programs_that_have_something_to_run(line: str) -> None:
    assert not check_unseen(line, simple_commands(line))


# -- programs that remove --------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["npx rimraf specs", "rimraf specs", "npx del-cli specs"])
def test_removers_of_node(project: Project, line: str) -> None:
    (project.root / "specs").mkdir()
    (project.root / "specs" / "a.md").write_text("a\n")
    assert project.hook(project.bash(line)).returncode == 2
    assert project.hook(project.bash(line.replace("specs", "dist"))).returncode == 0
