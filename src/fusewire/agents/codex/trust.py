"""Check whether Codex runs our hooks: a person must trust them first, and it says nothing while it waits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib

from fusewire.agents.install.client import Client, Registration
from fusewire.agents.install.command import is_ours
from fusewire.agents.install.files import settings_of, table_in
from fusewire.util.fast_json import JsonObject

_TRUST = "start `codex` and trust the hooks of fusewire that it shows (or type /hooks there)"

#: Seconds that a hook has which names none, and the most at the end of a session.
_DEFAULT_SECONDS = 600
SESSION_END_SECONDS = 3


def trust_problems(client: Client, registration: Registration, root: str) -> list[tuple[str, str]]:
    """Why the hooks of one file would not run, each with what to do about it.

    Codex keeps a hash of every hook that a person has accepted, under the hook's file, event and place in it.
    """
    path = os.path.join(os.path.dirname(client.places(root)["user"].path), "config.toml")
    try:
        with open(path, "rb") as file:
            config: JsonObject = tomllib.load(file)
    except FileNotFoundError:
        config = {}
    except (OSError, ValueError) as error:
        what = f"{path} cannot be read, so it is not known whether Codex trusts the hooks: {error}"
        return [(what, f"mend {path}")]
    if table_in(config, "features").get("hooks") is False:
        return [(f"hooks are switched off in {path}: features.hooks is false", "take that line out")]
    found = []
    if registration.scope == "project":
        projects = table_in(config, "projects")
        if not any(table_in(projects, name).get("trust_level") == "trusted" for name in (root, os.path.realpath(root))):
            what = "Codex reads the hooks of a project only in folders that are trusted, and this one is not"
            found.append((what, f"start `codex` in {root} and trust the folder"))
    state = table_in(table_in(config, "hooks"), "state")
    words = sorted({word for key, digest in _hooks(registration.file) if (word := _state(state, key, digest))})
    if words:
        found.append((f"Codex does not run the hooks: they are {' and '.join(words)}", _TRUST))
    return found


def _state(state: JsonObject, keys: list[str], digest: str) -> str:
    entry: JsonObject = next((state[key] for key in keys if isinstance(state.get(key), dict)), {})
    if entry.get("enabled") is False:
        return "switched off"
    if "trusted_hash" not in entry:
        return "not trusted"
    return "" if entry["trusted_hash"] == digest else "changed since you trusted them"


def _hooks(path: str) -> list[tuple[list[str], str]]:
    """Our hooks in a file: the names that Codex may know each by, and its hash."""
    found = []
    settings = settings_of(path)
    for event, groups in table_in(settings, "hooks").items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if is_ours(handler, "codex"):
                    keys = [f"{file}:{name}:{at}:{index}" for file in (path, os.path.realpath(path))]
                    found.append((keys, _digest(name, group, handler)))
    return found


def _digest(event: str, group: JsonObject, handler: JsonObject) -> str:
    given = handler.get("timeout")
    seconds = given if isinstance(given, int) and not isinstance(given, bool) else _DEFAULT_SECONDS
    seconds = max(1, min(seconds, SESSION_END_SECONDS) if event in ("session_end", "interrupt") else seconds)
    hook = {"type": "command", "command": handler.get("command"), "timeout": seconds, "async": False}
    if isinstance(handler.get("statusMessage"), str):
        hook["statusMessage"] = handler["statusMessage"]
    hashed: JsonObject = {"event_name": event, "hooks": [hook]}
    if isinstance(group.get("matcher"), str):
        hashed["matcher"] = group["matcher"]
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
