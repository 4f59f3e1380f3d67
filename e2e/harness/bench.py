"""A project that an agent works in, the agent, and Fusewire as a person uses it there."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.clients import PATIENCE, Client, Run
from harness.script import Reply, Script, script

#: What every project begins with. The first four are protected by Fusewire's own defaults.
FILES = {
    "specs/a.md": "# A\nThe first rule.\n",
    "specs/b.md": "# B\nThe second rule.\n",
    "AGENTS.md": "# For agents\nBe kind.\n",
    "memory/notes.md": "# Notes\nKeep them.\n",
    "src/app.py": "def answer():\n    return 41\n",
    "tests/test_app.py": "import sys\nsys.path.insert(0, 'src')\nfrom app import answer\nassert answer() == 42\n",
    "notes.txt": "one\ntwo\nthree\n",
}


@dataclass
class Bench:
    client: Client

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def root(self) -> Path:
        return self.client.project

    def path(self, name: str) -> Path:
        return self.root / name

    def text(self, name: str) -> str | None:
        """What a file of the project says now; None if it is gone."""
        path = self.root / name
        return path.read_text() if path.is_file() else None

    def put(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=Person", "-c", "user.email=person@example.org"]
        done = subprocess.run(["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout

    def fusewire(
        self, *words: str, check: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The program as a person runs it at a terminal, in the same home as the agent."""
        done = subprocess.run(
            [sys.executable, "-m", "fusewire", *words],
            cwd=self.root,
            env={"HOME": str(self.client.home), "PATH": self.client.path, "LANG": "C.UTF-8", **(env or {})},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert not check or done.returncode == 0, f"fusewire {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.fusewire(*words, "--json", check=False).stdout)

    def install(self) -> None:
        """As a person does it: the installer, and trust where the client asks for it."""
        self.fusewire("install", self.name, "--user")
        self.client.trust()

    def tripped(self) -> list[str]:
        """The circuits that are not closed, or have ever been open, also those of sessions that have ended."""
        with closing(sqlite3.connect(self.root / ".fusewire" / "state.db")) as connection:
            circuits = connection.execute("SELECT id, phase, state FROM circuits").fetchall()
        return sorted(name for name, phase, state in circuits if phase != "closed" or json.loads(state).get("trips"))

    def heard(self) -> int:
        """How many replies of the model the hook knows of in the last session: that nobody was disturbed proves
        nothing where nobody listened."""
        turn: int = self.json("status", "--session")["turn"]
        return turn

    def run(self, *replies: Reply, prompt: str = "Do what the script says.", **how: Any) -> Run:
        return self.play(script(*replies), prompt=prompt, **how)

    def play(self, script: Script, prompt: str = "Do what the script says.", **how: Any) -> Run:
        return self.client.run(script, prompt, **how)


def make_project(root: Path) -> None:
    root.mkdir()
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    who = ["-c", "user.name=Person", "-c", "user.email=person@example.org"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "Begin"], cwd=root, check=True)
