"""Merge our entries into the text of a settings file, and remove them; everything of the user's stays as it is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from fusewire.agents.claude.shell_wrapper import registered_wrapper, with_wrapper, without_wrapper
from fusewire.agents.install.client import Client
from fusewire.agents.install.command import is_our_status_line, is_ours, shell_line
from fusewire.agents.install.files import parse_settings, parse_text, split_mark
from fusewire.agents.install.http import Http
from fusewire.agents.install.json_edit import put_in, take_out
from fusewire.agents.install.jsonc import COMMENT, JsoncError, JsonNode, beyond_json, position, read
from fusewire.util.errors import FusewireError
from fusewire.util.fast_json import JsonObject

STATUS_LINE = "statusLine"


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What is to stand in the settings of an agent."""

    client: Client
    #: the hook's command line
    line: list[str]
    #: where reports go, if not to processes
    http: Http | None = None
    #: our status line too
    status: bool = False
    #: the shell wrapper; empty for none
    wrapper: str = ""

    def entries(self) -> dict[str, JsonObject]:
        """event -> the entry that is wanted in its list."""
        client, http = self.client, self.http
        return {
            event: client.entry(
                event,
                http.handler(client.name)
                if http is not None and event in client.reports
                else client.handler(event, self.line),
            )
            for event in client.events
        }


def registered(settings: Any, client: Client) -> dict[str, list[JsonObject]]:
    """event -> hooks of ours that are registered for it."""
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    found: dict[str, list[JsonObject]] = {}
    for event, entries in hooks.items() if isinstance(hooks, dict) else ():
        for entry in entries if isinstance(entries, list) else ():
            ours = [handler for handler in client.handlers(entry) if is_ours(handler, client.name)]
            if ours:
                found.setdefault(event, []).extend(ours)
    return found


def add_entries(text: str | None, path: str, wanted: InstallOptions) -> str:
    """A text without our entries, now with them; with our status line only if the user has none."""
    mark, body = split_mark(text or "")
    if not body.strip():
        body = wanted.client.empty
    entries = wanted.entries()
    hooks = parse_settings(body, path).value.get("hooks")
    there = [event for event in hooks if event in entries] if isinstance(hooks, dict) else []
    for event in dict.fromkeys([*there, *entries]):  # from top to bottom: they are taken out from bottom to top
        body = _add_entry(body, path, event, entries[event])
    root = parse_settings(body, path)
    if wanted.status and root.part(STATUS_LINE) is None:
        body = put_in(body, root, root, STATUS_LINE, status_line(wanted.line))
    if wanted.wrapper:
        body = with_wrapper(body, path, parse_settings(body, path), wanted.wrapper)
    return mark + body


def status_line(line: list[str]) -> JsonObject:
    """Its end is shown where the line would be: on standard output."""
    gone = "echo 'fusewire GONE: nothing is guarded any more'; exit 0"
    return {"type": "command", "command": shell_line([*line[:-1], "statusline", "--color"], gone)}


def has_our_status_line(text: str, path: str) -> bool:
    root = parse_text(text, path)
    return root is not None and is_our_status_line(root.value.get(STATUS_LINE))


def is_current(text: str, path: str, wanted: InstallOptions, *, any_wrapper: bool = False) -> bool:
    """Whether the text has exactly the entries of today, each once."""
    root = parse_text(text, path)
    settings = {} if root is None else root.value
    if not any_wrapper and registered_wrapper(settings) != wanted.wrapper:
        return False
    shown = settings.get(STATUS_LINE)
    if (wanted.status and shown is None) or (is_our_status_line(shown) and shown != status_line(wanted.line)):
        return False
    entries = wanted.entries()
    ours = registered(settings, wanted.client)
    return ours.keys() == entries.keys() and all(
        len(ours[event]) == 1 and entry in settings["hooks"][event] for event, entry in entries.items()
    )


def refuse_unread(text: str | None, path: str, client: Client) -> None:
    """What the agent itself does not take for JSON: it would skip the file, and the hooks in it, and say nothing."""
    mark, body = split_mark(text or "")
    if not body.strip():
        return
    parse_settings(body, path)
    unread = [(at, what) for at, what in beyond_json(body) if what != COMMENT or not client.reads_comments]
    if mark and not client.reads_byte_order_mark:
        unread.insert(0, (0, "a byte order mark"))
    if unread:
        at, what = unread[0]
        raise FusewireError(
            f"{path}: {position(body, at)}: {what}; {client.title} cannot read that, and skips the file: take it out"
        )


def refuse_switched_off(text: str | None, path: str, client: Client) -> None:
    """Hooks that never run would only seem to guard."""
    root = parse_text(text, path)
    if root is None:
        return
    for keys, cure in client.switches(root.value):
        node, at = root, 0
        for key in keys:
            part = node.part(key)
            assert part is not None
            node, at = part.node, part.start
        where = position(split_mark(text or "")[1], at)
        raise FusewireError(f"{path}: {where}: {'.'.join(keys)} switches hooks off; {cure}, then install again")


def remove_entries(text: str, before: str | None, path: str, client: Client) -> str | None:
    """The text without our entries and without what was made for them; None if the whole file was.

    `before` is what is known of the file from before us: what was empty there stays.
    """
    mark, body = split_mark(text)
    if not body.strip():
        return text
    kept = _known(before)
    changed = False
    while (cut := _cut(body, parse_settings(body, path), client, kept)) is not None:
        body, changed = cut, True
    if not changed:
        return text
    if "".join(body.split()) == "".join(client.empty.split()) and (before is None or not split_mark(before)[1].strip()):
        return before
    return mark + body


def _known(before: str | None) -> JsonObject:
    try:
        value = read(split_mark(before or "{}")[1]).value
    except JsoncError:
        return {}
    return value if isinstance(value, dict) else {}


def _add_entry(body: str, path: str, event: str, entry: JsonObject) -> str:
    root = parse_settings(body, path)
    hooks = root.part("hooks")
    if hooks is None:
        return put_in(body, root, root, "hooks", {event: [entry]})
    if not isinstance(hooks.node.value, dict):
        raise FusewireError(f"{path}: {position(body, hooks.node.start)}: hooks must be an object, {{...}}")
    entries = hooks.node.part(event)
    if entries is None:
        return put_in(body, root, hooks.node, event, [entry])
    if not isinstance(entries.node.value, list):
        raise FusewireError(f"{path}: {position(body, entries.node.start)}: hooks.{event} must be a list, [...]")
    return put_in(body, root, entries.node, None, entry)


def _cut(body: str, root: JsonNode, client: Client, kept: JsonObject) -> str | None:
    """The text without the last thing that is ours, and without what that leaves empty; None if nothing is."""
    line = root.part(STATUS_LINE)
    if line is not None and is_our_status_line(line.node.value):
        return take_out(body, root, root.parts.index(line))
    unwrapped = without_wrapper(body, root, kept) if client.wraps_shell else None
    if unwrapped is not None:
        return unwrapped
    hooks = root.part("hooks")
    if hooks is None or not isinstance(hooks.node.value, dict):
        return None
    kept_events: Collection[str] = kept["hooks"] if isinstance(kept.get("hooks"), dict) else ()
    for at, event in reversed(list(enumerate(hooks.node.parts))):
        if not isinstance(event.node.value, list):
            continue
        for index, entry in reversed(list(enumerate(event.node.parts))):
            handlers = client.handlers(entry.node.value)
            ours = [number for number, handler in enumerate(handlers) if is_ours(handler, client.name)]
            if not ours:
                continue
            if len(ours) < len(handlers):  # somebody has put it among others
                inner = entry.node.part("hooks")
                assert inner is not None
                return take_out(body, inner.node, ours[-1])
            if len(event.node.parts) > 1 or event.key in kept_events or _shadows(hooks.node, event.key):
                return take_out(body, event.node, index)
            if len(hooks.node.parts) > 1 or "hooks" in kept or _shadows(root, "hooks"):
                return take_out(body, hooks.node, at)
            return take_out(body, root, root.parts.index(hooks))
    return None


def _shadows(box: JsonNode, key: str | None) -> bool:
    """Whether the name is there twice: without the second, the first would hold again."""
    return sum(part.key == key for part in box.parts) > 1
