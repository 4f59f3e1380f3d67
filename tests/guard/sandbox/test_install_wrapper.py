"""The shell wrapper in a person's settings: put in, chained, found broken by `doctor`, taken out without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire.guard.sandbox.active import ALWAYS, OWN_PREFIX, PREFIX, UNATTENDED
from tests.helpers.project import Project
from tests.helpers.sandbox_inside import require_sandbox


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    require_sandbox()


def settings(text: str | None = None) -> Path:
    path = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    if text is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return path


def env() -> dict[str, str]:
    found: dict[str, str] = json.loads(settings().read_text()).get("env", {})
    return found


def test_it_is_on_for_sessions_without_a_person_and_offered_for_the_others(project: Project) -> None:
    """`--sandbox` is for all of them and stays so; `--no-sandbox` takes it out; a second call changes nothing."""
    unattended, always = (settings().parent / name for name in (UNATTENDED, ALWAYS))
    done = project.run("install", "claude")
    assert (done.returncode, env()) == (0, {PREFIX: str(unattended)})
    assert "install claude --sandbox" in done.stderr
    assert os.access(unattended, os.X_OK)
    assert "nothing was changed" in project.run("install", "claude").stderr
    for words in (["--sandbox"], []):
        assert project.run("install", "claude", *words).returncode == 0
        assert env() == {PREFIX: str(always)}
    assert "CLAUDE_CODE_SESSION_ATTENDED" not in always.read_text()
    assert project.run("install", "claude", "--no-sandbox").returncode == 0
    assert env() == {}
    assert project.json("install", "claude", "--dry-run")["shell_wrapper"] == str(unattended)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{}\n",
        '{"env": {}}',
        '{\n  "env": {"A": "b"}\n}\n',
        '{\n\t"env": {\n\t\t"CLAUDE_CODE_SHELL_PREFIX": "/opt/my\\u0020wrapper -v",\n\t\t"Z": ""\n\t},\n\t"last": 1\n}',
        '{"env": {"CLAUDE_CODE_SHELL_PREFIX": "/opt/own"}}',
    ],
    ids=["none", "empty", "empty env", "other env", "their own, first", "their own, alone"],
)
@pytest.mark.parametrize("options", [[], ["--sandbox"]], ids=["default", "always"])
def test_taken_out_everything_is_as_it_was(project: Project, text: str | None, options: list[str]) -> None:
    """To the byte; and a person's own wrapper keeps its value meanwhile."""
    home = Path(os.environ["HOME"])
    settings(text)
    before = sorted(home.rglob("*"))
    assert project.run("install", "claude", *options).returncode == 0
    if text and "SHELL_PREFIX" in text:
        assert env()[OWN_PREFIX] in ("/opt/my wrapper -v", "/opt/own")
    assert project.run("install", "claude", *options).returncode == 0
    done = project.run("uninstall", "claude")
    assert done.returncode == 0, done.stderr
    assert "restart running sessions of Claude Code" in done.stderr
    assert (settings().read_text() if settings().exists() else None) == text
    assert sorted(home.rglob("*")) == before


def test_what_a_person_adds_later_stays(project: Project) -> None:
    assert project.run("install", "claude").returncode == 0
    data = json.loads(settings().read_text())
    settings(json.dumps({**data, "env": {**data["env"], "MINE": "1"}}))
    assert project.run("uninstall", "claude").returncode == 0
    assert json.loads(settings().read_text()) == {"env": {"MINE": "1"}}


def test_it_is_never_put_where_others_may_get_it(project: Project) -> None:
    """A wrapper that is not there leaves an agent without a shell: shared files, linked ones, those in a repository."""
    for scope in ("--project", "--local"):
        done = project.run("install", "claude", scope, "--sandbox")
        assert (done.returncode, done.stdout) == (2, "")
        assert "allowed: --user" in done.stderr
        assert project.run("install", "claude", scope).returncode == 0
    for path in (project.root / ".claude").iterdir():
        assert PREFIX not in path.read_text()
    assert project.run("install", "codex", "--sandbox").returncode == 2
    dotfiles = Path(os.environ["HOME"]) / "dotfiles.json"
    dotfiles.write_text("{}\n")
    settings().parent.mkdir(exist_ok=True)
    settings().symlink_to(dotfiles)
    done = project.run("install", "claude")
    assert "seems to be shared" in done.stderr
    assert env() == {}
    assert project.run("install", "claude", "--sandbox").returncode == 0
    assert env()[PREFIX].endswith(ALWAYS)


def test_one_that_is_set_in_the_environment_is_not_replaced(project: Project) -> None:
    """The client would take that of the settings and forget it."""
    done = project.run("install", "claude", env={PREFIX: "/opt/own"})
    assert done.returncode == 0
    assert f"{PREFIX} is set in your environment" in done.stderr
    assert env() == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"env": []}', "env must be an object"), ('{"env": 1}', "env must be an object"), ("[", "line 1 column 2")],
)
def test_settings_that_cannot_take_it_are_left_alone(project: Project, text: str, words: str) -> None:
    settings(text)
    done = project.run("install", "claude")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert words in done.stderr
    assert [path.name for path in settings().parent.iterdir()] == ["settings.json"]
    assert settings().read_text() == text


def test_doctor_shows_the_rings_and_writes_through_the_shell(project: Project) -> None:
    def claude(*words: str) -> dict[str, object]:
        found: dict[str, object] = next(
            one for one in project.json("doctor", *words)["agents"] if one["name"] == "claude"
        )
        return found

    assert claude()["rings"] == []
    project.run("install", "claude")
    found = claude("--canary")
    assert found["rings"] == ["kernel (unattended)", "reader", "snapshot"]
    assert isinstance(found["canary"], dict)
    assert found["canary"]["intact"] is True
    shown = project.run("doctor", "--canary").stdout
    assert "kernel (unattended) + reader + snapshot" in shown
    assert "protected file intact" in shown
    (project.root / "fusewire.toml").write_text('sandbox = "off"\n')
    assert claude()["rings"] == ["reader", "snapshot"]
    assert "switched off" in project.run("doctor").stdout


def test_doctor_finds_a_wrapper_that_is_gone_changed_or_overruled(project: Project) -> None:
    project.run("install", "claude", "--sandbox")
    wrapper = settings().parent / ALWAYS
    text = wrapper.read_text()
    wrapper.write_text(text.replace("exec", "exec "))
    done = project.run("doctor")
    assert done.returncode == 1
    assert "another installation" in done.stdout
    wrapper.unlink()
    done = project.run("doctor")
    assert done.returncode == 1
    assert "it has no shell" in done.stdout
    assert "do: fusewire install claude --sandbox" in done.stdout
    assert project.run("install", "claude", "--sandbox").returncode == 0
    assert wrapper.read_text() == text
    folder = project.root / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"env": {PREFIX: "/opt/theirs"}}))
    assert "nothing is sandboxed here" in project.run("doctor").stdout


def test_a_canary_finds_a_wrapper_that_protects_nothing(project: Project) -> None:
    project.run("install", "claude", "--sandbox")
    wrapper = settings().parent / ALWAYS
    wrapper.write_text('#!/bin/sh\nexec bash -c "$1"\n')
    done = project.run("doctor", "--canary")
    assert done.returncode == 1
    assert "changes protected files through" in done.stdout


def test_a_machine_without_a_sandbox_is_told_so_once(project: Project) -> None:
    """No user namespace can be made inside one that allows none: install says why, registers hooks, and no wrapper."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    words = ["unshare", "-U", "--map-root-user", "sh", "-c", script, "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the limit of namespaces cannot be lowered here")
    done = subprocess.run(
        [*words, sys.executable, "-m", "fusewire", "install", "claude"],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("shell commands are not sandboxed") == 1
    assert "what would help" in done.stderr
    assert env() == {}
