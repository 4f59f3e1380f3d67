"""Everything about one agent is in its package: what other files may know is its name."""

from __future__ import annotations

import pytest

from fusewire.agents import AGENTS, agent_module, agent_modules, agent_named
from fusewire.agents.registry import CLIENTS
from fusewire.guard.known_agents import AGENTS_BY_NAME
from tests.helpers import SOURCE

#: Files outside an agent's package that mention it, and why. Only ever shorten this list; the first two are those
#: that a new agent touches (docs/extending.md).
MENTIONS = {
    "guard/known_agents.py": "the list of agents, and facts about them that packages below `agents` need",
    "config/policies/prices.toml": "names of models",
    "agents/claude/client.py": "its settings are read by another agent, too",
    "agents/claude/hooks.py": "its hooks are run by another agent, too",
    "cli/replay.py": "names of agents in a help text",
    "cli/run.py": "examples in a help text",
    "hook.py": "imports nothing, and must know for whom each exit code but 0 refuses the call",
    "gate/process.py": "as hook.py",
    "cli/wait.py": "whose sessions record when a usage limit resets",
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
    assert CLIENTS[name].gate in CLIENTS[name].events
    assert agent_named(name).name == name


def test_every_agent_with_transcripts_reports_its_usage() -> None:
    assert all(module.RECORDS for module in agent_modules("usage"))


def test_every_package_is_known_to_the_guard() -> None:
    """The list of agents is derived from what the guard knows."""
    packages = {path.parent.name for path in (SOURCE / "agents").glob("*/hooks.py")}
    assert packages == set(AGENTS) == set(AGENTS_BY_NAME)
