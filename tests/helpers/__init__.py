"""What the tests share: the program, projects, sessions, servers, fake agents; and where their data is."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DATA = TESTS / "data"
SOURCE = ROOT / "src" / "fusewire"
