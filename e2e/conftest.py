"""Benches: a project, a client in a throw-away home, with Fusewire's hook (`bench`) and without it (`bare`).

Every test is written once and run on every client that is installed. Where a client cannot do something, the test says
what it does instead; nothing is skipped.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from harness.bench import Bench, make_project
from harness.clients import CLIENTS, client_of, installed

#: Python's caches are by whole seconds; see the conftest of tests/.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--clients", default="", help="names of clients, with commas; all that are installed otherwise")


def _clients(config: pytest.Config) -> list[str]:
    wanted = [name for name in config.getoption("--clients").split(",") if name] or list(CLIENTS)
    return [name for name in wanted if installed(name)]


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = ["clients: " + ", ".join(f"{name} {CLIENTS[name]['version']}" for name in _clients(config))]
    if set(os.listdir("/sys/class/net")) - {"lo"}:
        lines.append("network: not cut off (no network namespace); clients are pointed at loopback all the same")
    return lines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "agent" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("only")
        names = [name for name in _clients(metafunc.config) if not marker or name in marker.args]
        metafunc.parametrize("agent", names)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only(*names): about something that only these clients have")


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bare(agent: str, tmp_path: Path) -> Bench:
    """Without our hook: what the client does by itself."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    make_project(tmp_path / "project")
    return Bench(client_of(agent, home, tmp_path / "project"))


@pytest.fixture
def bench(bare: Bench) -> Bench:
    """With our hook, installed as a person does it."""
    bare.install()
    return bare


@pytest.fixture(scope="session", autouse=True)
def _loopback() -> None:
    """In a network of its own, loopback must be there."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
        pass
