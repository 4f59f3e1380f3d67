"""Check whether an agent's settings still call Fusewire: its program may ask before changed settings take effect.

What counts is known from the start of the session: how each file of settings calls our hook, and whether it has
switched our plugin off. A file that then lacks one of these calls, has it elsewhere or otherwise (another matcher,
another time-out), cannot be read, or switches off what was on, is not taken over while the session runs.
"""

from __future__ import annotations

import os

from fusewire.util.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fusewire.stores import Store
    from fusewire.util.fast_json import JsonObject

#: More than any settings have.
_LARGEST = 4 * 1024 * 1024

#: How our hook is called: by its file, by the program's name, or over HTTP with a header of ours.
_CALLS = ("fusewire/hook.py", "fusewire hook ", '"X-Fusewire":')


def settings_files(root: str, environment: Mapping[str, str]) -> list[str]:
    """Claude Code's files of settings that its hooks may stand in; its project may lie below the one that we guard."""
    home = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    here = os.path.join(environment.get("CLAUDE_PROJECT_DIR") or root, ".claude")
    names = (("settings.json", home), ("settings.json", here), ("settings.local.json", here))
    return [os.path.join(folder, name) for name, folder in names]


def note(root: str, environment: Mapping[str, str]) -> dict[str, list[Any]]:
    """[how a file calls us now, how often it switches our plugin off]; files that do neither are left out."""
    texts = {os.path.realpath(path): _text(path) for path in settings_files(root, environment)}
    counts = {path: _counts(_settings(text)) for path, text in texts.items()}
    return {path: count for path, count in counts.items() if any(count)}


def switched_off(path: str, noted: Mapping[str, Any]) -> str:
    """What a changed file would switch off, in words; empty if our hook stays."""
    text = _text(path)
    settings = _settings(text)
    unread = settings is None and '"disableAllHooks"' in text  # it may have comments
    if unread or (settings or {}).get("disableAllHooks") is True:
        return "switch all hooks off"
    known = noted.get(os.path.realpath(path))
    before: list[Any] = known if isinstance(known, list) and len(known) == 2 else [[], 0]
    if settings is None:  # one that is not valid is left out as a whole, and our calls with it
        return "take Fusewire's hooks out" if before[0] or len(text) >= _LARGEST else ""
    if _overrules_wrapper(settings):
        return "put another shell wrapper in the place of Fusewire's"
    calls, offs = _counts(settings)
    if offs > before[1]:
        return "switch the plugin of Fusewire off"
    return "" if set(before[0]) <= set(calls) else "take Fusewire's hooks out, or change them"


def lost_file(noted: Mapping[str, Any]) -> str:
    """The first file of settings that called our hook when the session began, and does not now; empty without one.

    For those who look often, so the text is only searched: a call that was merely changed is not found.
    """
    for path, known in noted.items():
        before = known[0] if isinstance(known, list) and known and isinstance(known[0], list) else []
        if not before:
            continue
        text = _text(path)
        plugin = any(isinstance(call, str) and "@" in call and f'"{call}"' in text for call in before)
        if 'disableAllHooks":true' in "".join(text.split()) or not (plugin or any(call in text for call in _CALLS)):
            return str(path)
    return ""


def unguarded(store: Store, since: float) -> list[str]:
    """What to tell a person of sessions whose hooks were taken out of the settings while they run."""
    from fusewire.breakers.session.state import SessionMemory

    found = []
    for name, at in store.remembered("session/"):
        if name.count("/") > 1 or at < since:
            continue
        state = SessionMemory.recalled(store, name)
        path = lost_file(state.registered) if not state.ended else ""
        if path:
            session = name.partition("/")[2]
            found.append(
                f"NOTHING IS GUARDED in session {session}: {path} called Fusewire's hook when it began, and does not"
                " now; run `fusewire install claude`, then start a new session"
            )
    return found


def refusal(store: Store, session: str | None, path: str) -> str:
    """Why a changed file is not taken over; empty if it may be."""
    from fusewire.breakers.session.state import SessionMemory, session_name
    from fusewire.util.errors import StoreError

    try:
        noted = SessionMemory.recalled(store, session_name(session or "none")).registered
    except (StoreError, OSError):
        noted = {}  # what switches everything off is seen all the same
    what = switched_off(path, noted)
    if not what:
        return ""
    return (
        f"BLOCKED fusewire.disarm: {path} would {what}, so it is not in force while this session runs.\n"
        "A person can do that: `fusewire uninstall claude`, then start a new session."
    )


def _overrules_wrapper(settings: JsonObject) -> bool:
    """Whether settings name another shell wrapper than the one of ours that this session was started with."""
    from fusewire.guard.sandbox.active import ALWAYS, PREFIX, UNATTENDED

    env = settings.get("env")
    given = env.get(PREFIX) if isinstance(env, dict) else None
    names = [os.path.basename(path) for path in (os.environ.get(PREFIX), given) if isinstance(path, str)]
    return len(names) == 2 and names[0] in (ALWAYS, UNATTENDED) and names[1] not in (ALWAYS, UNATTENDED)


def _counts(settings: JsonObject | None) -> list[Any]:
    plugins = (settings or {}).get("enabledPlugins")
    named = plugins.items() if isinstance(plugins, dict) else ()
    ours = {name: value for name, value in named if name.partition("@")[0] == "fusewire"}
    offs = sum(value is False for value in ours.values())
    return [[*_calls(settings), *(name for name, value in ours.items() if value is not False)], offs]


def _calls(settings: JsonObject | None) -> list[str]:
    """Every call of our hook, with all that is said of it, made short."""
    from hashlib import sha256

    found = []
    hooks = (settings or {}).get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else ():
                text = dumps([event, group.get("matcher", ""), handler])
                if any(call in text for call in _CALLS):
                    found.append(sha256(text.encode("utf-8", "replace")).hexdigest()[:16])
    return found


def _settings(text: str) -> JsonObject | None:
    """None if it cannot be read."""
    import json

    try:
        settings = json.loads(text.removeprefix("\ufeff") or "{}")
    except (ValueError, RecursionError):
        return None
    return settings if isinstance(settings, dict) else None


def _text(path: str) -> str:
    from fusewire.util.files import read_regular

    try:
        return read_regular(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
