"""The hook's process stays small: what it imports on its way is on a list."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import SOURCE
from tests.helpers.project import Project

#: Slow to import: the hook's process pays for each of them on every tool call.
SLOW = {"json", "re", "typing", "dataclasses", "enum", "sqlite3", "click", "yaml", "tomllib", "pathlib", "logging"}

#: Everything that a call which touches no rule may import beyond what bare Python has. Adding to it costs every
#: tool call of every agent: measure first (`make bench`).
HOT_PATH = {
    "__future__",
    "_collections_abc",
    "_functools",
    "_json",
    "_sha1",
    "_sqlite3",
    "_stat",
    "fcntl",
    "gc",
    "genericpath",
    "os",
    "posixpath",
    "stat",
    "fusewire",
    "fusewire.agents",
    "fusewire.agents.claude",
    "fusewire.agents.claude.hooks",
    "fusewire.agents.protocol",
    "fusewire.breakers",
    "fusewire.breakers.constraint",
    "fusewire.breakers.constraint.detect",
    "fusewire.breakers.session",
    "fusewire.breakers.session.calls",
    "fusewire.breakers.session.opening",
    "fusewire.breakers.session.state",
    "fusewire.breakers.session.tool_calls",
    "fusewire.breakers.session.unit_of_work",
    "fusewire.config",
    "fusewire.config.rules",
    "fusewire.core",
    "fusewire.core.decision",
    "fusewire.core.events",
    "fusewire.gate",
    "fusewire.gate.context",
    "fusewire.gate.pipeline",
    "fusewire.gate.process",
    "fusewire.guard",
    "fusewire.guard.around_calls",
    "fusewire.guard.baseline",
    "fusewire.guard.calls",
    "fusewire.guard.known_agents",
    "fusewire.guard.plain",
    "fusewire.guard.shell",
    "fusewire.guard.shell.read_only",
    "fusewire.guard.shell.wrappers",
    "fusewire.scopes",
    "fusewire.scopes.orders",
    "fusewire.stores",
    "fusewire.stores.fast_sqlite",
    "fusewire.stores.migrations",
    "fusewire.stores.rows",
    "fusewire.stores.sqlite",
    "fusewire.stores.sqlite_transaction",
    "fusewire.util",
    "fusewire.util.errors",
    "fusewire.util.fast_json",
    "fusewire.util.files",
    "fusewire.util.globs",
    "fusewire.util.stdio",
}

#: What is loaded beside it to judge a tool that changes a file.
EDIT_PATH = {
    "fusewire.guard.policy",
    "fusewire.guard.protected",
    "fusewire.guard.shell.paths",
    "fusewire.guard.shell.values",
    "fusewire.guard.tampering",
    "fusewire.guard.tools",
}

#: What is loaded beside it to read a command that is not plain.
READ_PATH = {
    "fusewire.guard.check",
    "fusewire.guard.disk",
    "fusewire.guard.effects",
    "fusewire.guard.policy",
    "fusewire.guard.programs",
    "fusewire.guard.protected",
    "fusewire.guard.shell.argv",
    "fusewire.guard.shell.builtins",
    "fusewire.guard.shell.commands",
    "fusewire.guard.shell.expansion",
    "fusewire.guard.shell.flow",
    "fusewire.guard.shell.lexer",
    "fusewire.guard.shell.outputs",
    "fusewire.guard.shell.parser",
    "fusewire.guard.shell.paths",
    "fusewire.guard.shell.tree",
    "fusewire.guard.shell.values",
    "fusewire.guard.shell.walk",
    "fusewire.guard.shell.world",
    "fusewire.guard.tampering",
    "fusewire.util.quoting",
}


def modules_of(arguments: list[str], payload: object, root: Path) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", *arguments],
        input=json.dumps(payload).encode(),
        cwd=root,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(root)},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, b"")
    lines = result.stderr.decode().splitlines()
    assert all(line.startswith("import time:") for line in lines), result.stderr
    return {line.split("|")[2].strip() for line in lines[1:]}


@pytest.mark.parametrize("constraints", [0, 1, 20])
@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"command": "ls -la"}, HOT_PATH),
        ({"command": "pytest -q && git status"}, HOT_PATH),
        ({"file_path": "src/app.py"}, HOT_PATH | EDIT_PATH),
        ({"command": "echo 'a b' > out.txt"}, HOT_PATH | READ_PATH),
    ],
    ids=["look", "opaque", "edit", "read"],
)
def test_an_allowing_call_imports_only_what_is_on_the_list(
    project: Project, constraints: int, given: dict[str, str], allowed: set[str]
) -> None:
    """Without constraints, and with constraints that do not match: the same few modules, none of the slow ones."""
    for number in range(constraints):
        project.constraint(f"rule-{number}", "match:\n  - command: git push --force\n  - path: secrets/**\n")
    payload = project.bash("", tool_name="Bash" if "command" in given else "Edit", tool_input=given)
    assert project.hook(payload).returncode == 0  # compiles the rules, once
    bare = modules_of(["-c", "pass"], None, project.root)
    hot = modules_of([str(SOURCE / "hook.py"), "claude"], payload, project.root)
    assert not hot & SLOW
    assert hot - bare <= allowed, f"new on the hot path: {sorted(hot - bare - allowed)}"
    assert "fusewire.gate.process" in hot


def test_orders_that_concern_nobody_here_cost_no_import(project: Project) -> None:
    """After a resume the person's file says nothing; with a halt of others the hook asks which project this is."""
    payload = project.bash("ls -la")
    project.hook(payload)
    project.hook({**payload, "session_id": "another"})
    bare = modules_of(["-c", "pass"], None, project.root)
    project.run("halt", "--session", "another", "--reason", "x")
    for allowed in (HOT_PATH | {"fusewire.util.worktrees"}, HOT_PATH):
        hot = modules_of([str(SOURCE / "hook.py"), "claude"], payload, project.root)
        assert hot - bare <= allowed, f"new on the hot path: {sorted(hot - bare - allowed)}"
        assert project.run("resume", "--all").returncode == 0


def test_the_list_has_nothing_that_is_no_longer_imported(project: Project) -> None:
    """Whoever makes the hook lighter takes the module off the list, so that it cannot come back unseen."""
    project.constraint("rule", "match: {command: git push --force}\n")
    payload = project.bash("pytest")
    project.hook(payload)
    assert modules_of([str(SOURCE / "hook.py"), "claude"], payload, project.root) >= HOT_PATH


def test_importing_the_library_is_cheap() -> None:
    """`import fusewire` alone loads none of its modules; a public name loads what it needs."""
    script = "import sys, fusewire; print(sorted(m for m in sys.modules if m.startswith('fusewire')))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['fusewire']"
