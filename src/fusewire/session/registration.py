"""Whether an agent's settings still call Fusewire: its program may ask before settings that have changed take effect.

What counts is known from the start of the session: how often each file of settings names our hook. A file that then
names it less often, or that switches all hooks off, is not taken over while the session runs.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusewire.rules import Rules
    from fusewire.stores import Store

#: More than any settings have.
_LARGEST = 4 * 1024 * 1024

#: How our hook is called: by its file, by the program's name, or as a plugin.
_CALLS = ("fusewire/hook.py", "fusewire hook ", '"fusewire@')


def settings_files(root: str, environment: Mapping[str, str]) -> list[str]:
    """Claude Code's files of settings that its hooks may stand in."""
    home = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    here = os.path.join(root, ".claude")
    names = (("settings.json", home), ("settings.json", here), ("settings.local.json", here))
    return [os.path.join(folder, name) for name, folder in names]


def note(root: str, environment: Mapping[str, str]) -> dict[str, int]:
    """How often each file calls us now; those that do not are left out."""
    counts = {os.path.realpath(path): _calls(_text(path)) for path in settings_files(root, environment)}
    return {path: count for path, count in counts.items() if count}


def switched_off(path: str, noted: Mapping[str, int]) -> str:
    """What a changed file would switch off, in words; empty if our hook stays."""
    text = _text(path)
    before = noted.get(os.path.realpath(path), 0)
    import json

    try:
        settings = json.loads(text.removeprefix("\ufeff") or "{}")
    except ValueError:
        settings = {}  # it may have comments; what is below sees whether our calls are still there
        if '"disableAllHooks"' in text:
            return "switch all hooks off"
    if isinstance(settings, dict):
        if settings.get("disableAllHooks") is True:
            return "switch all hooks off"
        plugins = settings.get("enabledPlugins")
        for name, value in plugins.items() if isinstance(plugins, dict) else ():
            if name.partition("@")[0] == "fusewire" and value is False:
                return "switch the plugin of Fusewire off"
    return "take Fusewire's hooks out" if _calls(text) < before else ""


def refusal(store: Store, rules: Rules, session: str | None, path: str) -> str:
    """Why a changed file is not taken over; empty if it may be."""
    from fusewire.session.memory import recalled, session_name

    what = switched_off(path, recalled(store, session_name(session or "none")).get("registered", {}))
    if not what:
        return ""
    return (
        f"BLOCKED fusewire.disarm: {path} would {what}, so it is not in force while this session runs.\n"
        "A person can do that: `fusewire uninstall claude`, then start a new session."
    )


def _calls(text: str) -> int:
    return sum(text.count(call) for call in _CALLS)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
