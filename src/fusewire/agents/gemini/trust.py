"""Check whether Gemini CLI trusts a folder. Where it does not, it runs no hooks, not even the user's own.

Where trust is undecided no agent works either: a person is asked first, and headless it ends. So that is no fault, but
something to know before the first start.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from fusewire.agents.install.client import Client
from fusewire.agents.install.files import settings_of
from fusewire.util.errors import FusewireError

_TRUSTED, _PARENT, _DISTRUSTED = "TRUST_FOLDER", "TRUST_PARENT", "DO_NOT_TRUST"
_LEVELS = (_TRUSTED, _PARENT, _DISTRUSTED)

#: Any folder in which it starts is trusted, or none is.
_ALL, _NONE = "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE"

_NO_HOOKS = "Gemini CLI runs no hooks at all in this folder, so nothing is guarded"


def trust_problems(client: Client, root: str) -> list[tuple[str, str]]:
    """Why no hook runs there, with what to do about it; nothing where it is trusted or undecided."""
    for name, value in ((_NONE, "true"), (_ALL, "false")):
        if os.environ.get(name) == value:
            return [(f"{_NO_HOOKS}: {name} is {value}", f"unset {name}")]
    if _is_open(client, root):
        return []
    file = _file(client, root)
    try:
        place, level = _rule(_rules(file), root)
    except (FusewireError, OSError) as error:
        return [(f"Gemini CLI does not start while its trusted folders cannot be read: {error}", f"mend {file}")]
    if level != _DISTRUSTED:
        return []
    do = f"start `gemini` in {root}, type /permissions trust (or change {place} in {file})"
    return [(f"{_NO_HOOKS}: {place} is {_DISTRUSTED}", do)]


def undecided(client: Client, root: str) -> list[str]:
    """What to know where trust in the folder is undecided."""
    if os.environ.get(_NONE) == "true" or os.environ.get(_ALL) == "false":
        return []
    try:
        if _is_open(client, root) or _rule(_rules(_file(client, root)), root)[1]:
            return []
    except (FusewireError, OSError):
        return []
    return [
        f"nobody has told Gemini CLI yet whether it may trust {root}, and hooks run only in trusted folders:"
        f" start `gemini` there and trust it. Headless it ends at once (exit code 55) without"
        f" --skip-trust or {_ALL}=true"
    ]


def system_settings() -> str:
    """The administrator's settings, which win over all others."""
    is_mac = sys.platform == "darwin"
    folder = "/Library/Application Support/GeminiCli" if is_mac else "/etc/gemini-cli"
    return os.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or os.path.join(folder, "settings.json")


def _is_open(client: Client, root: str) -> bool:
    """Whether trust is not asked for at all; what a project says about that does not count."""
    if os.environ.get(_ALL) == "true":
        return True
    said = None
    for path in (client.places(root)["user"].path, system_settings()):
        try:
            value: Any = settings_of(path)
        except (FusewireError, OSError):
            continue
        for key in ("security", "folderTrust", "enabled"):
            value = value.get(key) if isinstance(value, dict) else None
        said = value if isinstance(value, bool) else said
    return said is False


def _file(client: Client, root: str) -> str:
    folder = os.path.dirname(client.places(root)["user"].path)
    return os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or os.path.join(folder, "trustedFolders.json")


def _rules(file: str) -> dict[str, str]:
    rules = settings_of(file)
    for place, level in (rules or {}).items():
        if level not in _LEVELS:
            raise FusewireError(f"{file}: {place} is {level!r}; allowed: {', '.join(_LEVELS)}")
    return rules or {}


def _rule(rules: dict[str, str], root: str) -> tuple[str, str]:
    """The folder whose rule holds for this one, and the rule: of all that reach down to it, the longest name wins."""
    real = os.path.realpath(root)
    best = "", ""
    for place, level in rules.items():
        place = os.path.abspath(place)
        top = os.path.realpath(os.path.dirname(place) if level == _PARENT else place)
        if len(place) > len(best[0]) and os.path.commonpath((real, top)) == top:
            best = place, level
    return best
