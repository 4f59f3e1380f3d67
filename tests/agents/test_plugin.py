"""The Claude Code plugin in the repository's root: its files agree with the installer, the program and each other."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import fusewire as package
from fusewire.agents.install.command import is_ours
from fusewire.agents.install.merge import InstallOptions
from fusewire.agents.registry import CLIENTS
from fusewire.cli.app import fusewire as program
from fusewire.gate.statusline import COLORS
from fusewire.guard.tampering import PERSON_ONLY
from tests.helpers import ROOT
from tests.helpers.project import Project

COMMANDS = sorted((ROOT / "commands").glob("*.md"))
SKILLS = sorted((ROOT / "skills").glob("*/SKILL.md"))

#: What Claude Code puts in place of the variable.
PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"

#: The constraint seed's usage, word for word.
USAGE = (
    "status [--all]",
    "status <constraint-id>",
    "check <constraint-id>",
    'record <constraint-id> --action "<action>"',
    "reset <constraint-id> [--reason <text>]",
    "history <constraint-id> [--days <n>]",
    "config <constraint-id>",
)


def read(name: str) -> Any:
    return json.loads((ROOT / name).read_text())


def parts(path: Path) -> tuple[dict[str, Any], str]:
    """Front matter and body."""
    _, front, body = path.read_text().split("---\n", 2)
    return yaml.safe_load(front), body


def handlers() -> dict[str, tuple[str | None, dict[str, Any]]]:
    """event -> its matcher and its one handler."""
    found = {}
    for event, groups in read("hooks/hooks.json")["hooks"].items():
        (group,) = groups
        (handler,) = group["hooks"]
        found[event] = (group.get("matcher"), handler)
    return found


# -- manifest and hooks -----------------------------------------------------------------------------------


def test_the_manifest_has_the_programs_version_and_the_marketplace_lists_it() -> None:
    manifest, market = read(".claude-plugin/plugin.json"), read(".claude-plugin/marketplace.json")
    assert (manifest["name"], manifest["version"]) == ("fusewire", package.__version__)
    (entry,) = market["plugins"]
    assert (entry["name"], entry["source"], entry["description"]) == ("fusewire", "./", manifest["description"])


def test_the_plugin_registers_what_the_installer_does() -> None:
    """The same events, the same matchers, the same time-out, and the installer knows the line as its own."""
    client = CLIENTS["claude"]
    assert {event: matcher for event, (matcher, _) in handlers().items()} == dict(client.events)
    line = [sys.executable, "-I", "-S", "/somewhere/fusewire/hook.py", "claude"]
    wanted = InstallOptions(client, line).entries()
    for event, (_, handler) in handlers().items():
        assert handler["timeout"] == wanted[event]["hooks"][0]["timeout"]
        assert is_ours(handler, "claude")
        assert handler["command"].endswith(f'; exec python3 -I -S "{PLUGIN_ROOT}/src/fusewire/hook.py" claude')


def on_path(*folders: Path | str) -> str:
    return os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"])


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """The plugin where Claude Code would put it, without what only this repository has."""
    place = tmp_path / "plugins" / "cache" / "fusewire"
    for name in (".claude-plugin", "bin", "commands", "hooks", "skills"):
        shutil.copytree(ROOT / name, place / name)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_the_registered_line_guards_wherever_the_plugin_lies(project: Project, elsewhere: Path) -> None:
    """Run as Claude Code runs it: nothing but Python, from the plugin's own folder."""
    (project.root / "CLAUDE.md").write_text("rules\n")
    _, handler = handlers()["PreToolUse"]
    line = handler["command"].replace(PLUGIN_ROOT, str(elsewhere))
    answers = {}
    for command in ("rm CLAUDE.md", "ls", "and without its hook.py"):
        if command[:3] == "and":
            (elsewhere / "src/fusewire/hook.py").unlink()
        answers[command] = subprocess.run(
            ["sh", "-c", line],
            input=json.dumps(project.bash(command)).encode(),
            cwd=project.root,
            env={**os.environ, "PATH": on_path(Path(sys.executable).parent), "CLAUDE_PLUGIN_ROOT": str(elsewhere)},
            capture_output=True,
            check=False,
        )
    assert answers["rm CLAUDE.md"].returncode == 2
    assert b"BLOCKED guard.rm: it would delete CLAUDE.md" in answers["rm CLAUDE.md"].stderr
    assert (answers["ls"].returncode, answers["ls"].stdout, answers["ls"].stderr) == (0, b"", b"")
    gone = answers["and without its hook.py"]
    assert (gone.returncode, gone.stderr) == (1, b"fusewire: this hook is gone, nothing is guarded\n")


# -- the program that comes with it -----------------------------------------------------------------------


def run_program(place: Path, *arguments: str, path: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [place / "bin" / "fusewire", *arguments],
        cwd=cwd,
        env={"PATH": path, "HOME": os.environ["HOME"], "PYTHONDONTWRITEBYTECODE": "1", **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_plugins_program_runs_the_plugins_own_source(project: Project, elsewhere: Path) -> None:
    init = elsewhere / "src/fusewire/__init__.py"
    init.write_text(init.read_text().replace(package.__version__, "9.9.9"))
    path = on_path(Path(sys.executable).parent)
    done = run_program(elsewhere, "--version", path=path, cwd=project.root)
    assert (done.returncode, done.stdout) == (0, "fusewire, version 9.9.9\n"), done.stderr
    dashboard = run_program(elsewhere, "status", "--session", path=path, cwd=project.root)
    assert dashboard.stdout.startswith("🔒 CIRCUIT BREAKER STATUS")


def test_inside_an_agent_it_refuses_what_is_for_a_person(project: Project, elsewhere: Path) -> None:
    path = on_path(Path(sys.executable).parent)
    done = run_program(elsewhere, "reset", "x", path=path, cwd=project.root, CLAUDECODE="1")
    assert done.returncode == 3
    assert "is for a person at a terminal" in done.stderr


@pytest.mark.parametrize("python", ["without libraries", "too old", "missing"])
def test_where_it_cannot_run_it_says_how_to_install_it(
    project: Project, elsewhere: Path, tmp_path: Path, python: str
) -> None:
    """Pythons that lack something, made of one that does not."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("dirname", "sh"):
        (folder / name).symlink_to(shutil.which(name) or "")
    if python != "missing":
        stand_in = folder / "python3"
        old = "import sys; sys.version_info = (3, 10, 0); exec(sys.argv.pop(1))" if python == "too old" else ""
        inner = f"-c '{old}' \"$2\"" if old else '-I -S "$@"'
        stand_in.write_text(f"#!{shutil.which('sh')}\nexec '{sys.executable}' {inner}\n")
        stand_in.chmod(0o755)
    done = run_program(elsewhere, "status", path=str(folder), cwd=project.root)
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs Python 3.11 or newer with click, rich and PyYAML" in done.stderr
    assert f"pipx install '{elsewhere}'" in done.stderr


# -- commands and the skill -------------------------------------------------------------------------------


def test_the_commands_are_the_two_of_the_seeds() -> None:
    assert [path.stem for path in COMMANDS] == ["circuit-breaker", "circuit-status"]
    assert [path.parent.name for path in SKILLS] == ["living-with-fusewire"]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_is_for_a_person_to_type(path: Path) -> None:
    """Claude Code runs what is inline before any hook sees it: so the model must not be able to start it, and nothing
    that somebody typed may become part of a shell's line."""
    front, body = parts(path)
    assert front["description"]
    assert front["disable-model-invocation"] is True
    inline = re.findall(r"!`([^`]*)`", body)
    assert not [line for line in inline if "$" in line]
    tools = re.findall(r"Bash\(fusewire ([a-z]+):\*\)", front["allowed-tools"])
    assert tools
    assert front["allowed-tools"].count("Bash(") == len(tools)
    assert not PERSON_ONLY & set(tools)


def test_the_commands_usage_is_the_seeds() -> None:
    front, body = parts(ROOT / "commands/circuit-breaker.md")
    assert [usage for usage in USAGE if f"| `{usage}` |" not in body] == []
    for action in ("status", "check", "record", "reset", "history", "config"):
        assert action in front["argument-hint"]
    assert "$ARGUMENTS" in body
    refused = [line for line in body.splitlines() if line.startswith("- `reset` or `config`: do not run it")]
    assert len(refused) == 1


def test_the_dashboard_is_the_tool_seeds() -> None:
    _, body = parts(ROOT / "commands/circuit-status.md")
    assert "!`fusewire status --session 2>&1 || true`" in body


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_the_skill_is_short_and_says_when_it_is_wanted(path: Path) -> None:
    front, body = parts(path)
    assert front["name"] == path.parent.name
    assert 40 < len(front["description"]) < 1024
    assert len(path.read_text().splitlines()) <= 120
    for word in ("CLOSED", "OPEN", "HALF_OPEN", "BLOCKED", "HALTED", "WARNING", "attempt run", "scope justify"):
        assert word in body


def named(text: str) -> list[list[str]]:
    """Every `fusewire ...` in code, as words: in spans, in indented lines."""
    spans = re.findall(r"`(fusewire [^`]*)`", text)
    lines = [line.strip() for line in text.splitlines() if line.startswith("    fusewire ")]
    return [re.split(r"\s+#|\s--\s", one)[0].split()[1:] for one in spans + lines]


def test_the_page_names_every_state_of_the_status_line() -> None:
    _, _, table = (ROOT / "docs/plugin.md").read_text().partition("## The status line")
    states = re.findall(r"^\| `([A-Z_?]+)` \|", table.partition("\n## ")[0], re.MULTILINE)
    assert sorted(states) == sorted(COLORS)


@pytest.mark.parametrize(
    "path", [*COMMANDS, *SKILLS, ROOT / "docs/plugin.md"], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_every_command_that_is_named_exists_with_its_options(path: Path) -> None:
    text = path.read_text() if path.parent.name == "docs" else parts(path)[1]
    found = [words for words in named(text) if words[0].islower() and not words[0].startswith("$")]
    assert found or path.stem == "circuit-breaker"
    for words in found:
        command: click.Command | None = program
        context = click.Context(program)
        rest = list(words)
        while isinstance(command, click.Group):
            name = rest.pop(0)
            command = command.get_command(context, name)
            assert command is not None, words
        assert command is not None
        known = {option for parameter in command.params for option in parameter.opts}
        assert [word for word in rest if word.startswith("--") and word not in known] == [], words
