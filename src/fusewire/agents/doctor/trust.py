"""Hooks that are registered and yet do not run: agents want a person's word first, and say nothing while they wait."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any

from fusewire.agents.gemini.trust import distrusted
from fusewire.agents.install.clients import CODEX_END, CODEX_TRUST
from fusewire.agents.install.command import is_ours
from fusewire.agents.install.registrations import settings_of
from fusewire.util.errors import FusewireError

if TYPE_CHECKING:
    from fusewire.agents.install.clients import Client
    from fusewire.agents.install.registrations import Registration

#: Seconds that Codex gives a hook that names none.
_CODEX_DEFAULT = 600


def distrust(client: Client, registration: Registration, root: str) -> list[tuple[str, str]]:
    """Why the hooks of one file would not run, each with what to do about it."""
    folder = os.path.dirname(client.places(root)["user"].path)
    if client.name == "codex":
        return _codex(folder, registration, root)
    if client.name == "copilot" and registration.scope == "project":
        config = _settings(os.path.join(os.path.dirname(folder), "config.json"))
        trusted = [*_list(config, "trustedFolders"), *_list(config, "trusted_folders")]
        if not _is_below(root, trusted):
            what = "Copilot CLI runs the hooks of a project only in folders that are trusted, and this one is not"
            return [(what, f"start `copilot` in {root} and trust the folder, or: fusewire install copilot --user")]
    return distrusted(client, root) if client.name == "gemini" else []


def _codex(folder: str, registration: Registration, root: str) -> list[tuple[str, str]]:
    """Codex keeps a hash of every hook that a person has accepted, under the hook's file, event and place in it."""
    path = os.path.join(folder, "config.toml")
    try:
        with open(path, "rb") as file:
            config: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        config = {}
    except (OSError, ValueError) as error:
        return [(f"{path} cannot be read, so nobody knows whether Codex trusts the hooks: {error}", f"mend {path}")]
    if _table(config, "features").get("hooks") is False:
        return [(f"hooks are switched off in {path}: features.hooks is false", "take that line out")]
    found = []
    if registration.scope == "project":
        projects = _table(config, "projects")
        if not any(_table(projects, name).get("trust_level") == "trusted" for name in (root, os.path.realpath(root))):
            what = "Codex reads the hooks of a project only in folders that are trusted, and this one is not"
            found.append((what, f"start `codex` in {root} and trust the folder"))
    state = _table(_table(config, "hooks"), "state")
    words = sorted({word for key, digest in _hooks(registration.file) if (word := _state(state, key, digest))})
    if words:
        what = f"Codex does not run the hooks: they are {' and '.join(words)}"
        found.append((what, CODEX_TRUST))
    return found


def _state(state: dict[str, Any], keys: list[str], digest: str) -> str:
    entry: dict[str, Any] = next((state[key] for key in keys if isinstance(state.get(key), dict)), {})
    if entry.get("enabled") is False:
        return "switched off"
    if "trusted_hash" not in entry:
        return "not trusted"
    return "" if entry["trusted_hash"] == digest else "changed since you trusted them"


def _hooks(path: str) -> list[tuple[list[str], str]]:
    """Our hooks in a file: the names that Codex may know each by, and its hash."""
    found = []
    settings = settings_of(path)
    for event, groups in _table(settings, "hooks").items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if is_ours(handler, "codex"):
                    keys = [f"{file}:{name}:{at}:{index}" for file in (path, os.path.realpath(path))]
                    found.append((keys, _digest(name, group, handler)))
    return found


def _digest(event: str, group: dict[str, Any], handler: dict[str, Any]) -> str:
    given = handler.get("timeout")
    seconds = given if isinstance(given, int) and not isinstance(given, bool) else _CODEX_DEFAULT
    seconds = max(1, min(seconds, CODEX_END) if event in ("session_end", "interrupt") else seconds)
    hook = {"type": "command", "command": handler.get("command"), "timeout": seconds, "async": False}
    if isinstance(handler.get("statusMessage"), str):
        hook["statusMessage"] = handler["statusMessage"]
    told: dict[str, Any] = {"event_name": event, "hooks": [hook]}
    if isinstance(group.get("matcher"), str):
        told["matcher"] = group["matcher"]
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _settings(path: str) -> dict[str, Any]:
    try:
        settings = settings_of(path)
    except (FusewireError, OSError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _table(value: Any, key: str) -> dict[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _list(value: dict[str, Any], key: str) -> list[str]:
    inner = value.get(key)
    return [one for one in inner if isinstance(one, str)] if isinstance(inner, list) else []


def _is_below(root: str, folders: list[str]) -> bool:
    real = os.path.realpath(root)
    return any(real == one or real.startswith(one.rstrip("/") + "/") for one in map(os.path.realpath, folders))
