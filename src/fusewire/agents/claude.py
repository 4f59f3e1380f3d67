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

#: Hooks about one tool call, and those about the session.
_CALL_KINDS = {"PreToolUse": "before_tool", "PostToolUse": "after_tool", "PostToolUseFailure": "after_tool"}
_SESSION_KINDS = {
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "Stop": "stop",
    "SubagentStart": "agent_start",
    "SubagentStop": "agent_stop",
}

#: A "prompt" that nobody typed: a helper reports back, another session writes, or the agent's own program does.
_NOT_A_PERSON = (
    *("<task-notification>", "<system-reminder>", "<cross-session-message", "<teammate-message"),
    *("[SYSTEM NOTIFICATION", "Another Claude session sent a message:"),
)

_PATH_FIELDS = (
    *("file_path", "notebook_path", "path", "relative_path", "source", "destination", "src", "dst", "target"),
    *("old_path", "new_path", "paths", "files"),
)

#: Where the tool of another server says that its command runs.
_FOLDER_FIELDS = ("cwd", "workdir", "working_directory")

_COMMAND_FIELDS = ("command", "cmd", "script")

#: Fields of a result that are different each time.
_CHANCE = frozenset(("agentId", "outputFile", "harnessSectionHash", "usage", "totalTokens"))


def started_in(payload: Any, environment: Mapping[str, str]) -> str | None:
    folder = environment.get("CLAUDE_PROJECT_DIR")
    return folder or (_optional(payload, "cwd") if isinstance(payload, dict) else None)


def parse(payload: Any, root: str) -> Event | None:
    if not isinstance(payload, dict):
        raise BadPayload("a JSON object is expected")
    hook = _text(payload, "hook_event_name")
    if hook == "PostToolBatch":
        return _batch(payload, root)
    if hook == "UserPromptSubmit":
        return _prompt(payload)
    if hook in _SESSION_KINDS:
        return _session(payload, hook)
    kind = _CALL_KINDS.get(hook)
    if kind is None:
        return None
    tool_input = payload.get("tool_input")
    if not isinstance(tool_input, dict):
        raise BadPayload("tool_input must be an object")
    tool = _text(payload, "tool_name")
    needed = _JUDGED_BY.get(tool)
    if needed is not None and not isinstance(tool_input.get(needed), str):
        raise BadPayload(f"tool_input.{needed} must be a text")
    if needed == "file_path" and "\0" in tool_input[needed]:
        raise BadPayload("tool_input.file_path must be the path of a file")
    event = _event(kind, hook, tool, tool_input, payload, root)
    if kind == "before_tool":
        return event
    if hook == "PostToolUseFailure":
        if payload.get("is_interrupt") is True:
            return _answered(event, None, None)
        return _answered(event, _optional(payload, "error") or "", True)
    response = payload.get("tool_response")
    interrupted = isinstance(response, dict) and response.get("interrupted") is True
    says_error = isinstance(response, dict) and (response.get("is_error") is True or response.get("isError") is True)
    answered = _answered(event, None, None) if interrupted else _answered(event, _result(response), says_error)
    helper = response.get("agentId") if isinstance(response, dict) else None
    named: Event = answered.replace(text=helper) if isinstance(helper, str) else answered
    return named


def _answered(event: Event, result: str | None, failed: bool | None) -> Event:
    answered: Event = event.replace(result=result, failed=failed)
    return answered


def _prompt(payload: dict[str, Any]) -> Event:
    text = _optional(payload, "prompt") or ""
    kind, ended = "prompt", ""
    if text.lstrip().startswith(_NOT_A_PERSON):
        kind = "notice"
        ended = text.partition("<task-id>")[2].partition("</task-id>")[0].strip()
    return Event(
        kind,
        hook="UserPromptSubmit",
        session=_optional(payload, "session_id"),
        agent="claude",
        text=text,
        subagent=ended or None,
        transcript=_optional(payload, "transcript_path"),
    )


def _session(payload: dict[str, Any], hook: str) -> Event:
    """The session begins or ends, a helper does, or the agent wants to stop; a stop hook may have kept it going."""
    tasks = payload.get("background_tasks")
    running = None
    if isinstance(tasks, list):
        running = tuple(
            str(task.get("id")) for task in tasks if isinstance(task, dict) and task.get("status") == "running"
        )
    kept_going = "again" if payload.get("stop_hook_active") is True else ""
    return Event(
        _SESSION_KINDS[hook],
        hook=hook,
        session=_optional(payload, "session_id"),
        agent="claude",
        subagent=_optional(payload, "agent_id"),
        text=_optional(payload, "agent_type") or _optional(payload, "source") or kept_going,
        transcript=_optional(payload, "transcript_path"),
        running=running,
    )


def _result(response: Any) -> str:
    """What came back, as one text. How long it took is no part of it."""
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        if isinstance(response.get("stdout"), str):
            return "\n".join(part for part in (response["stdout"], response.get("stderr")) if isinstance(part, str))
        kept = {key: value for key, value in response.items() if not key.endswith(("Ms", "_ms")) and key not in _CHANCE}
        return dumps(kept)
    return "" if response is None else dumps(response)


def _batched(text: str) -> bool | None:
    """Whether a call failed, from the text that the model is shown of it; None if that does not say."""
    if text.startswith("PreToolUse:"):
        return None  # it was refused, and never ran
    if text.startswith("<tool_use_error>"):
        return True
    first = text.partition("\n")[0]
    return first.startswith("Exit code ") and first[10:].isdigit()


def _batch(payload: dict[str, Any], root: str) -> Event:
    """All calls of one reply together: what they ran, and the files that they changed."""
    calls = payload.get("tool_calls")
    commands: list[str] = []
    paths: list[str] = []
    events = []
    for call in calls if isinstance(calls, list) else []:
        tool_input = call.get("tool_input") if isinstance(call, dict) else None
        if isinstance(tool_input, dict):
            given = {**payload, "tool_use_id": call.get("tool_use_id")}
            event = _event("after_tool", "PostToolBatch", str(call.get("tool_name")), tool_input, given, root)
            text = _result(call.get("tool_response"))
            events.append(_answered(event, text, _batched(text)))
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
        subagent=_optional(payload, "agent_id"),
        transcript=_optional(payload, "transcript_path"),
        calls=tuple(events),
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
        input=tool_input,
        transcript=_optional(payload, "transcript_path"),
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
    if hook == "Stop":  # the agent is not to go on, so there is nobody to tell
        return dumps(stop), "", 0
    context = {"hookEventName": hook, "additionalContext": text}
    return dumps({**stop, "hookSpecificOutput": context}), "", 0


def inform(text: str) -> tuple[str, str, int]:
    """Tell the person, not the agent."""
    return dumps({"systemMessage": text}), "", 0


def deny(text: str, hook: str = "PreToolUse") -> tuple[str, str, int]:
    if hook == "UserPromptSubmit":
        return dumps({"decision": "block", "reason": text}), "", 0
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
