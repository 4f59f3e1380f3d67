"""Fixtures that every test may use: a project in a fresh folder, a person's environment, the program itself."""

from __future__ import annotations

import compileall
import contextlib
import importlib
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fusewire.agents.caller import AGENT_VARIABLES
from tests.helpers import ROOT, SOURCE, TESTS
from tests.helpers.project import Project

if TYPE_CHECKING:
    from tests.helpers.postgres import PostgresServer

#: Tests change a source and run it again within a second, and Python's caches tell sources apart by whole seconds. Set
#: here and not in a fixture, so that whatever is started for several tests has it, too.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    """Compile the program once: where Python is told to write no bytecode, every process would do it anew."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(SOURCE, quiet=2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many a test waits for a clock, a lock or another process."""
    return (os.cpu_count() or 1) + 1


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the workers share what takes most of the time until the first test: what pytest makes of the asserts.

    Each begins with other files, and finds those of the others done.
    """
    sys.dont_write_bytecode = False
    worker = getattr(session.config, "workerinput", None)
    if worker and session.config.args == session.config.getini("testpaths"):
        files = sorted(TESTS.rglob("test_*.py"))
        names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
        first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for name in (*names[first:], *names[:first]):
            with contextlib.suppress(Exception):  # pytest itself will say it better
                importlib.import_module(name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") and os.geteuid():
        pytest.skip("only root can make files of another user")


def pytest_collection_finish() -> None:
    """What tests write and import is not to be kept (see above)."""
    sys.dont_write_bytecode = True


@pytest.fixture(scope="session", autouse=True)
def _no_plugins_in_the_pytest_of_a_test() -> None:
    """None is needed there, and loading them takes longer than all else. No sooner: pytest's own workers need them."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Counted here: pytest looks at all earlier folders before it makes another, and there are thousands."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _person_in_an_empty_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent's variables, no configuration of whoever runs the tests."""
    for name in (*AGENT_VARIABLES, "CLAUDE_PROJECT_DIR", "FUSEWIRE_DEPTH", "FUSEWIRE_RUN", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))


@pytest.fixture(scope="session")
def _repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: it is copied in a fraction of the time, two thousand times."""
    home = tmp_path_factory.mktemp("repository")
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    subprocess.run(["git", "init", "-q", "--template=", str(home / "empty")], env=environment, check=True)
    return home / "empty"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    from tests.helpers.postgres import PostgresServer

    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def project(tmp_path: Path, _repository: Path) -> Project:
    return Project(shutil.copytree(_repository, tmp_path / "project"))
