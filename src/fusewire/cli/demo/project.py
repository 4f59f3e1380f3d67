"""The demo's project: a small library to be written, with a plan, a specification and tests that wait for it."""

from __future__ import annotations

from pathlib import Path

from fusewire.util.git import author, git
from fusewire.util.gitdir import make_git_dir

_AUTHOR = author("demo agent", "agent@example.invalid")

FILES = {
    "PROMPT.md": "Work on the next open box of IMPLEMENTATION_PLAN.md. The specification is in specs/.\n",
    "IMPLEMENTATION_PLAN.md": "# Plan\n\n- [ ] add\n- [ ] subtract\n- [ ] divide\n- [ ] power\n",
    "specs/calculator.md": "# Calculator\n\nadd, subtract, divide, power. Dividing by zero gives None.\n",
    "calculator.py": '"""A calculator."""\n',
    "test_calculator.py": """\
import unittest

import calculator


class Calculator(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calculator.add(2, 3), 5)

    def test_subtract(self):
        self.assertEqual(calculator.subtract(5, 3), 2)

    def test_divide(self):
        self.assertIsNone(calculator.divide(1, 0))

    def test_power(self):
        self.assertEqual(calculator.power(2, 10), 1024)
""",
}


def make_project(folder: Path) -> None:
    """A repository with everything committed."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    make_git_dir(str(folder))
    commit(str(folder), "The task")


def commit(folder: str, message: str) -> None:
    """Commit everything in a project of the demo."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message, variables=_AUTHOR)
