"""Claude Code: what its hooks send, and how they want to be answered (measured on 2.1.325).

A denial is exit code 2 with the reason on stderr, and the same in JSON: exit 1, bad JSON or a time-out would let
the tool run. A call that passes gets no `permissionDecision`, because "allow" would skip the user's own permissions.
"""

from __future__ import annotations

import os

from fusewire.agents import BadPayload
from fusewire.detectors.constraints import changes_files
from fusewire.events import Event
from fusewire.paths import in_project
from fusewire.quickjson import dumps
from fusewire.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Without these fields a call of Claude Code's own tools cannot be judged; other tools may have any input.
_JUDGED_BY = {"Bash": "command", "Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path"}

#: Hooks that ask for a decision, and what they are to us.
_KINDS = {
    "PreToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "PostToolUseFailure": "after_tool",
    "UserPromptSubmit": "prompt",
}

_PATH_FIELDS = (
    *("file_path", "notebook_path", "path", "relative_path", "source", "destination", "src", "dst", "target"),
    *("old_path", "new_path", "paths", "files"),
)

#: Where the tool of another server says that its command runs.
_FOLDER_FIELDS = ("cwd", "workdir", "working_directory")

_COMMAND_FIELDS = ("command", "cmd", "script")


def started_in(payload: Any, environment: Mapping[str, str]) -> str | None:
    folder = environment.get("CLAUDE_PROJECT_DIR")
    return folder or (_optional(payload, "cwd") if isinstance(payload, dict) else None)


def parse(payload: Any, root: str) -> Event | None:
    if not isinstance(payload, dict):
        raise BadPayload("a JSON object is expected")
    hook = _text(payload, "hook_event_name")
    if hook == "PostToolBatch":
        return _batch(payload, root)
    kind = _KINDS.get(hook)
    if kind is None:
        return None
    if kind == "prompt":
        return Event(kind, hook=hook, session=_optional(payload, "session_id"), agent="claude")
    tool_input = payload.get("tool_input")
    if not isinstance(tool_input, dict):
        raise BadPayload("tool_input must be an object")
    tool = _text(payload, "tool_name")
    needed = _JUDGED_BY.get(tool)
    if needed is not None and not isinstance(tool_input.get(needed), str):
        raise BadPayload(f"tool_input.{needed} must be a text")
    if needed == "file_path" and "\0" in tool_input[needed]:
        raise BadPayload("tool_input.file_path must be the path of a file")
    return _event(kind, hook, tool, tool_input, payload, root)


def _batch(payload: dict[str, Any], root: str) -> Event:
    """All calls of one reply together: what they ran, and the files that they changed."""
    calls = payload.get("tool_calls")
    commands: list[str] = []
    paths: list[str] = []
    for call in calls if isinstance(calls, list) else []:
        tool_input = call.get("tool_input") if isinstance(call, dict) else None
        if isinstance(tool_input, dict):
            event = _event("after_tool", "PostToolBatch", str(call.get("tool_name")), tool_input, payload, root)
            commands += [event.command] if event.command else []
            paths += event.paths if changes_files(event.tool) else ()
    return Event(
        "after_tool",
        hook="PostToolBatch",
        tool="Edit" if paths else "",
        command="\n".join(commands) or None,
        paths=tuple(paths),
        session=_optional(payload, "session_id"),
        agent="claude",
    )


def _event(kind: str, hook: str, tool: str, tool_input: dict[str, Any], payload: dict[str, Any], root: str) -> Event:
    command = _command(tool_input)
    cwd = _optional(payload, "cwd") or root
    folder = next((tool_input[field] for field in _FOLDER_FIELDS if isinstance(tool_input.get(field), str)), "")
    cwd = os.path.join(cwd, folder) if folder else cwd
    paths: list[str] = []
    for field in _PATH_FIELDS:
        value = tool_input.get(field)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one:
                paths += in_project(one, cwd, root)
    return Event(
        kind,
        hook=hook,
        tool=tool,
        cwd=cwd,
        change=_change(tool, tool_input),
        command=command,
        paths=tuple(paths),
        session=_optional(payload, "session_id"),
        call=_optional(payload, "tool_use_id"),
        agent="claude",
        subagent=_optional(payload, "agent_id"),
    )


def allow() -> tuple[str, str, int]:
    return "", "", 0


def tell(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    context = {"hookEventName": hook, "additionalContext": text}
    return dumps({"hookSpecificOutput": context, "systemMessage": text}), "", 0


def halt(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    """Stop the agent. Before a call a halt alone would let the tool run, so it is refused as well; behind a call
    that failed a halt is ignored, so the text is given to the agent too."""
    stop = {"continue": False, "stopReason": text, "systemMessage": text}
    if hook == "PreToolUse":
        denial = {"hookEventName": hook, "permissionDecision": "deny", "permissionDecisionReason": text}
        return dumps({**stop, "hookSpecificOutput": denial}), text, 2
    context = {"hookEventName": hook, "additionalContext": text}
    return dumps({**stop, "hookSpecificOutput": context}), "", 0


def deny(text: str) -> tuple[str, str, int]:
    denial = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": text}
    return dumps({"hookSpecificOutput": denial}), text, 2


def _command(tool_input: dict[str, Any]) -> str | None:
    """The command line in a tool's input; MCP tools may give it as a list, or its arguments apart."""
    for field in _COMMAND_FIELDS:
        value = tool_input.get(field)
        arguments = tool_input.get("args")
        apart = [*(value if isinstance(value, list) else []), *(arguments if isinstance(arguments, list) else [])]
        if value and isinstance(value, (str, list)) and all(isinstance(word, str) for word in apart):
            return " ".join([*([value] if isinstance(value, str) else []), *map(quoted, apart)])
    return None


def _change(tool: str, tool_input: dict[str, Any]) -> str:
    """What a changing tool would do to its files: update, empty or delete."""
    name = tool.lower()
    if any(verb in name for verb in ("delete", "remove", "move", "rename")):
        return "delete"
    content = tool_input.get("content")
    return "empty" if isinstance(content, str) and not content.strip() and "edit" not in name else "update"


def _text(payload: dict[str, Any], field: str) -> str:
    value = payload.get(field)
    if not isinstance(value, str) or not value:
        raise BadPayload(f"{field} must be a text")
    return value


def _optional(payload: dict[str, Any], field: str) -> str | None:
    value = payload.get(field)
    return value if isinstance(value, str) else None
