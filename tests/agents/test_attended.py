"""Whether a person can answer: what the client says, where it was started, and what an agent cannot make up."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project

ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}

#: What an agent's command line could take out of the environment.
CLEANED = "env -u CLAUDECODE -u FUSEWIRE_DEPTH CLAUDE_CODE_SESSION_ATTENDED=1"

#: The hook's payload in each client's words: a file is written that only a person may let it write.
PATCH = "*** Begin Patch\n*** Add File: .claude/skills/x.md\n+hi\n*** End Patch"
CALLS: dict[str, dict[str, Any]] = {
    "claude": {"hook_event_name": "PreToolUse", "tool_name": "Write", "permission_mode": "default"},
    "codex": {"hook_event_name": "PreToolUse", "tool_name": "apply_patch", "tool_input": {"command": PATCH}},
    "gemini": {"hook_event_name": "BeforeTool", "tool_name": "write_file"},
    "copilot": {"hook_event_name": "PreToolUse", "tool_name": "Write", "timestamp": "2026-11-19T03:39:21Z"},
}


class Started:
    """A process that goes by the name of a client and starts its hook, as the client does it."""

    def __init__(self, project: Project, name: str) -> None:
        self.project, self.name = project, name
        path = str(project.root / ".claude/skills/x.md")
        given = {"file_path": path, "path": path, "content": "hi\n", "file_text": "hi\n"}
        self.payload = project.root.parent / "payload.json"
        payload = {"session_id": "s", "cwd": str(project.root), "tool_input": given, **CALLS[name]}
        self.payload.write_text(json.dumps(payload))
        self.answer = project.root.parent / "answer.txt"
        hook = shlex.join([sys.executable, "-I", "-S", str(SOURCE / "hook.py"), name])
        self.script = f"{hook} < {self.payload} > {self.answer} 2>&1; true"

    def run(self, *words: str, env: dict[str, str] | None = None, script: str = "", terminal: bool = False) -> str:
        """What the hook answers. `words` are further arguments of the client."""
        command = [self.name, "-c", script or self.script, "client", *words]
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": str(self.project.root), **(env or {})}
        master, slave = pty.openpty()
        ends: Any = slave if terminal else subprocess.DEVNULL
        try:
            subprocess.run(
                command,
                executable="/bin/bash",
                cwd=self.project.root,
                env=environment,
                stdin=ends,
                stdout=ends,
                timeout=60,
                check=True,
            )
        finally:
            os.close(slave)
            os.close(master)
        return self.answer.read_text()

    def within(self, agent: str, how: str) -> str:
        """A line that an agent's shell runs, and which starts the client."""
        inner = f"{how} bash -c {shlex.quote(f'exec -a {self.name} bash -c {shlex.quote(self.script)}')}; true"
        return f"exec -a {agent} bash -c {shlex.quote(f'bash -c {shlex.quote(inner)}; true')}"


@pytest.fixture
def claude(project: Project) -> Started:
    return Started(project, "claude")


def is_asked(answer: str) -> bool:
    assert "ASK guard.change" in answer or "BLOCKED guard.change" in answer, answer
    return "ASK guard.change" in answer


def test_claude_code_says_whether_a_person_is_there(claude: Started) -> None:
    assert is_asked(claude.run(env=ATTENDED))
    assert is_asked(claude.run(env={**ATTENDED, "CI": "false", "CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}))
    for unattended in ({}, {"CLAUDE_CODE_SESSION_ATTENDED": "0"}):
        assert "no person attends this session" in claude.run(env=unattended, terminal=True)


@pytest.mark.parametrize("profile", ["auto", "attended"])
@pytest.mark.parametrize("told", [{"CI": "true"}, {"FUSEWIRE_DEPTH": "1"}], ids=["ci", "run"])
def test_nobody_is_there_whatever_is_set(claude: Started, profile: str, told: dict[str, str]) -> None:
    (claude.project.root / "fusewire.toml").write_text(f'[tool]\nprofile = "{profile}"\n')
    assert is_asked(claude.run(env=ATTENDED))
    assert not is_asked(claude.run(env={**ATTENDED, **told}))


def test_a_profile_overrules_what_the_client_says(claude: Started) -> None:
    file = claude.project.root / "fusewire.toml"
    file.write_text('[tool]\nprofile = "unattended"\n')
    assert not is_asked(claude.run(env=ATTENDED))
    file.write_text('[tool]\nprofile = "attended"\n')
    assert is_asked(claude.run())


@pytest.mark.parametrize("outer", ["claude", "codex", "gemini", "copilot"])
def test_a_client_that_an_agent_starts_is_unattended_though_it_cleans_the_environment(
    claude: Started, outer: str
) -> None:
    assert is_asked(claude.run(script=f"{CLEANED} bash -c {shlex.quote(claude.script)}; true"))  # no agent above
    (claude.project.root / "fusewire.toml").write_text('[tool]\nprofile = "attended"\n')
    assert not is_asked(claude.run(script=claude.within(outer, CLEANED)))
    assert is_asked(claude.run(script=claude.within("zsh", CLEANED)) if outer == "claude" else claude.run())


def test_a_client_that_an_agent_left_behind_is_unattended(claude: Started) -> None:
    """The agent is no longer above it, but what it was started with is on record, whatever its settings set."""
    script = f"env -u CLAUDECODE {claude.script}"
    assert not is_asked(claude.run(env={**ATTENDED, "CLAUDECODE": "1"}, script=script))
    assert is_asked(claude.run(env={**ATTENDED, "CLAUDECODE": ""}, script=script))


@pytest.mark.parametrize("name", ["gemini", "copilot"])
def test_other_clients_are_attended_at_a_terminal(project: Project, name: str) -> None:
    client = Started(project, name)
    assert is_asked(client.run(terminal=True))
    assert is_asked(client.run("-i", "fix the bug", terminal=True))
    for words in (("-p", "x"), ("--prompt=x",), ("-yp", "x")):
        assert not is_asked(client.run(*words, terminal=True)), words
    assert not is_asked(client.run())
    assert not is_asked(client.run(env=ATTENDED)), "what Claude Code says holds for Claude Code"
    assert not is_asked(client.run(terminal=True, script=client.within("claude", CLEANED)))


def test_codex_at_a_terminal_is_attended_and_cannot_ask(project: Project) -> None:
    codex = Started(project, "codex")
    assert "this agent's program cannot ask the user" in codex.run(terminal=True)
    for words in (("exec", "x"), ("review",)):
        assert "no person attends this session" in codex.run(*words, terminal=True)
    assert "no person attends this session" in codex.run()


def test_an_agents_line_cannot_make_the_next_one_attended(project: Project) -> None:
    project.starts_hooks = False
    for line in (
        "CLAUDE_CODE_SESSION_ATTENDED=1 claude -p x",
        "export CLAUDE_CODE_SESSION_ATTENDED=1; claude -p x",
        "env CLAUDE_CODE_SESSION_ATTENDED=1 claude -p x",
        """printf '[tool]\\nprofile = "attended"\\n' > fusewire.toml""",
        """printf '[tool.fusewire.tool]\\nprofile = "attended"\\n' >> pyproject.toml""",
        """echo '{"env": {"CLAUDE_CODE_SESSION_ATTENDED": "1"}}' > .claude/settings.json""",
        """echo '{"env": {"CLAUDE_CODE_SESSION_ATTENDED": "1"}}' > ~/.claude/settings.json""",
        "mkdir -p ~/.config/fusewire && echo x > ~/.config/fusewire/fusewire.toml",
    ):
        assert project.hook(project.bash(line)).returncode == 2, line
    for path in ("fusewire.toml", ".claude/settings.local.json", "~/.claude/settings.json"):
        given = {"file_path": str(Path(project.root, Path(path).expanduser())), "content": '{"env": {}}'}
        assert project.hook(project.bash("", tool_name="Write", tool_input=given), env=ATTENDED).returncode == 2, path
    for line in ("echo $CLAUDE_CODE_SESSION_ATTENDED", "CI=1 npm test", "grep -rn SESSION_ATTENDED docs"):
        assert project.hook(project.bash(line)).returncode == 0, line
