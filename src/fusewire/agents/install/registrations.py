"""Find where our hook is registered with an agent: its settings files, and the plugin."""

from __future__ import annotations

import os
from collections.abc import Iterator

from fusewire.agents.install.client import Client, Registration
from fusewire.agents.install.command import parts_of
from fusewire.agents.install.files import settings_or_none
from fusewire.agents.install.merge import registered
from fusewire.agents.registry import CLIENTS


def registrations(client: Client, root: str) -> Iterator[Registration]:
    """Where we are registered. Files that cannot be read are passed over."""
    seen = set()
    for place in client.places(root).values():
        real = os.path.realpath(place.path)
        hooks = {} if real in seen else registered(settings_or_none(place.path), client)
        seen.add(real)
        if hooks:
            yield Registration(place.scope, place.path, hooks)
    yield from client.plugins(root)


def working_hooks(program: str, root: str) -> frozenset[str]:
    """The files that register a hook of ours, which is there, with the agent that a program is."""
    client = CLIENTS.get(os.path.basename(program))
    if client is None:
        return frozenset()
    found = {one.file: parts_of(one.gate(client), client.name) for one in registrations(client, root)}
    # what is not named by a full path is found on the PATH
    return frozenset(
        file for file, parts in found.items() if all(part[:1] != "/" or os.path.exists(part) for part in parts)
    )
