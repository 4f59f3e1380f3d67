"""Two thousand flipped bytes and cut files: no traceback, nothing that was open or halted is free, everything heals.

Each damage is done to a copy of one project that has an open circuit and a halted session, and the program is asked as
a hook and as a person would ask it, in this process; every hundredth time as processes of its own.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusewire.cli import app
from fusewire.engine.breaker import Breaker
from fusewire.guard.calls import folder_of
from fusewire.views.warnings import warnings
from tests.helpers.project import Project
from tests.helpers.session_hook import Session

#: damages in all, in so many tests
DAMAGES, PARTS = 2000, 10

#: exit codes that docs/cli.md has for the commands below
CODES = {0, 1, 3}

DAMAGED = (
    ".fusewire/state.db",
    ".fusewire/state.db",
    ".fusewire/state.db-wal",
    ".fusewire/audit.jsonl",
    "docs/constraints/.circuit-state.json",
    ".fusewire/rules.*.bin",
    "manifest.bin",
    ".fusewire/incidents.jsonl",
)


@pytest.fixture(scope="module")
def wounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with an open constraint, a halted session, and a write-ahead log that is not empty."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(home))
        project = Project(tmp_path_factory.mktemp("wounded") / "project")
        (project.root / ".git").mkdir(parents=True)
        project.constraint("rule", "match:\n  command: git push --force\ncircuit_breaker:\n  dedup_seconds: 0\n")
        (project.root / "AGENTS.md").write_text("rules\n")
        for number in range(5):
            assert project.run("record", "rule", "--action", f"number {number}").returncode == 0
        session = Session(project)
        while not session.fails("./deploy.sh")[0].halted:
            assert session.calls < 12
        yield project


def damage(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    kind = chance.choice(("flip", "flip", "flip", "byte", "cut", "zeros"))
    at = chance.randrange(len(content))
    if kind == "cut":
        del content[at:]
    elif kind == "zeros":
        content[at : at + 512] = bytes(len(content[at : at + 512]))
    else:
        for _ in range(chance.choice((1, 1, 1, 8))):
            content[at] = content[at] ^ (1 << chance.randrange(8)) if kind == "flip" else chance.randrange(256)
            at = chance.randrange(len(content))
    path.write_bytes(content)
    return f"{kind} at {at} of {path.name}"


def command(project: Project, *arguments: str) -> tuple[int, str]:
    """A command of a person in this process: what a traceback would be is an exception here."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        code = app.main([*arguments, "--project", str(project.root)])
    return code, errors.getvalue()


def probe(project: Project, what: str, chance: random.Random) -> None:
    session = Session(project)
    said, _ = session.before("Bash", {"command": "ls"})
    assert said.halted, what
    forbidden, _ = Session(project, id="another").before("Bash", {"command": "git push --force"})
    assert not forbidden.allowed, what
    for arguments in (("check", "rule"), chance.choice((("status",), ("history", "rule"), ("status", "--all")))):
        code, errors = command(project, *arguments)
        assert code in CODES, (what, arguments, errors)
        assert code == 3 or arguments[0] != "check", (what, errors)
    if project.starts_hooks:
        command(project, "doctor", "--acknowledge")
        code, errors = command(project, "doctor")
        assert code == 0, (what, errors)
    session.says("go on")
    assert session.bash("ls")[0].allowed, what
    assert command(project, "reset", "rule", "--reason", "seen")[0] == 0, what
    assert command(project, "check", "rule")[0] == 0, what
    with Breaker.open(project=project.root) as breaker:
        with breaker.store.transact() as transaction:
            transaction.acknowledge()
        said = [*breaker.verify(), *warnings(breaker)]
        # A name that was flipped in the trail is an open circuit of no constraint: said, with the command that ends it.
        assert [one for one in said if "end it: fusewire archive" not in one] == [], what


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_is_damaged_heals_and_lifts_nothing(
    wounded: Project, tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(f"byte flips {part}")
    for number in range(DAMAGES // PARTS):
        root = tmp_path / "project"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(wounded.root, root)
        project = Project(root, starts_hooks=number % 100 == 50)
        pattern = chance.choice(DAMAGED)
        place = Path(folder_of(str(root), make=True)) if pattern == "manifest.bin" else root
        paths = [path for path in sorted(place.glob(pattern)) if path.stat().st_size]
        what = damage(paths[0], chance) if paths else f"nothing at {pattern}"
        probe(project, f"part {part}, number {number}: {what}", chance)
