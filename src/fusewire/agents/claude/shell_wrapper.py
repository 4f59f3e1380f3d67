"""The shell wrapper of Claude Code: the file that it starts for every shell command, and its place in the settings.

Claude Code starts MCP servers with the same variable, by its bare path: so the wrapper is one file without arguments.
It lies beside the settings that name it, because a wrapper that is gone would leave the agent without a shell, and it
is for `/bin/sh`, so that it works when Fusewire or its Python is gone.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from fusewire.agents.install.client import Client, SettingsPlace
from fusewire.agents.install.json_edit import put_in, take_out
from fusewire.agents.install.jsonc import JsonNode, position
from fusewire.guard.sandbox.active import ALWAYS, OWN_PREFIX, PREFIX, UNATTENDED
from fusewire.guard.sandbox.support import support
from fusewire.util.errors import FusewireError
from fusewire.util.quoting import quoted

_TEXT = """\
#!/bin/sh
# Written by `fusewire install claude`, removed by `fusewire uninstall claude`.
# Claude Code starts this for every shell command. Those of its Bash tool run with
# protected files read-only; hooks and MCP servers run as they are.
case $1 in
*" && pwd -P >|"*)
    shell=bash
    {when}[ -x {python} ] && [ -f {script} ] && exec {python} -I -S {script} "$1" ;;
*)
    shell=/bin/sh ;;
esac
own=${own}
if [ -n "$own" ]; then
    program=${{own% -*}}
    exec "$shell" -c "\\"\\$0\\"${{own#"$program"}} \\"\\$1\\"" "$program" "$1"
fi
exec "$shell" -c "$1"
"""

_UNLESS_ATTENDED = '[ "$CLAUDE_CODE_SESSION_ATTENDED" != 1 ] && '


def choose_wrapper(client: Client, place: SettingsPlace, settings: Any, wanted: bool | None) -> tuple[str, list[str]]:
    """The wrapper to register, if any, and what to tell the person; `wanted` is None where no option says so.

    It is never registered where others may get the settings: to them it would be a wrapper that is gone.
    """
    if wanted is False or not client.wraps_shell or place.scope != "user":
        return "", []
    target = os.path.realpath(place.path)
    named = registered_wrapper(settings)
    always = bool(wanted) or os.path.basename(named) == ALWAYS
    path = wrapper_path(target, always=always)
    refused = _why_not(place.path, path, unasked=wanted is None and not named)
    if refused:
        return "", [f"shell commands are not sandboxed: {refused}"]
    if always:
        return path, ["shell commands run with protected files read-only"]
    offer = "to have that while you attend, too: fusewire install claude --sandbox"
    return path, [f"shell commands of unattended sessions run with protected files read-only; {offer}"]


def _why_not(settings: str, wrapper: str, *, unasked: bool) -> str:
    """Why the wrapper is not registered; `unasked` if it would be on our own account."""
    found = support()
    if not found:
        return f"{found.reason}; what would help: {found.help}"
    if " -" in wrapper:
        return f"Claude Code would take a part of {wrapper} for an option"
    theirs = os.environ.get(PREFIX, "")
    if theirs and os.path.basename(theirs) not in (ALWAYS, UNATTENDED):
        return f'{PREFIX} is set in your environment; move it to "env" in {settings}, and it will be chained'
    if unasked and (os.path.realpath(settings) != os.path.abspath(settings) or _is_shared(settings)):
        return f"{settings} seems to be shared with other machines; if it is not: fusewire install claude --sandbox"
    return ""


def _is_shared(target: str) -> bool:
    """Whether the settings lie in a repository, as settings do that are copied to other machines."""
    folder = os.path.dirname(target)
    while folder != os.path.dirname(folder):
        if os.path.lexists(os.path.join(folder, ".git")):
            return True
        folder = os.path.dirname(folder)
    return False


def wrapper_text(line: list[str], *, always: bool) -> str:
    """The wrapper for the hook's command line; unless `always`, it leaves sessions alone that a person attends."""
    when = "" if always else _UNLESS_ATTENDED
    script = os.path.join(os.path.dirname(line[3]), "guard", "sandbox", "wrap.py")
    return _TEXT.format(when=when, python=quoted(line[0]), script=quoted(script), own=OWN_PREFIX)


def wrapper_path(settings: str, *, always: bool) -> str:
    return os.path.join(os.path.dirname(settings), ALWAYS if always else UNATTENDED)


def wrapper_files(settings: str) -> list[str]:
    """Every wrapper that may lie beside a settings file: sessions that still run use the one that they began with."""
    return [wrapper_path(settings, always=always) for always in (False, True)]


def registered_wrapper(settings: Any) -> str:
    """The wrapper of ours that settings name; empty if they name none."""
    env = settings.get("env") if isinstance(settings, dict) else None
    value = env.get(PREFIX) if isinstance(env, dict) else None
    return value if isinstance(value, str) and os.path.basename(value) in (ALWAYS, UNATTENDED) else ""


def with_wrapper(body: str, path: str, root: JsonNode, wrapper: str) -> str:
    """The settings with our wrapper; a person's own keeps its value and its place, under another name."""
    env = root.part("env")
    if env is None:
        return put_in(body, root, root, "env", {PREFIX: wrapper})
    if not isinstance(env.node.value, dict):
        raise FusewireError(f"{path}: {position(body, env.node.start)}: env must be an object, {{...}}")
    added = put_in(body, root, env.node, PREFIX, wrapper)
    return _renamed(added, env.node, PREFIX, OWN_PREFIX)


def without_wrapper(body: str, root: JsonNode, kept: Collection[str]) -> str | None:
    """The settings without it, and with the person's own under its name again; None if neither is there."""
    env = root.part("env")
    if env is None or not isinstance(env.node.value, dict):
        return None
    if not registered_wrapper(root.value):
        renamed = _renamed(body, env.node, OWN_PREFIX, PREFIX) if PREFIX not in env.node.value else body
        return renamed if renamed != body else None
    if len(env.node.parts) == 1 and "env" not in kept:
        return take_out(body, root, root.parts.index(env))
    part = env.node.part(PREFIX)
    assert part is not None
    return take_out(body, env.node, env.node.parts.index(part))


def _renamed(body: str, env: JsonNode, old: str, new: str) -> str:
    """The text with a member of `env` under another name."""
    part = env.part(old)
    if part is None or not body.startswith(f'"{old}"', part.start):
        return body
    return f'{body[: part.start]}"{new}"{body[part.start + len(old) + 2 :]}'
