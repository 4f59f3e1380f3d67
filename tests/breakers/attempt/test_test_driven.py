"""docs/test-driven.md, typed line by line: real git, real pytest, the real program; it prints what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers import ROOT

PAGE = ROOT / "docs" / "test-driven.md"


@dataclass
class Typed:
    """One command with the lines of its here-document, and what is printed after it."""

    command: str
    code: int
    expected: list[str] = field(default_factory=list)


def typed(text: str) -> list[Typed]:
    """The commands of every console block."""
    found: list[Typed] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                command, _, note = line[2:].partition("    # exit ")
                found.append(Typed(command, int(note or 0)))
            elif line.startswith(">"):
                found[-1].command += "\n" + line[2:]
            else:
                found[-1].expected.append(line)
    return found


def pattern(expected: list[str]) -> str:
    """What must be printed: `...` alone is any number of lines, within a line any text."""
    text = ""
    for line in expected:
        text += "(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
    return text


def test_every_command_of_the_page_does_and_prints_what_stands_there(tmp_path: Path) -> None:
    """The slice goes through all four phases, grinds, trips, reports, is retried from its checkpoint, and passes."""
    folder = tmp_path / "project"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    commands = typed(PAGE.read_text())
    assert len(commands) > 30
    for one in commands:
        done = subprocess.run(
            ["bash", "-c", one.command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == one.code, f"{one.command}\n{done.stdout}"
        assert re.fullmatch(pattern(one.expected), done.stdout), f"{one.command}\n{done.stdout}"
    assert (folder / "users" / "registry.py").read_text().count("email_already_exists") == 1


def test_the_page_goes_through_all_four_phases_and_every_kind_of_command() -> None:
    """Whoever shortens the example notices what is lost."""
    text = " ".join(one.command for one in typed(PAGE.read_text()))
    for phase in ("RED", "GREEN", "REFACTOR", "DOCUMENT"):
        assert f"phase begin {phase}" in text
        assert f"phase end {phase}" in text
    for act in (
        "attempt start",
        "attempt run",
        "attempt report",
        "attempt retry",
        "scope check",
        "phase resolve modify",
    ):
        assert act in text
