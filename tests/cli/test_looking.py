"""Commands that look change nothing: what time or an edited file has made due is done by those that change."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from tests.helpers.project import Project

ID = "git-safety"
LOOKING = f"""
    status
    status --all
    status --json
    status --session
    status loop
    history {ID}
    export
    doctor
    notify status
    phase status
    memory
    spend
    watch --once
    statusline"""


def kept(root: Path) -> tuple[list[str], dict[str, bytes]]:
    """Every row of the database, and every file beside it that people keep."""
    with sqlite3.connect(root / ".fusewire/state.db") as connection:
        rows = list(connection.iterdump())
    files = [*(root / "docs").rglob("*"), *(root / ".fusewire").glob("audit*")]
    return rows, {str(path): path.read_bytes() for path in files if path.is_file()}


def test_commands_that_look_write_nothing_not_even_what_is_due(project: Project) -> None:
    project.constraint(ID, "circuit_breaker: {violation_threshold: 1}\n")
    project.run("record", ID, "--action", "x")
    project.constraint(ID, "status: retired\ncircuit_breaker: {violation_threshold: 1}\n")
    before = kept(project.root)
    for line in LOOKING.split("\n")[1:]:
        result = project.run(*line.split())
        assert "Archived" not in result.stderr, line
        assert kept(project.root) == before, line
    assert "OPEN (0)" in project.run("status", "--all").stdout  # a retired constraint stops nothing


def test_a_command_that_changes_circuits_archives_those_of_retired_constraints(project: Project) -> None:
    project.constraint(ID)
    project.constraint("other")
    project.run("record", ID, "--action", "x")
    project.constraint(ID, "status: retired\n")
    result = project.run("record", "other", "--action", "y")
    assert f"Archived the circuit of {ID}: its constraint is retired." in result.stderr
    archive = json.loads((project.root / "docs/constraints/.circuit-state-archive.json").read_text())
    assert archive[ID]["total_violations"] == 1
