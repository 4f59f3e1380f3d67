"""Input that stands for more than it is, or is nested without end: one line within a second, and no traceback."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.project import Project

LAUGHS = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))
DEEP = (200, 900, 990, 100_000)


def in_a_line(done: subprocess.CompletedProcess[str], began: float) -> str:
    """The one warning beside the answer of a command; a second, and what a busy machine takes to start Python."""
    assert time.monotonic() - began < 10
    assert done.returncode in (0, 1, 3)
    assert "Traceback" not in done.stderr
    assert all(len(line) < 2000 for line in done.stderr.splitlines())
    return done.stderr


@pytest.mark.parametrize(
    "front",
    [
        f"l0: &l0 [lol, lol]\n{LAUGHS}\nmatch: *l29\n",
        f"l0: &l0 [lol, lol]\n{LAUGHS}\nmatch: {{<<: *l29}}\n",
        "circuit_breaker: &a\n  threshold: *a\n",
        *(f"match: {'[' * depth}\n" for depth in DEEP),
        *(f"match: {'[' * depth}{']' * depth}\n" for depth in DEEP),
        f"circuit_breaker:\n  threshold: {'9' * 50_000}\n",
        f"severity: 0x{'f' * 50_000}\n",
    ],
    ids=range(13),
)
def test_front_matter(project: Project, front: str) -> None:
    project.constraint("rule", front)
    began = time.monotonic()
    said = in_a_line(project.run("status"), began)
    assert "docs/constraints/rule.md" in said
    assert project.hook(project.bash("ls")).returncode == 0


def test_must_not_refuse_an_asterisk_that_is_no_alias(project: Project) -> None:
    project.constraint("rule", "match:\n  command: 'git push * --force'\n  tool: 'Bash*'\n")
    assert project.run("status").stderr == ""


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fusewire.toml", "a = {}\n"),
        ("fusewire.toml", "[tool]\nloops = {}\n"),
        ("pyproject.toml", "[tool.fusewire]\na = {}\n"),
        (".claude/memory/circuit_breaker_config.json", '{{"tool": {}}}'),
        ("docs/constraints/.circuit-state.json", '{{"rule": {}}}'),
        ("docs/constraints/.circuit-state.json", '{{"rule": {{"state": "OPEN", "violations": {}}}}}'),
    ],
)
def test_configuration_and_mirror(project: Project, name: str, text: str, depth: int) -> None:
    project.constraint("rule")
    path = project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format("[" * depth + "]" * depth))
    began = time.monotonic()
    assert Path(name).name in in_a_line(project.run("status"), began)
    in_a_line(project.run("check", "rule"), time.monotonic())
    assert project.hook(project.bash("ls")).returncode == 0


@pytest.mark.parametrize("number", ["9" * 10_000, "1e999", "-1e999", "1e-999"])
def test_huge_numbers(project: Project, number: str) -> None:
    project.constraint("rule")
    (project.root / "fusewire.toml").write_text(f"[constraint]\nviolation_threshold = {number}\n")
    began = time.monotonic()
    assert "fusewire.toml" in in_a_line(project.run("status"), began)


@pytest.mark.parametrize("depth", DEEP)
@pytest.mark.parametrize("where", ["tool_input", "tool_response"])
def test_hook_payloads(project: Project, depth: int, where: str) -> None:
    hook = "PreToolUse" if where == "tool_input" else "PostToolUse"
    payload = json.dumps(project.bash("ls", hook_event_name=hook, tool_name="mcp__x__y", **{where: {"a": "DEEP"}}))
    raw = payload.replace('"DEEP"', "[" * depth + "]" * depth).encode()
    began = time.monotonic()
    done = project.hook(None, raw=raw)
    assert time.monotonic() - began < 10
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1
