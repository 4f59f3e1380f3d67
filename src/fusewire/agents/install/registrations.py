"""Where an agent has our hook registered already: its settings files, and the plugin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fusewire.agents.install.clients import CLIENTS
from fusewire.agents.install.command import parts_of
from fusewire.agents.install.files import SettingsFile, split_mark
from fusewire.agents.install.http import http_of
from fusewire.agents.install.merge import parsed, registered
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.agents.install.clients import Client
    from fusewire.agents.install.http import Http

PLUGIN = "fusewire"

#: In a plugin's hooks this stands for its folder.
_PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"


@dataclass(frozen=True, slots=True)
class Registration:
    """One file with hooks of ours: event -> those hooks. A `plugin` is the agent's own matter to install and remove."""

    scope: str
    file: str
    hooks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def gate(self, client: Client) -> dict[str, Any] | None:
        """The hook that can refuse a call."""
        return next(iter(self.hooks.get(client.gate, ())), None)

    def http(self, client: Client) -> Http | None:
        """Where its reports go, if not to processes."""
        return http_of(self.hooks, client.name)


def adds_calls(client: Client, one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether a second registration is a second process for every call. Gemini CLI runs the same line only once."""
    if client.name != "gemini" or one is None or other is None:
        return True
    return any(one.get(key) != other.get(key) for key in ("name", "command"))


def settings_of(path: str) -> Any:
    """A settings file as a value; None if there is none; FusewireError if it cannot be read."""
    text = SettingsFile(path).read()
    body = split_mark(text or "")[1]
    return parsed(body, path).value if body.strip() else None


def registrations(client: Client, root: str) -> Iterator[Registration]:
    """Where we are registered. Files that cannot be read are passed over."""
    seen = set()
    for place in client.places(root).values():
        real = os.path.realpath(place.path)
        hooks = {} if real in seen else registered(_or_none(place.path), client)
        seen.add(real)
        if hooks:
            yield Registration(place.scope, place.path, hooks)
    if client.name == "claude":
        yield from _plugins(client, root)


def working_hooks(program: str, root: str) -> frozenset[str]:
    """The files that register a hook of ours, which is there, with the agent that a program is."""
    client = next((one for one in CLIENTS.values() if one.program == os.path.basename(program)), None)
    if client is None:
        return frozenset()
    found = {one.file: parts_of(one.gate(client), client.name) for one in registrations(client, root)}
    # what is not named by a full path is found on the PATH
    return frozenset(
        file for file, parts in found.items() if all(part[:1] != "/" or os.path.exists(part) for part in parts)
    )


def _or_none(path: str) -> Any:
    try:
        return settings_of(path)
    except (FusewireError, OSError):
        return None


def _plugins(client: Client, root: str) -> Iterator[Registration]:
    """Our plugin, where it is switched on for this project; whatever its hooks run is ours."""
    places = client.places(root)
    enabled: dict[str, Any] = {}
    for scope in ("user", "project", "local"):
        settings = _or_none(places[scope].path)
        plugins = settings.get("enabledPlugins") if isinstance(settings, dict) else None
        enabled |= plugins if isinstance(plugins, dict) else {}
    folder = os.path.join(os.path.dirname(places["user"].path), "plugins")
    known = _or_none(os.path.join(folder, "installed_plugins.json"))
    plugins = known.get("plugins") if isinstance(known, dict) else None
    for name, copies in plugins.items() if isinstance(plugins, dict) else ():
        if name.partition("@")[0] != PLUGIN or enabled.get(name) is not True or not isinstance(copies, list):
            continue
        for copy in copies:
            path = copy.get("installPath") if isinstance(copy, dict) else None
            file = os.path.join(path, "hooks", "hooks.json") if isinstance(path, str) else ""
            settings = _or_none(file) if file else None
            hooks = settings.get("hooks") if isinstance(settings, dict) else None
            if isinstance(path, str) and isinstance(hooks, dict):
                yield Registration("plugin", file, _of_plugin(hooks, path, client))
                break


def _of_plugin(hooks: dict[str, Any], path: str, client: Client) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for event, entries in hooks.items():
        for entry in entries if isinstance(entries, list) else ():
            handlers = [one for one in client.handlers(entry) if isinstance(one, dict)]
            found.setdefault(event, []).extend(_expanded(handler, path) for handler in handlers)
    return found


def _expanded(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return value.replace(_PLUGIN_ROOT, path)
    if isinstance(value, list):
        return [_expanded(one, path) for one in value]
    return {key: _expanded(one, path) for key, one in value.items()} if isinstance(value, dict) else value
