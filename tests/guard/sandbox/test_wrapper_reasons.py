"""What an agent is told of a command that ring one has stopped, and where the reader leaves the decision to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fusewire.guard.sandbox.active import ALWAYS, UNATTENDED
from tests.helpers.project import Project
from tests.helpers.sandbox_inside import require_sandbox

READ_ONLY = "Read-only file system"


@pytest.fixture
def wrapped(project: Project) -> Project:
    """A project whose agent has the shell wrapper."""
    require_sandbox()
    for name in ("specs/a.md", "memory/notes.md", "src/app.py"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("text\n")
    return project


def variables(name: str = ALWAYS, **more: str) -> dict[str, str]:
    wrapper = Path(os.environ["HOME"]) / ".claude" / name
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o755)
    return {"CLAUDE_CODE_SHELL_PREFIX": str(wrapper), **more}


def after(project: Project, command: str, shown: str, env: dict[str, str] | None = None, cwd: str = "") -> str:
    """What the agent is told behind a call with this result."""
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1", "tool_response": shown}
    payload = {
        "session_id": "s",
        "cwd": str(project.root / cwd),
        "hook_event_name": "PostToolBatch",
        "tool_calls": [call],
    }
    done = project.hook(payload, env=variables() if env is None else env)
    assert done.returncode == 0, done
    text: str = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""
    return text


@pytest.mark.parametrize(
    "line",
    [
        f"rm: cannot remove 'specs/a.md': {READ_ONLY}",
        f"bash: line 1: specs/new.md: {READ_ONLY}",
        f"OSError: [Errno 30] {READ_ONLY}: 'specs/a.md'",
        "Error: EROFS: read-only file system, unlink 'specs/a.md'",
        f"error: unable to unlink old 'specs/a.md': {READ_ONLY}",
        "mv: cannot move 'specs' to 'old': Device or resource busy",
        f"OSError: [Errno 30] {READ_ONLY}: 'a.md'",
        f"sed: couldn't open temporary file specs/sedXyz: {READ_ONLY}",
    ],
)
def test_the_agent_is_told_which_file_it_was_and_what_to_do(wrapped: Project, line: str) -> None:
    told = after(wrapped, "make clean", f"Exit code 2\nrm -rf specs\n{line}\nmake: *** [clean] Error 1")
    assert told.startswith("WARN guard.kernel: specs"), told
    assert "edit tool" in told
    assert told.count("\n") == 1


def test_configuration_is_a_persons(wrapped: Project) -> None:
    told = after(wrapped, "sh x.sh", f"Exit code 1\nrm: cannot remove '.fusewire/state.db': {READ_ONLY}")
    assert told == (
        "WARN guard.kernel: .fusewire/state.db is protected: read-only for shell commands, and unchanged.\n"
        "Next: ask the user."
    )


def test_a_folder_that_the_shell_stands_in_is_known(wrapped: Project) -> None:
    assert "specs/a.md" in after(wrapped, "./sweep", f"Exit code 1\nrm: cannot remove 'a.md': {READ_ONLY}", cwd="specs")


def test_a_program_that_lacks_rights_is_explained_once(wrapped: Project) -> None:
    said = "Exit code 1\nsudo: effective uid is not 0, is sudo installed setuid root?"
    told = after(wrapped, "./deploy.sh", said)
    assert "sandbox.outside" in told
    assert after(wrapped, "sudo -n true", said) == "", "that one ran outside"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat build.log", f"rm: cannot remove 'specs/a.md': {READ_ONLY}"),
        ("./report.sh", f"the log says: {READ_ONLY}"),
        ("./report.sh", f"Exit code 1\nmount: /mnt/cd: {READ_ONLY}"),
        ("./report.sh", f"Exit code 1\ntouch: cannot touch 'src/b.py': {READ_ONLY}"),
        ("./report.sh", "sudo: effective uid is not 0"),
        ("./test.sh", "Exit code 1\n2 tests failed"),
    ],
)
def test_what_has_another_reason_is_not_explained(wrapped: Project, command: str, shown: str) -> None:
    """Words in a file, a disk that is read-only by itself, a call that did not fail."""
    assert after(wrapped, command, shown) == ""


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"CLAUDE_CODE_SHELL_PREFIX": "/usr/local/bin/their-own"},
        {"CLAUDE_CODE_SHELL_PREFIX": f"/nowhere/{ALWAYS}"},
        {"name": UNATTENDED, "CLAUDE_CODE_SESSION_ATTENDED": "1"},
    ],
    ids=["none", "theirs", "gone", "attended"],
)
def test_nothing_is_explained_and_nothing_left_to_the_kernel_where_ring_one_is_not_on(
    wrapped: Project, env: dict[str, str]
) -> None:
    env = variables(**env) if "name" in env else env
    assert after(wrapped, "make clean", f"Exit code 2\nrm: cannot remove 'specs/a.md': {READ_ONLY}", env) == ""
    assert wrapped.hook(wrapped.bash("curl -s x | tar xz"), env=env).returncode == 2


def test_where_ring_one_is_on_the_reader_refuses_only_what_is_certain(wrapped: Project) -> None:
    """And where the line runs outside of it, everything that it refuses otherwise."""
    for env in (variables(), variables(UNATTENDED, CLAUDE_CODE_SESSION_ATTENDED="0")):
        assert wrapped.hook(wrapped.bash("curl -s x | tar xz"), env=env).returncode == 0
        assert wrapped.hook(wrapped.bash("rm -rf specs"), env=env).returncode == 2
        assert wrapped.hook(wrapped.bash("sudo true; curl -s x | tar xz"), env=env).returncode == 2
    (wrapped.root / "fusewire.toml").write_text('sandbox = "off"\n')
    assert wrapped.hook(wrapped.bash("curl -s x | tar xz"), env=variables()).returncode == 2


def test_settings_that_put_another_wrapper_in_its_place_are_not_taken_over(wrapped: Project) -> None:
    """A file of the project would outrank the person's own; other variables may change."""
    file = wrapped.root / ".claude" / "settings.json"
    file.parent.mkdir()
    payload = {"session_id": "s", "cwd": str(wrapped.root), "hook_event_name": "ConfigChange", "file_path": str(file)}
    for env, refused in (
        ({"CLAUDE_CODE_SHELL_PREFIX": ""}, True),
        ({"CLAUDE_CODE_SHELL_PREFIX": "/x"}, True),
        ({"A": "b"}, False),
    ):
        file.write_text(json.dumps({"env": env}))
        assert (b"shell wrapper" in wrapped.hook(payload, env=variables()).stdout) is refused, env
    file.write_text(json.dumps({"env": {"CLAUDE_CODE_SHELL_PREFIX": "/x"}}))
    assert wrapped.hook(payload).stdout == b"", "where ours is not in force it is their own matter"
