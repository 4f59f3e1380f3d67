"""Configuration: settings in layers, policies, constraint files, compiled rules. Here: where the files are."""

from __future__ import annotations

import os

CONSTRAINTS_FOLDER = os.path.join("docs", "constraints")

#: The seed's own configuration of the breakers inside a session, read beside `fusewire.toml`.
SESSION_CONFIG = os.path.join(".claude", "memory", "circuit_breaker_config.json")


def user_config_path() -> str:
    """The user's own file; never a path in the project, where a user has no home or the variable is relative."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base if os.path.isabs(base) else "/nonexistent", "fusewire", "config.toml")


def user_state_folder() -> str:
    """Where state of the person lies that belongs to no project; a relative path if there is no home."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "fusewire")
