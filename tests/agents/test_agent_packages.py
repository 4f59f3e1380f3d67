"""Everything about one agent is in its package: what other files may know is its name."""

from __future__ import annotations

import pytest

from fusewire.agents import AGENTS, agent_module, agent_named
from fusewire.agents.registry import CLIENTS
from fusewire.guard.known_agents import AGENTS_BY_NAME
from tests.helpers import SOURCE

#: Files outside an agent's package that mention it, and why. Only ever shorten this list; the first three are those
#: that a new agent touches (docs/extending.md).
MENTIONS = {
    "agents/__init__.py": "the list of agents; and one runs the hooks that are registered for another",
    "guard/known_agents.py": "facts that packages below `agents` need",
    "config/policies/prices.toml": "names of models",
    "agents/claude/client.py": "its settings are read by another agent, too",
    "cli/replay.py": "names of agents in a help text",
    "cli/run.py": "examples in a help text",
    "hook.py": "imports nothing, and must know for whom each exit code but 0 refuses the call",
    "gate/process.py": "as hook.py",
    "gate/relay.py": "beginnings of the names of variables",
}


def mentions(name: str) -> set[str]:
    """Files of the source that mention an agent, outside its own package."""
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    found = {path.relative_to(SOURCE).as_posix() for path in files if name.encode() in path.read_bytes().lower()}
    return {path for path in found if not path.startswith(f"agents/{name}/")}


def test_only_lists_of_names_know_an_agent_outside_its_package() -> None:
    """Claude Code is left out: the seeds were written for it, and its name is in their file names and formats."""
    found = set().union(*(mentions(name) for name in AGENTS if name != "claude"))
    assert found <= MENTIONS.keys(), sorted(found - MENTIONS.keys())


@pytest.mark.parametrize("name", AGENTS)
def test_a_package_has_what_an_agent_needs(name: str) -> None:
    assert agent_module(name, "client").CLIENT is CLIENTS[name]
    assert CLIENTS[name].name == name
    assert agent_module(name, "usage").RECORDS
    assert CLIENTS[name].gate in agent_named(name).GATES
    assert agent_named(name).name == name


def test_the_guard_knows_every_agent() -> None:
    assert tuple(AGENTS_BY_NAME) == AGENTS
