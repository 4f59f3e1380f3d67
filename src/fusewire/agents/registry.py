"""List the agents' records, one from each package. Not for the hook, which loads one agent by name."""

from __future__ import annotations

from fusewire.agents import AGENTS, agent_module
from fusewire.agents.install.client import Client
from fusewire.util.errors import FusewireError

#: name -> how it is installed and checked
CLIENTS: dict[str, Client] = {name: agent_module(name, "client").CLIENT for name in AGENTS}


def client_named(name: str) -> Client:
    """The client of an agent; FusewireError with the names of all if there is none."""
    if name not in CLIENTS:
        raise FusewireError(f"no agent named {name!r}; allowed: {', '.join(CLIENTS)}")
    return CLIENTS[name]
