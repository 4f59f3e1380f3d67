"""What all agents' payloads have in common: fields that must be there, and a tool call with its command and its paths.

Tools have the same names whoever calls them (`Bash`, `Read`, `Write`, `Edit`, `Agent`), so that a constraint, a circuit
and a limit mean the same everywhere; each agent's module translates its own.
"""

from __future__ import annotations

import os

from fusewire.agents import BadPayload
from fusewire.core.events import Event
from fusewire.guard.shell.paths import in_project
from fusewire.util.fast_json import dumps
from fusewire.util.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fusewire.util.fast_json import JsonObject

#: Without these fields a call of an agent's own tools cannot be judged; other tools may have any input.
_JUDGED_BY = {"Bash": "command", "Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path"}

_PATH_FIELDS = (
    *("file_path", "notebook_path", "path", "relative_path", "source", "destination", "src", "dst", "target"),
    *("old_path", "new_path", "paths", "files"),
)

#: Where a tool of another server says that its command runs. The agents' own shells heed no such field, unless their
#: module says so: a model that gives one must not lead us elsewhere.
_FOLDER_FIELDS = ("cwd", "workdir", "working_directory")

_COMMAND_FIELDS = ("command", "cmd", "script")

#: Hooks about one call and about the session, by the names that several agents share.
CALL_KINDS = {"PreToolUse": "before_tool", "PostToolUse": "after_tool", "PostToolUseFailure": "after_tool"}
SESSION_KINDS = {
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "Stop": "stop",
    "SubagentStart": "agent_start",
    "SubagentStop": "agent_stop",
}


def an_object(payload: Any) -> JsonObject:
    if not isinstance(payload, dict):
        raise BadPayload("a JSON object is expected")
    return payload


def required(payload: JsonObject, field: str) -> str:
    value = payload.get(field)
    if not isinstance(value, str) or not value:
        raise BadPayload(f"{field} must be a text")
    return value


def optional(payload: JsonObject, field: str) -> str | None:
    value = payload.get(field)
    return value if isinstance(value, str) else None


def given_to(tool: str, payload: JsonObject, field: str = "tool_input") -> JsonObject:
    """The input of a tool, with what it must have to be judged."""
    given = payload.get(field)
    if not isinstance(given, dict):
        raise BadPayload(f"{field} must be an object")
    needed = _JUDGED_BY.get(tool)
    if needed is not None and not isinstance(given.get(needed), str):
        raise BadPayload(f"{field}.{needed} must be a text")
    if needed == "file_path" and "\0" in given[needed]:
        raise BadPayload(f"{field}.file_path must be the path of a file")
    return given


def call_event(
    kind: str,
    hook: str,
    tool: str,
    given: JsonObject,
    *,
    agent: str,
    root: str,
    cwd: str | None,
    folders: tuple[str, ...] = (),
    **more: Any,
) -> Event:
    """One tool call; `folders` are the fields that say where it runs, `more` are further fields of the event."""
    cwd = cwd or root
    folders = folders or (_FOLDER_FIELDS if tool.startswith("mcp__") else ())
    folder = next((given[field] for field in folders if isinstance(given.get(field), str)), "")
    cwd = os.path.join(cwd, folder) if folder else cwd
    paths: list[str] = []
    for field in _PATH_FIELDS:
        value = given.get(field)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one:
                paths += in_project(one, cwd, root)
    more.setdefault("command", command_in(given))
    more.setdefault("change", _change(tool, given))
    more.setdefault("paths", tuple(paths))
    return Event(kind, hook=hook, tool=tool, cwd=cwd, agent=agent, input=given, **more)


def prompt_event(payload: JsonObject, hook: str, *, typed: bool, agent: str, **more: Any) -> Event:
    """Something was said to the agent: by a person who typed it, or by a program in a person's place."""
    more.setdefault("text", optional(payload, "prompt") or "")
    return Event("prompt" if typed else "notice", hook=hook, agent=agent, **{**_whose(payload), **more})


def session_event(payload: JsonObject, hook: str, kind: str, *, agent: str, **more: Any) -> Event:
    """The session begins or ends, a helper does, or the agent wants to stop; a stop hook may have kept it going."""
    kept_going = "again" if payload.get("stop_hook_active") is True else ""
    more.setdefault("subagent", optional(payload, "agent_id"))
    more.setdefault("text", kept_going or optional(payload, "source") or optional(payload, "agent_type") or "")
    more.setdefault("result", optional(payload, "last_assistant_message"))
    return Event(kind, hook=hook, agent=agent, **{**_whose(payload), **more})


def _whose(payload: JsonObject) -> JsonObject:
    return {"session": optional(payload, "session_id"), "transcript": optional(payload, "transcript_path")}


def answered(event: Event, result: str | None, failed: bool | None) -> Event:
    """The call with what came back; a result of None says that it never ended."""
    done: Event = event.replace(result=result, failed=failed)
    return done


def as_text(response: Any) -> str:
    """Something that came back, as one text."""
    return response if isinstance(response, str) else "" if response is None else dumps(response)


def command_in(given: JsonObject) -> str | None:
    """The command line in a tool's input; MCP tools may give it as a list, or its arguments apart."""
    for field in _COMMAND_FIELDS:
        value = given.get(field)
        arguments = given.get("args")
        apart = [*(value if isinstance(value, list) else []), *(arguments if isinstance(arguments, list) else [])]
        if value and isinstance(value, (str, list)) and all(isinstance(word, str) for word in apart):
            return " ".join([*([value] if isinstance(value, str) else []), *map(quoted, apart)])
    return None


def _change(tool: str, given: JsonObject) -> str:
    """What a changing tool would do to its files: update, empty or delete."""
    name = tool.lower()
    if any(verb in name for verb in ("delete", "remove", "move", "rename")):
        return "delete"
    content = given.get("content")
    return "empty" if isinstance(content, str) and not content.strip() and "edit" not in name else "update"
