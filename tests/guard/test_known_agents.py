"""The table of agents that the guard knows fits what is built on it."""

from __future__ import annotations

from fusewire.agents import AGENTS
from fusewire.guard.known_agents import AGENTS_BY_NAME, HOME_VARIABLES, agent_of_npm_name, agent_of_package
from fusewire.guard.sandbox.prepared import VARIABLE_ENDINGS


def test_every_agent_is_known_to_the_guard() -> None:
    assert set(AGENTS_BY_NAME) == set(AGENTS)


def test_a_remembered_plan_depends_on_every_home_variable() -> None:
    assert all(name.encode().endswith(VARIABLE_ENDINGS) for name in HOME_VARIABLES)


def test_agents_are_known_by_their_packages() -> None:
    assert agent_of_package("/usr/lib/node_modules/@openai/codex/bin/codex.js") == "codex"
    assert agent_of_npm_name("gemini-cli") == "gemini"
    assert agent_of_package("/usr/bin/python3") == agent_of_npm_name("python3") == agent_of_npm_name("") == ""


def test_a_home_folder_is_protected_where_it_is_and_where_it_usually_is() -> None:
    assert AGENTS_BY_NAME["codex"].home_folders("/x") == {"~/.codex", "/x"}
    assert AGENTS_BY_NAME["gemini"].home_folders("/x/") == {"~/.gemini", "/x/.gemini"}
    assert AGENTS_BY_NAME["gemini"].home_folders(None) == {"~/.gemini"}
