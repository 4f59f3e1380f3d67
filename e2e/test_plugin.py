"""The plugin for Claude Code that lies at the root of this repository, by the client's own word and at work."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.bench import FILES, Bench
from harness.calls import shell
from harness.clients import PATIENCE
from harness.script import do

REPOSITORY = Path(__file__).parents[1]

#: What the plugin is made of; the rest of the repository is not looked at.
PARTS = (".claude-plugin", "hooks", "commands", "skills", "bin", "src", "README.md", "LICENSE")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A copy, as a person who installs it has one."""
    place = tmp_path / "plugin"
    for name in PARTS:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)
    return place


def ask(bench: Bench, *words: str) -> subprocess.CompletedProcess[str]:
    """The client's own program, without a model."""
    return subprocess.run(
        [bench.client.program, *words],
        cwd=bench.root,
        env=bench.client.environment(9),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.only("claude")
def test_the_validator_of_the_client_finds_nothing_wrong(bare: Bench, plugin: Path) -> None:
    for target in (plugin, plugin / ".claude-plugin" / "marketplace.json"):
        done = ask(bare, "plugin", "validate", str(target))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "error" not in done.stdout.lower(), done.stdout


@pytest.mark.only("claude")
def test_it_guards_without_anything_else(bare: Bench, plugin: Path) -> None:
    bare.client.arguments += ["--plugin-dir", str(plugin)]
    run = bare.run(do(shell("rm -rf specs")), do(shell("touch done.txt")))
    assert run.code == 0, run
    assert "BLOCKED guard." in run.told_at(1), run
    assert bare.text("specs/a.md") == FILES["specs/a.md"]
    assert bare.path("done.txt").exists(), run
    assert "living-with-fusewire" in run.shown, "the client lists its skill"
    assert "circuit-breaker" in run.shown, "and its commands"


@pytest.mark.only("claude")
def test_it_is_installed_from_its_marketplace_and_removed(bare: Bench, plugin: Path) -> None:
    for words in (("marketplace", "add", str(plugin)), ("install", "fusewire@fusewire")):
        done = ask(bare, "plugin", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    run = bare.run(do(shell("rm -rf specs")))
    assert "BLOCKED guard." in run.told_at(1), run
    done = ask(bare, "plugin", "uninstall", "fusewire@fusewire")
    assert done.returncode == 0, done.stdout + done.stderr
    run = bare.run(do(shell("rm -rf specs")))
    assert bare.text("specs/a.md") is None, run
